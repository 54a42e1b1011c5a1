# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What a case has at hand; see docs/lab.md. Programs on siw's side run as they are, Warpsock's side
# runs through in_peer.
lab=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
project=$(readlink -f "$lab/../..")
build=${LAB_BUILD:-$project/build}
apps=$build/apps
# The kernel, as run.py --kernel has it, and where prepare.sh has put what goes with it
kernel=$(uname -r | cut -d . -f 1-2)
images=$project/build-vm
[ "$kernel" = 6.1 ] || images+=/$kernel
patience=1 # times as long as elsewhere
[[ $(uname -r) != *-debug ]] || { images+=/debug; patience=4; }
SIW=10.7.0.1 SIW6=fd07::1
PEER=10.7.0.2 PEER6=fd07::2
export PYTHONDONTWRITEBYTECODE=1
export WARPSOCK_PROVIDER=soft # where there is a device the route would lead over it
# Of all that run here, as what user they may; a check that fails shows its end
log=/tmp/case/warpsock.log
install -m 666 /dev/null $log
[ -d /sys/class/net/eth0 ] || export WARPSOCK_LOG=debug WARPSOCK_LOG_FILE=$log
rsockets=$project/build-vm/rsockets_shim.so:/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so
over_rsockets=(env LD_PRELOAD="$rsockets")
stream_pairs=(software-librspreload librspreload-software verbs-software verbs-verbs
	verbs-librspreload)
declare -A pid_of on_host
done_cases=0
shopt -s extglob

# The peer is a namespace, or the host
peer=(nsenter --net=/run/netns/peer)
[ ! -d /sys/class/net/eth0 ] || peer=(python3 "$lab/ask_host.py")
in_peer() { "${peer[@]}" "$@"; }
on_siw() { "$@"; }

# A server of rsockets' with RDMAV_FORK_SAFE that is killed while it waits takes its semaphore along
free_fork() { rm -f /dev/shm/sem.rsocket_fork; }

# say TEXT: an explanation in the output
say() { printf '# %s\n' "$*"; }

