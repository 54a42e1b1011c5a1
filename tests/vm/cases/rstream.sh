# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# rstream over rsockets on siw and rstream on TCP sockets under warpsock, by software or a device
# Limit: 900
# Table: software-librspreload librspreload-software verbs-librspreload librspreload-verbs
# No others: rsockets is at one end, and queue pairs are no streams
port=7200
over_rsockets=() # it speaks their API itself, or that of sockets
ulimit -l unlimited # siw counts what root has pinned, too
declare -A speaks=([librspreload]="-T v" [software]="-T s -T v" [verbs]="-T s -T v")

# stream OPTIONS...: given to both; verifies each octet
stream() {
	local run at limit=60
	port=$((port + 1))
	server_at
	server_of rstream ${speaks[${pair#*-}]} -b $at -p $port "$@"
	start server "${run[@]}"
	await_port server $port
	end_of "${pair%-*}" rstream ${speaks[${pair%-*}]} -s $at -p $port "$@"
	"${run[@]}" && ends server 10
}

streamed() {
	case $pair in
	software-librspreload) unless_reset server_ended stream "$@" ;;
	verbs-librspreload) unless_early stream "$@" ;;
	*) stream "$@" ;;
	esac
}

# hung_up OCTETS: by then its peer has sent so many and ended; rstream ends by such a poll
hung_up() {
	local over_rsockets=(env LD_PRELOAD="$rsockets")
	sockets get 1 put "$1" close -- put 1 sleep 700 hung-up get "$1" eof close
}

repeat() {
	local i
	for ((i = 0; i < $1; i++)); do
		"${@:2}" || return
	done
}

for pair in software-librspreload librspreload-software verbs-librspreload librspreload-verbs; do
	devices=
	[ $pair = "${pair/verbs/}" ] || devices=_devices
	capture $pair$devices
	for size in 1 64 1442 4096 65536 65537 200000; do
		check "$size octets to and fro" streamed -S $size -C 5 -I 2
	done
	end_capture $pair$devices
	export WARPSOCK_CRC=off
	capture ${pair}_crc_off
	check "no CRC" streamed -S 30000 -C 5 -I 2
	end_capture ${pair}_crc_off
	unset WARPSOCK_CRC
	check "2 MB, one way at a time" streamed -S 131072 -C 16 -I 1
	check "blocking" streamed -S 5000 -C 20 -I 2 -T b
	check "nonblocking" streamed -S 5000 -C 20 -I 2 -T n
	if [ "${pair#*-}" = librspreload ]; then
		check "poll" streamed -S 5000 -C 20 -I 2 -T a
		check "poll, short" repeat 5 streamed -S 100 -C 2 -I 1 -T a
	else
		departs pollhup "poll" hung_up 5000
		departs pollhup "poll, short" hung_up 100
	fi
done
by_devices verbs-librspreload librspreload-verbs
