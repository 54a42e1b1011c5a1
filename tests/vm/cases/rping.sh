# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# warp-rping and rping on siw, either as server: all options, start-up forms, CRC, sizes, addresses
# Limit: 900
# Table: software-siw siw-software
# No others: over devices it is in verbs, and sockets have no such program
warp_rping=$apps/examples/warp-rping
port=7100

# serves SERVER-OPTIONS...: rping on siw or warp-rping, as $pair says, at $addr of its host's; or
# what it listens at is in $listens
listens=()
serves() {
	port=$((port + 1))
	if [ $pair = software-siw ]; then
		at=${addr:-$SIW}
		[ ${#listens[@]} != 0 ] || local listens=(-a $at)
		start server rping -s "${listens[@]}" -p $port -S 65535 "$@"
	else
		at=${addr:-$PEER}
		[ ${#listens[@]} != 0 ] || local listens=(-a $at)
		start server in_peer "$warp_rping" -s "${listens[@]}" -p $port "$@"
	fi
	await_port server $port
}

# What rping's thread of events says, and ends with, when an event comes while the program ends
raced() { tail -n 1 /tmp/case/client.log | grep -q '^rdma_get_cm_event: Bad file descriptor$'; }

# asks CLIENT-OPTIONS...: the other of the two
asks() {
	if [ $pair = software-siw ]; then
		in_peer timeout -k 2 60 "$warp_rping" -c -a $at -p $port -C "${count:-5}" -V "$@" \
			>/tmp/case/client.log 2>&1 && return
	else
		timeout -k 2 60 rping -c -a $at -p $port -C "${count:-5}" -V "$@" \
			>/tmp/case/client.log 2>&1 || raced &&
			answered /tmp/case/client.log && return
	fi
	tail -n 20 /tmp/case/client.log
	return 1
}

# What rping's server ends with says nothing.
over() {
	[ $pair != software-siw ] || { gone server 2 || stop server; return; }
	ends server 10
}

# pinged OURS... -- BOTH...: OURS are options of warp-rping, on whichever side, BOTH of the client
pinged() {
	local first rest status
	part "$@"
	if [ $pair = software-siw ]; then
		serves
		asks "${first[@]}" "${rest[@]}"
	else
		serves "${first[@]}"
		asks "${rest[@]}"
	fi
	status=$?
	over || status=1
	return $status
}

# told OPTION...: given to both sides
told() {
	serves "$@"
	asks "$@"
	local status=$?
	over || status=1
	return $status
}

# persistent N: clients one after the other
persistent() {
	local i
	serves -P
	for ((i = 0; i < $1; i++)); do
		asks || return
	done
	running server && stop server
}

# fails_by LOG WORDS COMMAND...: it fails, and there it says why
fails_by() {
	! "${@:3}" || return
	sed "s/^/$1: /" "/tmp/case/$1.log"
	grep -q "$2" "/tmp/case/$1.log"
}

# asked_for_none OURS... --: as pinged; in siw's Request, the capture's last, A is clear
asked_for_none() {
	pinged "$@" && python3 -c 'import sys
octets = open(sys.argv[1], "rb").read()
enhanced = octets.rindex(b"MPA ID Req Frame") + 20
sys.exit(octets[enhanced] >> 7)' /tmp/case/$pair.pcap
}

sizes="26 27 1024 1411 1442 4096 65535"

for pair in software-siw siw-software; do
	capture $pair
	check "as it comes" pinged --
	check "client-server model" pinged --no-p2p --
	for form in write read; do
		if [ $pair = software-siw ]; then
			check "RTR is a ${form^}" pinged --rtr $form --
		else
			departs no-rtr "RTR is a ${form^}" asked_for_none --rtr $form --
		fi
	done
	for size in $sizes; do
		check "$size octets" pinged -- -S $size
	done
	addr=$SIW6
	[ $pair = software-siw ] || addr=$PEER6
	check "IPv6" pinged --
	listens=(-a ::0)
	check "IPv6, a server for all addresses: -a ::0" pinged --
	addr='' listens=(-P) # no -a
	check "a server for all addresses, 5 clients in turn" persistent 5
	listens=()
	check "a server with -C and -V" told -C 5 -V
	check "shown and told: -v -d" told -v -d
	if [ $pair = software-siw ]; then
		check "a queue pair of the program's own: -q" told -q
	else
		departs establish "a queue pair of the program's own: -q" \
			fails_by client '^rdma_establish: Invalid argument' told -q
	fi
	from=$PEER
	[ $pair = software-siw ] || from=$SIW
	check "from an address: -I" pinged -- -I $from
	check "a persistent server, 5 clients in turn: -P" persistent 5
	count=100
	check "100 pings" pinged --
	count=
	end_capture $pair
	capture ${pair}_crc_off
	check "no CRC" pinged --no-crc --
	check "client-server model, no CRC" pinged --no-p2p --no-crc --
	for size in $sizes; do
		check "$size octets, no CRC" pinged --no-crc -- -S $size
	done
	end_capture ${pair}_crc_off
	if [ $pair = software-siw ]; then
		departs revision "MPA of revision 1" \
			fails_by server '^post send error' pinged --rev1 --
		departs markers "markers" \
			fails_by client 'the connection: rejected' pinged --markers --
	else
		check "MPA of revision 1" pinged --rev1 --
		departs markers "markers" \
			fails_by client 'RDMA_CM_EVENT_REJECTED' pinged --markers --
	fi
done
