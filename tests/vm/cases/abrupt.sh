# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Either end dies, or the connection does, at any moment: the other end learns it and does not hang
# Limit: 1200
# Table: software-siw siw-software
# No others: streams end so in kills, streams and vends, which has devices
port=9000
ulimit -l unlimited # siw counts what root has pinned, too
work=(write 65536 send 5000 read 65536)
serve=(got 5000 send 9000)

moments=()
for who in initiator responder; do
	for place in 2:1 2:500 5:20 5:all; do
		moments+=($who:$place:FIN $who:$place:RST)
	done
done
begin=(initiator:0:all:RST)
begin+=(responder:0:3:RST responder:0:21:FIN responder:0:all:RST)

# cut WHO:FRAME:OCTETS:HOW: both programs end, neither by a signal or by our time limit; and for
# ours a reset, or an end inside what siw sends, is an error
cut() {
	local who frame octets how ours=any last=over
	IFS=: read -r who frame octets how <<<"$1"
	case $pair/$how/$who/$octets in
	# then siw's end may be over, and in order; our frame 5 is our last one, for what we send
	# comes by lo, in frames of 64 KiB
	*/all | siw-software/*/responder/20) ;;
	*/RST/* | software-siw/FIN/responder/[0-9]* | siw-software/FIN/initiator/[0-9]*)
		ours=torn last=fails
		;;
	esac
	if [ $pair = software-siw ]; then
		both accept any swap "${serve[@]}" over -- $ours swap "${work[@]}" $last
	else
		both accept $ours swap "${serve[@]}" $last -- any swap "${work[@]}" over
	fi
}

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
	meddle "${moments[@]}" "${begin[@]}"
	i=0
	for moment in "${moments[@]}"; do
		check "$(named $moment)" cut $moment
		port=$((meddled + ++i))
	done
	before=(any) before_listen=(any)
	# One that asks for an RTR and ends before it makes siw hit a BUG of the kernel's: case bug
	[ $pair = siw-software ] || before+=(no-rtr)
	for moment in "${begin[@]}"; do
		port=$((meddled + i++))
		check "$(named $moment)" cut $moment
	done
	before=() before_listen=()
	unmeddle
	for last in kill leave; do
		status_initiator=0
		[ $last = leave ] || status_initiator=137
		check "the initiator ends by $last: at once" \
			both any accept "${serve[@]}" over -- $last
		check "the initiator ends by $last: after a Write" \
			both accept any swap "${serve[@]}" over -- swap write 65536 $last
		check "the initiator ends by $last: with 40 Reads before it" \
			both accept any swap "${serve[@]}" over -- swap reads 40 $last
		status_initiator=0
		[ $last = leave ] || status_responder=137
		check "the responder ends by $last: at once" \
			both accept $last -- any swap "${work[@]}" over
		check "the responder ends by $last: after a Send" \
			both accept swap got 1 $last -- any swap send 1 "${work[@]}" over
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
