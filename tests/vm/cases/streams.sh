# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A program of sockets step by step at both ends: who speaks first, rings, and every way to end
# Limit: 900
# Table: software-librspreload librspreload-software verbs-software verbs-verbs verbs-librspreload
# No others: queue pairs are in script and operations
port=7600
ulimit -l unlimited # siw counts what root has pinned, too
export WARPSOCK_PROBE_TIMEOUT=10s # under emulation an answer may take its time

# first_words PAIR...
first_words() {
	for pair; do
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
		mode=(--use "use auto * * $SIW:*" --use "use auto * * $PEER:*")
		mode+=(--use "use auto server * *:*")
		check "in AUTO, the server speaks first to a client that sleeps" \
			sockets put 100000 get 1 eof close -- sleep 700 get 100000 put 1 close
		check "in AUTO, the client speaks first to a server that sleeps" \
			sockets sleep 700 get 100000 put 1 eof close -- put 100000 get 1 close
		mode=(--all --mode on)
		export WARPSOCK_RING=8K WARPSOCK_CREDITS=32
		check "a ring of 8 KiB and 32 credits" \
			sockets trade 200 2000 get 1 close -- trade 200 2000 put 1 eof close
		export WARPSOCK_RING=64M WARPSOCK_CREDITS=32767
		check "a ring of 64 MiB and 32767 credits" \
			sockets trade 10 20000 get 1 close -- trade 10 20000 put 1 eof close
		unset WARPSOCK_RING WARPSOCK_CREDITS
		check "by poll, at most 1000 octets at once" sockets \
			polling piece 1000 trade 10 20000 get 1 close -- \
			polling piece 1000 trade 10 20000 put 1 eof close
	done
}

# no_crc PAIR...
no_crc() {
	export WARPSOCK_CRC=off
	for pair; do
		check "no CRC" sockets put 70000 get 70000 close -- put 70000 get 70000 eof close
	done
	unset WARPSOCK_CRC
}

capture first
first_words software-librspreload librspreload-software verbs-software
end_capture first
capture first_crc_off
no_crc software-librspreload librspreload-software verbs-software
end_capture first_crc_off
capture first_devices
first_words verbs-verbs verbs-librspreload
no_crc verbs-verbs verbs-librspreload
end_capture first_devices

# last_words PAIR...
last_words() {
	for pair; do
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
		check "the client shuts writing, then reading" \
			sockets put 10 get 5000 eof sleep 1000 close -- \
			get 10 put 5000 shut wr shut rd close
		check "the server shuts writing, then reading" \
			sockets get 10 put 5000 shut wr shut rd close -- \
			put 10 get 5000 eof sleep 1000 close
		check "the client shuts reading, the server goes on sending" \
			sockets put 10 get 5000 put 3000 close -- \
			get 10 shut rd put 5000 sleep 500 close
		check "the server shuts reading, the client goes on sending" \
			sockets get 10 shut rd put 5000 sleep 500 close -- \
			put 10 get 5000 put 3000 close
		client=(option linger 3)
		check "the client closes with SO_LINGER of 3" \
			sockets get 5000 eof close -- put 5000 close
		client=()
		check "the client closes" sockets get 5000 eof close -- put 5000 close
		check "the server closes" sockets put 5000 close -- get 5000 eof close
	done
}

capture ends
last_words software-librspreload librspreload-software verbs-software
end_capture ends
capture ends_devices
last_words verbs-verbs verbs-librspreload
end_capture ends_devices

# Not captured: here connections end in the middle, or are TCP.
# A client of rsockets 44 is not woken by an end without DISCONNECT, nor by a reset; a server is.
for pair in "${stream_pairs[@]}"; do
	check "the client ends without closing" sockets get 5000 over -- put 5000 leave
	check "the server ends without closing" sockets put 5000 leave -- get 5000 over
	check "the client closes with octets unread" \
		sockets put 5000 over -- get 1 sleep 300 close
	status_client=137 check "the client is killed" sockets get 5000 over -- put 5000 kill
	client=(option linger 0)
	check "the client closes with SO_LINGER of 0" \
		sockets get 5000 put 1 over -- put 5000 get 1 close
	client=()
	resets=() ends_with=0
	if [ $pair = librspreload-software ]; then
		resets=(departs asleep) ends_with=124 limit=25
	fi
	status_client=$ends_with
	server=(option linger 0)
	${resets[@]:-check} "the server closes with SO_LINGER of 0" \
		sockets put 5000 get 1 sleep 300 close -- get 5000 put 1 over
	server=()
	${resets[@]:-check} "the server closes with octets unread" \
		sockets get 1 sleep 300 close -- put 5000 over
	status_server=137 ${resets[@]:-check} "the server is killed" \
		sockets put 5000 sleep 300 kill -- get 5000 over
	unset status_client limit
done
by_devices verbs-software verbs-verbs verbs-librspreload
