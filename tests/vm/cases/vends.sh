# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Streams over a device end at any moment, and behind octets that have a long way to go
# Limit: 300
# Table: verbs-software verbs-verbs
port=8300
. "$lab/devices.sh"
ulimit -l unlimited # siw counts what root has pinned, too

# abruptly WHO: it ends eight connections, the last four by its death
abruptly() {
	local at=$PEER status=0 listens=0 connects=0 program=(python3 "$lab/ends.py")
	port=$((port + 1))
	[ "$1" = listen ] && listens=137 || connects=137
	if [ "$serves" = here ]; then
		at=$SIW
		start server "${here[@]}" "${program[@]}" listen $at $port "$1"
		await_port server $port
		in_peer timeout -k 2 60 "${there[@]}" "${program[@]}" connect $at $port "$1" ||
			status=$?
	else
		start server in_peer "${there[@]}" "${program[@]}" listen $at $port "$1"
		await_port server $port
		timeout -k 2 60 "${here[@]}" "${program[@]}" connect $at $port "$1" || status=$?
	fi
	echo "the client ends with $status"
	[ $status = $connects ] && ends server 20 $listens
}

# No object of the devices' that belonged to who has died
nothing_left() {
	local i
	for ((i = 0; i < 200; i++)); do
		rdma resource show >/tmp/case/left
		grep -qE ' (qp|mr|cm_id) [1-9]' /tmp/case/left || return 0
		nap 0.1
	done
	cat /tmp/case/left
	return 1
}

# way HOW...: of the routes between the two; what TCP knows of older ones is forgotten
way() {
	ip route replace 10.7.0.0/24 dev sw0 src $SIW "$@"
	in_peer ip route replace 10.7.0.0/24 dev up0 src $PEER "$@"
	ip tcp_metrics flush all
	in_peer ip tcp_metrics flush all
}

# far COMMAND...: 20 ms away, and two segments under way at a time: who has written much has most
# of it yet to send when it closes, and there come grants, one behind each 32 of 112 messages
far() {
	local status
	tc qdisc add dev sw0 root netem delay 20ms
	in_peer tc qdisc add dev up0 root netem delay 20ms
	way initcwnd 2 cwnd lock 2
	WARPSOCK_CREDITS=64 "$@"
	status=$?
	way
	tc qdisc delete dev sw0 root
	in_peer tc qdisc delete dev up0 root
	return $status
}

# rows: of $pair
rows() {
	serves=there
	check "the client ends without order" abruptly connect
	check "the server ends without order" abruptly listen
	check "the client closes far away" far \
		talk get 56000 eof close -- piece 500 put 56000 close
	serves=here
	check "verbs serves: the client ends without order" abruptly connect
	check "verbs serves: the server ends without order" abruptly listen
	check "verbs serves: the server ends far away" far \
		talk piece 500 put 56000 leave -- get 56000 eof close
	check "nothing is left of who has died" nothing_left
}

pair=verbs-software here=("${verbs[@]}") there=("${soft[@]}")
rows
in_peer rdma link add siw1 type siw netdev up0
pair=verbs-verbs there=("${verbs[@]}")
rows
in_peer rdma link delete siw1
