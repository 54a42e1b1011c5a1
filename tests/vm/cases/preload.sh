# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One Python program at both ends, over librspreload and siw there, under warpsock here
# Limit: 900
# Table: software-librspreload librspreload-software
# No others: over devices the same program is in vstreams
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

# hangs CONNECTIONS OCTETS: the service thread that goes on with a freed array may come to no harm,
# so some attempts; where it does, who is to be served is not, or the server never ends
hangs() {
	local attempt status
	for ((attempt = 1; attempt <= 30; attempt++)); do
		port=$((port + 1)) status=0
		start server "${over_rsockets[@]}" python3 "$stream" serve $SIW $port "$1"
		await_port server $port
		"${over_warpsock[@]}" timeout -k 2 15 python3 "$stream" talk $SIW $port "$@" ||
			status=$?
		if [ $status = 124 ] || { [ $status = 0 ] && ! gone server 1; }; then
			echo "attempt $attempt: the server hangs, the client ended with $status"
			stop server KILL
			return
		fi
		stop server KILL
	done
	echo "the server has never hung"
	return 1
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
departs four "16 connections at a time, 20000 octets each" hangs 16 20000
departs four "8 connections at a time, 400000 octets each" hangs 8 400000
