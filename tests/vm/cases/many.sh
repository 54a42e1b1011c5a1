# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Many connections at a time: warp-rping's clients on rping's server on siw, and the other way
# Limit: 400
# Table: software-siw siw-software
# No others: many streams at a time are in preload, over devices in vprograms
warp_rping=$apps/examples/warp-rping
clients=10

# count PORT: how many connections with that port there are now; $most is the most of them so far
most=0
count() {
	local lines hex
	printf -v hex '%04X' "$1"
	lines=$(grep -cE ":($hex [0-9A-F]*:[0-9A-F]*|[0-9A-F]* [0-9A-F]*:$hex) 01 " /proc/net/tcp)
	((lines <= most)) || most=$lines
}

# all_end PREFIX PORT: the clients of that name succeed, and were there together
all_end() {
	local i status=0
	for ((i = 0; i < clients; i++)); do
		while running "$1$i" && ((SECONDS < until)); do
			count "$2"
			nap 0.1
		done
		ends "$1$i" 1 && answered "/tmp/case/$1$i.log" || status=1
	done
	echo "at most $most at a time"
	((most >= 3)) && return $status
}

start rping rping -s -P -a $SIW -p 7400
await_port rping 7400
# One after the other: rping listens with a backlog of 3, and a Request beyond it gets no answer at
# all from the kernel; when such a client gives up, its FIN takes siw's listener with it.
for ((i = 0; i < clients; i++)); do
	start ours$i in_peer "$warp_rping" -c -a $SIW -p 7400 -C 600 -V -t 30
	nap 0.5
	count 7400
done
pair=software-siw until=$((SECONDS + 40))
check "$clients clients on one persistent server" all_end ours 7400
check "the persistent server still runs" running rping
stop rping

capture theirs
start server in_peer "$warp_rping" -s -P -a $PEER -p 7401
await_port server 7401
for ((i = 0; i < clients; i++)); do
	start theirs$i rping -c -a $PEER -p 7401 -C 50 -V
done
pair=siw-software most=0 until=$((SECONDS + 40))
check "$clients clients on one persistent server" all_end theirs 7401
check "the persistent server still runs" running server
stop server
end_capture theirs
