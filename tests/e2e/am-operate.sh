#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Jobs as an operator meets them: am-operate.sh BUILD. Output that nobody takes, jobs that are ended
# before they have begun, and the live view of what is dead, or of another PID namespace.
set -u
build=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
apps=$build/apps
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export XDG_RUNTIME_DIR=$tmp

. "$here/cases.sh"

for program in endings rude; do
	gcc -std=gnu11 -Wall -I"$here/../../include" "$here/am-compat/$program.c" \
		-o "$tmp/$program" "$build/am/libamudp.so" "-Wl,-rpath,$build/am" ||
		{ echo "1..0 # SKIP a program does not compile against this build"; exit 1; }
done
export apps tmp

cat >"$tmp/unread.py" <<'PY'
"""unread.py HOW COMMAND...: output to a pipe, or a terminal, that is read late, or never"""
import os, pty, signal, subprocess, sys, time
read, write = pty.openpty() if sys.argv[1] == "terminal" else os.pipe()
os.set_blocking(write, sys.argv[1] != "nonblock")
said = subprocess.PIPE if sys.argv[1] in ("dies", "terminal") else None
job = subprocess.Popen(sys.argv[2:], stdout=write, stderr=said, text=True)
os.close(write)
time.sleep(7 if sys.argv[1] == "late" else 1)
if sys.argv[1] in ("nonblock", "late"):
    lines = sum(1 for _ in os.fdopen(read))
    print(lines, "lines, code", job.wait())
elif said:
    with open(f"/proc/{job.pid}/task/{job.pid}/children") as ranks:
        os.kill(int(ranks.read().split()[0]), signal.SIGKILL)
    print(job.stderr.readline().strip(), flush=True)
    os.close(read)
    print("code", job.wait())
else:
    begun = time.monotonic()
    job.send_signal(signal.SIGTERM)
    print("code", job.wait(), "at once" if time.monotonic() - begun < 5 else "late")
PY
check "all output comes, where a write would block" 0 "^4000 lines, code 0" \
	python3 "$tmp/unread.py" nonblock "$tmp/endings" 4 L print
check "... and where the reader takes longer than ranks may take to end" 0 "^4000 lines, code 0" \
	env AMUDP_EXITTIMEOUT=0.1 python3 "$tmp/unread.py" late "$tmp/endings" 4 L print
check "SIGTERM ends a job whose output nobody reads" 0 "^code 143 at once" \
	python3 "$tmp/unread.py" never "$tmp/endings" 4 L print
check "a rank that dies is heard of, though nobody reads the output" 0 "was killed by signal 9" \
	timeout 20 python3 "$tmp/unread.py" dies "$tmp/endings" 4 L print-long
check "... and the code is that of its end, once the reader has left" 0 "^code 137" \
	timeout 20 python3 "$tmp/unread.py" dies "$tmp/endings" 4 L print-long
check "... also of a terminal, whose user has left it stopped" 0 "was killed by signal 9" \
	timeout 20 python3 "$tmp/unread.py" terminal "$tmp/endings" 4 L print-long
check "output that has no room is said" 1 "output of the job is lost, .*: No space left" \
	sh -c "exec $tmp/endings 2 L print >/dev/full"
check "the job's own code goes before that" 7 "output of the job is lost" \
	sh -c "exec $tmp/endings 2 L exit 7 >/dev/full"
check "a reader that has left is no error" 0 "^code 0" \
	bash -c "$tmp/endings 2 L print | head -1; echo code \${PIPESTATUS[0]}"

# a rank that does not keep to the protocol keeps neither the others nor the user waiting
for way in head data answer two; do
	check "a rank that is rude, the other one ends the job: $way" 7 "^rank 0 goes on" \
		timeout 20 "$tmp/rude" 2 L $way 7
done
check "a collective of more than 1 GiB ends the job" 1 "rank 1 calls .* of more than 1 GiB in" \
	timeout 20 "$tmp/rude" 2 L huge
