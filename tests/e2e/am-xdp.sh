#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Active Messages past the kernel: am-xdp.sh BUILD [LINK LINK]
#
#   namespace A                         namespace B
#   console, rank 0                     rank 1
#   10.77.0.1  va ------ veth pair ------ vb  10.77.0.2
#   10.78.0.1  wa ------ veth pair ------ wb  10.78.0.2   for moves
#   10.79.0.1  xa ------ veth pair ------ xb  10.79.0.2
#
#   10.76.1.1  ra --- namespace C 10.76.1.9, 10.76.2.9 --- rb  10.76.2.2
#
#   10.75.0.1  ea --- bridge in C --- eb  10.75.0.2
#   10.75.0.3  ed ----+        +----- ee  10.75.0.4
#     namespace D                   namespace E
#
# With two interfaces of this machine, whose drivers can do without copies, instead of the pair, and
# without the bridge, whose links can't: tests/vm/zerocopy.sh
set -u
export PASS_ENV=A_TEST_KEY # of classic.c
build=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
include=$(readlink -f "$here/../../include")
apps=$build/apps
counter=$build/tests/e2e/am-compat/am_count
tmp=$(mktemp -d)
A=am-a-$$ B=am-b-$$ C=am-c-$$ D=am-d-$$ E=am-e-$$
count=0

skip() { echo "1..0 # SKIP $1"; exit 0; }

