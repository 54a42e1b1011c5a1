# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A siw that overlooks what comes within 50 ms of its Reply: an initiator sends something more
# Limit: 300
ulimit -l unlimited
port=8600
. "$lab/devices.sh"

another_siw() {
	rdma link delete siw0 && rmmod siw && insmod "$1/siw.ko" &&
		rdma link add siw0 type siw netdev sw0
}
needed "siw is slow" another_siw "$images/siw-slow"

# words FIRST COMMAND...: five brief connections to rsockets; FIRST says who speaks first
words() {
	port=$((port + 1))
	start server "${over_rsockets[@]}" python3 "$lab/brief.py" serve $SIW $port 5 "$1"
	await_port server $port
	"${@:2}" python3 "$lab/brief.py" talk $SIW $port 5 "$1"
	local status=$?
	stop server
	return $status
}
within=(timeout -k 2 60)
soft_talks=(in_peer "${within[@]}" "$apps/warpsock" run "${mode[@]}" --)
verbs_talks=("${within[@]}" "${verbs[@]}")
check "software, streams: the client speaks first" words talk "${soft_talks[@]}"
check "software, streams: the server speaks first" words serve "${soft_talks[@]}"
check "a device, streams: the client speaks first" words talk "${verbs_talks[@]}"
check "a device, streams: the server speaks first" words serve "${verbs_talks[@]}"

start rping rping -s -P -a $SIW -p 7000
await_port rping 7000
pings() { "$@" -c -a $SIW -p 7000 -C 2 -V; }
rping=(timeout 20 "$apps/examples/warp-rping")
check "software, queue pairs" pings in_peer "${rping[@]}"
check "a device, queue pairs" pings "${rping[@]}" --provider verbs:siw0
stop rping
# The responder speaks before it has looked at what was sent, and then waits for that
speaks=(accept send 1 got 1 closed -- send 1 got 1 close)
pair=software-siw
check "software, queue pairs: the responder speaks first" both "${speaks[@]}"
in_peer rdma link add siw1 type siw netdev up0
export SCRIPT_PROVIDER=verbs:siw1
pair=verbs-siw
check "a device, queue pairs: the responder speaks first" both "${speaks[@]}"
pair=
in_peer rdma link delete siw1
needed "siw is as it was" another_siw "$images/siw"
