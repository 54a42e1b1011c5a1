# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# rsockets itself, seen by a peer of a few lines: what docs/stream-wire.md says of it
# No fault: Warpsock has no part in it
# Limit: 900
raw=$lab/rawstream.py
program=$project/build-vm/script_sockets
port=7700
declare -a what command wanted

# raw WHAT STATUS COMMAND...: for the raw server's WHAT that command is run, and ends so
raw() {
	what+=("$1")
	wanted+=("$2")
	command+=("${*:3}")
}

# client WHAT STATUS OPTION-STEPS -- STEPS...
client() {
	local first rest
	part "${@:3}"
	raw "$1" "$2" "${over_rsockets[@]}" "$program" "${first[@]}" connect $PEER PORT "${rest[@]}"
}

client silent 0 -- sleep 2000 get 1 close
client shapes 0 -- put 30000 close
client entries 0 option rcvbuf 20000 -- get 300000 close
client one_entry 0 option rcvbuf 20000 -- get 60000 leave
raw iomap 0 "$project/build-vm/script_iomap" $PEER PORT 4
raw iomap_credits 1 "$project/build-vm/script_iomap" $PEER PORT 4
client byte_order 1 -- put 10 get 1 close
client shut_wr 0 -- put 5 shut wr sleep 2500 leave
client shut_rd 0 -- put 1 shut rd sleep 2500 leave
client shut_rd_wr 0 -- put 1 shut rd put 5 shut wr sleep 1000 leave
client shut_wr_rd 0 -- put 1 shut wr sleep 500 shut rd sleep 500 leave
client shut_both 0 -- put 1 shut both sleep 500 leave
client close 0 -- put 1 close
client close 0 option linger 0 -- put 1 close
client after_shutdown 0 -- put 1 eof put 5 shut wr sleep 500 close
client shutdown_last 0 -- put 1 shut wr eof fails close
client disconnected 0 -- put 1 eof fails close
client keepalive 0 option keepalive 1 -- put 1 sleep 4500 close
client queue_min 0 option rqsize 1 -- sleep 100 close
client queue_max 0 option rqsize 65535 -- sleep 100 close
client rejected 0 -- put 5 close

# ended STATUS WANTED: the client's; otherwise what it said
ended() {
	[ "$1" != "$2" ] || return 0
	echo "status $1"
	cat /tmp/case/client.log
	return 1
}

start raw in_peer bash -c "python3 $raw server $PEER $port ${what[*]} >/tmp/case/raw.tap
	echo \$? >/tmp/case/raw.ended"
await_port raw $((port + ${#what[@]} - 1))
for ((i = 0; i < ${#what[@]}; i++)); do
	status=0
	timeout -k 2 60 ${command[i]/PORT/$((port + i))} >/tmp/case/client.log 2>&1 || status=$?
	check "${what[i]}: the client ends with ${wanted[i]}" ended $status "${wanted[i]}"
done
check "the raw server ends" ends raw 30

# server WHAT STATUS OPTION-STEPS -- STEPS...: of rsockets, under the raw client
server() {
	local what=$1 status=$2 first rest
	port=$((port + 1))
	part "${@:3}"
	start server "${over_rsockets[@]}" "$program" "${first[@]}" listen $SIW $port "${rest[@]}"
	await_port server $port
	in_peer timeout -k 2 60 python3 "$raw" client $SIW $port "$what" &&
		ends server 10 "$status"
}
port=7750
check "a server's limit forgets mappings" \
	server leak 0 option rqsize 16 -- get 12 sleep 500 close
check "DATA beyond its credits is lost" server unread 1 option rqsize 16 -- watch 2500 get 40

# lasting WHAT ABORTS: the server ends, and then the raw client, whose input ends then, goes on
lasting() {
	local aborts
	aborts=$(tcp_aborts)
	port=$((port + 1))
	start server "${over_rsockets[@]}" "$program" listen $SIW $port put 12000 close
	await_port server $port
	until ! running server; do nap 0.05; done |
		in_peer timeout -k 2 60 python3 "$raw" client $SIW $port "$1" &&
		ends server 10 && [ $(($(tcp_aborts) - aborts)) = "$2" ]
}
check "a server has ended, the rest is with TCP: it comes" lasting whole 0
check "a server has ended, the rest is with TCP: a grant makes TCP drop it" lasting cut 1

over_rsockets+=(RDMAV_FORK_SAFE=1)
free_fork
check "RDMAV_FORK_SAFE: four zero octets, then MPA on the same port" server forked 0 -- get 5 close
