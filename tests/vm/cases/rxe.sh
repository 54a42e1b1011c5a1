# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Over rxe, Linux's RoCE device in software: the native API's unit tests, and programs of sockets
# Limit: 600
port=8300
ulimit -l unlimited
export WARPSOCK_PROBE_TIMEOUT=30s # under emulation an answer may take its time
. "$lab/devices.sh"

peer=() PEER=$SIW
rxe_begins >/tmp/case/rxe.log 2>&1
check "the device is there" rdma link show rxe0/1
export END_PROVIDER=verbs:rxe0 END_ADDRESS=$SIW END_TRANSPORT=roce
adopt operations "$build/tests/unit/unit_soft_ops" --tap -j1
adopt ends "$build/tests/unit/unit_soft_ends" --tap -j1
unset END_PROVIDER END_ADDRESS END_TRANSPORT

# Nothing of it is in /proc/net/tcp
await_port() {
	local i
	for ((i = 0; i < 100; i++)); do
		! rdma res show cm_id | grep -q "state LISTEN .*:$2 " || return 0
		nap 0.2
	done
	say "$1 does not listen on port $2"
	rdma res show cm_id
	cat "/tmp/case/$1.log"
	return 1
}
serves=here here=("${verbs[@]}") there=("${verbs[@]}") which=
forms
check "each was the device's" counted 22
# When it has been heard: what a device has not sent yet goes with its process, and rxe of 6.12
# sends by a work queue
status_client=137 check "the client is killed" talk get 5000 put 1 over -- put 5000 get 1 kill
status_server=137 check "the server is killed" talk put 5000 get 1 kill -- get 5000 put 1 over
check "the server closes with octets unread" talk get 1 sleep 300 close -- put 5000 over
rm -f $report

# What is no iWARP has no TCP connection to fall back on: nobody is there, and software serves
fallen() {
	port=$((port + 1))
	start server "${soft[@]}" python3 "$stream" serve $SIW $port 1
	nap 3
	timeout -k 2 60 "${here[@]}" python3 "$stream" talk $SIW $port 1 50000 &&
		ends server 10 && grep '"software": 1,' $report &&
		grep '"PROVIDER_UNAVAILABLE": 1' $report
}
check "to a server of software: software serves" fallen
