# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One Python program at both ends, over librspreload and siw there, under warpsock here
# Limit: 150
port=7300
stream=$lab/stream.py
over_warpsock=(in_peer "$apps/warpsock" run --all --mode on --)
over_rsockets=(env LD_PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so)

# serves CONNECTIONS OCTETS: which side serves is in the name
warpsock_serves() {
	port=$((port + 1))
	start server "${over_warpsock[@]}" python3 "$stream" serve $PEER $port "$1"
	await_port server $port
	"${over_rsockets[@]}" timeout -k 2 60 python3 "$stream" talk $PEER $port "$1" "$2" &&
		ends server 10
}

rsockets_serve() {
	port=$((port + 1))
	start server "${over_rsockets[@]}" python3 "$stream" serve $SIW $port "$1"
	await_port server $port
	"${over_warpsock[@]}" timeout -k 2 60 python3 "$stream" talk $SIW $port "$1" "$2" &&
		ends server 10
}

for role in warpsock_serves rsockets_serve; do
	check "$role: 1 octet" $role 1 1
	check "$role: 1 MB" $role 1 1000000
	check "$role: 16 connections, 20000 octets each" $role 16 20000
	check "$role: 8 connections, 400000 octets each" $role 8 400000
done