[ -e "$build/am/libamudp.so" ] || skip "the library is not built"
ldd "$build/am/libamudp.so" | grep -q libxdp || skip "built without libxdp"
ip netns add "$A" 2>/dev/null || skip "no network namespaces (needs root)"
trap 'for i in "$A" "$B" "$C" "$D" "$E"; do ip netns del "$i"; done; rm -rf "$tmp"' EXIT
for i in "$B" "$C" "$D" "$E"; do ip netns add "$i"; done
# join NAMESPACE INTERFACE ADDRESS NAMESPACE INTERFACE ADDRESS: by a veth pair
join() {
	ip link add "$2" netns "$1" type veth peer name "$5" netns "$4"
	ip -n "$1" addr add "$3/24" dev "$2"
	ip -n "$4" addr add "$6/24" dev "$5"
}
if [ $# = 3 ]; then
	mode="zero-copy, native"
	hook=$mode
	veths=""
	ip link set "$2" netns "$A" name va
	ip link set "$3" netns "$B" name vb
	ip -n "$A" addr add 10.77.0.1/24 dev va
	ip -n "$B" addr add 10.77.0.2/24 dev vb
else
	mode="copy mode, generic; zero-copy: Operation not supported"
	hook="copy mode, native"
	veths=yes
	join "$A" va 10.77.0.1 "$B" vb 10.77.0.2
fi
join "$A" wa 10.78.0.1 "$B" wb 10.78.0.2
join "$A" xa 10.79.0.1 "$B" xb 10.79.0.2
join "$A" ra 10.76.1.1 "$C" ca 10.76.1.9
join "$B" rb 10.76.2.2 "$C" cb 10.76.2.9
ip netns exec "$C" sysctl -qw net.ipv4.ip_forward=1
for link in "$A va" "$A wa" "$A xa" "$A ra" "$A lo" "$B vb" "$B wb" "$B xb" "$B rb" "$B lo" \
	"$C ca" "$C cb"; do
	# shellcheck disable=SC2086
	set -- $link
	ip -n "$1" link set "$2" up
done
bridge_four() {
	local namespace i=0
	ip -n "$C" link add bridge type bridge
	ip -n "$C" link set bridge up
	for namespace in "$A:ea" "$B:eb" "$D:ed" "$E:ee"; do
		i=$((i + 1))
		ip link add "${namespace#*:}" netns "${namespace%:*}" type veth \
			peer name "e$i" netns "$C"
		ip -n "$C" link set "e$i" master bridge up
		ip -n "${namespace%:*}" addr add "10.75.0.$i/24" dev "${namespace#*:}"
		ip -n "${namespace%:*}" link set "${namespace#*:}" up
		ip -n "${namespace%:*}" link set lo up
	done
}
[ -z "$veths" ] || bridge_four
ip -n "$A" route add 10.76.2.0/24 via 10.76.1.9
ip -n "$B" route add 10.76.1.0/24 via 10.76.2.9

export XDG_RUNTIME_DIR=$tmp WARPSOCK_LOG=info AMUDP_NIC=xdp
export MASTERIP=10.77.0.1 CSPAWN_ROUTE_OUTPUT=1
ranks() {
	echo "AMUDP_SLAVE_RANK=0 ${1:-} ip netns exec $A %C & \
		AMUDP_SLAVE_RANK=1 ${2:-} ip netns exec $B %C & wait"
}
export CSPAWN_CMD=$(ranks)

# check NAME PATTERN COMMAND...: in namespace A; ends well, with a line of the output
check() {
	local name=$1 pattern=$2
	shift 2
	count=$((count + 1))
	if timeout 300 ip netns exec "$A" "$@" >"$tmp/out" 2>&1 </dev/null &&
		grep -qE -- "$pattern" "$tmp/out"; then
		echo "ok $count - $name"
	else
		echo "not ok $count - $name"
		head -20 "$tmp/out" | sed 's/^/# /'
	fi
}

attached() { ip -n "$A" link show va | grep -q xdp || ip -n "$B" link show vb | grep -q xdp; }

check "the interface is taken on rank 0: $mode" "AF_XDP on va, $mode" "$apps/am-ping" 2 C 500
check "the interface is taken on rank 1: $mode" "AF_XDP on vb, $mode" "$apps/am-ping" 2 C 500
# past NAME COMMAND...: the kernel of A sends few datagrams while thousands of messages are made
datagrams() { ip netns exec "$A" awk '/^Udp: [0-9]/ { print $5 }' /proc/net/snmp; }
past() {
	local name=$1 before kernel
	shift
	before=$(datagrams)
	check "$name" "latency size 64" "$@"
	kernel=$(($(datagrams) - before))
	count=$((count + 1))
	[ "$kernel" -lt 500 ] && echo "ok $count - $name: they go past the kernel" ||
		echo "not ok $count - $name: it sent $kernel datagrams"
}
past "round trips" "$apps/am-ping" 2 C 2000
check "round trips, waiting blocked" "latency size 64" "$apps/am-ping" 2 C 300 64 block
check "fragments of long messages" "data checked" "$apps/am-bulk" 2 C 0.05
# rank 0 alone has frames for all; what it lets the others send while it looks away finds room.
# Not on QEMU's virtual wire: its device breaks down of it ("bogus descriptor or out of resources").
crowd="AMUDP_SLAVE_RANK=0 ip netns exec $A %C & for rank in 1 2 3; do
	AMUDP_SLAVE_RANK=\$rank ip netns exec $B %C & done; wait"
for octets in 8 5000; do
	[ -n "$veths" ] || break
	check "nothing is dropped for want of frames, $octets octets" "^rank 0 by xdp: 0 dropped" \
		env CSPAWN_CMD="$crowd" "$build/tests/e2e/am-compat/am_flood" 4 C 10 "$octets"
done
# where frames are copied, bulk data pass the wire uncut: 16 MB would be 11,000 frames of its MTU
packets() { ip netns exec "$A" cat /sys/class/net/va/statistics/tx_packets; }
if [ -n "$veths" ]; then
	before=$(packets)
	check "bulk data" ": 0 damaged" "$apps/am-getput" 2 C 4000000 4
	sent=$(($(packets) - before))
	count=$((count + 1))
	[ "$sent" -lt 5000 ] && echo "ok $count - bulk data are not cut into frames" ||
		echo "not ok $count - bulk data are not cut into frames: $sent packets"
fi
check "puts and gets" ": 0 damaged" "$apps/am-getput" 2 C 100000 5
check "a sort" "sorted" "$apps/am-sort" 2 C 20000
check "a sort with faults" "sorted" env AMUDP_FAULT_RATE=0.1 AMUDP_FAULT_REORDER=0.1 \
	AMUDP_REQUESTTIMEOUT_INITIAL=5000 "$apps/am-sort" 2 C 20000
check "a queue that is busy for a moment is waited for: $mode" "AF_XDP on va, $mode" env \
	LD_PRELOAD="$build/tests/e2e/am-compat/libam_busy.so" "$apps/am-ping" 2 C 100
check "copy mode by choice" "AF_XDP on va, copy mode, .*; zero-copy: not wanted" env \
	AMUDP_XDP_COPY=1 "$apps/am-ping" 2 C 100
check "the driver's hook by choice" "AF_XDP on va, $hook" env AMUDP_XDP_GENERIC=0 \
	"$apps/am-sort" 2 C 20000
check "another hook than that does not go with zero-copy" "AF_XDP on va, $mode" env \
	AMUDP_XDP_GENERIC=1 "$apps/am-sort" 2 C 20000
check "one rank by UDP, the other by AF_XDP" "sorted" env CSPAWN_CMD="AMUDP_SLAVE_RANK=0 \
	AMUDP_NIC=udp ip netns exec $A %C & AMUDP_SLAVE_RANK=1 ip netns exec $B %C & wait" \
	"$apps/am-sort" 2 C 20000
check "on the loopback it says why not" "no AF_XDP on lo: .*not supported" \
	env MASTERIP=127.0.0.1 "$apps/am-sort" 2 L 1000

check "another process has the queue: UDP, and why" "no AF_XDP on va: socket: .* busy" env \
	CSPAWN_CMD="AMUDP_SLAVE_RANK=0 ip netns exec $A %C & AMUDP_SLAVE_RANK=1 ip netns exec \
	$A %C & AMUDP_SLAVE_RANK=2 ip netns exec $B %C & wait" "$apps/am-sort" 3 C 20000
check "without the right to: UDP, and why" "no AF_XDP on va: .*not permitted" env \
	CSPAWN_CMD="AMUDP_SLAVE_RANK=0 ip netns exec $A setpriv --bounding-set \
	-all --inh-caps -all %C & AMUDP_SLAVE_RANK=1 ip netns exec $B %C & wait" \
	"$apps/am-sort" 2 C 20000

check "without memory that may be locked: UDP, and why" "no AF_XDP on va: .*within ulimit -l" env \
	CSPAWN_CMD="ulimit -l 64; AMUDP_SLAVE_RANK=0 ip netns exec $A setpriv --bounding-set \
	-ipc_lock --inh-caps -ipc_lock %C & AMUDP_SLAVE_RANK=1 ip netns exec $B %C & wait" \
	"$apps/am-sort" 2 C 20000

# a next hop that is not the destination
past "behind a router" env CSPAWN_CMD="$(ranks WORKERIP=10.76.1.1 WORKERIP=10.76.2.2)" \
	"$apps/am-ping" 2 C 2000

# four ranks, all on interfaces of their own
four="" i=0
for namespace in "$A" "$B" "$D" "$E"; do
	i=$((i + 1))
	four="$four AMUDP_SLAVE_RANK=$((i - 1)) WORKERIP=10.75.0.$i ip netns exec $namespace %C &"
done
of_four() { check "4 ranks, $1" "$2" env MASTERIP=10.75.0.1 CSPAWN_CMD="$four wait" "${@:3}"; }
all_four() {
	local name
	of_four "a sort" "^4 ranks: sorted" "$apps/am-sort" 4 C 50000
	for name in ea eb ed ee; do
		count=$((count + 1))
		grep -q "AF_XDP on $name, copy mode" "$tmp/out" &&
			echo "ok $count - 4 ranks: $name is taken" ||
			echo "not ok $count - 4 ranks: $name is taken"
	done
	of_four "messages, counted" " 0 twice, 0 returned" "$counter" 4 C 20000
	of_four "transfers, counted" " 0 twice, 0 returned" "$counter" 4 C 300 size 100000
	of_four "with faults" " 0 twice, 0 returned" \
		env AMUDP_FAULT_RATE=0.1 AMUDP_FAULT_DUPLICATE=0.1 "$counter" 4 C 5000
}
[ -z "$veths" ] || all_four

# a rank goes to other interfaces and back, with transfers and gets under way
check "a rank migrates under load" "^6 moves, " "$build/tests/e2e/am-compat/am_migrate" 2 C 6 \
	10.78.0.2 10.79.0.2 10.77.0.2

# an interface of another hardware address than before, while data go there
count=$((count + 1))
sent() { ip netns exec "$A" cat /sys/class/net/wa/statistics/tx_packets; }
CSPAWN_CMD=$(ranks WORKERIP=10.78.0.1 "WORKERIP=10.78.0.2 AMUDP_NIC=udp") timeout 60 \
	ip netns exec "$A" "$apps/am-getput" 2 C 300000 4s >"$tmp/out" 2>&1 </dev/null &
console=$!
before=$(sent)
for i in $(seq 200); do
	[ "$(sent)" -lt $((before + 1000)) ] || break
	sleep 0.1
done
ip -n "$B" link set wb address 02:00:00:00:00:77
changed=$(sent)
wait "$console" && grep -q ": 0 damaged" "$tmp/out" && grep -q "AF_XDP on wa" "$tmp/out" &&
	[ "$(sent)" -gt $((changed + 1000)) ] &&
	echo "ok $count - a neighbour changes its hardware address" || {
	echo "not ok $count - a neighbour changes its hardware address"
	head -20 "$tmp/out" | sed 's/^/# /'
}

# programs for AMUDP, unchanged
for kind in classic.c:gnu99:gcc classicpp.cc:gnu++11:g++; do
	IFS=: read -r source standard compiler <<<"$kind"
	"$compiler" -std="$standard" -I"$include" "$here/am-compat/$source" -o "$tmp/classic" \
		"$build/am/libamudp.so" "-Wl,-rpath,$build/am"
	check "$source" "^P1 of 2 done" "$tmp/classic" 2 C 200
done

for language in c:gnu99 c++:gnu++11; do
	gcc -x "${language%:*}" -std="${language#*:}" -I"$include" "$here/am-compat/interface.c" \
		-x none -o "$tmp/interface" "$build/am/libamudp.so" "-Wl,-rpath,$build/am"
	check "every name of the interface, ${language%:*}" "^rank 1: 0 wrong" "$tmp/interface" 2 C
	gcc -x "${language%:*}" -std="${language#*:}" -I"$include" "$here/am-compat/macros.c" \
		-x none -o "$tmp/macros" "$build/am/libamudp.so" "-Wl,-rpath,$build/am"
	check "every macro of a message, ${language%:*}" "^rank 1: 102 answers, 0 wrong" \
		"$tmp/macros" 2 C
done

# the unit tests of entry points and messages, an endpoint in each namespace
export AM_TEST_PLACES="$A 10.77.0.1 $B 10.77.0.2"
for unit in arguments errors exchange faults hostile move overtaken pauses replace statistics; do
	check "unit tests: $unit" "Failing: 0 . Crashing: 0" \
		"$build/tests/unit/unit_am_$unit" -j1
done

timeout 20 ip netns exec "$A" "$build/tests/e2e/am-compat/am_endless" 2 C >"$tmp/endless" 2>&1 &
console=$!
sleep 1
count=$((count + 1))
if attached && ip netns exec "$B" python3 - <<'PY'
import socket, subprocess, sys
# other traffic of the interface passes: an echo to and from a port that is not the endpoint's
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.77.0.2", 0))
s.settimeout(3)
s.connect(("10.77.0.1", 9))
try:
    s.send(b"anyone?")
    s.recv(10)
    sys.exit(1)
except ConnectionRefusedError:
    sys.exit(0)  # the kernel of A saw the datagram and answered
PY
then echo "ok $count - other traffic passes to the kernel while it is attached"
else echo "not ok $count - other traffic passes to the kernel while it is attached"; fi

count=$((count + 1))
for pid in $(ip netns pids "$A") $(ip netns pids "$B"); do
	case $(cat "/proc/$pid/comm" 2>/dev/null) in am_endless) kill -9 "$pid" ;; esac
done
wait "$console" 2>/dev/null
sleep 0.5
if attached; then
	echo "not ok $count - killed processes leave nothing attached"
else
	echo "ok $count - killed processes leave nothing attached"
fi
echo "1..$count"
