#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Jobs of Active Messages on this machine: am.sh BUILD
#
#   console (amudprun, or the program itself)
#      |  TCP: boot, collectives, output, end
#   rank 0 .. rank N-1     UDP between all of them over the loopback
set -u
build=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
include=$(readlink -f "$here/../../include")
apps=$build/apps
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_RUNTIME_DIR=$tmp

. "$here/cases.sh"

lossy=(env AMUDP_FAULT_RATE=0.2 AMUDP_FAULT_DUPLICATE=0.1 AMUDP_FAULT_REORDER=0.1
	AMUDP_REQUESTTIMEOUT_INITIAL=5000)
counter=$build/tests/e2e/am-compat/am_count
link=("$build/am/libamudp.so" "-Wl,-rpath,$build/am")
[ -e "$build/am/libamudp.so" ] || link=("$build"/am/libamudp*.so*)

gcc -std=gnu99 -I"$include" "$here/am-compat/classic.c" -o "$tmp/classic" "${link[@]}" &&
	g++ -I"$include" "$here/am-compat/classicpp.cc" -o "$tmp/classicpp" "${link[@]}" &&
	gcc -std=gnu99 -Wall -Werror -I"$include" "$here/am-compat/interface.c" \
		-o "$tmp/interface" "${link[@]}" &&
	g++ -x c++ -Wall -Werror -I"$include" "$here/am-compat/interface.c" -x none \
		-o "$tmp/interfacepp" "${link[@]}" &&
	gcc -std=gnu99 -Wall -Werror -I"$include" "$here/am-compat/macros.c" \
		-o "$tmp/macros" "${link[@]}" &&
	g++ -x c++ -Wall -Werror -I"$include" "$here/am-compat/macros.c" -x none \
		-o "$tmp/macrospp" "${link[@]}" &&
	gcc -std=gnu11 -Wall -I"$include" "$here/am-compat/endings.c" -o "$tmp/endings" \
		"${link[@]}" &&
	gcc -std=gnu11 -Wall -DGASNET_NDEBUG=1 -I"$include" "$here/am-compat/endings.c" \
		-o "$tmp/endings-gasnet" "${link[@]}" &&
	gcc -std=gnu99 -Wall -Werror -DGASNET_NDEBUG=1 -I"$include" "$here/am-compat/runtime.c" \
		-o "$tmp/runtime" "${link[@]}" &&
	g++ -x c++ -Wall -Werror -DGASNET_NDEBUG=1 -I"$include" "$here/am-compat/runtime.c" \
		-x none -o "$tmp/runtimepp" "${link[@]}" &&
	gcc -std=gnu11 -Wall -I"$include" "$here/am-compat/parallel.c" -o "$tmp/parallel" \
		-pthread "${link[@]}" ||
	{ echo "1..0 # SKIP programs do not compile against this build"; exit 1; }

check "a C program for AMUDP, 1 rank" 0 "^P0 of 1 done" "$tmp/classic" 1 L
check "a C program for AMUDP, 4 ranks" 0 "^P3 of 4 done" "$tmp/classic" 4 L 200
check "a C++ program for AMUDP, 3 ranks" 0 "^P2 of 3 done" "$tmp/classicpp" 3 L 50
check "the same with faults" 0 "^P3 of 4 done" "${lossy[@]}" "$tmp/classic" 4 L 200
check "every name of the interface, in C" 0 "^rank 1: 0 wrong" "$tmp/interface" 2 L
check "every name of the interface, in C++" 0 "^rank 2: 0 wrong" "$tmp/interfacepp" 3 L
check "every macro of a message, in C" 0 "^rank 1: 102 answers, 0 wrong" "$tmp/macros" 2 L
check "every macro of a message, in C++" 0 "^rank 0: 102 answers, 0 wrong" "$tmp/macrospp" 2 L
check "every name of the interface, 8 ranks" 0 "^rank 7: 0 wrong" "$tmp/interface" 8 L
check "every macro of a message, 8 ranks" 0 "^rank 7: 102 answers, 0 wrong" "$tmp/macros" 8 L
check "every name of the interface, polled" 0 "^rank 7: 0 wrong" "$tmp/interface" 8 L poll
check "every macro of a message, polled" 0 "^rank 7: 102 answers, 0 wrong" "$tmp/macros" 8 L poll
check "what a run-time system calls, 2 ranks" 0 "^rank 1: 0 wrong" "$tmp/runtime" 2
check "what a run-time system calls, 4 ranks" 0 "^rank 3: 0 wrong" "$tmp/runtime" 4
check "what a run-time system calls, in C++" 0 "^rank 2: 0 wrong" "$tmp/runtimepp" 3
check "... where all ranks return from main" 0 "^rank 3: 0 wrong" \
	env RUNTIME_RETURN=1 "$tmp/runtime" 4
check "... and its own address for the console is empty" 0 "^rank 1: 0 wrong" \
	env GASNET_MASTERIP= "$tmp/runtime" 2
check "what a run-time system calls, with faults" 0 "^rank 3: 0 wrong" \
	env GASNET_FAULT_RATE=0.1 "$tmp/runtime" 4
# the example of the manual page, as it stands there
sed -n '/^#include <amudp.h>/,/^\.Ed/p' "$here/../../man/amudp.7" | sed '/^\.Ed/d; s/\\e/\\/g' \
	>"$tmp/square.c"
