# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Many connections at a time: warp-rping's clients on rping's server on siw, and the other way
# Limit: 400
# Table: software-siw siw-software
# No others: many streams at a time are in preload, over devices in vprograms
warp_rping=$apps/examples/warp-rping
clients=10

# fewer PORT N: not so many connections with that port are there
fewer() {
	local hex
	printf -v hex '%04X' "$1"
	together=$(grep -cE ":($hex [0-9A-F]*:[0-9A-F]*|[0-9A-F]* [0-9A-F]*:$hex) 01 " \
		/proc/net/tcp)
	((together < $2))
}

still_fewer() { running "$1" && fewer "$2" "$3"; }

# waits NAME PORT N: it is connected, as the N-th, and then waits for the others
waits() {
	ceases 10 still_fewer "$@"
	nap 0.1
	kill -s STOP -- "-${pid_of[$1]}"
}

# all_end PREFIX PORT: the clients of that name, all of which are there now, succeed
all_end() {
	local i status=0
	! fewer "$2" $clients || status=1
	echo "$together at a time"
	for ((i = 0; i < clients; i++)); do
		kill -s CONT -- "-${pid_of[$1$i]}"
	done
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
	start ours$i in_peer "$warp_rping" -c -a $SIW -p 7400 -C 600 -V -t 30
	waits ours$i 7400 $((i + 1))
done
pair=software-siw
check "$clients clients on one persistent server" all_end ours 7400
check "the persistent server still runs" running rping
stop rping

capture theirs
start server in_peer "$warp_rping" -s -P -a $PEER -p 7401 -t 30
await_port server 7401
for ((i = 0; i < clients; i++)); do
	start theirs$i rping -c -a $PEER -p 7401 -C 100 -V
	waits theirs$i 7401 $((i + 1))
done
pair=siw-software
check "$clients clients on one persistent server" all_end theirs 7401
check "the persistent server still runs" running server
stop server
end_capture theirs
