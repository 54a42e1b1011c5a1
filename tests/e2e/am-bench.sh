#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The measurements of Active Messages run to their ends: am-bench.sh BUILD
#
# One round each, for what they say and not for the figures: the machine may be busy.
set -u
build=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
bench=$(readlink -f "$here/../../bench/am")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

. "$here/cases.sh"
limit=180
export bench build tmp

# lines COMMAND...: how many lines have a ratio that is one, and how many of them a verdict
lines() {
	"$@" >"$tmp/lines" || return
	cat "$tmp/lines"
	awk '{ for (i = 1; i < NF; i++) if ($i == "ratio" && $(i + 1) ~ /^[0-9.]+$/) ratios++ }
		/: (met|MISSED)$/ { verdicts++ }
		END { printf "%d ratios, %d verdicts\n", ratios, verdicts }' \
		"$tmp/lines"
}
export -f lines

# where the drivers cannot be compared, the reason stands there
expected="^12 ratios, 9 verdicts$"
root=no
if [ "$(id -u)" = 0 ] && ip netns add am-bench-$$ 2>/dev/null; then
	ip netns del am-bench-$$
	root=yes
	[ ! -x "$build/bench/am/barexdp" ] || expected="^16 ratios, 11 verdicts$"
fi
check "against bare UDP, and the drivers with each other" 0 "$expected" \
	bash -c 'lines "$bench/run.py" "$build" 1'
check "curves" 0 "^4 drawings of 32 points" bash -c '
	"$bench/plot.py" "$build" "$tmp/curves" 1 100 &&
	cd "$tmp/curves" && echo $(ls *.svg | wc -l) drawings of $(cat *.txt | wc -l) points'

mkdir -p "$tmp/without/bench/am"
ln -s "$build/bench/am/amside" "$tmp/without/bench/am/"
check "AF_XDP that is not built in" 77 "not measured: this build has no libxdp" \
	"$bench/xdp.sh" "$tmp/without" 1
if [ $root = no ] || [ ! -x "$build/bench/am/barexdp" ]; then
	skip "AF_XDP that the kernel refuses" "needs root and libxdp"
	skip "no network namespaces" "needs root and libxdp"
else
	check "AF_XDP that the kernel refuses" 77 "not measured: .*no AF_XDP on v[ab]: " \
		setpriv --inh-caps -net_raw --bounding-set -net_raw "$bench/xdp.sh" "$build" 1
	check "no network namespaces" 77 "not measured: no network namespaces" \
		setpriv --inh-caps -sys_admin --bounding-set -sys_admin "$bench/xdp.sh" "$build" 1
fi
echo "1..$count"
