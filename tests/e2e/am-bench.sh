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
	awk '{ for (i = 1; i < NF; i++) if ($i == "ratio" && $(i + 1) > 0) ratios++ }
		/: (met|MISSED)$/ { verdicts++ }
		END { printf "%d ratios, %d verdicts\n", ratios, verdicts }' \
		"$tmp/lines"
}
export -f lines

check "against bare UDP" 0 "^11 ratios, 9 verdicts$" \
	bash -c 'lines "$bench/run.py" "$build" 1'
check "curves" 0 "^4 drawings of 32 points" bash -c '
	"$bench/plot.py" "$build" "$tmp/curves" 1 100 &&
	cd "$tmp/curves" && echo $(ls *.svg | wc -l) drawings of $(cat *.txt | wc -l) points'

if [ ! -x "$build/bench/am/barexdp" ]; then
	skip "AF_XDP against UDP" "built without libxdp"
elif ! ip netns add am-bench-$$ 2>/dev/null; then
	skip "AF_XDP against UDP" "no network namespaces (needs root)"
else
	ip netns del am-bench-$$
	check "AF_XDP against UDP" 0 "^4 ratios, 2 verdicts$" \
		bash -c 'lines "$bench/xdp.sh" "$build" 1'
fi
echo "1..$count"
