# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A program of sockets step by step at both ends: who speaks first, and every way to end
# Limit: 900
# Table: streams
port=7600
export WARPSOCK_PROBE_TIMEOUT=10s # under emulation an answer may take its time

capture first
for pair in software-librspreload librspreload-software; do
	for octets in 1 1000000; do
		check "the server speaks first, $octets octets, to a client that sleeps" \
			sockets put $octets get 1 eof close -- \
			sleep 700 get $octets put 1 close
		check "the client speaks first, $octets octets, to a server that sleeps" \
			sockets sleep 700 get $octets put 1 eof close -- \
			put $octets get 1 close
	done
	check "both speak first" \
		sockets put 70000 get 70000 close -- put 70000 get 70000 eof close
	# A client in AUTO asks where a rule gives it reason to.
	mode=(--use "use auto * * $SIW:*" --use "use auto server * *:*")
	check "in AUTO, the server speaks first to a client that sleeps" \
		sockets put 100000 get 1 eof close -- sleep 700 get 100000 put 1 close
	check "in AUTO, the client speaks first to a server that sleeps" \
		sockets sleep 700 get 100000 put 1 eof close -- put 100000 get 1 close
	mode=(--all --mode on)
	export WARPSOCK_CRC=off
	check "no CRC" sockets put 70000 get 70000 close -- put 70000 get 70000 eof close
	unset WARPSOCK_CRC
done
end_capture first

capture ends
for pair in software-librspreload librspreload-software; do
	check "the client shuts its direction" \
		sockets get 5000 eof put 5000 close -- put 5000 shut wr get 5000 eof close
	check "the server shuts its direction" \
		sockets put 5000 shut wr get 5000 eof close -- get 5000 eof put 5000 close
	check "each shuts its direction" sockets \
		put 5000 shut wr get 5000 eof close -- put 5000 shut wr get 5000 eof close
	check "the client shuts both directions" \
		sockets get 5000 eof fails close -- put 5000 shut both sleep 500 close
	check "the server shuts both directions" \
		sockets put 5000 shut both sleep 500 close -- get 5000 eof fails close
	check "the client shuts reading, then writing" \
		sockets put 10 get 5000 eof close -- get 10 shut rd put 5000 shut wr close
	check "the server shuts reading, then writing" \
		sockets get 10 shut rd put 5000 shut wr close -- put 10 get 5000 eof close
	check "the client closes" sockets get 5000 eof close -- put 5000 close
	check "the server closes" sockets put 5000 close -- get 5000 eof close
done
end_capture ends

# Not captured: here connections end in the middle, or are TCP.
# A client of rsockets 44 is not woken by an end without DISCONNECT, nor by a reset; a server is.
for pair in software-librspreload librspreload-software; do
	check "the client ends without closing" sockets get 5000 over -- put 5000 leave
	check "the server ends without closing" sockets put 5000 leave -- get 5000 over
	check "the client closes with octets unread" \
		sockets put 5000 over -- get 1 sleep 300 close
	status_client=137 check "the client is killed" sockets get 5000 over -- put 5000 kill
done
pair=software-librspreload
check "the server closes with octets unread" \
	sockets get 1 sleep 300 close -- put 5000 over
status_server=137 check "the server is killed" sockets put 5000 kill -- get 5000 over
departs forked "in AUTO, RDMAV_FORK_SAFE on the other side"
pair=librspreload-software
departs asleep "the server closes with octets unread"
departs asleep "the server is killed"
mode=(--use "use auto * * *:*")
over_rsockets+=(RDMAV_FORK_SAFE=1)
check "in AUTO, RDMAV_FORK_SAFE on the other side" \
	sockets put 5000 get 5000 eof close -- get 5000 put 5000 close
