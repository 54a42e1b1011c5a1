# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# rstream over rsockets on siw and rstream on TCP sockets under warpsock, either as server
# Limit: 900
# Table: software-librspreload librspreload-software
port=7200
over_warpsock=("$apps/warpsock" run --all --mode on --)

# to_theirs OPTIONS...: for streamed(), whose locals it has
to_theirs() {
	port=$((port + 1))
	start server rstream -b "$SIW" -p $port -T v "$@"
	await_port server $port
	in_peer "${within[@]}" "${ours[@]}" -s "$SIW" -p $port "$@" && ends server 10
}

to_ours() {
	port=$((port + 1))
	start server in_peer "${ours[@]}" -b "$PEER" -p $port "$@"
	await_port server $port
	"${within[@]}" rstream -s "$PEER" -p $port -T v "$@" && ends server 10
}

# streamed OPTIONS...: given to both; verifies each octet
streamed() {
	local within=(timeout -k 2 60) ours=("${over_warpsock[@]}" rstream -T s -T v)
	case $pair in
	software-librspreload) unless_reset server_ended to_theirs "$@" ;;
	*) to_ours "$@" ;;
	esac
}

repeat() {
	local i
	for ((i = 0; i < $1; i++)); do
		"${@:2}" || return
	done
}

for pair in software-librspreload librspreload-software; do
	capture $pair
	for size in 1 64 1442 4096 65536 65537 200000; do
		check "$size octets to and fro" streamed -S $size -C 5 -I 2
	done
	end_capture $pair
	export WARPSOCK_CRC=off
	capture ${pair}_crc_off
	check "no CRC" streamed -S 30000 -C 5 -I 2
	end_capture ${pair}_crc_off
	unset WARPSOCK_CRC
	check "2 MB, one way at a time" streamed -S 131072 -C 16 -I 1
	check "blocking" streamed -S 5000 -C 20 -I 2 -T b
	check "nonblocking" streamed -S 5000 -C 20 -I 2 -T n
	if [ $pair = software-librspreload ]; then
		check "poll" streamed -S 5000 -C 20 -I 2 -T a
		check "poll, short" repeat 5 streamed -S 100 -C 2 -I 1 -T a
	else
		departs pollhup "poll"
		departs pollhup "poll, short"
	fi
done
