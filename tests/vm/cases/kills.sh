# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Either end dies by SIGKILL at a moment that chance chooses, from its start into 1 MB each way
# Limit: 600
# Table: software-siw siw-software software-librspreload librspreload-software
# Table: verbs-software verbs-verbs
# No others: verbs-librspreload has a device and rsockets, each of which is in another
port=9500
times=5
ulimit -l unlimited # siw counts what root has pinned, too
seed=$(<"${LAB_ONLY%/*}/seed")
RANDOM=$seed
begun=/tmp/case/begun up=/tmp/case/up

# Each gives the other a megabyte. The server says when it has a connection; the client, if it is
# ours, when it has one: siw must not lose one whose RTR it waits for, or that it has yet to accept
# (docs/lab.md).
streams() {
	local program=$project/build-vm/script_sockets run at
	server_at
	server_of "$program" listen $at $port mark $begun trade 100 10000 get 1 close
	start server "${run[@]}"
	await_port server $port
	end_of "${pair%-*}" "$program" connect $at $port mark $up trade 100 10000 put 1 eof close
	start client "${run[@]}"
}

messages=()
for ((i = 0; i < 16; i++)); do
	messages+=(send 65536 got 65536)
done
queue_pairs() {
	local ours=(in_peer timeout -k 2 100 "$build/tests/vm/script_warp")
	local theirs=(timeout -k 2 100 "$project/build-vm/script_verbs")
	local at=$PEER responder=("${ours[@]}") initiator=("${theirs[@]}")
	[ $pair = siw-software ] || at=$SIW responder=("${theirs[@]}") initiator=("${ours[@]}")
	start server "${responder[@]}" listen $at $port mark $begun accept swap \
		"${messages[@]}" closed
	await_port server $port
	start client "${initiator[@]}" connect $at $port swap mark $up "${messages[@]}" close
}

begin() {
	port=$((port + 1))
	rm -f $begun $up
	case $pair in
	*siw*) queue_pairs ;;
	*) streams ;;
	esac
}

# untouched: how long the client takes, in ms, is in $whole
untouched() {
	local since
	begin
	since=${EPOCHREALTIME/./}
	ends client 30 || return
	whole=$(((${EPOCHREALTIME/./} - since) / 1000))
	echo "the client takes $whole ms"
	ends server 10
}

# waits: the client has no connection yet
waits() { [ ! -e $up ] && running client; }

# tcp_over: there is no connection to the port any more
tcp_over() { ! grep -q ":$(printf %04X $port) [0-9A-F]*:[0-9A-F]* 01" /proc/net/tcp; }

# stays WHO: it ends. Ours says what failed, or has had everything; no octet was another. Who has
# nobody yet waits on; rsockets may be asleep for ever, though TCP has ended.
stays() {
	local log=/tmp/case/$1.log status=0 limit=5
	if [ "$1" = server ] && [ ! -e $begun ]; then
		nap 0.5
		[ -e $begun ] || { running server && stop server && early=$((early + 1)); return; }
	fi
	case $pair/$1 in librspreload-*/client | *-librspreload/server) limit=1 ;; esac
	if ! gone "$1" $limit; then
		echo "$1 still runs"
		[ $limit = 1 ] && tcp_over || return
		stop "$1" KILL
		asleep=$((asleep + 1))
		return
	fi
	wait "${pid_of[$1]}" || status=$?
	sed "s/^/$1: /" "$log" | tee -a /tmp/case/killed.log
	case $pair/$1 in
	software-*/client | *-software/server | verbs-*/client | *-verbs/server)
		case $status in
		0) late=$((late + 1)) most=$((ms + 1)) ;;
		1) grep -q 'failed$' "$log" ;;
		*) return 1 ;;
		esac
		;;
	esac
	! grep -q 'octet .* is ' "$log"
}

# killed WHO STAYS: as often as it says above, and more often where each was too early or too late
killed() {
	local i ms early=0 late=0 asleep=0 most=$whole
	for ((i = 0; i < times || (i < 4 * times && early + late == i); i++)); do
		begin
		ms=$((RANDOM % most))
		case $1/$pair in
		client/software-* | client/verbs-verbs) ceases 5 waits; ms=$((ms / 2)) ;;
		esac
		nap $((ms / 1000)).$(printf %03d $((ms % 1000)))
		echo "$pair, seed $seed: SIGKILL for the $1, after $ms ms" |
			tee -a /tmp/case/killed.log
		kill -s KILL -- "-${pid_of[$1]}" 2>/dev/null
		stays "$2" || return
		stop "$1" KILL
	done
	echo "$early before there was a connection, $late behind all, $asleep asleep" |
		tee -a /tmp/case/killed.log
	((early + late < i))
}

for pair in software-siw siw-software software-librspreload librspreload-software \
	verbs-software verbs-verbs; do
	check "1 MB each way, and nobody dies" untouched
	check "the client dies $times times" killed client server
	check "the server dies $times times" killed server client
done
by_devices verbs-software verbs-verbs

# cut_inside: what rsockets sends ends in the middle, of an FPDU or of a Write's: ours is told of it
cut_inside() {
	local program=$project/build-vm/script_sockets run at ours=server listens=get connects=put
	port=$((meddled + i++))
	[ $1 != software-librspreload ] || ours=client listens=put connects=get
	local pair=$1
	server_at
	end_of "${pair#*-}" "$program" listen $at $((port + 1)) $listens 1000000
	start server "${run[@]}"
	await_port server $((port + 1))
	end_of "${pair%-*}" "$program" connect $PEER $((port + 1001)) $connects 1000000
	start client "${run[@]}"
	gone $ours 5 || return
	sed "s/^/$ours: /" /tmp/case/$ours.log
	stop client KILL
	stop server KILL
	grep -q '^recv: Connection reset by peer' /tmp/case/$ours.log
}

for ends in software-librspreload:responder librspreload-software:initiator; do
	pair=${ends%:*} port=$((port + 100)) i=0
	meddle ${ends#*:}:12:20:FIN ${ends#*:}:12:all:FIN ${ends#*:}:13:1:FIN
	pair=
	check "a FIN inside an FPDU is a reset, ${ends%:*}" cut_inside ${ends%:*}
	check "a FIN between a Write and its message is a reset, ${ends%:*}" cut_inside ${ends%:*}
	check "a FIN in an FPDU's length is a reset, ${ends%:*}" cut_inside ${ends%:*}
	unmeddle
done
