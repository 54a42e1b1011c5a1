# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Unmodified programs of poll, select, threads: over librspreload and siw there, here under warpsock
# Limit: 900
# Table: software-librspreload librspreload-software verbs-librspreload librspreload-verbs
# No others: of two devices' ends programs are in vprograms
port=8300
ulimit -l unlimited # siw counts what root has pinned, too
limit=200
file=/tmp/case/file got=/tmp/case/got
head -c 3000000 /dev/urandom >$file

# sides: who serves and who asks, as $pair says, and where
sides() {
	local run
	port=$((port + 1))
	server_at
	server_of
	serving=("${run[@]}")
	end_of "${pair%-*}"
	asking=("${run[@]}")
	rm -f $got*
}

# netcat ends when its peer has nothing more to say, so one way at a time.
netcat_up() {
	sides
	start server "${serving[@]}" sh -c "exec nc -l $at $port </dev/null >$got"
	await_port server $port
	"${asking[@]}" sh -c "exec nc -N $at $port <$file"
	ends server 20 && cmp $file $got
}

netcat_down() {
	sides
	start server "${serving[@]}" sh -c "exec nc -l -N $at $port <$file"
	await_port server $port
	"${asking[@]}" sh -c "exec nc -d $at $port >$got"
	ends server 20 && cmp $file $got
}

# What iperf's server counts is what the client has sent.
iperf_copy() {
	sides
	start server "${serving[@]}" iperf -s -B $at -p $port -P 1 -f K
	await_port server $port
	"${asking[@]}" iperf -c $at -p $port -n 2M -f K "$@"
	gone server 20 || stop server
	cat /tmp/case/server.log
	grep -q '2048 KBytes' /tmp/case/server.log
}

http() {
	local i
	sides
	start server "${serving[@]}" python3 -m http.server --bind $at --directory /tmp/case $port
	await_port server $port
	for i in 1 2 3; do
		"${asking[@]}" curl -sS -o $got http://$at:$port/file && cmp $file $got || return
	done
	stop server
}

memcache() {
	sides
	start server "${serving[@]}" env EVENT_NOEPOLL=1 memcached -u root -l $at -p $port -U 0 -t 2
	await_port server $port
	"${asking[@]}" python3 "$lab/memcache.py" $at $port && running server && stop server
}

redis() {
	sides
	start server "${serving[@]}" redis-server --bind $at --port $port --save "" \
		--protected-mode no
	await_port server $port
	"${asking[@]}" redis-cli -h $at -p $port -x set key <$file &&
		"${asking[@]}" redis-cli -h $at -p $port get key >$got && stop server || return
	[ "$(head -c 3000000 $got | sha256sum)" = "$(sha256sum <$file)" ]
}

# rcopy speaks the API of rsockets itself: sockets_shim.so makes that calls of sockets.
rcopies() {
	local beneath=(env LD_PRELOAD="$project/build-vm/sockets_shim.so") over_rsockets=()
	sides
	start server "${serving[@]}" rcopy -p $port
	await_port server $port
	"${asking[@]}" rcopy $file $at:$got -p $port && cmp $file $got && running server &&
		stop server
}

# A server that cannot have an epoll set for its listener says so, and ends.
no_epoll() {
	sides
	start server "${serving[@]}" redis-server --bind $at --port $port --save "" \
		--protected-mode no
	gone server 10 || { stop server; return 1; }
	grep 'error creating .*accept handler' /tmp/case/server.log
}

# riostreams OPTIONS...: each end writes to what the other one has mapped, and looks there for it
riostreams() {
	local limit=60
	local beneath=(env LD_PRELOAD="$project/build-vm/sockets_shim.so") over_rsockets=()
	sides
	start server "${serving[@]}" riostream -b $at -p $port "$@"
	await_port server $port
	"${asking[@]}" riostream -s $at -p $port "$@" && ends server 20
}

for pair in software-librspreload librspreload-software verbs-librspreload librspreload-verbs; do
	devices=
	[ $pair = "${pair/verbs/}" ] || devices=_devices
	capture $pair$devices
	check "netcat, 3 MB to the server" netcat_up
	check "netcat, 3 MB to the client" netcat_down
	check "iperf, 2 MB" iperf_copy
	check "iperf, 2 threads, 1 MB each way" iperf_copy -P 1 -d
	check "curl and Python's http.server" http
	check "memcached without epoll, and Python" memcache
	check "rcopy, 3 MB" rcopies
	check "riostream, 64 KiB, 20 times to and fro" riostreams -S 65536 -C 2 -I 20 -T v
	check "riostream, 1000 octets, blocking" riostreams -S 1000 -C 5 -I 20 -T b
	end_capture $pair$devices
	if [ "${pair#*-}" = librspreload ]; then
		departs epoll "redis-server and redis-cli" no_epoll
	else
		check "redis-server and redis-cli" redis
	fi
done
by_devices verbs-librspreload librspreload-verbs
