#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Several threads on AF_XDP: am_xdp.sh PROGRAM, which is tests/threads/am.c
#
#   namespace A: 10.77.0.1 va ------ veth pair ------ vb 10.77.0.2 :namespace B
set -u
A=am-t-$$ B=am-u-$$
ip netns add "$A" 2>/dev/null || {
	echo "1..0 # SKIP no network namespaces (needs root)"
	exit 0
}
trap 'ip netns del "$A"; ip netns del "$B"' EXIT
ip netns add "$B"
ip link add va netns "$A" type veth peer name vb netns "$B"
ip -n "$A" addr add 10.77.0.1/24 dev va
ip -n "$B" addr add 10.77.0.2/24 dev vb
for end in "$A va" "$A lo" "$B vb" "$B lo"; do
	ip -n "${end% *}" link set "${end#* }" up
done
AMUDP_NIC=xdp AM_TEST_PLACES="$A 10.77.0.1 $B 10.77.0.2" "$1"
