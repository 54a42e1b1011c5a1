# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Streams over a device end at any moment, and behind octets that have a long way to go
# Limit: 300
# Table: verbs-software verbs-verbs verbs-librspreload
# No others: software's ends are in abrupt, kills and streams
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

# beside_rsockets WHO: it dies, while the other sleeps, has octets to read, or has read an end; one
# connection after the other, for what rsockets' end is told, and whether, is not to be relied on
beside_rsockets() {
	local kill=(sleep 300 kill)
	case $serves/$1 in
	there/connect)
		local status_client=137
		talk get 1 over -- put 1 "${kill[@]}" &&
			talk get 1 over -- put 500 kill &&
			talk get 5000 eof over -- put 5000 shut wr "${kill[@]}"
		;;
	there/listen)
		local status_server=137
		talk get 1 put 1 "${kill[@]}" -- put 1 get 1 breaks &&
			talk get 1 put 500 kill -- put 1 over &&
			talk get 1 put 5000 shut wr "${kill[@]}" -- put 1 get 5000 eof fails
		;;
	here/connect)
		local status_client=137
		talk get 1 breaks -- put 1 "${kill[@]}" &&
			talk over -- put 500 kill &&
			talk get 5000 eof fails -- put 5000 shut wr "${kill[@]}"
		;;
	here/listen) # the client is not woken
		local status_server=137 status_client=124 limit=6
		talk get 1 put 1 "${kill[@]}" -- put 1 get 1 over
		;;
	esac
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

# far COMMAND...: 80 ms away, and the far end takes two segments at a time: who has written much has
# most of it yet to send when it closes, on a busy host, too, and there come grants, one behind each
# 32 of 112 messages
far() {
	local status room
	room=$(in_peer sysctl -n net.ipv4.tcp_rmem)
	in_peer sysctl -qw net.ipv4.tcp_rmem="4096 8192 8192"
	tc qdisc add dev sw0 root netem delay 80ms
	in_peer tc qdisc add dev up0 root netem delay 80ms
	WARPSOCK_CREDITS=64 "$@"
	status=$?
	tc qdisc delete dev sw0 root
	in_peer tc qdisc delete dev up0 root
	in_peer sysctl -qw net.ipv4.tcp_rmem="$room"
	return $status
}

# by_device: no end of verbs' was served by what else there is
by_device() {
	cat $report
	grep -q '"verbs": [1-9]' $report && ! grep -E '"(software|kernel|tcp)": [1-9]' $report
}

# rows HOW WHERE...: of $pair; how ends come, and the check in which siw's server dies
rows() {
	serves=there
	check "the client ends without order" $1 connect
	check "the server ends without order" $1 listen
	check "the client closes far away" far \
		talk get 56000 eof close -- piece 500 put 56000 close
	serves=here
	check "verbs serves: the client ends without order" $1 connect
	"${@:2}" "verbs serves: the server ends without order" $1 listen
	check "verbs serves: the server ends far away" far \
		talk piece 500 put 56000 leave -- get 56000 eof close
	check "nothing is left of who has died" nothing_left
}

pair=verbs-software here=("${verbs[@]}") there=("${soft[@]}")
rows abruptly check
in_peer rdma link add siw1 type siw netdev up0
pair=verbs-verbs there=("${verbs[@]}")
rows abruptly check
pair=verbs-librspreload there=("${over_rsockets[@]}")
rows beside_rsockets departs asleep
pair=
check "each end of verbs is a device's" by_device
in_peer rdma link delete siw1
