#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# AF_XDP against UDP, and against bare AF_XDP, between two namespaces, in turns:
# xdp.sh [--realtime] BUILD [ROUNDS]; where a ratio has a goal, it says whether it is met. Where
# nothing can be measured it says why, and ends with 77.
#
#   namespace A: console, rank 0  10.85.0.1 va ------ veth pair ------ vb 10.85.0.2  rank 1 :B
set -eu
first=()
[ "$1" != --realtime ] || { first=(chrt -f 10); shift; }
side=$(readlink -f "$1")/bench/am/amside bare=$(readlink -f "$1")/bench/am/barexdp
rounds=${2:-5}
A=am-x-$$ B=am-y-$$

cannot() {
	echo "AF_XDP against UDP: not measured: $*"
	exit 77
}

[ -x "$bare" ] || cannot "this build has no libxdp or no libbpf (./dev packages build)"
trap 'ip netns del "$A"; ip netns del "$B"' EXIT
said=$({ ip netns add "$A" && ip netns add "$B"; } 2>&1) || {
	trap - EXIT
	ip netns del "$A" 2>/dev/null || true
	cannot "no network namespaces, which need root and ip(8): $said"
}
ip link add va netns "$A" type veth peer name vb netns "$B"
ip -n "$A" addr add 10.85.0.1/24 dev va
ip -n "$B" addr add 10.85.0.2/24 dev vb
for end in "$A va" "$A lo" "$B vb" "$B lo"; do
	ip -n "${end% *}" link set "${end#* }" up
done
export MASTERIP=10.85.0.1 CSPAWN_ROUTE_OUTPUT=1
export CSPAWN_CMD="AMUDP_SLAVE_RANK=0 ip netns exec $A %C & \
	AMUDP_SLAVE_RANK=1 ip netns exec $B %C & wait"

run() { timeout 60 ip netns exec "$A" "${first[@]}" "$side" 2 C "$@"; }
xdp() { AMUDP_NIC=xdp run "$@"; }
udp() { AMUDP_NIC=udp run "$@"; }

# bare AF_XDP: frames of a whole MTU without the IP and UDP headers
bare() {
	local sender
	ip netns exec "$B" "${first[@]}" taskset -c 1 "$bare" vb send 1472 &
	sender=$!
	timeout 60 ip netns exec "$A" "${first[@]}" taskset -c 0 "$bare" va receive 0.3
	kill "$sender"
	wait "$sender" 2>/dev/null
}

# compare GOAL LEFT RIGHT WHAT...: in turns; medians, and the median of the ratios; 0 is no goal,
# one below 0 is the least that the ratio may be
compare() {
	local goal=$1 left=$2 right=$3 i
	shift 3
	for ((i = 0; i < rounds; i++)); do
		echo "$($left "$@") $($right "$@")"
	done | awk -v goal="$goal" -v what="$*" -v left="$left" -v right="$right" '
		{ x[NR] = $1; u[NR] = $2; r[NR] = $1 / $2 }
		END { sort(x, NR); sort(u, NR); sort(r, NR); m = int((NR + 1) / 2)
		if (goal > 0) met = "  <= " goal ": " (r[m] <= goal ? "met" : "MISSED")
		if (goal < 0) met = "  >= " (-goal) ": " (r[m] >= -goal ? "met" : "MISSED")
		printf "%-24s %s %14.2f  %-4s %14.2f  ratio %.2f%s\n",
			what, left, x[m], right, u[m], r[m], met }
		function sort(v, n,  i, j, t) { for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] > v[j]; j--)
		{ t = v[j]; v[j] = v[j - 1]; v[j - 1] = t } }'
}

# without it our endpoints have UDP, and UDP would be compared with itself
said=$(AMUDP_VERBOSEENV=1 xdp pingpong 64 100 spin 2>&1) || true
[ "$(grep -c 'NIC = xdp' <<<"$said")" = 2 ] ||
	cannot "the endpoints have no AF_XDP: $(grep -m 1 'no AF_XDP' <<<"$said")"

compare 0.65 xdp udp pingpong 64 10000 spin
compare 0 xdp udp rate 64 0.3
compare -0.5 xdp udp bulk 0.3
compare 0 xdp bare bulk 0.3
