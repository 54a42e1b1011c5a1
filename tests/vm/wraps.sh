# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the cases wraps, wraps_device and wraps_devices share. They are three for the time it takes:
# each has a guest of its own.
port=7900
messages=132000
limit=790

# siw sends by a thread, which on one processor waits for the program's slice to be over: a message
# a tick
siw_threads() { pgrep '^siw_tx/' | xargs -n 1 chrt "$1" -p "$2"; }
trap 'siw_threads --other 0' EXIT
siw_threads --fifo 1

# TCP's octets that have gone over the link: less its packets' headers, at most
carried() {
	local bytes packets link=/sys/class/net/sw0/statistics
	read -r bytes <$link/$1_bytes
	read -r packets <$link/$1_packets
	echo $((bytes - packets * 66))
}

# A message of 3 octets is a Write of 24 and a Send of 28; fewer and longer ones would cost less.
# Who reads wakes for many messages at a time, or most of the time would go by in waking.
wraps() {
	local way who before after
	local -A begin=([tx]=$(carried tx) [rx]=$(carried rx))
	sockets slow 20 trade $messages 3 get 1 close -- \
		slow 20 trade $messages 3 put 1 eof close || return
	for way in tx rx; do
		before=${begin[$way]} after=$(carried $way)
		echo "$way: $((after - before)) octets"
		((after - before >= messages * 52)) || return
	done
	for who in ${pair/-/ }; do
		[ $who = librspreload ] || by_provider $pair $who || return
	done
}