gcc -Wall -Werror -I"$include" "$tmp/square.c" -o "$tmp/square" "${link[@]}"
check "the example of amudp(7)" 0 "^rank 3 of 4: 9" "$tmp/square" 4 L
check "a process leaves by its own way" 0 "^rank 1 leaves by its own way" "$tmp/interface" 2 L
check "ranks with threads, in a bundle for them" 0 "^rank 3: 0 wrong" "$tmp/parallel" 4 L
check "ranks with threads, without spinning" 0 "^rank 2: 0 wrong" env AMUDP_SPIN=0 \
	"$tmp/parallel" 4 L
check "ranks that leave without an endpoint" 0 "^rank 3: 0 wrong" "$tmp/parallel" 4 L free
check "amudprun" 0 "^3 ranks: sorted" "$apps/amudprun" -np 3 -spawn L "$apps/am-sort" 1000
check "amudprun -N" 0 "^2 ranks: sorted" "$apps/amudprun" -N 2 -spawn l "$apps/am-sort" 1000
check "amudprun -n" 0 "^4 ranks: sorted" "$apps/amudprun" -n 4 -spawn L "$apps/am-sort" 1000
check "amudprun with no number is one process" 0 "^1 ranks: sorted" "$apps/amudprun" -spawn L \
	"$apps/am-sort" 1000
check "amudprun -v" 0 "^ENV parameter: NETWORKDEPTH = " "$apps/amudprun" -v -spawn L \
	"$apps/am-sort" 9
check "amudprun -h" 0 "^usage: amudprun" "$apps/amudprun" -h
check "amudprun without a program" 2 "^usage" "$apps/amudprun" -np 2
check "amudprun with a number that is none" 2 "-np wants a number" "$apps/amudprun" -np 2x true
check "amudprun with too great a depth" 2 "-depth wants a number" "$apps/amudprun" -depth 1025 true
check "amudprun with a letter of nothing" 2 "no way Q to start" "$apps/amudprun" -spawn Q true
check "amudprun with an option that is none" 2 "^usage" "$apps/amudprun" -q true
check "SPAWNFN" 0 "^P1 of 2 done" env SPAWNFN=L "$tmp/classic" 2
own() {
	rm -f "$tmp/barriers"
	truncate -s 4096 "$tmp/barriers"
	MASTERIP=127.0.0.9 "$build/tests/e2e/am-compat/am_spmd" "$tmp/barriers"
}
export -f own
export build tmp
check "a spawn function of the program's own" 0 "^the spawn function: 3 workers, 2 arguments" \
	bash -c own
check "tags, barriers and gathers of its job" 0 "^rank 2: 0 wrong" bash -c own
check "each job has a nonce of its own" 0 "^2 nonces" bash -c \
	"(own; own) | grep '^nonce' | sort -u | wc -l | sed 's/\$/ nonces/'"
check "a spawn function that fails" 1 "the workers cannot be started" \
	"$build/tests/e2e/am-compat/am_spmd"
check "no number of processes" 1 "^usage" "$tmp/classic"
for number in 0 2x 4294967298; do
	check "a number of processes that is none: $number" 1 "^usage" "$tmp/classic" $number L
done
check "a letter that means nothing" 1 "^usage" "$tmp/classic" 2 X

cat >"$tmp/ssh" <<'SSH'
#!/bin/sh
# what ssh does, on this machine: options, host, then words for a shell
while [ "${1#-}" != "$1" ]; do shift; done
echo "$1" >>"$HOSTS"
shift
exec sh -c "$*"
SSH
chmod +x "$tmp/ssh"
check "ssh" 0 "^P2 of 3 done" env PASS_ENV=A_TEST_KEY HOSTS="$tmp/hosts" SSH_CMD="$tmp/ssh" \
	SSH_OPTIONS=-q SSH_SERVERS="alpha, beta" MASTERIP=127.0.0.1 "$tmp/classic" 3 S 10
check "ssh takes the servers in turn" 0 "^alpha alpha beta" \
	sh -c "sort $tmp/hosts | tr '\n' ' '"
# the secret is on no command line, which all users of a machine can read
cat >"$tmp/ssh-seen" <<'SSH'
#!/bin/sh
# what ssh does; what is seen of it in the list of processes is told
tr '\0' ' ' </proc/$$/cmdline | sed 's/^.* cd /seen: cd /' >&2
shift
exec sh -c "$*"
SSH
cat >"$tmp/ssh-deaf" <<'SSH'
#!/bin/sh
# what ssh -n does
shift
exec sh -c "$*" </dev/null
SSH
cat >"$tmp/ssh-more" <<'SSH'
#!/bin/sh
shift
(cat; echo behind it) | sh -c "$*"
SSH
chmod +x "$tmp/ssh-seen" "$tmp/ssh-deaf" "$tmp/ssh-more"
by_ssh=(env PASS_ENV="A_TEST_*" SSH_SERVERS=alpha MASTERIP=127.0.0.1)
check "ssh passes the secret on unseen" 0 "^seen: cd .* 'AMUDP_SLAVE_SECRET=-' '/" \
	"${by_ssh[@]}" SSH_CMD="$tmp/ssh-seen" "$tmp/classic" 2 S 10
check "an ssh that passes no input on" 134 "without its secret, which comes by standard input" \
	"${by_ssh[@]}" SSH_CMD="$tmp/ssh-deaf" "$tmp/classic" 1 S 10
check "a program reads its own input behind the secret" 0 "^rank 0 reads: behind it\$" \
	"${by_ssh[@]}" SSH_CMD="$tmp/ssh-more" "$tmp/endings" 1 S input
check "no command line has the secret, by ssh" 0 \
	"^by standard input: [0-9]+ characters, on 0 command lines" \
	"${by_ssh[@]}" SSH_CMD="$here/am-compat/watch.py" "$tmp/classic" 1 S 10
