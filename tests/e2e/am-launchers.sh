#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Jobs of Active Messages under launchers that are not ours: am-launchers.sh BUILD
#
#   munged   slurmctld   slurmd    a cluster of this one machine, in a folder of its own
#                          |
#   srun --mpi=pmix: rank 0 .. rank N-1
#
# and a real sshd on a port of its own, by which a job's workers start.
set -u
build=$(readlink -f "$1")
apps=$build/apps
tmp=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait; rm -rf "$tmp"' EXIT

here=$(dirname "$(readlink -f "$0")")
include=$(readlink -f "$here/../../include")
. "$here/cases.sh"

free_ports() {
	python3 - "$1" <<'PORTS'
import socket, sys
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in held))
PORTS
}

# until COMMAND...: at most 20 seconds
until_true() {
	local i
	for i in $(seq 100); do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.2
	done
	return 1
}

cluster_start() {
	local ports
	read -ra ports <<<"$(free_ports 2)"
	mkdir -p "$tmp/state" "$tmp/spool"
	head -c 1024 /dev/urandom >"$tmp/munge.key"
	chmod 400 "$tmp/munge.key"
	chmod 755 "$tmp"
	cat >"$tmp/slurm.conf" <<CONF
ClusterName=here
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$tmp/munge.socket
CryptoType=crypto/munge
StateSaveLocation=$tmp/state
SlurmdSpoolDir=$tmp/spool
TmpFS=$tmp
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=5 State=UP OverSubscribe=FORCE:8
CONF
	munged --foreground --force --socket "$tmp/munge.socket" --key-file "$tmp/munge.key" \
		--pid-file "$tmp/munged.pid" --log-file "$tmp/munged.log" --seed-file "$tmp/seed" \
		>"$tmp/munged.out" 2>&1 &
	pids+=($!)
	until_true test -S "$tmp/munge.socket" || return 1
	export SLURM_CONF=$tmp/slurm.conf
	slurmctld -D >"$tmp/slurmctld.log" 2>&1 &
	pids+=($!)
	slurmd -D >"$tmp/slurmd.log" 2>&1 &
	pids+=($!)
	until_true sh -c 'sinfo -h -o %t | grep -qE "idle|mix"'
}

sshd_start() {
	local port
	port=$(free_ports 1)
	ssh-keygen -q -t ed25519 -N '' -f "$tmp/host"
	ssh-keygen -q -t ed25519 -N '' -f "$tmp/user"
	cat >"$tmp/sshd.conf" <<CONF
Port $port
ListenAddress 127.0.0.1
HostKey $tmp/host
AuthorizedKeysFile $tmp/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
MaxStartups 100
CONF
	mkdir -p /run/sshd
	/usr/sbin/sshd -D -e -f "$tmp/sshd.conf" >"$tmp/sshd.log" 2>&1 &
	pids+=($!)
	ssh_options="-p $port -i $tmp/user -o BatchMode=yes -o StrictHostKeyChecking=no"
	ssh_options+=" -o UserKnownHostsFile=$tmp/known -o LogLevel=ERROR"
	# shellcheck disable=SC2086
	until_true ssh $ssh_options 127.0.0.1 true
}

if [ ! -x /usr/sbin/sshd ]; then
	skip "a real sshd" "no openssh-server here"
elif [ "$(id -u)" != 0 ]; then
	skip "a real sshd" "only root may start one for its own account without PAM"
else
	sshd_start
	by_ssh=(env SSH_CMD=ssh SSH_OPTIONS="$ssh_options" SSH_SERVERS=127.0.0.1 MASTERIP=127.0.0.1)
	check "workers by a real sshd" 0 "4 ranks: sorted" "${by_ssh[@]}" \
		"$apps/am-sort" 4 S 5000
	check "the answer of a remote rank" 0 ": 0 wrong sums" "${by_ssh[@]}" \
		"$apps/am-reduce" 3 S 100
fi

if ! command -v slurmctld >/dev/null || ! command -v munged >/dev/null; then
	skip "under srun" "no slurm and munge here"
elif [ "$(id -u)" != 0 ]; then
	skip "under srun" "slurmd needs root"
elif ! grep -q PMIx_Fence "$build/am/libamudp.so"; then
	skip "under srun" "built without PMIx"
else
	cluster_start
	srun=(srun --mpi=pmix --overcommit --immediate=30)
	check "under srun, by PMIx" 0 "4 ranks: sorted" "${srun[@]}" -n 4 "$apps/am-sort" 5000
	gcc -std=gnu11 -I"$include" "$here/am-compat/endings.c" -o "$tmp/endings" \
		"$build/am/libamudp.so" "-Wl,-rpath,$build/am"
	check "rank 0 ends the job under srun" 0 "callback of rank 2: 0" "${srun[@]}" -n 3 \
		"$tmp/endings" first 0
	gcc -std=gnu99 -I"$include" "$here/am-compat/interface.c" -o "$tmp/interface" \
		"$build/am/libamudp.so" "-Wl,-rpath,$build/am"
	check "every name of the interface, under srun" 0 "rank 2: 0 wrong" "${srun[@]}" -n 3 \
		"$tmp/interface"
	# a rank ends by itself or with the step, as it happens; neither is a signal's number
	check "the exit code under srun" 12 "Exited with exit code 12|: Killed" "${srun[@]}" \
		-n 3 "$tmp/endings" exit 12
	check "a rank that is killed under srun" 137 "task 1: Killed" "${srun[@]}" -n 3 \
		"$tmp/endings" kill
	check "sums under srun" 0 ": 0 wrong sums" "${srun[@]}" -n 2 "$apps/am-reduce" 100
fi
echo "1..$count"
