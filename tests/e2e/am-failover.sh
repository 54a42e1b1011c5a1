#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Links cut under load: am-failover.sh BUILD
#
#   namespace A                          namespace B
#   console, rank 0                      ranks 1 and 2
#   10.81.0.1  a1 ------ first ------ b1  10.81.0.2    cut a second after all ranks run
#   10.82.0.1  a2 ------ second ----- b2  10.82.0.2
#   10.83.0.1  a3 ------ console ---- b3  10.83.0.2    TCP only
set -u
build=$(readlink -f "$1")
apps=$build/apps
counter=$build/tests/e2e/am-compat/am_count
tmp=$(mktemp -d)
A=am-f-$$ B=am-g-$$
count=0

ip netns add "$A" 2>/dev/null || { echo "1..0 # SKIP no network namespaces (needs root)"; exit 0; }
trap 'ip netns del "$A"; ip netns del "$B"; rm -rf "$tmp"' EXIT
ip netns add "$B"
ip -n "$A" link set lo up
ip -n "$B" link set lo up
for i in 1 2 3; do
	ip link add "a$i" netns "$A" type veth peer name "b$i" netns "$B"
	ip -n "$A" addr add "10.8$i.0.1/24" dev "a$i"
	ip -n "$B" addr add "10.8$i.0.2/24" dev "b$i"
	ip -n "$A" link set "a$i" up
	ip -n "$B" link set "b$i" up
done
export XDG_RUNTIME_DIR=$tmp WARPSOCK_LOG=info
export MASTERIP=10.83.0.1 CSPAWN_ROUTE_OUTPUT=1 AMUDP_PATHS=10.82.0.1,10.82.0.2
two="AMUDP_SLAVE_RANK=0 WORKERIP=10.81.0.1 ip netns exec $A %C & \
	AMUDP_SLAVE_RANK=1 WORKERIP=10.81.0.2 ip netns exec $B %C &"
three="$two AMUDP_SLAVE_RANK=2 WORKERIP=10.81.0.2 ip netns exec $B %C &"
export CSPAWN_CMD="$two wait"

# cut NAME PATTERN COMMAND...: the first link goes down while RANKS of them run, and at least
# LEAST of them say so, and that they go on by the driver
cut() {
	local name=$1 pattern=$2 job code i
	shift 2
	count=$((count + 1))
	ip -n "$A" link set a1 up
	sleep 0.3
	timeout 250 ip netns exec "$A" "$@" >"$tmp/out" 2>&1 </dev/null &
	job=$!
	for i in $(seq 200); do
		[ "$(ls "$tmp"/warpsock/am-* 2>/dev/null | wc -l)" -lt $ranks ] || break
		sleep 0.1
	done
	sleep 1
	ip -n "$A" link set a1 down
	wait "$job"
	code=$?
	if [ $code -eq 0 ] && grep -qE -- "$pattern" "$tmp/out" &&
		[ "$(grep -c "path 0 is down, path 1 takes over, by $driver" "$tmp/out")" \
			-ge "$least" ]; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		echo "# code $code"
		head -20 "$tmp/out" | sed 's/^/# /'
	fi
}

ranks=2 least=2 driver=udp
cut "reductions: no message lost or run twice" ": 0 wrong sums" "$apps/am-reduce" 2 C 4s
cut "puts and gets" ": 0 damaged" "$apps/am-getput" 2 C 300000 4s
cut "many messages under way, counted" " 0 twice, 0 returned" "$counter" 2 C 3s
cut "many transfers under way, counted" " 0 twice, 0 returned" "$counter" 2 C 3s size 100000
least=1 # who is in qsort() does not poll, and may be done behind it
cut "a sort" "sorted" "$apps/am-sort" 2 C 20000000
least=2
cut "reductions with faults" ": 0 wrong sums" env AMUDP_FAULT_RATE=0.05 "$apps/am-reduce" 2 C 4s
ranks=3 least=3 CSPAWN_CMD="$three wait"
cut "three ranks" ": 0 wrong sums" "$apps/am-reduce" 3 C 4s
ranks=2 least=2 CSPAWN_CMD="$two wait"
if [ -e "$build/am/libamudp.so" ] && ldd "$build/am/libamudp.so" | grep -q libxdp; then
	driver=xdp
	export AMUDP_NIC=xdp
	cut "by AF_XDP on both links" ": 0 damaged" "$apps/am-getput" 2 C 300000 4s
	cut "many messages by AF_XDP, counted" " 0 twice, 0 returned" "$counter" 2 C 3s
	cut "many transfers by AF_XDP, counted" " 0 twice, 0 returned" "$counter" 2 C 3s \
		size 100000
	least=1
	cut "a sort by AF_XDP" "sorted" "$apps/am-sort" 2 C 20000000
else
	count=$((count + 1))
	echo "ok $count - by AF_XDP on both links # SKIP built without libxdp"
fi
unset AMUDP_NIC
# missed NAME LIST LINES: how many are told of addresses that neither of the two machines has
missed() {
	local got
	count=$((count + 1))
	got=$(AMUDP_PATHS=$2 timeout 60 ip netns exec "$A" "$apps/am-reduce" 2 C 10 2>&1 |
		grep -c "PATHS names")
	[ "$got" = "$3" ] || echo -n "not "
	echo "ok $count - $1"
}
missed "addresses of the other machine are no fault" "$AMUDP_PATHS" 0
missed "addresses of neither are told once" "$AMUDP_PATHS,10.82.0.9" 1
echo "1..$count"