check "no command line has the secret, by a custom command" 0 \
	"^mode 600: [0-9]+ characters, on 0 command lines" env MASTERIP=127.0.0.1 \
	CSPAWN_CMD="'$here/am-compat/watch.py' %C & '$here/am-compat/watch.py' %C & wait" \
	"$tmp/endings" 2 C
check "no file with a secret is left" 0 "^0 files" \
	sh -c "ls $tmp | grep -c amudp-secret | sed 's/\$/ files/'"
check "a folder for the file with the secret" 0 "^AMUDP_SLAVE_SECRET=$tmp/own/amudp-secret-" env \
	MASTERIP=127.0.0.1 SECRET_DIRECTORY="$tmp/own" CSPAWN_ROUTE_OUTPUT=1 CSPAWN_CMD='
	echo %C | tr -d "'"'"'" | tr " " "\n" | grep SECRET=; %C' \
	sh -c "mkdir -p $tmp/own; exec $tmp/endings 1 C"
check "a file with a secret that others may read" 134 "is not this user's alone" env \
	MASTERIP=127.0.0.1 CSPAWN_CMD="chmod 644 $tmp/amudp-secret-*; %C" "$tmp/endings" 1 C
check "no folder for the file with the secret" 1 "no file for the job's secret in /nowhere" env \
	MASTERIP=127.0.0.1 SECRET_DIRECTORY=/nowhere CSPAWN_CMD=%C "$tmp/endings" 1 C
# what a worker on another machine is told of the console's environment
told() {
	env A_WORD=1 AB_WORD=2 AMUDP_SPIN=3 BATCH=4 MASTERIP=127.0.0.1 SSH_SERVERS=alpha \
		SSH_CMD="$tmp/ssh" HOSTS="$tmp/hosts" "$@" variables A_WORD AB_WORD AMUDP_SPIN BATCH
}
export -f told
check "variables that no job asks for" 0 \
	"^A_WORD unknown; AB_WORD unknown; AMUDP_SPIN 3; BATCH 4; told" \
	bash -c "told $tmp/endings 1 S"
check "variables that a job asks for" 0 "^A_WORD unknown; AB_WORD 2; AMUDP_SPIN 3; BATCH 4; told" \
	bash -c "told $apps/amudprun -env 'AB_*' -spawn S $tmp/endings"
check "all variables" 0 "^A_WORD 1; AB_WORD 2; " bash -c "PASS_ENV='*' told $tmp/endings 1 S"
check "a word of the program's before a variable" 0 "^A_WORD 1; AB_WORD unknown; " \
	bash -c "AMUDP_ENV_PREFIX=A told $tmp/endings 1 S"
check "variables of workers on this machine" 0 "^A_WORD 1; AB_WORD 2; " \
	bash -c "told $tmp/endings 1 L"
check "a custom command without the secret on it" 0 "^as env AMUDP_SLAVE_ARGS=[^ ]* /" env \
	PASS_ENV=A_TEST_KEY MASTERIP=127.0.0.1 CSPAWN_CMD='echo as %W; %W & %W & wait' \
	"$tmp/classic" 2 C 10
check "a custom command" 0 "^P1 of 2 done" env PASS_ENV=A_TEST_KEY MASTERIP=127.0.0.1 \
	CSPAWN_ROUTE_OUTPUT=1 CSPAWN_CMD='for i in $(seq %N); do %C & done; wait' \
	"$tmp/classic" 2 C 10
check "who does not know the secret does not come in" 0 "^20 of 20 refused, then a rank" env \
	MASTERIP=127.0.0.1 CSPAWN_CMD="'$here/am-compat/stranger.py' %C" "$tmp/classic" 1 C
check "no machines for ssh" 1 "SSH_SERVERS names no machine .*-spawn L" "$tmp/classic" 2 S
check "ssh is the way unless another is named" 1 "SSH_SERVERS names no machine" "$tmp/classic" 2

check "the exit code is the job's" 7 "^rank 2" "$tmp/endings" 3 L exit 7
for code in 0 8; do
	check "rank 0 ends the job, with $code" $code "callback of rank 2: $code" \
		"$tmp/endings" 3 L first $code
done
# after a good end the other ranks come to their own: each line of theirs is heard
late() {
	timeout 20 "$tmp/endings" 3 L "late-$1" "${2:-0}" >"$tmp/late" 2>&1
	code=$?
	cat "$tmp/late"
	echo "$(grep -c '^rank . is done$' "$tmp/late") lines," \
		"$(grep -c '^callback of rank' "$tmp/late") callbacks," \
		"$(grep -c 'after the end' "$tmp/late") too far"
	return $code
}
export -f late
export tmp
check "rank 0 ends the job, the others by SPMDExit" 0 "^3 lines, 3 callbacks, 0 too far" \
	bash -c "late exit"
check "rank 0 ends the job, the others return from main" 0 "^3 lines, 1 callbacks, 0 too far" \
	bash -c "late return"
for how in poll control sleep; do
	check "rank 0 ends the job, the others: $how" 0 "^3 lines, 3 callbacks, 0 too far" \
		bash -c "late $how"
done
check "a rank fails after rank 0's good end" 4 "^rank [12] is done" bash -c "late exit 4"
check "a rank that comes to no end is ended after EXITTIMEOUT" 0 "^3 lines, 3 callbacks" \
	env AMUDP_EXITTIMEOUT=1.5 bash -c "late never"
check "a rank that is killed" 137 "rank 1 .*killed by signal 9" "$tmp/endings" 3 L kill
check "a rank that is killed, and has a child that is not" 137 "rank 1 .*killed by signal 9" \
	timeout 9 "$tmp/endings" 3 L orphan
