#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Runs in the guest: the cases of /tmp/lab/plan ("NAME LIMIT PEER" a line) whose peer, a namespace
# or the host, it has, and that no other guest has begun. Each has namespaces of its own, and leaves
# in /tmp/lab/NAME what it said, what the kernel said, and its captures. Of NAME@FAULT the case is
# run with the build that has that fault (mutate.py).
#
#	+--- the guest --------------------+     +--- namespace "peer" --------------+
#	|  rdma-core's programs            |     |  Warpsock's programs              |
#	|      librdmacm, libibverbs       |     |      soft: RDMAP, DDP, MPA        |
#	|      siw0, the kernel's driver   |     |      TCP sockets                  |
#	|  sw0 10.7.0.1, fd07::1           |     |  up0 10.7.0.2, fd07::2            |
#	+---------+------------------------+     +---------+-------------------------+
#	          |        veth pair, MTU 1500, no offloads|      (captures are made here)
#	          +----------------------------------------+
#
# siw of 6.1 does not work on lo, so it stands on the pair.
set -u
here=$(dirname "$(readlink -f "$0")")
lab=/tmp/lab
trouble='Oops|BUG|WARNING|KASAN|general protection|hung task|blocked for more than|refcount_t|'
trouble+='rcu.*stall|soft lockup|Call Trace|use-after-free|unregister_netdevice: waiting|'
trouble+='suspected memory leaks'

# With a network card the peer is the host (host.py).
topology_host() {
	ip addr replace 10.7.0.1/24 dev eth0
	ip addr replace fd07::1/64 dev eth0 nodad
	ip link set eth0 up
	rdma link add siw0 type siw netdev eth0
}

topology() {
	[ ! -d /sys/class/net/eth0 ] || { topology_host; return; }
	ip netns add peer
	# Whoever listens at all addresses does so at every device, and siw tells them apart by the
	# index of the interface, also of another namespace
	ip link add sw0 index 70 type veth peer name up0 netns peer
	ethtool -K sw0 tso off gso off >/dev/null
	ip netns exec peer ethtool -K up0 tso off gso off >/dev/null
	ip addr add 10.7.0.1/24 dev sw0
	ip addr add fd07::1/64 dev sw0 nodad
	ip -n peer addr add 10.7.0.2/24 dev up0
	ip -n peer addr add fd07::2/64 dev up0 nodad
	ip link set sw0 up
	ip -n peer link set up0 up
	ip -n peer link set lo up
	rdma link add siw0 type siw netdev sw0
}

# What a case left running is ended here; nothing else of the guest is ours to end.
teardown() {
	local pid
	for pid in $(cat /tmp/case/pids 2>/dev/null); do
		kill -9 -- "-$pid"
	done 2>/dev/null
	rdma link delete siw0
	[ ! -d /sys/class/net/eth0 ] || return
	for pid in $(ip netns pids peer); do
		kill -9 "$pid"
	done
	ip link delete sw0
	ip netns delete peer
}

# said_since LABEL: what the kernel has said since that case began
said_since() {
	dmesg | awk -v mark="lab: $1 begins" '
		{ line[++n] = $0 }
		index($0, mark) { begun = 1; n = 0 }
		END {
			for (i = 1; i <= n; i++)
				print line[i]
			if (!begun)
				print "lab: WARNING: the log has lost where the case began"
		}'
}

# Of the debug kernel, which says how many there are; what is younger than five seconds is none yet
look_for_leaks() {
	local kmemleak=/sys/kernel/debug/kmemleak
	[ -f $kmemleak ] || return
	sleep 6
	echo scan >$kmemleak
	echo scan >$kmemleak
	cat $kmemleak
}

run_case() {
	local name=${1%@*} fault=${1#"${1%@*}"} limit=$2 dir=$lab/$1
	export LAB_ONLY=$lab/$1.only LAB_BUILD=
	[ -z "$fault" ] || LAB_BUILD=$here/../../build-vm/faulty/of/${fault#@}
	rm -rf /tmp/case
	mkdir -p /tmp/case
	echo "lab: $1 begins" >/dev/kmsg
	topology >"$dir/topology" 2>&1 || true
	setsid --wait timeout -k 2 "$limit" bash -uo pipefail -c "exec 9>/tmp/case/trace.log
		BASH_XTRACEFD=9 PS4='+ \$EPOCHREALTIME '; set -x
		. $here/lib.sh; . $here/cases/$name.sh; finished" \
		>"$dir/tap" 2>"$dir/stderr" </dev/null
	echo $? >/tmp/case/status
	teardown >>"$dir/topology" 2>&1
	look_for_leaks >"$dir/leaks" 2>/dev/null
	said_since "$1" >"$dir/dmesg"
	grep -E "$trouble" "$dir/dmesg" >"$dir/trouble"
	cp /tmp/case/*.log /tmp/case/*.pcap /tmp/case/*.tap /tmp/case/*.ended "$dir/" 2>/dev/null
	cp /tmp/case/status "$dir/status" # last: the host believes nothing without it
	[ ! -s "$dir/trouble" ]
}

# libibverbs tries every vendor's library otherwise, which takes a second under emulation.
mkdir /tmp/drivers
echo driver siw >/tmp/drivers/siw.driver
mount --bind /tmp/drivers /etc/libibverbs.d
ours=peer
[ ! -d /sys/class/net/eth0 ] || ours=host
while read -r name limit whose; do
	[ "$whose" = $ours ] && mkdir "$lab/$name" 2>/dev/null || continue
	start=$SECONDS
	echo "lab: $name begins"
	run_case "$name" "$limit" || { echo "lab: $name: the kernel complains"; exit 9; }
	echo "lab: $name: $((SECONDS - start)) s, status $(cat $lab/$name/status)"
done <$lab/plan