check "a rank that says what no rank says ends the job" 1 "^\*\*\* AMUDP: rank 1 .*; the job ends" \
	timeout 20 "$tmp/rude" 2 L spoken
check "a rank whose connection for collectives goes is lost, and makes no other one" 1 \
	"^\*\*\* AMUDP: rank 1 .* closed its connection; the job ends" \
	timeout 20 "$tmp/rude" 2 L again
check "a rank that closes all descriptors is lost" 1 "rank 1 \(.*; the job ends" \
	timeout 20 "$tmp/endings" 3 L closes
# ranks that do what they like: the console ends, with a code of its own
mob() {
	local seed code
	for seed in "$@"; do
		CSPAWN_CMD="'$here/am-compat/mob.py' $seed %C" timeout 30 "$tmp/endings" 2 C \
			>"$tmp/mob" 2>&1
		code=$?
		[ $code = 1 ] || [ $code = 9 ] || echo "seed $seed: code $code"
	done
	echo "$# mobs"
}
export -f mob
export here
check "ranks that do what they like" 0 "^12 mobs" env MASTERIP=127.0.0.1 CSPAWN_ROUTE_OUTPUT=1 \
	bash -c "mob 1 2 3 4 5 6 7 8 9 10 11 16 | tee $tmp/mobs; ! grep code $tmp/mobs"
ended() {
	local console
	"$tmp/rude" 2 L "$1" >"$tmp/rude.out" 2>&1 &
	console=$!
	until grep -q "^rank 0 goes on" "$tmp/rude.out"; do sleep 0.1; done
	kill -TERM $console
	timeout 8 tail --pid=$console -f /dev/null || { echo late; kill -9 $console; }
	wait $console
	echo "code $?"
}
export -f ended
for way in head data answer; do
	check "... and SIGTERM ends it: $way" 0 "^code 143" timeout 30 bash -c "ended $way"
done

# what a child of a rank keeps open behind it does not keep the job
for how in fork exec; do
	check "a child of a rank that stays behind a good end: $how" 0 "^rank 1" \
		timeout 12 "$tmp/endings" 2 L behind $how
done
# what a program that a rank starts inherits does not make it a worker
check "a rank starts a job of its own" 0 "^rank 1\$" env MASTERIP=127.0.0.1 CSPAWN_ROUTE_OUTPUT=1 \
	CSPAWN_CMD='%W & %W & wait' "$tmp/endings" 1 L nested "$tmp/endings 2 C"

# signals: what the console is started with, and what its ranks are
ignoring() {
	local job
	: >"$tmp/ignoring"
	env --ignore-signal=$1 "$tmp/endings" 2 L linger >"$tmp/ignoring" 2>&1 &
	job=$!
	until [ "$(grep -c ^rank "$tmp/ignoring")" = 2 ]; do sleep 0.1; done
	kill -$1 $job
	wait $job
	echo "code $?"
}
export -f ignoring
for signal in HUP INT TERM; do
	check "a signal that is ignored, as by nohup: $signal" 0 "^code 0" \
		timeout 30 bash -c "ignoring $signal"
done
check "ranks are killed by writing to a pipe without a reader, as any process" 1 \
	"^SigIgn:.*[02468ace][0-9a-f]{3}\$" env --default-signal=PIPE "$apps/amudprun" -np 1 \
	-spawn L grep SigIgn /proc/self/status
check "a console that is started with SIGCHLD ignored hears of a rank's end" 137 \
	"rank 1 .*killed by signal 9" env --ignore-signal=CHLD "$tmp/endings" 3 L kill
check "... and of one that never joins" 1 "ended with code 0 before the job began" \
	timeout 20 env --ignore-signal=CHLD "$apps/amudprun" -np 2 -spawn L true