for code in 0 7; do
	check "a child of a rank ends the job, with $code" $code "^rank 2" \
		timeout 9 "$tmp/endings" 3 L child $code
done
check "no child is left then" 1 "^\$" sh -c "echo; pgrep -f '^$tmp/endings child'"
check "a barrier that is over is left before the job" 0 "^rank 1 is behind the barrier" \
	"$tmp/endings" 2 L held
check "output to a full disk" 1 "cannot write it: No space left on device" \
	sh -c "$tmp/endings 2 L print >/dev/full"
check "output that does not block, and is read late" 0 "^406000 octets, code 0" \
	"$here/am-compat/reader.py" "$tmp/endings" 2 L print
check "ranks that a timer interrupts" 0 "^rank 2" "$tmp/endings" 3 L timer
check "too few descriptors for the console" 1 "16 ranks needs 144 descriptors, .* limit is 40" \
	sh -c "ulimit -n 40; exec $tmp/endings 16 L"
check "a limit of descriptors that can be raised" 0 "^64 ranks: sorted" \
	bash -c "ulimit -Sn 100; exec $apps/am-sort 64 L 100"
check "workers that do not come are asked after" 0 "^\*\*\* AMUDP: 1 of 2 workers have joined at" \
	env MASTERIP=127.0.0.1 CSPAWN_CMD='%W & sleep 11; %W & wait' "$tmp/endings" 2 C
check "standard streams that are closed" 0 "^ended well" \
	sh -c "$tmp/endings 3 L >&- 2>&- <&- && $tmp/endings 3 L >&- && echo ended well"
check "a rank that returns" 3 "rank 1 .*code 3 without AMUDP_SPMDExit" "$tmp/endings" 3 L return
check "a rank that aborts" 134 "rank 1 .*signal 6" "$tmp/endings" 3 L abort
check "the exit callback runs" 5 "callback of rank 2: 5" "$tmp/endings" 3 L callback 5
check "a rank that never listens is ended" 6 "^rank 1" "$tmp/endings" 2 L deaf 6
check "a rank that is killed, of another parent than the console" 1 \
	"rank 1 \(process [0-9]+\) closed its connection; the job ends" env MASTERIP=127.0.0.1 \
	CSPAWN_CMD='AMUDP_SLAVE_RANK=0 %C & AMUDP_SLAVE_RANK=1 %C & %C & wait' \
	"$tmp/endings" 3 C kill
check "a rank in another collective than the others" 1 "calls a collective that the others do not" \
	"$tmp/endings" 3 L mixed
check "a program that never joins" 1 "ended with code 0 before the job began" \
	"$apps/amudprun" -np 2 -spawn L true

# a process that is gone, or waits for its parent to ask for its code
gone() { ! grep -qs '^State:.[^ZX]' "/proc/$1/status"; }

# the console is killed: its workers find that nobody is there and end, at once and by themselves
console_dies() {
	local console workers pid i
	"$tmp/endings" 3 L long >"$tmp/long" 2>&1 &
	console=$!
	for i in $(seq 200); do
		[ "$(grep -c '^rank' "$tmp/long")" = 3 ] && break
		sleep 0.1
	done
	workers=$(pgrep -P $console)
	kill -9 $console
	for i in $(seq 100); do
		for pid in $workers; do
			gone "$pid" || { sleep 0.1; continue 2; }
		done
		break
	done
	for pid in $workers; do
		gone "$pid" && echo "ended" || { echo "left over"; kill -9 "$pid"; }
	done | sort | uniq -c
}
export -f console_dies gone
check "the console is killed, and no worker is left" 0 "^ +3 ended" bash -c console_dies
check "lines are whole and complete" 0 "^ok: 4000 whole lines" sh -c "$tmp/endings 4 L print |
	grep -cE '^<[0-9a-f]{200}>\$' | sed 's/^4000\$/ok: & whole lines/'"

# the environment, as far as unit tests do not see it
cat >"$tmp/env" <<'ENV'
#!/bin/sh
# what env does, and a note of where
pwd >>"$NOTES"
exec env "$@"
ENV
cat >"$tmp/ssh-quiet" <<'SSH'
#!/bin/sh
# what ssh does, and what the workers print stays on "the other machine"
shift
exec sh -c "$*" >>"$NOTES" 2>&1
SSH
chmod +x "$tmp/env" "$tmp/ssh-quiet"
notes() { rm -f "$tmp/notes"; "$@"; cat "$tmp/notes"; }
export -f notes
export NOTES=$tmp/notes tmp
# the console says what is wrong before it starts anything; and who cannot join, where
wrong() {
	check "wrong: $1" 1 "^\*\*\* AMUDP: $1: the value must be " env "$1" "$tmp/endings" 2 L
}
for value in FAULT_RATE=x FAULT_RATE=7 NIC=foo CHECKSUM=maybe NETWORKDEPTH=99999 \
	AMUDP_BATCH=-1 MASTERIP=no.such.host.invalid WORKERIP=240.0.0.0/24; do
	[ "${value%%=*}" = WORKERIP ] || wrong "$value"
done
check "amudprun with a wrong value" 2 "^\*\*\* AMUDP: NIC=foo: the value must be one of udp xdp" \
	env NIC=foo "$apps/amudprun" -np 2 -spawn L true
check "amudprun with a console that has no address" 2 \
	"MASTERIP=no.such.host.invalid: the value must" env MASTERIP=no.such.host.invalid \
	"$apps/amudprun" -np 2 -spawn L true
