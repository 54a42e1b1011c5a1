# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Many connections at a time: warp-rping's clients on rping's server on siw, and the other way
# Limit: 400
# Table: software-siw siw-software
warp_rping=$apps/examples/warp-rping
clients=10

# all_end PREFIX: the clients of that name succeed
all_end() {
	local i status=0
	for ((i = 0; i < clients; i++)); do
		ends "$1$i" 40 && answered "/tmp/case/$1$i.log" || status=1
	done
	return $status
}

start rping rping -s -P -a $SIW -p 7400
await_port rping 7400
# One after the other: rping listens with a backlog of 3, and a Request beyond it gets no answer at
# all from the kernel; when such a client gives up, its FIN takes siw's listener with it.
for ((i = 0; i < clients; i++)); do
	start ours$i in_peer "$warp_rping" -c -a $SIW -p 7400 -C 200 -V -t 30
	nap 0.5
done
pair=software-siw
check "$clients clients on one persistent server" all_end ours
check "the persistent server still runs" running rping
stop rping

start server in_peer "$warp_rping" -s -P -a $PEER -p 7401
await_port server 7401
for ((i = 0; i < clients; i++)); do
	start theirs$i rping -c -a $PEER -p 7401 -C 50 -V
done
pair=siw-software
check "$clients clients on one persistent server" all_end theirs
check "the persistent server still runs" running server
stop server
