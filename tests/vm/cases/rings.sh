# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rings and credits of all sizes at rsockets' end, and keepalives
# Limit: 900
# Table: software-librspreload librspreload-software
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
small_buffer() {
	far sndbuf 1
	sockets trade 10 20000 get 1 close -- trade 10 20000 put 1 eof close
}
keepalive() {
	far keepalive 1
	sockets put 10 get 10 silent 2500 put 10 close -- \
		get 10 put 10 silent 1500 get 10 eof close
}

# over_device COMMAND...: between a device's end and rsockets, in no column
over_device() {
	local pair=verbs-librspreload
	"$@"
}
# Ours asks, and says so: on the wire that looks as what wakes siw does
asks() {
	client=(option keepalive 1)
	sockets put 10 get 10 silent 2500 put 10 close -- \
		get 10 put 10 silent 1500 get 10 eof close &&
		grep "nothing has come for a while" "$WARPSOCK_LOG_FILE"
}

capture rings
for pair in software-librspreload librspreload-software; do
	for size in 1 2 100 4096 4000000; do
		count=$((size < 100 ? 50 * size : 20000))
		check "a ring of $((size * 2)) octets there" ring $size $count
	done
	for size in 16 31 65535; do
		check "$size credits there" credits $size
	done
	check "the smallest send buffer there" small_buffer
done
end_capture rings
capture keepalives
for pair in software-librspreload librspreload-software; do
	check "keepalives are no octets" keepalive
done
end_capture keepalives

pair=
capture rings_devices
for size in 100 4096 4000000; do
	check "over a device: a ring of $((size * 2)) octets there" over_device ring $size 20000
done
for size in 16 31 65535; do
	check "over a device: $size credits there" over_device credits $size
done
check "over a device: the smallest send buffer there" over_device small_buffer
end_capture rings_devices
capture keepalives_devices
check "over a device: keepalives are no octets" over_device keepalive
end_capture keepalives_devices
server=() client=()
capture asks_devices
check "over a device: SO_KEEPALIVE here" over_device asks
end_capture asks_devices
server=() client=()

# Not captured: it is TCP
pair=software-librspreload
departs forked "in AUTO, RDMAV_FORK_SAFE on the other side"
pair=librspreload-software
mode=(--use "use auto * * *:*")
over_rsockets+=(RDMAV_FORK_SAFE=1)
check "in AUTO, RDMAV_FORK_SAFE on the other side" \
	sockets put 5000 get 5000 eof close -- get 5000 put 5000 close