check "a subnet where a worker is not" 134 \
	"^\*\*\* AMUDP: WORKERIP=240.0.0.0/24: the value must be .* it has .*127.0.0.1" \
	env WORKERIP=240.0.0.0/24 "$tmp/endings" 1 L
check "a console that is not there" 134 "cannot join the job at 127.0.0.1:9: Connection refused" \
	env AMUDP_SLAVE_ARGS=1,127.0.0.1:9,127.0.0.1 "$tmp/endings"
check "a console of no address" 134 "cannot join the job at no.such.host.invalid:9: No route" \
	env AMUDP_SLAVE_ARGS=1,no.such.host.invalid:9,127.0.0.1 "$tmp/endings"
check "arguments for a worker that are none" 134 "cannot join the job at AMUDP_SLAVE_ARGS=1,x: " \
	env AMUDP_SLAVE_ARGS=1,x "$tmp/endings"
check "two workers that ask for one rank" 1 "rank 0 cannot be had: another worker has it" \
	env MASTERIP=127.0.0.1 CSPAWN_CMD='AMUDP_SLAVE_RANK=0 %C & AMUDP_SLAVE_RANK=0 %C & wait' \
	"$tmp/endings" 2 C
check "a rank that the job does not have" 1 "rank 7 cannot be had: .* only 2 ranks" \
	env MASTERIP=127.0.0.1 CSPAWN_CMD='AMUDP_SLAVE_RANK=7 %C & %C & wait' "$tmp/endings" 2 C
check "a rank that is none" 1 "AMUDP_SLAVE_RANK=first: the value must be a whole number from 0" \
	env AMUDP_SLAVE_ARGS=1,127.0.0.1:9,127.0.0.1 AMUDP_SLAVE_RANK=first "$tmp/endings"
check "a message that comes back to no handler is named" 134 \
	"a message was returned \(EBADHANDLER, AM_REQUEST_M\)" "$tmp/endings" 2 L unheard
check "addresses of PATHS that nobody has are told once" 0 "^2 lines of 1 rank" sh -c "
	AMUDP_PATHS=127.0.0.2,192.0.2.8,192.0.2.9 $tmp/endings 3 L 2>&1 >/dev/null |
	grep 'PATHS names 192.0.2.[89],' | sed 's/\] .*//' >$tmp/missed
	echo \$(wc -l <$tmp/missed) lines of \$(sort -u $tmp/missed | wc -l) rank"
check "AMUDP_ENV_PREFIX that is no word" 1 "AMUDP_ENV_PREFIX=a-b: the value must be" \
	env AMUDP_ENV_PREFIX=a-b "$tmp/endings" 2 L
for program in am-bulk am-getput am-ping am-reduce am-sort am-stat amudprun; do
	check "$program --help" 0 "^usage: $program" "$apps/$program" --help
done
check "$program --help beside a number" 0 "^usage: am-sort" "$apps/am-sort" 2 L --help
wrong() { check "a wrong argument: $*" 2 "^wrong argument: ${!#}\$" "$apps/$1" 3 L "${@:2}"; }
wrong am-sort x
wrong am-sort -1
wrong am-sort ""
wrong am-sort 10 20
wrong am-bulk fast
wrong am-bulk 0
wrong am-bulk nan
wrong am-bulk 1s
wrong am-ping 0
wrong am-ping 10 65001
wrong am-ping 10 64 wait
wrong am-ping 10 64 block 1
wrong am-reduce 5m
wrong am-reduce 0s
wrong am-getput 0
wrong am-getput 1000 2.5
check "a wrong argument is told once" 0 "^1 lines" sh -c "
	$apps/am-sort 3 L x 2>&1 | grep -c '^usage: am-sort' | sed 's/\$/ lines/'"
check "a block as long as it may be" 0 ": 0 damaged" "$apps/am-getput" 2 L 1000 0.2s
check "the word before names: a variable" 0 "^3 under way" env AMUDP_ENV_PREFIX=GASNET \
	NETWORKDEPTH=6 GASNET_NETWORKDEPTH=3 "$tmp/endings" 2 L depth
check "the word before names: compiled in" 0 "^4 under way" env NETWORKDEPTH=6 \
	GASNET_NETWORKDEPTH=4 "$tmp/endings-gasnet" 2 L depth
check "a program with another word has no MASTERIP" 1 "^\*\*\* AMUDP: GASNET_MASTERIP=no.such" \
	env GASNET_MASTERIP=no.such.host.invalid "$tmp/endings-gasnet" 2 L
check "no machines for ssh, by another word" 1 "^GASNET_SSH_SERVERS names no machine" \
	"$tmp/endings-gasnet" 2 S
check "NETWORKDEPTH" 0 "^6 under way" env NETWORKDEPTH=6 "$tmp/endings" 2 L depth
check "AMUDP_NETWORKDEPTH is the same, and goes first" 0 "^7 under way" env NETWORKDEPTH=6 \
	AMUDP_NETWORKDEPTH=7 "$tmp/endings" 2 L depth
check "amudprun -depth" 0 "^8 under way" "$apps/amudprun" -np 2 -spawn L -depth 8 "$tmp/endings" \
	depth
check "SENDDEPTH" 0 "^5 under way" env NETWORKDEPTH=9 SENDDEPTH=5 "$tmp/endings" 2 L depth
without=(env NETWORKDEPTH=9 SENDDEPTH=5 MASTERIP=127.0.0.1)
check "what the console has, ranks without it take" 0 "^5 under way" "${without[@]}" \
	CSPAWN_CMD='env -u SENDDEPTH %C & env -u SENDDEPTH %C & wait' "$tmp/endings" 2 C depth
