# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rings and credits of all sizes at rsockets' end, and keepalives
# Limit: 900
# Table: software-librspreload librspreload-software verbs-librspreload
# No others: rsockets is at one end, and queue pairs have no rings
port=7800
ulimit -l unlimited # siw counts what root has pinned, too

# far OPTION VALUE: for rsockets' end
far() {
	server=() client=()
	if [ $pair = librspreload-software ]; then
		client=(option "$@")
	else
		server=(option "$@")
	fi
}

# ring SIZE COUNT, credits SIZE: at that end
ring() {
	far rcvbuf $1
	sockets trade 10 $2 get 1 close -- trade 10 $2 put 1 eof close
}
credits() {
	far rqsize $1
	sockets trade 400 5 get 1 close -- trade 400 5 put 1 eof close
}
# It gives new ones when half are used up, and none back for a mapping
maps() {
	far rqsize 64
	if [ $pair = librspreload-software ]; then
		client+=(option maps 1)
		sockets map 16 trade 400 5 get 1 close -- trade 400 5 put 1 eof close
	else
		server+=(option maps 1)
		sockets trade 400 5 get 1 close -- map 16 trade 400 5 put 1 eof close
	fi
}
small_buffer() {
	far sndbuf 1
	sockets trade 10 20000 get 1 close -- trade 10 20000 put 1 eof close
}
keepalive() {
	far keepalive 1
	sockets put 10 get 10 silent 2500 put 10 close -- \
		get 10 put 10 silent 1500 get 10 eof close
}

# Ours asks, and says so: on the wire that looks as what wakes siw does
asks() {
	local pair=verbs-librspreload
	client=(option keepalive 1)
	sockets put 10 get 10 silent 2500 put 10 close -- \
		get 10 put 10 silent 1500 get 10 eof close &&
		grep "nothing has come for a while" "$WARPSOCK_LOG_FILE"
}

sizes() {
	local size count
	for size in 1 2 100 4096 4000000; do
		count=$((size < 100 ? 50 * size : 20000))
		check "a ring of $((size * 2)) octets there" ring $size $count
	done
	for size in 16 31 65535; do
		check "$size credits there" credits $size
	done
	check "16 mappings of ours take 16 of 64 credits there" maps
	check "the smallest send buffer there" small_buffer
}

capture rings
for pair in software-librspreload librspreload-software; do
	sizes
done
end_capture rings
capture keepalives
for pair in software-librspreload librspreload-software; do
	check "keepalives are no octets" keepalive
done
end_capture keepalives

pair=verbs-librspreload
capture rings_devices
sizes
end_capture rings_devices
capture keepalives_devices
check "keepalives are no octets" keepalive
end_capture keepalives_devices
server=() client=()
pair=
capture asks_devices
check "over a device: SO_KEEPALIVE here" asks
end_capture asks_devices
server=() client=()
by_devices verbs-librspreload

# zeroes: the first octets that a program gets from such a server are none of its program's
zeroes() {
	local run at read='import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
octets = s.recv(4, socket.MSG_WAITALL)
print(octets)
sys.exit(octets != bytes(4))'
	port=$((port + 1))
	free_fork
	server_at
	server_of "$project/build-vm/script_sockets" listen $at $port put 5000 over
	start server "${run[@]}"
	await_port server $port
	end_of "${pair%-*}" python3 -c "$read" $at $port
	"${run[@]}" || return
	stop server
}

# Not captured: it is TCP
mode=(--use "use auto * * *:*")
over_rsockets+=(RDMAV_FORK_SAFE=1)
for pair in software-librspreload verbs-librspreload; do
	departs forked "in AUTO, RDMAV_FORK_SAFE on the other side" zeroes
done
pair=librspreload-software
free_fork
check "in AUTO, RDMAV_FORK_SAFE on the other side" \
	sockets put 5000 get 5000 eof close -- get 5000 put 5000 close