# the console is stopped while ranks come to their end: their output is not lost
stopped() {
	local console
	: >"$tmp/stopped"
	EXITTIMEOUT=1 "$tmp/endings" 3 L late-print >"$tmp/stopped" 2>&1 &
	console=$!
	until grep -q "rank 0 is done" "$tmp/stopped"; do sleep 0.01; done
	sleep 0.2
	kill -STOP $console
	sleep 7
	kill -CONT $console
	wait $console
	echo "code $?, $(grep -cE '^<[0-9a-f]{200}>$' "$tmp/stopped") lines"
}
export -f stopped
check "a console that was stopped still brings all output" 0 "^code 0, 400 lines" \
	timeout 30 bash -c stopped

# processes of others
cat >"$tmp/slow" <<'SSH'
#!/bin/sh
sleep 1
shift
exec sh -c "$*"
SSH
chmod +x "$tmp/slow"
check "a child that the console had before is none of its workers" 0 "^rank 1" env \
	SSH_SERVERS=alpha SSH_CMD="$tmp/slow" MASTERIP=127.0.0.1 \
	sh -c "(sleep 0.3; exit 3) & exec $tmp/endings 2 S"
check "a worker of another host with the number of a process of this one" 5 "^goes on" env \
	MASTERIP=127.0.0.1 CSPAWN_CMD="'$here/am-compat/namesake.py' %C; exit 3" "$tmp/endings" 1 C
check "a worker that dies while others are waited for" 1 \
	"^\*\*\* AMUDP: a worker \(process [0-9]+\) closed its connection before the job" env \
	MASTERIP=127.0.0.1 CSPAWN_CMD='AMUDP_SLAVE_RANK=1 %W & sleep 1; kill -9 $!; sleep 9' \
	timeout 20 "$tmp/endings" 2 C
cat >"$tmp/console.py" <<'PY'
"""console.py RANK SIZE COMMAND...: a worker's console that says so"""
import os, socket, struct, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
args = f"1,127.0.0.1:{listener.getsockname()[1]},127.0.0.1"
worker = subprocess.Popen(sys.argv[3:], env={**os.environ, "AMUDP_SLAVE_ARGS": args})
peer = listener.accept()[0]
boot = struct.pack(">iiIIQQ", int(sys.argv[1]), int(sys.argv[2]), 0, 0, 1, 2) + b"\0"
peer.sendall(struct.pack(">III", ord("O"), 0, len(boot)) + boot)
print("code", worker.wait(timeout=20), flush=True)
PY
for rank in "-1 2" "2 2" "0 0" "0 -1" "0 99999999"; do
	check "a console that knows no ranks: $rank" 0 "^code -6" \
		python3 "$tmp/console.py" $rank "$tmp/endings"
done
check "as many ranks as there may be descriptors, whose output goes elsewhere" 0 "^rank 39" env \
	MASTERIP=127.0.0.1 CSPAWN_CMD='for i in $(seq %N); do %W & done; wait' \
	timeout 30 bash -c "ulimit -n 160; exec $tmp/endings 40 C"

# a process that is gone, or waits for its parent to ask for its code
gone() { ! grep -qs '^State:.[^ZX]' "/proc/$1/status"; }
# what has been started and has not joined; the console is told to end
cancelled() {
	local console pid i left=0 code
	"$@" >"$tmp/said" 2>&1 &
	console=$!
	for i in $(seq 100); do
		[ "$(pgrep -cf "^sleep 7[7]7" --parent $console)" = 2 ] && break
		sleep 0.1
	done
	set -- $(pgrep -P $console)
	kill -TERM $console
	wait $console
	code=$?
	sleep 0.5
	for pid in "$@"; do
		gone "$pid" || { left=$((left + 1)); kill -9 "$pid"; }
	done
	cat "$tmp/said"
	echo "code $code, $# started, $left left, $(grep -c FATAL "$tmp/said") cannot join"
}
export -f cancelled gone
cat >"$tmp/ssh" <<'SSH'
#!/bin/sh
exec sleep 777
SSH
cat >"$tmp/second" <<'SSH'
#!/bin/sh
# the first one joins, the second one never does
mkdir "$tmp/first" 2>/dev/null || exec sleep 777
shift
exec sh -c "$*"
SSH
chmod +x "$tmp/ssh" "$tmp/second"
check "programs that never join are ended with the console" 0 "^code 143, 2 started, 0 left, 0 " \
	bash -c "cancelled $apps/amudprun -np 2 -spawn L sleep 777"