check "what a rank has itself goes first" 0 "^4 under way" "${without[@]}" \
	CSPAWN_CMD='SENDDEPTH=4 %C & SENDDEPTH=4 %C & wait' "$tmp/endings" 2 C depth
check "ENV_CMD and SSH_REMOTE_PATH" 0 "^$here\$" bash -c "notes env SSH_CMD=$tmp/ssh \
	HOSTS=$tmp/hosts SSH_SERVERS=a MASTERIP=127.0.0.1 ENV_CMD=$tmp/env SSH_REMOTE_PATH=$here \
	$tmp/endings 2 S"
check "ROUTE_OUTPUT=0" 0 "^console: 0; there: 2" bash -c "rm -f $tmp/notes
	ROUTE_OUTPUT=0 SSH_CMD=$tmp/ssh-quiet SSH_SERVERS=a MASTERIP=127.0.0.1 \
	$tmp/endings 2 S >$tmp/seen
	echo console: \$(grep -c '^rank' $tmp/seen)\; there: \$(grep -c '^rank' $tmp/notes)"
check "stderr is brought home, and apart" 0 "^out: 2 0; err: 0 2" bash -c "SSH_CMD=$tmp/ssh-quiet \
	SSH_SERVERS=a MASTERIP=127.0.0.1 $tmp/endings 2 S stderr >$tmp/seen 2>$tmp/seen-err
	echo out: \$(grep -c '^rank .\$' $tmp/seen) \$(grep -c 'on stderr' $tmp/seen)\; \
	err: \$(grep -c '^rank .\$' $tmp/seen-err) \$(grep -c 'on stderr' $tmp/seen-err)"
for route in 0 1; do
	check "CSPAWN_ROUTE_OUTPUT=$route" 0 "^console: $((2 * route)); there: $((2 - 2 * route))" \
		bash -c "rm -f $tmp/notes; export MASTERIP=127.0.0.1 CSPAWN_ROUTE_OUTPUT=$route
		CSPAWN_CMD='(%C & %C & wait) >>$tmp/notes' $tmp/endings 2 C >$tmp/seen
		echo console: \$(grep -c '^rank' $tmp/seen)\; there: \$(grep -c '^rank' $tmp/notes)"
done
check "the letters of CSPAWN_CMD" 0 "^2 a,b .*/endings /there %" env CSPAWN_SERVERS=a,b \
	CSPAWN_DIRECTORY=/there MASTERIP=127.0.0.1 \
	CSPAWN_CMD='echo %N %M %P %D %%; %C & %C & wait' "$tmp/endings" 2 C
check "LINEBUFFERSZ" 0 "^room for 64\$" env LINEBUFFERSZ=64 "$tmp/endings" 2 L buffer
check "the same unless set" 0 "^room for 1024\$" "$tmp/endings" 2 L buffer
check "a line may be longer than LINEBUFFERSZ" 0 "^ok: 4000 whole lines" sh -c "LINEBUFFERSZ=64 \
	$tmp/endings 4 L print | grep -cE '^<[0-9a-f]{200}>\$' | sed 's/^4000\$/ok: & whole lines/'"
# part of a line, seen while the rank is still at work
partial() {
	local job i seen=later
	: >"$tmp/part" # of the run before
	LINEBUFFERSZ=$1 "$tmp/endings" 1 L partial >"$tmp/part" &
	job=$!
	for i in $(seq 20); do
		grep -q begun "$tmp/part" && kill -0 $job && seen=early && break
		sleep 0.1
	done
	wait $job
	echo "$seen, $(grep -c begun "$tmp/part") times"
}
export -f partial
check "LINEBUFFERSZ=0 passes on parts of lines" 0 "^early, 1 times" bash -c "partial 0"
check "another one keeps lines together" 0 "^later, 1 times" bash -c "partial 512"
for decided in "NETWORKDEPTH = 6" "SPIN = 50 \(default\)" "MASTERIP = 127.0.0.1" \
	"WORKERIP = 127.0.0.1" "CHECKSUM = auto \(default\)" "NIC = udp"; do
	check "VERBOSEENV: $decided" 0 "ENV parameter: $decided\$" env VERBOSEENV=1 NETWORKDEPTH=6 \
		"$tmp/endings" 2 L
done
check "VERBOSEENV=0" 0 "^0 lines" sh -c "VERBOSEENV=0 $tmp/endings 2 L 2>&1 | grep -c 'ENV param' |
	sed 's/\$/ lines/'"
check "FS_SYNC" 0 "^the file system is synced" env FS_SYNC=YES "$tmp/endings" 2 L
check "FREEZE" 0 "^rank 0" bash -c "AMUDP_FREEZE=1 $tmp/endings 1 L 2>$tmp/frozen & job=\$!
	until pid=\$(sed -n 's/.*is process \([0-9]*\), and stops.*/\1/p' $tmp/frozen) &&
		grep -q '^State:.T' /proc/\${pid:-0}/status; do sleep 0.1; done 2>/dev/null
	kill -CONT \$pid; wait \$job"
check "WORKERIP is where endpoints are" 0 " 1 +127.0.0.7:" sh -c "WORKERIP=127.0.0.7 \
	$tmp/endings 2 L linger & until $apps/am-stat | grep ' 1 .*127.0.0.7:'; do sleep 0.1; done
	wait"
check "LIVE=0 hides them" 0 "^0 seen" sh -c "AMUDP_LIVE=0 $tmp/endings 2 L linger & sleep 0.5
	$apps/am-stat | grep -c 127.0.0 | sed 's/\$/ seen/'; wait"

