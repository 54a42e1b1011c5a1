#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# AF_XDP against UDP between two namespaces, in turns: xdp.sh [--realtime] BUILD [ROUNDS]
#
#   namespace A: console, rank 0  10.85.0.1 va ------ veth pair ------ vb 10.85.0.2  rank 1 :B
set -eu
first=()
[ "$1" != --realtime ] || { first=(chrt -f 10); shift; }
side=$(readlink -f "$1")/bench/am/amside
rounds=${2:-5}
A=am-x-$$ B=am-y-$$
ip netns add "$A"
ip netns add "$B"
trap 'ip netns del "$A"; ip netns del "$B"' EXIT
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

for what in "pingpong 64 10000 spin" "rate 64 0.3" "bulk 0.3"; do
	for ((i = 0; i < rounds; i++)); do
		# shellcheck disable=SC2086
		echo "$(AMUDP_NIC=xdp run $what) $(AMUDP_NIC=udp run $what)"
	done | awk -v what="$what" '{ x[NR] = $1; u[NR] = $2; r[NR] = $1 / $2 }
		END { n = asort_(x, NR); asort_(u, NR); asort_(r, NR); m = int((NR + 1) / 2)
		printf "%-24s xdp %14.2f  udp %14.2f  ratio %.2f\n", what, x[m], u[m], r[m] }
		function asort_(v, n,  i, j, t) { for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] > v[j]; j--)
		{ t = v[j]; v[j] = v[j - 1]; v[j - 1] = t } }'
done
