# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Which provider serves, by rules and by the route; what a device's stream is to other processes
# Limit: 600
port=8100
. "$lab/devices.sh"
apart=$lab/processes.py
unset WARPSOCK_PROVIDER
under=(env WARPSOCK_REPORT=$report "$apps/warpsock" run)
soft=(env WARPSOCK_PROVIDER=soft "${soft[@]:1}")
there=("${soft[@]}")

# provided SOFTWARE VERBS TCP WORDS-OF-WARPSOCK...: by whom one connection is served, then
provided() {
	local expected=("$1" "$2" "$3")
	shift 3
	here=("${under[@]}" "$@" --)
	echoes 1 50000 && carried "${expected[@]}"
}
without_reason() { ! grep -q PROVIDER_UNAVAILABLE "$1"; }

serves=there
check "the route leads over a device: verbs serves a client" provided 0 1 0 --all --mode on
check "a rule says verbs for a client" \
	provided 0 1 0 --use "ddp client * $PEER:* provider verbs"
check "a rule says soft for a client" provided 1 0 0 --use "ddp client * *:* provider soft"
export WARPSOCK_PROVIDER=verbs
check "a rule goes before WARPSOCK_PROVIDER" \
	provided 1 0 0 --use "ddp client * *:* provider soft"
export WARPSOCK_PROVIDER=soft
check "a rule that says auto goes by the route" \
	provided 0 1 0 --use "ddp client * *:* provider auto"
unset WARPSOCK_PROVIDER

# The kernel's listener stays; siw's would take its port
serves=here
check "without a rule a server is software's" provided 1 0 0 --all --mode on
check "a rule says verbs for a server" \
	provided 0 1 0 --use "ddp server * $SIW:* provider verbs"
check "a rule says soft for a server" provided 1 0 0 --use "ddp server * *:* provider soft"

# To itself: software, and that is nobody's fault
itself() {
	port=$((port + 1))
	start server "${soft[@]}" python3 "$stream" serve "$1" $port 1
	await_port server $port
	timeout -k 2 60 "${under[@]}" --all --mode on -- \
		python3 "$stream" talk "$1" $port 1 50000 &&
		ends server 10 && without_reason $report && carried 1 0 0
}
check "to the loopback software serves, without a reason" itself 127.0.0.1
check "to an address of this host software serves, without a reason" itself $SIW

plain() {
	port=$((port + 1))
	start server in_peer python3 "$stream" serve $PEER $port 2
	await_port server $port
	timeout -k 2 60 "${under[@]}" --use "use auto * * $PEER:*" -- \
		python3 "$stream" talk $PEER $port 1 50000 && ends server 10 && carried 0 0 1
}
check "in AUTO over a device, plain TCP to a server without DDP" plain

# What the device cannot: software serves, and says why
cannot() {
	local status=0
	provided 1 0 0 --all --mode on >/tmp/case/cannot.out 2>&1 || status=$?
	cat /tmp/case/cannot.out
	[ $status = 0 ] && grep -q '"PROVIDER_UNAVAILABLE": 1' /tmp/case/cannot.out
}
serves=there
little_memory() { # to siw of 6.12 the limit is nothing for who may lock all he likes
	local under=(setpriv --bounding-set -ipc_lock "${under[@]}")
	(ulimit -l 64 && cannot)
}
check "little memory may be locked: software serves" little_memory
no_permission() {
	local under=(setpriv --reuid 65534 --clear-groups "${under[@]}") report=/tmp/nobody/report
	mkdir -p /tmp/nobody
	chown 65534 /tmp/nobody
	under=("${under[@]/WARPSOCK_REPORT=*/WARPSOCK_REPORT=$report}")
	chmod 600 /dev/infiniband/rdma_cm
	local status=0
	cannot || status=$?
	chmod 666 /dev/infiniband/rdma_cm
	return $status
}
check "the user may not: software serves" no_permission
speaks_early() {
	port=$((port + 1))
	start server in_peer python3 "$lab/rawstream.py" server $PEER $port early
	await_port server $port
	timeout -k 2 60 "${under[@]}" --all --mode on -- \
		"$project/build-vm/script_sockets" connect $PEER $port put 5 close &&
		ends server 10 && grep '"PROVIDER_UNAVAILABLE": 1' $report && carried 1 0 0
}
check "the peer speaks before siw has looked: software serves" speaks_early
down() {
	rdma link delete siw0
	local status=0
	provided 1 0 0 --all --mode on || status=$?
	rdma link add siw0 type siw netdev sw0
	return $status
}
check "the device is gone: software serves" down

# Other processes, and descriptors; each program exchanges octets before and behind
here=("${verbs[@]}")
process() {
	ends_meet python3 "$apart" "$1" -- python3 "$apart" serve "${2:-1}"
}
check "closefrom() and close() of every number leave the device's alone" process closes
check "exec with a device's stream is refused" process executes
check "posix_spawn() hands it not on" process spawns
check "a child that executes a program does not give it away" process child
check "SCM_RIGHTS is refused" process rights
check "a forked child has nothing of it" process forks
check "connect() to nowhere is refused" process nowhere
check "each was the device's" counted 7
check "the connections of a forked child are software's" process connects_in_child 2
check "and that has a reason" reports '"software": 1,.*"verbs": 1,' '"FORKED": 1'
becomes_another() { WARPSOCK_LINGER=200ms process another_user; }
check "who becomes another user loses it" becomes_another
rm -f $report
serves=here
waited_for() {
	port=$((port + 1))
	start server "${here[@]}" python3 "$apart" "$1" $SIW $port
	await_port server $port
	in_peer timeout -k 2 60 "${there[@]}" python3 "$stream" talk $SIW $port "$2" 50000 1 &&
		ends server 10
}
late() { waited_for late 2 && counted 2; }
check "a listener that serves and is waited for stays the parent's: a child's accept() is EXDEV" \
	late
# The kernel has a user for its sockets, too; the report is everybody's
becomes_another_there() {
	local report=/tmp/case/listens.json tries=0
	local here=("${here[@]/WARPSOCK_REPORT=*/WARPSOCK_REPORT=$report}")
	install -m 666 /dev/null $report
	port=$((port + 1))
	start server "${here[@]}" python3 "$apart" listens $SIW $port
	await_port server $port
	talks_once || return
	until talks_once; do
		tries=$((tries + 1))
		[ $tries -lt 3 ] || return 1
	done
	ends server 10 && reports '"software": 1,.*"verbs": 1,' '"PROVIDER_UNAVAILABLE": 1'
}
talks_once() {
	in_peer timeout -k 2 20 "${there[@]}" python3 "$stream" talk $SIW $port 1 50000
}
check "who listens and becomes another user goes on by software" becomes_another_there
early() { waited_for early 1 && reports '"software": 1,.*"verbs": 0,' '"FORKED": 1'; }
check "before it has served one, a fork leaves it to software" early