check "no room for the live view" 0 "latency size 64" unshare --mount sh -ec "mkdir $tmp/small
	mount -t tmpfs -o size=4k,mode=700 tmpfs $tmp/small; head -c 4096 /dev/zero >$tmp/small/full
	XDG_RUNTIME_DIR=$tmp/small $apps/am-ping 2 L 100"

check "bulk data" 0 "data checked" "$apps/am-bulk" 2 L 0.05
check "puts and gets" 0 ": 0 damaged, [0-9.]+ s, [1-9][0-9]* octets/s\$" \
	"$apps/am-getput" 4 L 200000 3
check "puts and gets with faults" 0 ": 0 damaged" "${lossy[@]}" AMUDP_MAX_PACKET=1400 \
	"$apps/am-getput" 3 L 50000 3
check "reductions" 0 ": 0 wrong sums" "$apps/am-reduce" 5 L 300
check "reductions with faults" 0 ": 0 wrong sums" "${lossy[@]}" "$apps/am-reduce" 4 L 100
check "a sort" 0 "sorted, 160000 keys, [0-9.]+ s, [1-9][0-9]* keys/s\$" "$apps/am-sort" 8 L 20000
check "a sort with faults" 0 "sorted" "${lossy[@]}" "$apps/am-sort" 4 L 50000
check "waiting blocked" 0 "latency size 64" "$apps/am-ping" 2 L 500 64 block
# two ranks of one processor: who spins keeps the other one from its answer
least() { for _ in 1 2 3 4 5; do "$@" pairs 64 2000; done | sort -n | head -1; }
one_processor() {
	local side=("$build/bench/am/amside" 2 L) spinning sleeping
	spinning=$(taskset -c 0 bash -c 'least "$@"' - "${side[@]}")
	sleeping=$(AMUDP_SPIN=0 taskset -c 0 bash -c 'least "$@"' - "${side[@]}")
	echo "$spinning us, $sleeping us where it never spins"
	awk -v a="$spinning" -v b="$sleeping" \
		'BEGIN { print (a > 0 && b > 0 && a <= 2 * b) ? "as soon" : "later" }'
}
export -f least one_processor
check "two ranks of one processor wait as if they never spun" 0 "^as soon" bash -c one_processor
check "8 ranks, without spinning" 0 ": 0 wrong sums" env AMUDP_SPIN=0 "$apps/am-reduce" 8 L 100
check "puts and gets, octets altered on the way" 0 ": 0 damaged" env AMUDP_FAULT_CORRUPT=0.05 \
	AMUDP_REQUESTTIMEOUT_INITIAL=5000 "$apps/am-getput" 3 L 50000 3
# the longest transfer there is; each of the two ranks has four blocks of it
longest() {
	local limit=300 name="puts and gets of 2^30 octets"
	if [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -lt 10000000 ]; then
		skip "$name" "this machine has too little memory"
	else
		check "$name" 0 "^2 ranks, 1 rounds of 1073741824 octets: 0 damaged" \
			"$apps/am-getput" 2 L 1073741824 1
	fi
}
[ -z "${WARPSOCK_LONG:-}" ] || longest
for checksum in yes no; do
	check "checksums: $checksum" 0 ": 0 damaged" env AMUDP_CHECKSUM=$checksum \
		"$apps/am-getput" 3 L 50000 3
done
check "nothing is dropped for want of room at the receivers" 0 "^0 dropped" unshare --net sh -c "
	ip link set lo up; export RECVDEPTH=16; $apps/am-getput 4 L 3000000 2
	$counter 8 L 2000
	awk '/^Udp: [0-9]/ { print \$6, \"dropped\" }' /proc/net/snmp"
check "64 ranks" 0 "64 ranks: sorted" "$apps/am-sort" 64 L 2000
check "am-stat --help" 0 "^usage: am-stat" "$apps/am-stat" --help
check "am-stat with a word that is none" 2 "^usage: am-stat" "$apps/am-stat" often
check "the live view" 0 " 1 +127.0.0.1:" sh -c "$tmp/endings 2 L linger &
	until $apps/am-stat | grep ' 1 .*127.0.0.1:'; do sleep 0.1; done; wait"
# what it says of a job that is quiet, against what the job says: each number, and none of them 0
live_agrees() {
	local job i
	$faults AMUDP_FAULT_DELAY=0.1 "$tmp/endings" 3 L tell >"$tmp/told" &
	job=$!
	for i in $(seq 200); do
		[ "$(grep -c "^counted" "$tmp/told")" = 3 ] && break
		sleep 0.1
	done
	sleep 0.3
	"$apps/am-stat" | awk '$2 ~ /^[0-9]+$/ { $1 = "counted"; $3 = ""; print }' | tr -s ' ' |
		sort >"$tmp/seen"
	wait $job
	grep "^counted" "$tmp/told" | sort | diff - "$tmp/seen" || return 1
	awk '{ for (i = 5; i <= NF; i++) if ($i > 0) n[i]++ }
		END { for (i in n) good += n[i] > 0; print NR " ranks agree, " good " columns" }' \
		"$tmp/seen"
}
export -f live_agrees
export apps faults="${lossy[*]}"
check "the live view agrees with the job's own statistics" 0 "^3 ranks agree, 6 columns" \
	bash -c live_agrees

# exactly once, counted; ten million messages in a long run
few=20000
[ -z "${WARPSOCK_LONG:-}" ] || few=5000000
for loss in 0 0.01 0.1 0.3; do
	check "exactly once, loss $loss" 0 " 0 twice, 0 returned" env AMUDP_FAULT_RATE=$loss \
		AMUDP_FAULT_DUPLICATE=0.05 AMUDP_FAULT_REORDER=0.05 "$counter" 2 L $few
	[ -z "${WARPSOCK_LONG:-}" ] || few=500000
