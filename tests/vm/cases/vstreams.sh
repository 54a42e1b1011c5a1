# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Programs of sockets under warpsock over siw's device, at one end or both
# Limit: 700
# Table: verbs-software verbs-verbs verbs-librspreload
# No others: software and rsockets are in streams and preload
port=7700
. "$lab/devices.sh"
rspreload=(env LD_PRELOAD="$rsockets")

# cells CAPTURE SERVES ENDS: the rows of $pair, with so many ends that are a device's
cells() {
	capture=$1 serves=$2 which=
	[ $serves = there ] || which="verbs serves: "
	capture $capture
	forms
	end_capture $capture
	check "${which}each was the device's" counted $3
}

here=("${verbs[@]}") there=("${soft[@]}") pair=verbs-software
cells verbs_to_software there 11
cells software_to_verbs here 11
pair=

# What is no stream of a device's, or no more
serves=here ends="software to verbs" here=("${verbs[@]}") there=("${soft[@]}")
status_client=137 check "$ends: the client is killed" talk get 5000 over -- put 5000 kill
status_server=137 check "$ends: the server is killed" talk put 5000 kill -- get 5000 over
check "$ends: the server closes with octets unread" talk get 1 sleep 300 close -- put 5000 over

# events HOW...: epoll at both ends, or what else the server does
events=$lab/events.py
epolls() {
	port=$((port + 1))
	if [ "$serves" = here ]; then
		start server "${here[@]}" python3 "$events" serve $SIW $port "$1"
		await_port server $port
		in_peer timeout -k 2 60 "${there[@]}" python3 "$events" talk $SIW $port "$1" soft
	else
		start server in_peer "${there[@]}" python3 "$events" serve $PEER $port "$1"
		await_port server $port
		timeout -k 2 60 "${here[@]}" python3 "$events" talk $PEER $port "$1" verbs
	fi && ends server 20
}
rm -f /tmp/case/verbs.json
check "$ends: 5 connections in epoll sets" epolls 5
serves=there
check "verbs to software: 5 connections in epoll sets" epolls 5
check "epoll sets: each was the device's" counted 10

asked() {
	port=$((port + 1))
	start server in_peer "${there[@]}" python3 "$stream" serve $PEER $port 1
	await_port server $port
	timeout -k 2 60 "${here[@]}" python3 "$events" asks $PEER $port 1500 &&
		ends server 10 && grep '"verbs": 1,' /tmp/case/verbs.json
}
rm -f /tmp/case/verbs.json
check "what a client is told of its connection" asked

# The child of a fork serves by software
forked() {
	port=$((port + 1))
	start server "${here[@]}" python3 "$events" fork $SIW $port
	await_port server $port
	in_peer timeout -k 2 60 "${there[@]}" python3 "$stream" talk $SIW $port 1 50000 &&
		ends server 10 && grep '"software": 1,' /tmp/case/verbs.json &&
		grep '"FORKED": 1' /tmp/case/verbs.json
}
rm -f /tmp/case/verbs.json
check "a listener that a fork shares is the software's" forked

# No device leads to this host itself
nowhere() {
	port=$((port + 1))
	start server "${soft[@]}" python3 "$stream" serve 127.0.0.1 $port 1
	await_port server $port
	timeout -k 2 60 "${here[@]}" python3 "$stream" talk 127.0.0.1 $port 1 50000 &&
		ends server 10 && grep '"software": 1,' /tmp/case/verbs.json &&
		grep '"PROVIDER_UNAVAILABLE": 1' /tmp/case/verbs.json
}
rm -f /tmp/case/verbs.json
check "where no device leads the software provider serves" nowhere

from_a_port() {
	port=$((port + 1))
	start server in_peer "${there[@]}" python3 "$stream" serve $PEER $port 1
	await_port server $port
	timeout -k 2 60 "${here[@]}" python3 "$events" bound $PEER $port $SIW &&
		ends server 10 && grep '"software": 1,' /tmp/case/verbs.json &&
		grep '"PROVIDER_UNAVAILABLE": 1' /tmp/case/verbs.json
}
rm -f /tmp/case/verbs.json
check "a client that has bound a port is served by software" from_a_port
rm -f /tmp/case/verbs.json
no_address() {
	timeout -k 2 60 "${here[@]}" python3 "$events" chosen &&
		grep '"software": 2,' /tmp/case/verbs.json
}
check "a listener that no address was chosen for is the software's" no_address

# One that asks first, of a server without DDP
plain() {
	local asks=(env WARPSOCK_PROVIDER=verbs WARPSOCK_REPORT=/tmp/case/verbs.json
		"$apps/warpsock" run --use "use auto * * $PEER:*" --)
	port=$((port + 1))
	start server in_peer python3 "$stream" serve $PEER $port 2
	await_port server $port
	timeout -k 2 60 "${asks[@]}" python3 "$stream" talk $PEER $port 1 50000 &&
		ends server 10 && grep '"verbs": 0, "tcp": 1' /tmp/case/verbs.json
}
rm -f /tmp/case/verbs.json
check "in AUTO, plain TCP to a server without DDP" plain
rm -f /tmp/case/verbs.json

# Two devices, one in each namespace
in_peer rdma link add siw1 type siw netdev up0
there=("${rspreload[@]}") pair=verbs-librspreload
cells verbs_to_rsockets_devices there 11
cells rsockets_to_verbs_devices here 11
there=("${verbs[@]}") pair=verbs-verbs
cells verbs_to_verbs_devices there 22
cells verbs_from_verbs_devices here 22
pair=
in_peer rdma link delete siw1
