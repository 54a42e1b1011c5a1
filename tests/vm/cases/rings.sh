# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rings and credits of all sizes at rsockets' end, and keepalives
# Limit: 900
# Table: software-librspreload librspreload-software
port=7800

# far OPTION VALUE: for rsockets' end
far() {
	server=() client=()
	if [ $pair = librspreload-software ]; then
		client=(option "$@")
	else
		server=(option "$@")
	fi
}

capture rings
for pair in software-librspreload librspreload-software; do
	for size in 1 2 100 4096 4000000; do
		far rcvbuf $size
		count=$((size < 100 ? 50 * size : 20000))
		check "a ring of $((size * 2)) octets there" \
			sockets trade 10 $count get 1 close -- trade 10 $count put 1 eof close
	done
	for size in 16 31 65535; do
		far rqsize $size
		check "$size credits there" \
			sockets trade 400 5 get 1 close -- trade 400 5 put 1 eof close
	done
	far sndbuf 1
	check "the smallest send buffer there" \
		sockets trade 10 20000 get 1 close -- trade 10 20000 put 1 eof close
	server=() client=()
	far keepalive 1
	check "keepalives are no octets" sockets \
		put 10 get 10 silent 2500 put 10 close -- \
		get 10 put 10 silent 1500 get 10 eof close
	server=() client=()
done
end_capture rings

# Not captured: it is TCP
pair=software-librspreload
departs forked "in AUTO, RDMAV_FORK_SAFE on the other side"
pair=librspreload-software
mode=(--use "use auto * * *:*")
over_rsockets+=(RDMAV_FORK_SAFE=1)
check "in AUTO, RDMAV_FORK_SAFE on the other side" \
	sockets put 5000 get 5000 eof close -- get 5000 put 5000 close