done
# who sleeps wakes up by itself when a packet is lost: it takes 0.2 s, not a second for each
blocked=(env AMUDP_SPIN=0 AMUDP_NETWORKDEPTH=4 AMUDP_FAULT_RATE=0.1 timeout 15 "$counter")
check "exactly once, asleep" 0 " 0 twice, 0 returned" "${blocked[@]}" 2 L 500 block
check "exactly once, 8 ranks asleep" 0 " 0 twice, 0 returned" "${blocked[@]}" 8 L 2000 block
check "exactly once, 8 ranks" 0 " 0 twice, 0 returned" env AMUDP_FAULT_RATE=0.1 "$counter" 8 L 2000

# a rank goes to other addresses and back, with transfers and gets under way
move=("$build/tests/e2e/am-compat/am_migrate" 3 L 20 127.0.0.11 127.0.0.12 127.0.0.13 127.0.0.1)
check "a rank migrates under load" 0 "^20 moves, " "${move[@]}"
check "a rank migrates under load, in many fragments" 0 "^20 moves, " env AMUDP_MAX_PACKET=1400 \
	"${move[@]}"
check "a rank migrates under load, with faults" 0 "^20 moves, " "${lossy[@]}" \
	AMUDP_MAX_PACKET=1400 "${move[@]}"

# both wait for room for their answers, until each knows which of its requests are there
check "exactly once, transfers, loss 0.1" 0 " 0 twice, 0 returned" env AMUDP_FAULT_RATE=0.1 \
	"$counter" 2 L 600 size 100000

# nothing is lost here, and yet the machine is busy: at most one request in a hundred goes again,
# and of as many fragments one
needless() {
	local i burners=()
	for i in $(seq $(($(nproc) * 2))); do
		timeout 60 sh -c 'while :; do :; done' &
		burners+=($!)
	done
	"$@" >"$tmp/needless"
	kill "${burners[@]}"
	awk '{ print } / sent again needlessly/ { good += $1 * 100 <= $3 }
		/ fragments sent again/ { good += $1 * 100 <= $3 }
		END { print good == 2 ? "few" : "too many" }' "$tmp/needless"
}
export -f needless
export tmp
check "needless copies on a busy machine" 0 "^few" bash -c "needless $counter 2 L 20000"
check "needless copies of 4 ranks" 0 "^few" bash -c "needless $counter 4 L 10000"
check "needless copies of 16 ranks" 0 "^few" bash -c "needless $counter 16 L 3000"
asleep="env AMUDP_SPIN=0 AMUDP_NETWORKDEPTH=4"
check "needless copies of 4 ranks asleep" 0 "^few" bash -c \
	"needless $asleep $counter 4 L 5000 block"
check "needless fragments of 4 ranks" 0 "^few" bash -c "needless $counter 4 L 1000 size 100000"
check "needless fragments of 4 ranks asleep" 0 "^few" bash -c \
	"needless $asleep $counter 4 L 1000 block size 100000"
check "needless fragments of 16 ranks" 0 "^few" bash -c "needless $counter 16 L 300 size 100000"

for reason in "EAGAIN=Resource temporarily unavailable" "EINVAL=Invalid argument"; do
	name=${reason%%=*}
	none=(env LD_PRELOAD="$build/tests/e2e/libno_thread.so")
	[ $name = EAGAIN ] || none+=(NO_THREAD=$name)
	check "ranks without a thread: $name" 134 "without a thread .*: ${reason#*=}" "${none[@]}" \
		"$tmp/classic" 2 L
done

# a rank of 64 dies while all send to all; a random one, three times
for i in 1 2 3; do
	count=$((count + 1))
	timeout 30 "$build/tests/e2e/am-compat/am_endless" 64 L >"$tmp/out" 2>&1 &
	console=$!
	sleep 1.5
	victim=$(ps -o pid= --ppid "$(pgrep -P $console | head -1)" | shuf -n 1)
	kill -9 $victim
	wait $console
	code=$?
	if [ $code -eq 137 ] &&
		grep -q "process $((victim))) was killed by signal 9" "$tmp/out"; then
		echo "ok $count - one of 64 ranks is killed ($i)"
	else
		echo "not ok $count - one of 64 ranks is killed ($i)"
		echo "# code $code, rank $victim"
		head -5 "$tmp/out" | sed 's/^/# /'
	fi
done

if command -v mpirun >/dev/null && grep -q PMIx_Fence "$build/am/libamudp.so"; then
	mpi=(mpirun --allow-run-as-root --oversubscribe)
	check "under mpirun, by PMIx" 0 "4 ranks: sorted" "${mpi[@]}" -np 4 "$apps/am-sort" 5000
	check "every name of the interface, under mpirun" 0 "^rank 2: 0 wrong" "${mpi[@]}" -np 3 \
		"$tmp/interface"
	check "rank 0 ends the job under mpirun" 0 "^callback of rank 2: 0" "${mpi[@]}" -np 3 \
		"$tmp/endings" first 0
	check "the exit code under mpirun" 9 "^rank 1" "${mpi[@]}" -np 3 "$tmp/endings" exit 9
	check "a rank that is killed under mpirun" 137 "rank 1 .*signal 9" "${mpi[@]}" -np 3 \
		"$tmp/endings" kill
else
	skip "under mpirun" "no mpirun here, or built without PMIx"
fi
echo "1..$count"
