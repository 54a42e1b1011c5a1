# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# rstream over rsockets on siw and rstream on TCP sockets under warpsock, either as server
# Limit: 150
port=7200
over_warpsock=("$apps/warpsock" run --all --mode on --)

# Verifies each octet. OPTIONS are given to both.
warpsock_serves() {
	port=$((port + 1))
	start server in_peer "${over_warpsock[@]}" rstream -T s -T v -b "$PEER" -p $port "$@"
	await_port server $port
	timeout -k 2 20 rstream -s "$PEER" -p $port -T v "$@" && ends server 10
}

rsockets_serve() {
	port=$((port + 1))
	start server rstream -b "$SIW" -p $port -T v "$@"
	await_port server $port
	in_peer timeout -k 2 20 "${over_warpsock[@]}" rstream -T s -T v -s "$SIW" -p $port "$@" &&
		ends server 10
}

repeat() {
	local i
	for ((i = 0; i < $1; i++)); do
		"${@:2}" || return
	done
}

for role in warpsock_serves rsockets_serve; do
	capture $role
	for size in 1 64 1442 4096 65536 65537 200000; do
		check "$role: $size octets to and fro" $role -S $size -C 5 -I 2
	done
	end_capture $role
	export WARPSOCK_CRC=off
	capture ${role}_crc_off
	check "$role: no CRC" $role -S 30000 -C 5 -I 2
	end_capture ${role}_crc_off
	unset WARPSOCK_CRC
	check "$role: 2 MB, one way at a time" $role -S 131072 -C 16 -I 1
	check "$role: blocking" $role -S 5000 -C 20 -I 2 -T b
	check "$role: nonblocking" $role -S 5000 -C 20 -I 2 -T n
done
# Not the other way: when the server's end comes with its last octets, rsockets' poll says POLLHUP,
# which rstream takes for an error.
check "rsockets_serve: poll" rsockets_serve -S 5000 -C 20 -I 2 -T a
check "rsockets_serve: poll, short" repeat 5 rsockets_serve -S 100 -C 2 -I 1 -T a
