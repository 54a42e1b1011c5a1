# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A program of sockets step by step at both ends: who speaks first, and every way to end
# Limit: 240
port=7600
export WARPSOCK_PROBE_TIMEOUT=10s # under emulation an answer may take its time

capture first
for role in "rsockets serve" "warpsock serves"; do
	for octets in 1 1000000; do
		check "$role: the server speaks first, $octets octets, to a client that sleeps" \
			sockets put $octets get 1 eof close -- \
			sleep 700 get $octets put 1 close
		check "$role: the client speaks first, $octets octets, to a server that sleeps" \
			sockets sleep 700 get $octets put 1 eof close -- \
			put $octets get 1 close
	done
	check "$role: both speak first" \
		sockets put 70000 get 70000 close -- put 70000 get 70000 eof close
	# A client in AUTO asks where a rule gives it reason to.
	mode=(--use "use auto * * $SIW:*" --use "use auto server * *:*")
	check "$role: in AUTO, the server speaks first to a client that sleeps" \
		sockets put 100000 get 1 eof close -- sleep 700 get 100000 put 1 close
	check "$role: in AUTO, the client speaks first to a server that sleeps" \
		sockets sleep 700 get 100000 put 1 eof close -- put 100000 get 1 close
	mode=(--all --mode on)
	export WARPSOCK_CRC=off
	check "$role: no CRC" sockets put 70000 get 70000 close -- put 70000 get 70000 eof close
	unset WARPSOCK_CRC
done
end_capture first

capture ends
for role in "rsockets serve" "warpsock serves"; do
	check "$role: the client shuts its direction" \
		sockets get 5000 eof put 5000 close -- put 5000 shut wr get 5000 eof close
	check "$role: the server shuts its direction" \
		sockets put 5000 shut wr get 5000 eof close -- get 5000 eof put 5000 close
	check "$role: each shuts its direction" sockets \
		put 5000 shut wr get 5000 eof close -- put 5000 shut wr get 5000 eof close
	check "$role: the client shuts both directions" \
		sockets get 5000 eof fails close -- put 5000 shut both sleep 500 close
	check "$role: the server shuts both directions" \
		sockets put 5000 shut both sleep 500 close -- get 5000 eof fails close
	check "$role: the client shuts reading, then writing" \
		sockets put 10 get 5000 eof close -- get 10 shut rd put 5000 shut wr close
	check "$role: the server shuts reading, then writing" \
		sockets get 10 shut rd put 5000 shut wr close -- put 10 get 5000 eof close
	check "$role: the client closes" sockets get 5000 eof close -- put 5000 close
	check "$role: the server closes" sockets put 5000 close -- get 5000 eof close
done
end_capture ends

# Not captured: here connections end in the middle, or are TCP.
role="rsockets serve"
check "$role: the client ends without closing" sockets get 5000 eof -- put 5000 leave
check "$role: the server ends without closing" sockets put 5000 leave -- get 5000 over
check "$role: the client closes with octets unread" \
	sockets put 5000 over -- get 1 sleep 300 close
check "$role: the server closes with octets unread" \
	sockets get 1 sleep 300 close -- put 5000 over
status_client=137 check "$role: the client is killed" sockets get 5000 over -- put 5000 kill
status_server=137 check "$role: the server is killed" sockets put 5000 kill -- get 5000 over
# A client of rsockets 44 is not woken by an end without DISCONNECT, nor by a reset.
role="warpsock serves"
check "$role: the client ends without closing" sockets get 5000 over -- put 5000 leave
check "$role: the server ends without closing" sockets put 5000 leave -- get 5000 eof
check "$role: the client closes with octets unread" \
	sockets put 5000 over -- get 1 sleep 300 close
status_client=137 check "$role: the client is killed" sockets get 5000 over -- put 5000 kill
mode=(--use "use auto * * *:*")
over_rsockets+=(RDMAV_FORK_SAFE=1)
check "in AUTO, plain TCP for a client with RDMAV_FORK_SAFE" \
	sockets put 5000 get 5000 eof close -- get 5000 put 5000 close