check "an ssh that waits is ended with the console" 0 "^code 143, 2 started, 0 left, 0 " env \
	SSH_SERVERS=alpha SSH_CMD="$tmp/ssh" MASTERIP=127.0.0.1 bash -c "cancelled $tmp/endings 2 S"
check "a worker that waits for others ends quietly" 0 "^1 of 2 .* code 143, 0 FATAL" env \
	SSH_SERVERS=alpha SSH_CMD="$tmp/second" MASTERIP=127.0.0.1 bash -c "
	$tmp/endings 2 S >$tmp/said 2>&1 & console=\$!
	until grep -q 'have joined' $tmp/said; do sleep 0.2; done
	kill -TERM \$console; wait \$console; code=\$?
	echo \$(sed 's/.*AMUDP: //' $tmp/said) code \$code, \$(grep -c FATAL $tmp/said) FATAL"
for number in 2x 1048577 99999999; do
	check "no number of processes: $number" 1 "^usage: " "$tmp/endings" $number L
done
# a job of two ranks that is seen, and what is done meanwhile
seen() {
	local job i
	"$tmp/endings" 2 L long >"$tmp/long" 2>&1 &
	job=$!
	for i in $(seq 100); do
		[ "$("$apps/am-stat" | grep -c 127.0.0.1)" = 2 ] && break
		sleep 0.1
	done
	"$@" $job
	echo "$("$apps/am-stat" | grep -c 127.0.0.1) seen," \
		"$(ls "$tmp/warpsock" | grep -c ^am-) files"
	kill -9 $(pgrep -P $job) $job 2>/dev/null
	wait $job 2>/dev/null
	return 0
}
elsewhere() { unshare --pid --fork "$apps/am-stat" | grep -c 127.0.0.1 | sed 's/$/ there,/'; }
one_dies() { kill -9 $(pgrep -P "$1") "$1"; sleep 0.5; }
export -f seen elsewhere one_dies
check "another PID namespace sees the ranks" 0 "^2 there," bash -c "seen elsewhere"
check "... and does not hide them" 0 "^2 seen, 2 files" bash -c "seen elsewhere"
check "am-stat removes what the dead have left" 0 "^0 seen, 0 files" bash -c "seen one_dies"
# its first count had not been written: such a file has no process either
check "... also when they had shown nothing" 0 "^0 files" sh -c "
	head -c 520 /dev/zero >$tmp/warpsock/am-1-1; $apps/am-stat
	ls $tmp/warpsock | grep -c ^am- | sed 's/\$/ files/'"
check "an XDG_RUNTIME_DIR that is empty, or none" 0 "^0 folders" sh -c "cd $tmp
	for d in '' nowhere; do XDG_RUNTIME_DIR=\$d $apps/am-stat; done
	ls -d /warpsock nowhere 2>/dev/null | grep -c . | sed 's/\$/ folders/'"
if [ "$(id -u)" = 0 ]; then
	check "an XDG_RUNTIME_DIR of another user is left alone" 0 "^0 folders" sh -c "
		mkdir $tmp/theirs; chown 65534 $tmp/theirs
		XDG_RUNTIME_DIR=$tmp/theirs $apps/am-stat
		ls $tmp/theirs | grep -c . | sed 's/\$/ folders/'"
else
	skip "an XDG_RUNTIME_DIR of another user is left alone" "only root can make one"
fi
for seconds in nan 1x 0 1e30; do
	check "am-stat every $seconds seconds" 2 "^usage: am-stat" "$apps/am-stat" $seconds
done
check "am-stat that cannot write" 2 "am-stat: cannot write: No space left" \
	sh -c "exec $apps/am-stat 0.1 >/dev/full"
echo "1..$count"