# chosen NAME: this check is to run; the patterns are those of run.py --only
only=()
mapfile -t only <"$LAB_ONLY"
chosen() {
	local pattern
	for pattern in "${only[@]}"; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $1 == $pattern ]] && return
	done
	[ ${#only[@]} = 0 ]
}

# check NAME COMMAND...: a case; its output is shown when it fails. $pair, who connects and who
# listens, is its column in the table, NAME its row; without a pair it is in none.
pair=
check() { # in this shell: ends() waits for its children
	local name=${pair:+$pair: }$1 out=/tmp/case/check.out status=0 since=$SECONDS
	chosen "$name" || return 0
	echo "$name" >>$log
	shift
	"$@" >$out 2>&1 || status=$?
	done_cases=$((done_cases + 1))
	if [ $status = 0 ]; then
		echo "ok $done_cases - $name${departure:+ # departure $departure}"
	else
		echo "not ok $done_cases - $name"
		{ cat $out; echo "exit status $status"; } | tail -n 30 | sed 's/^/# /'
		tail -n 20 $log | sed 's/^/# log: /'
	fi
	((SECONDS - since < 5)) || echo "# $((SECONDS - since)) s for $name"
}

# departs WHY NAME COMMAND...: siw or rsockets does otherwise, WHY is in departures.txt; COMMAND
# shows that it still does, and fails where it does no longer
departs() {
	local departure=$1
	: "${3:?nothing shows that $1 is still so}"
	check "$2" "${@:3}"
}

# needed NAME COMMAND...: a check whatever is chosen, for others build on what it does
needed() {
	local only=()
	check "$@"
}

finished() { echo "1..$done_cases"; }

# start NAME COMMAND...: runs it in the background with its output in NAME.log
start() {
	local name=$1
	shift
	if [ "$1" = in_peer ]; then
		shift
		set -- "${peer[@]}" "$@"
		[ ! -d /sys/class/net/eth0 ] || on_host[$name]=yes
	fi
	setsid "$@" >"/tmp/case/$name.log" 2>&1 &
	pid_of[$name]=$!
	echo $! >>/tmp/case/pids
}

# Not dead, nor a zombie of which the shell has not heard yet
running() {
	local stat
	read -r stat 2>/dev/null <"/proc/${pid_of[$1]}/stat" && [[ $stat != *") Z "* ]]
}

# nap SECONDS: without a process, which under emulation takes longer than most that is waited for
mkfifo /tmp/case/idle
exec {idle}<>/tmp/case/idle
nap() { read -rt "$1" -u "$idle" || :; }

# ceases SECONDS COMMAND...: it no longer holds by then; three times that, for the host may be busy
ceases() {
	local i
	for ((i = 0; i < $1 * 60; i++)); do
		"${@:2}" || return 0
		nap 0.05
	done
	! "${@:2}"
}

# gone NAME SECONDS: it ends by then
gone() { ceases "$2" running "$1"; }

# ends NAME SECONDS [STATUS]: it ends by itself within that time, with that exit status
ends() {
	local status=0
	if ! gone "$1" "$2"; then
		echo "$1 still runs after $2 s:"
		tail -n 20 "/tmp/case/$1.log"
		return 1
	fi
	wait "${pid_of[$1]}" || status=$?
	[ $status != "${3:-0}" ] || return 0
	echo "$1: status $status:"
	tail -n 20 "/tmp/case/$1.log"
	return 1
}

# Of it, or of what it started, some is left
any_left() { kill -0 -- "-${pid_of[$1]}" 2>/dev/null; }

# stop NAME [SIGNAL]: ends it and all that it started, which may end after it
stop() {
	kill -s "${2:-TERM}" -- "-${pid_of[$1]}" 2>/dev/null
	ceases 3 any_left "$1" || kill -s KILL -- "-${pid_of[$1]}" 2>/dev/null
	ceases 3 any_left "$1" || say "$1 cannot be ended"
}

# await_port NAME PORT: it listens there, itself or siw for it (whose sockets are the kernel's)
await_port() {
	local pid=${pid_of[$1]} i hex lines
	printf -v hex '%04X' "$2"
	if [ -n "${on_host[$1]:-}" ]; then
		in_peer timeout 20 sh -c "until grep -q ':$hex [0-9A-F]*:0000 0A' /proc/net/tcp
			do sleep 0.05; done"
		return
	fi
	for ((i = 0; i < 1000; i++)); do
		running "$1" || break
		mapfile -t lines <"/proc/$pid/net/tcp"
		mapfile -t -O ${#lines[@]} lines <"/proc/$pid/net/tcp6"
		[[ "${lines[*]}" != *":$hex "*([0-9A-F]):0000" 0A "* ]] || return 0
		nap 0.05
	done
	say "$1 does not listen on port $2"
	cat "/tmp/case/$1.log" "/proc/$pid/task"/*/stack
	return 1
}

# adopt NAME COMMAND...: a program that prints TAP; the host judges its output together with ours
adopt() {
	local name=$1 status=0
	chosen "$name" || return 0
	shift
	"$@" >"/tmp/case/$name.tap" 2>"/tmp/case/$name.log" || status=$?
	echo $status >"/tmp/case/$name.ended"
}

# tcp_aborts: how many connections TCP has reset, on siw's side, because octets came for one that
# was closed, or were unread then; what it still had to send is lost with them
tcp_aborts() {
	awk '$1 != "TcpExt:" { next }
		!named { named = split($0, name); next }
		{ for (i in name) if (name[i] ~ /^TCPAbortOn(Data|Close)$/) aborts += $i }
		END { print aborts }' /proc/net/netstat
}

# unless_reset THEIRS COMMAND...: of two ends of which librspreload's, on siw, closes TCP while that
# has octets to send: a grant of ours makes TCP drop them (docs/interop.md). Where TCP has counted a
# reset, our end met one and THEIRS finds that the other has ended well, it is done again.
unless_reset() {
	local theirs=$1 before i status out=/tmp/case/attempt.out
	shift
	for ((i = 0; i < 10; i++)); do
		before=$(tcp_aborts) status=0
		"$@" >$out 2>&1 || status=$?
		cat $out
		[ $status != 0 ] || return 0
		grep -q "Connection reset by peer" $out || return $status
		[ "$(tcp_aborts)" != "$before" ] && $theirs || return $status
		echo "$pair: $*: reset behind the end of librspreload" >>/tmp/case/resets.log
	done
	return 1
}
server_ended() { ends server 10; }
client_ended() { grep -q "^the client ends with 0$" /tmp/case/attempt.out; } # of sockets

# unless_early COMMAND...: siw as client resets a server of rsockets' that has spoken before siw has
# read the Reply (docs/interop.md). Software comes again, but a server of one connection has ended
# by then. Where Warpsock has been told of such an end, it is done again.
unless_early() {
	local before i
	for ((i = 0; i < 3; i++)); do
		before=$(early_ends)
		"$@" && return
		[ "$(early_ends)" != "$before" ] || return 1
		gone server 10 || stop server
		echo "$pair: $*: siw could not use the Reply" >>/tmp/case/resets.log
	done
	return 1
}
early_ends() { grep -c "verbs: event 6, status -22" $log; }

# answered LOG: of rping's client, which ends with 0 whatever becomes of it
answered() { ! grep 'wait for ' "$1"; }

# capture NAME: what goes over the wire from here on, to be judged by the host
capture() {
	start "capture-$1" in_peer tcpdump --immediate-mode -B 65536 -i up0 -U -s 0 \
		-w "/tmp/case/$1.pcap" tcp
	local i
	for ((i = 0; i < 1000; i++)); do
		[ -s "/tmp/case/$1.pcap" ] && return
		nap 0.05
	done
	say "tcpdump did not start"
}

# tcpdump throws away what it has not written when it is told to end: so once the file is still
end_capture() {
	local before=-1 now i
	for ((i = 0; i < 50; i++)); do
		now=$(stat -c %s "/tmp/case/$1.pcap")
		[ "$now" != $before ] || break
		before=$now
		nap 0.5
	done
	stop "capture-$1" INT
}

# end_of WHO COMMAND...: in $run, the command at that end of a pair of streams: "software" is under
# warpsock in the peer, "librspreload" over rsockets on siw, "verbs" under warpsock on siw. What
# stands in $beneath runs warpsock. Ours report in PAIR-WHO.json.
mode=(--all --mode on) beneath=()
end_of() {
	local within=(timeout -k 2 "${limit:-100}")
	local ours=("${beneath[@]}" "$apps/warpsock" run "${mode[@]}" --)
	local reports=(env WARPSOCK_REPORT="/tmp/case/$pair-$1.json")
	case $1 in
	software) run=(in_peer "${reports[@]}" "${within[@]}" "${ours[@]}" "${@:2}") ;;
	librspreload) run=("${within[@]}" "${over_rsockets[@]}" "${@:2}") ;;
	verbs) run=("${reports[@]}" WARPSOCK_PROVIDER=verbs "${within[@]}" "${ours[@]}" "${@:2}") ;;
	esac
}

# all_by WHO: what a report says of connections that were this one's and no other's
all_by() {
	local none='"software": 0, "kernel": 0, "verbs": 0, "tcp": 0'
	echo "${none/\"$1\": 0/\"$1\": [1-9][0-9]*}"
}

# by_provider PAIR WHO: so says each of that end's programs that has ended by itself
by_provider() {
	local report=/tmp/case/$1-$2.json
	cat "$report"
	grep -qE "$(all_by "$2")" "$report"
}

# by_devices PAIR...: no end that is verbs' was served by what else there is; in no cell
by_devices() {
	local of pair=
	for of; do check "each end of verbs of $of is a device's" by_provider "$of" verbs; done
}

# Where the server of $pair is: here, or in the peer, with a device there when both ends need one
device_there=
server_at() {
	at=$PEER
	case $pair in
	*-software) ;;
	verbs-* | *-verbs)
		[ -n "$device_there" ] || in_peer rdma link add siw1 type siw netdev up0
		device_there=siw1
		;;
	*) at=$SIW ;;
	esac
}

# server_of COMMAND...: in $run, that of $pair at $at
server_of() {
	end_of "${pair#*-}" "$@"
	case $pair in *-software) ;; verbs-* | *-verbs) run=(in_peer "${run[@]}") ;; esac
}

# part WORDS... -- WORDS...: in $first and $rest, which are the caller's
part() {
	first=()
	while [ "$1" != -- ]; do
		first+=("$1")
		shift
	done
	rest=("${@:2}")
}

# sockets STEPS... -- STEPS...: of script_sockets' server and client, at the ends of $pair. Before
# these come the steps in $server and $client; what warpsock is told is in $mode, its environment
# ours. They end with $status_server, $status_client. A server over rsockets may have its first word
# on the way while siw's initiator still reads the Reply, who fails then: it rests.
server=() client=()
sockets() {
	local program=$project/build-vm/script_sockets first rest status=0 run at late=()
	port=$((port + 1))
	part "$@"
	server_at
	[ $pair != verbs-librspreload ] || late=(sleep 100)
	server_of "$program" "${server[@]}" listen $at $port "${late[@]}" "${first[@]}"
	start server "${run[@]}"
	await_port server $port
	end_of "${pair%-*}" "$program" "${client[@]}" connect $at $port "${rest[@]}"
	"${run[@]}" || status=$?
	echo "the client ends with $status"
	[ $status = "${status_client:-0}" ] && ends server 20 "${status_server:-0}"
}

# meddle WHAT...: from here on between the two of both(), as meddle.py has it: the first WHAT when
# $port is that of now, and so on, also where checks in between are not chosen
meddled=
meddle() {
	local at=$PEER
	case $pair in software-siw | software-librspreload) at=$SIW ;; esac
	start meddler in_peer python3 "$lab/meddle.py" $PEER $((port + 1001)) $at $((port + 1)) \
		"$@"
	await_port meddler $((port + 1000 + $#))
	meddled=$port
}

unmeddle() {
	meddled=
	stop meddler
	tail -n 500 /tmp/case/meddler.log >>/tmp/case/meddled.log
}

# both STEPS... -- STEPS...: of script_verbs' and script_warp's responder and initiator; which of
# them is siw is in $pair, and where both are script_warp, which are over verbs. What they do
# before is in $before (the initiator) and $before_listen. They end with $status_responder,
# $status_initiator.
before=() before_listen=()
both() {
	local within=(timeout -k 2 "${limit:-100}") first rest status=0 at=$PEER to
	local ours=(in_peer "${within[@]}" "$build/tests/vm/script_warp")
	local theirs=("${within[@]}" "$project/build-vm/script_verbs")
	local responder=("${ours[@]}") initiator=("${theirs[@]}")
	case $pair in
	*-siw) at=$SIW responder=("${theirs[@]}") initiator=("${ours[@]}") ;;
	verbs-software | verbs-verbs)
		server_at
		initiator=(env SCRIPT_PROVIDER=verbs:siw0 "${ours[@]:1}")
		[ $pair = verbs-software ] ||
			responder=(in_peer env SCRIPT_PROVIDER=verbs:siw1 "${ours[@]:1}")
		;;
	esac
	port=$((port + 1))
	part "$@"
	start responder "${responder[@]}" "${before_listen[@]}" listen $at $port "${first[@]}"
	await_port responder $port
	to=$port
	[ -z "$meddled" ] || at=$PEER to=$((port + 1000))
	"${initiator[@]}" "${before[@]}" connect $at $to "${rest[@]}" || status=$?
	[ $status = "${status_initiator:-0}" ] || echo "the initiator ends with $status"
	[ $status = "${status_initiator:-0}" ] && ends responder 15 "${status_responder:-0}"
}

# steps OCTETS...: the operations step by step, with so many octets of private data, on $pair
steps() {
	local n
	check "Sends to and fro" \
		both accept swap got 1 send 5000 got 65536 send 0 closed -- \
		swap send 1 got 5000 send 65536 got 0 close
	check "the initiator writes and reads" both accept swap got 1 has 65536 closed -- \
		swap read 65536 read 1 write 65536 send 1 close
	check "the responder writes and reads" both accept swap read 1445 read 65536 \
		write 65536 send 1 closed -- swap got 1 has 65536 close
	for n; do
		before=(private $n)
		check "$n octets of private data in the Request" \
			both private-is $n accept swap closed -- swap close
		before=()
		check "$n octets of private data in the Reply" \
			both private $n accept swap closed -- private-is $n swap close
		check "rejected with $n octets" \
			both private $n reject -- refused private-is $n
	done
}
