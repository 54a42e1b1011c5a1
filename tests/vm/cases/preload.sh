# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One Python program at both ends, over librspreload and siw there, under warpsock here
# Limit: 240
port=7300
stream=$lab/stream.py
over_warpsock=(in_peer "$apps/warpsock" run --all --mode on --)

# serves CONNECTIONS OCTETS [ABREAST]: which side serves is in the name
warpsock_serves() {
	port=$((port + 1))
	start server "${over_warpsock[@]}" python3 "$stream" serve $PEER $port "$1"
	await_port server $port
	timeout -k 2 60 "${over_rsockets[@]}" python3 "$stream" talk $PEER $port "$@" &&
		ends server 10
}

rsockets_serve() {
	port=$((port + 1))
	start server "${over_rsockets[@]}" python3 "$stream" serve $SIW $port "$1"
	await_port server $port
	"${over_warpsock[@]}" timeout -k 2 60 python3 "$stream" talk $SIW $port "$@" &&
		ends server 10
}

capture warpsock_serves
check "warpsock_serves: 1 octet" warpsock_serves 1 1
check "warpsock_serves: 1 MB" warpsock_serves 1 1000000
check "warpsock_serves: 16 connections, 20000 octets each" warpsock_serves 16 20000
check "warpsock_serves: 8 connections, 400000 octets each" warpsock_serves 8 400000
end_capture warpsock_serves
# A server on librdmacm 44 hangs when it has had four at a time (docs/interop.md).
capture rsockets_serve
check "rsockets_serve: 1 octet" rsockets_serve 1 1
check "rsockets_serve: 1 MB" rsockets_serve 1 1000000
check "rsockets_serve: 16 connections, 20000 octets each, 2 at a time" rsockets_serve 16 20000 2
check "rsockets_serve: 6 connections, 400000 octets each, 2 at a time" rsockets_serve 6 400000 2
end_capture rsockets_serve
