# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# warp-rping and rping on siw, either as server: all options, start-up forms, CRC, sizes, addresses
# Limit: 900
# Table: software-siw siw-software
warp_rping=$apps/examples/warp-rping
port=7100

# serves SERVER-OPTIONS...: rping on siw or warp-rping, as $pair says
serves() {
	port=$((port + 1))
	if [ $pair = software-siw ]; then
		at=${addr:-$SIW}
		start server rping -s -a $at -p $port -S 65535 "$@"
	else
		at=${addr:-$PEER}
		start server in_peer "$warp_rping" -s -a $at -p $port "$@"
	fi
	await_port server $port
}

# asks CLIENT-OPTIONS...: the other of the two
asks() {
	if [ $pair = software-siw ]; then
		in_peer timeout -k 2 60 "$warp_rping" -c -a $at -p $port -C "${count:-5}" -V "$@"
	else
		timeout -k 2 60 rping -c -a $at -p $port -C "${count:-5}" -V "$@" \
			>/tmp/case/client.log 2>&1 && answered /tmp/case/client.log && return
		tail -n 20 /tmp/case/client.log
		return 1
	fi
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

not() { ! "$@"; }

sizes="26 27 1024 1411 1442 4096 65535"

for pair in software-siw siw-software; do
	capture $pair
	check "as it comes" pinged --
	check "client-server model" pinged --no-p2p --
	for form in write read; do
		if [ $pair = software-siw ]; then
			check "RTR is a ${form^}" pinged --rtr $form --
		else
			departs no-rtr "RTR is a ${form^}" pinged --rtr $form --
		fi
	done
	for size in $sizes; do
		check "$size octets" pinged -- -S $size
	done
	addr=$SIW6
	[ $pair = software-siw ] || addr=$PEER6
	check "IPv6" pinged --
	addr=
	check "shown and told: -v -d" told -v -d
	if [ $pair = software-siw ]; then
		check "a queue pair of the program's own: -q" told -q
	else
		departs establish "a queue pair of the program's own: -q" not told -q
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
		departs revision "MPA of revision 1" not pinged --rev1 --
	else
		check "MPA of revision 1" pinged --rev1 --
	fi
	departs markers "markers" not pinged --markers --
done
