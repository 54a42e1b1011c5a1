# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Either end dies, or the connection does, at any moment: the other end learns it and does not hang
# Limit: 1200
# Table: software-siw siw-software
port=9000
ulimit -l unlimited # siw counts what root has pinned, too
work=(any write 65536 send 5000 read 65536 over)
serve=(any got 5000 send 9000 over)

# When the Request is cut, siw takes the connection for its listener (docs/lab.md).
moments=()
for who in initiator responder; do
	for place in 2:1 2:500 5:20 5:all; do
		moments+=($who:$place:FIN $who:$place:RST)
	done
done
begin=(initiator:0:all:RST)
begin+=(responder:0:3:RST responder:0:21:FIN responder:0:all:RST)

# cut WHO:FRAME:OCTETS:HOW: both programs end, neither by a signal or by our time limit
cut() { both accept any swap "${serve[@]}" -- any swap "${work[@]}"; }

# long ...: as both, with much memory
much=33554432
long() {
	local limit=250 status
	before=(memory $much) before_listen=(memory $much)
	both "$@"
	status=$?
	before=() before_listen=()
	return $status
}

connected=/tmp/case/connected
# unlinked COMMAND... -- ...: as long, and a link is down for 3 s meanwhile; COMMAND is ip, for it
unlinked() {
	local first rest status
	part "$@"
	rm -f $connected
	{
		until [ -e $connected ]; do nap 0.1; done
		"${first[@]}" down && sleep 3 && "${first[@]}" up
	} &
	long "${rest[@]}"
	status=$?
	wait $!
	return $status
}

named() {
	local who frame octets how
	IFS=: read -r who frame octets how <<<"$1"
	echo "$how after ${octets/all/all octets} of the $who's frame $frame"
}

for pair in software-siw siw-software; do
	port=$((port + 100))
	if [ $pair = software-siw ]; then
		meddle "${moments[@]}"
	else
		meddle "${moments[@]}" "${begin[@]}"
	fi
	i=0
	for moment in "${moments[@]}"; do
		check "$(named $moment)" cut
		port=$((meddled + ++i))
	done
	before=(any) before_listen=(any)
	for moment in "${begin[@]}"; do
		port=$((meddled + i++))
		if [ $pair = software-siw ]; then
			departs listener "$(named $moment)"
		else
			check "$(named $moment)" cut
		fi
	done
	before=() before_listen=()
	unmeddle
	for last in kill leave; do
		status_initiator=0
		[ $last = leave ] || status_initiator=137
		check "the initiator ends by $last: at once" \
			both any accept "${serve[@]}" -- $last
		check "the initiator ends by $last: after a Write" \
			both accept any swap "${serve[@]}" -- swap write 65536 $last
		check "the initiator ends by $last: with 40 Reads before it" \
			both accept any swap "${serve[@]}" -- swap reads 40 $last
		status_initiator=0
		[ $last = leave ] || status_responder=137
		check "the responder ends by $last: at once" \
			both accept $last -- any swap "${work[@]}"
		check "the responder ends by $last: after a Send" \
			both accept swap got 1 $last -- any swap send 1 "${work[@]}"
		check "the responder ends by $last: while a Write of 32 MiB comes" \
			long accept swap sleep 500 $last -- any swap write $much over
		status_responder=0
	done
	check "our link is down for 3 s: all comes" unlinked in_peer ip link set up0 -- \
		accept swap got 1 has $much closed -- \
		swap mark $connected write $much send 1 close
	check "siw's link is down for 3 s: both end" unlinked ip link set sw0 -- \
		accept any swap over -- \
		any swap mark $connected write $much write $much write $much read $much over
done
