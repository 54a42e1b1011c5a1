# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Rings and credits of all sizes at either end, keepalives, and reading by poll
# Limit: 900
# Table: streams
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
			sockets trade 10 $count close -- trade 10 $count eof close
	done
	for size in 16 31 65535; do
		far rqsize $size
		check "$size credits there" \
			sockets trade 400 5 close -- trade 400 5 eof close
	done
	far sndbuf 1
	check "the smallest send buffer there" \
		sockets trade 10 20000 close -- trade 10 20000 eof close
	server=() client=()
	export WARPSOCK_RING=8K WARPSOCK_CREDITS=32
	check "a ring of 8 KiB and 32 credits here" \
		sockets trade 200 2000 close -- trade 200 2000 eof close
	export WARPSOCK_RING=64M WARPSOCK_CREDITS=32767
	check "a ring of 64 MiB and 32767 credits here" \
		sockets trade 10 20000 close -- trade 10 20000 eof close
	unset WARPSOCK_RING WARPSOCK_CREDITS
	check "by poll, at most 1000 octets at once" sockets \
		polling piece 1000 trade 10 20000 close -- \
		polling piece 1000 trade 10 20000 eof close
	far keepalive 1
	check "keepalives are no octets" sockets \
		put 10 get 10 silent 2500 put 10 close -- \
		get 10 put 10 silent 1500 get 10 eof close
	server=() client=()
done
end_capture rings
