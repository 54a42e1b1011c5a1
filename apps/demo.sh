#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#	redis-cli ─┐                                    ┌─ redis-server
#	 libc calls│                                    │libc calls
#	 warpsock ─┴── TCP on lo: MPA / DDP / RDMAP ────┴─ warpsock
#	                         │
#	                      tcpdump ── fpdu_check.py, tshark
#
# Two programs that know nothing of RDMA talk over iWARP; two judges that know nothing of each
# other read what was on the wire. Fails unless every TCP payload octet after start-up lies in an
# FPDU whose CRC is good. Exit status 77: this machine lets nobody capture.
set -euo pipefail
top=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
warpsock=${1:-$top/build/apps/warpsock}
dir=$(mktemp -d /tmp/warpsock-demo-XXXXXX)
pcap=$dir/demo.pcap
key=color value="the quick brown fox $RANDOM"
server= dump=

say() { printf '%s\n' "$*"; }
fail() { say "demo: FAILED: $*" >&2; exit 1; }

root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)

end() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	[ -z "$dump" ] || "${root[@]}" kill "$dump" 2>/dev/null || true
	wait
	rm -rf "$dir"
}
trap end EXIT

# until COMMAND..: every 50 ms, for at most 10 s
until_true() {
	for _ in $(seq 200); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.05
	done
	return 1
}

# shown NAME COMMAND..: runs it, for the reader as well
shown() {
	say "\$ warpsock run --all --mode on -- ${*:2}"
	timeout 20 "$warpsock" run --all --mode on --report "$dir/$1.json" -- "${@:2}" |
		tee "$dir/$1.out" || fail "$2"
}

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')

"${root[@]}" tcpdump -i lo --immediate-mode -U -s 0 -B 16384 -w "$pcap" tcp port "$port" \
	2>"$dir/tcpdump.log" &
dump=$!
until_true grep -q 'listening on' "$dir/tcpdump.log" || {
	say "demo: tcpdump cannot capture here: $(tail -1 "$dir/tcpdump.log")" >&2
	exit 77
}

say "\$ warpsock run --all --mode on -- redis-server --port $port"
"$warpsock" run --all --mode on --report "$dir/server.json" -- \
	redis-server --port "$port" --bind 127.0.0.1 --save '' --dir "$dir" \
	>"$dir/server.log" 2>&1 &
server=$!
until_true grep -q 'Ready to accept' "$dir/server.log" || fail "redis-server does not start"

shown set redis-cli -p "$port" SET "$key" "$value"
[ "$(cat "$dir/set.out")" = OK ] || fail "SET"
shown get redis-cli -p "$port" GET "$key"
[ "$(cat "$dir/get.out")" = "$value" ] || fail "GET gave something else than SET stored"

kill "$server"
wait "$server" || fail "redis-server ended with $?"
server=
grep -q '"software": 2, "kernel": 0, "verbs": 0, "tcp": 0' "$dir/server.json" ||
	fail "redis-server counts other connections: $(cat "$dir/server.json")"
sleep 0.3
"${root[@]}" kill "$dump"
wait "$dump" || true
dump=
grep -q '^0 packets dropped' "$dir/tcpdump.log" || fail "the capture has gaps"

say
mine=$(python3 "$top/tests/e2e/fpdu_check.py" "$pcap" --port "$port" --expect 2) ||
	fail "not every octet on the wire is in a good FPDU"
say "fpdu_check: $mine"
fpdus=$(grep -o '[0-9]* FPDUs' <<<"$mine" | cut -d' ' -f1)

tshark -r "$pcap" -V --disable-protocol rpcordma >"$dir/tshark.txt" 2>/dev/null ||
	fail "tshark"
good=$(grep -c '(Good CRC32)' "$dir/tshark.txt" || true)
bad=$(grep -ciE 'bad crc|malformed' "$dir/tshark.txt" || true)
say "tshark:     $good FPDUs with a good CRC, $bad bad or malformed"
[ "$good" = "$fpdus" ] || fail "tshark sees $good FPDUs, fpdu_check $fpdus"
[ "$bad" = 0 ] || fail "tshark finds fault"
tshark -r "$pcap" -Y iwarp_ddp_rdmap --disable-protocol rpcordma 2>/dev/null |
	sed -n '1,6s/^/    /p'

say
say "Proved: an unmodified redis-server and redis-cli stored and fetched a value over" \
	"MPA/DDP/RDMAP, and every TCP payload octet after start-up, in both directions, lay in" \
	"one of $fpdus FPDUs with a good CRC32c, by two independent judges."
