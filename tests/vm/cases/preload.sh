# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One Python program at both ends, over librspreload and siw there, under warpsock here
# Limit: 900
# Table: software-librspreload librspreload-software
port=7300
stream=$lab/stream.py
over_warpsock=(in_peer "$apps/warpsock" run --all --mode on --)

# echoed CONNECTIONS OCTETS [ABREAST]
echoed() {
	local ours=("${over_warpsock[@]}" timeout -k 2 60 python3 "$stream")
	local theirs=(timeout -k 2 60 "${over_rsockets[@]}" python3 "$stream")
	local at=$PEER serving=("${ours[@]}") talking=("${theirs[@]}")
	if [ $pair = software-librspreload ]; then
		at=$SIW serving=("${theirs[@]}") talking=("${ours[@]}")
	fi
	port=$((port + 1))
	start server "${serving[@]}" serve $at $port "$1"
	await_port server $port
	"${talking[@]}" talk $at $port "$@" && ends server 10
}

pair=librspreload-software
capture $pair
check "1 octet" echoed 1 1
check "1 MB" echoed 1 1000000
check "16 connections, 20000 octets each, 2 at a time" echoed 16 20000 2
check "6 connections, 400000 octets each, 2 at a time" echoed 6 400000 2
check "16 connections at a time, 20000 octets each" echoed 16 20000
check "8 connections at a time, 400000 octets each" echoed 8 400000
end_capture $pair
pair=software-librspreload
capture $pair
check "1 octet" echoed 1 1
check "1 MB" echoed 1 1000000
check "16 connections, 20000 octets each, 2 at a time" echoed 16 20000 2
check "6 connections, 400000 octets each, 2 at a time" echoed 6 400000 2
end_capture $pair
departs four "16 connections at a time, 20000 octets each"
departs four "8 connections at a time, 400000 octets each"
