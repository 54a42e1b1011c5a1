# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Over rxe, Linux's RoCE device in software: a server has the kernel's listener and the device's
# Limit: 300
port=8400
ulimit -l unlimited
. "$lab/devices.sh"

rxe_begins >/tmp/case/rxe.log 2>&1
check "beside: the device is there" rdma link show rxe0/1
says() { "$apps/warpsock" doctor | grep -q "$1"; }
check "beside: warpsock doctor knows its transport" says "rxe0 *RoCE, .*port 1 ACTIVE"
check "beside: warpsock doctor finds nothing wrong" "$apps/warpsock" doctor

# Nobody tells the server of a device
served=/tmp/case/server.json
under=(env -u WARPSOCK_PROVIDER WARPSOCK_REPORT=$served "$apps/warpsock" run --all --mode on --)
serve() {
	port=$((port + 1))
	rm -f $served $report /tmp/case/soft.json
	start server "${under[@]}" "$@"
	await_port server $port # the kernel's
}

# both: at $addr, four connections of each kind, two of them at a time; those that are not the
# device's are $others
other=("${soft[@]}") others='"software": 4, "kernel": 0, "verbs": 4, "tcp": 0'
both() {
	start other "${other[@]}" python3 "$stream" talk $addr $port 4 50000 2
	timeout -k 2 60 "${verbs[@]}" python3 "$stream" talk $addr $port 4 50000 2 &&
		ends other 20 &&
		ends server 10 && cat $served $report && grep "$others" $served &&
		counted 4
}
threads() { serve python3 "$stream" serve "$1" $((port + 1)) 8 && both; }
sets() { serve python3 "$lab/events.py" serve "$1" $((port + 1)) 8 && both; }
addr=$SIW
check "beside: at an address" threads $SIW
check "beside: at all addresses" threads 0.0.0.0
check "beside: in an epoll set" sets $SIW
addr=$SIW6 check "beside: at an address of IPv6" threads $SIW6
addr=$SIW6 check "beside: at all addresses of IPv6" threads ::

# Clients of which the others know nothing of DDP
addr=$SIW other=() others='"software": 0, "kernel": 0, "verbs": 4, "tcp": 4'
under=(env -u WARPSOCK_PROVIDER WARPSOCK_REPORT=$served "$apps/warpsock" run --all --)
check "beside: in AUTO, clients of plain TCP" threads $SIW
check "beside: in AUTO, clients of plain TCP, in an epoll set" sets $SIW

under=(env -u WARPSOCK_PROVIDER WARPSOCK_REPORT=$served "$apps/warpsock" run --all --mode on --)
forked() {
	serve python3 "$lab/events.py" fork $SIW $((port + 1))
	timeout -k 2 60 "${verbs[@]}" python3 "$stream" talk $SIW $port 1 50000 &&
		ends server 10 &&
		grep '"software": 1, "kernel": 0, "verbs": 0' $served &&
		grep '"FORKED": 1' $served && grep '"PROVIDER_UNAVAILABLE": 1' $report
}
check "beside: after a fork software serves" forked
rdma link delete rxe0
