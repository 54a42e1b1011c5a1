# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Operations at their limits, our native API and librdmacm on siw; private data of all lengths
# Limit: 900
# Table: software-siw siw-software verbs-software verbs-verbs
# No others: a stream has no operations for its program
port=7550
ulimit -l unlimited # siw counts what root has pinned, too

# both_with STEPS... -- ...: as both, with these steps before listen and connect
both_with() {
	local steps=()
	while [ "$1" != - ]; do
		steps+=("$1")
		shift
	done
	shift
	before=("${steps[@]}") before_listen=("${steps[@]}")
	both "$@"
	local status=$?
	before=() before_listen=()
	return $status
}

# lengths ADDR MOST: connections with private data of 0, 1 .. MOST octets in the Request, and MOST,
# MOST - 1 .. in the Reply
lengths() {
	local n responder=() initiator=()
	for ((n = 0; n <= $2; n++)); do
		[ $n = 0 ] || responder+=(listen $1 $((port + 1)))
		responder+=(private-is $n private $(($2 - n)) accept swap closed)
		[ $n = 0 ] || initiator+=(private $n connect $1 $((port + 1)))
		initiator+=(private-is $(($2 - n)) swap close)
	done
	before=(private 0)
	both "${responder[@]}" -- "${initiator[@]}"
	local status=$?
	before=()
	return $status
}

# at_once N: both read from each other
at_once() { both accept swap reads $1 send 1 closed -- swap reads $1 got 1 close; }

# through N: the same, where two of siw's may stand still: of three times one is enough
through() {
	local i limit=20
	for ((i = 0; i < 3; i++)); do
		! at_once $1 || return 0
		gone responder 20
	done
	return 1
}

# one_by_one N: one end's behind the other's
one_by_one() {
	local pair=verbs-verbs
	both accept swap got 1 reads $1 send 1 closed -- swap reads $1 send 1 got 1 close
}

# stand_still N: two of siw's begin, and seconds later neither is done
stand_still() {
	local marks=/tmp/case/reads since=$SECONDS limit=5
	rm -f $marks.*
	both accept swap mark $marks.begun.r reads $1 mark $marks.done.r any send 1 got 1 closed \
		-- swap mark $marks.begun.i reads $1 mark $marks.done.i any send 1 got 1 close || :
	ls $marks.*
	[ -e $marks.begun.r ] && [ -e $marks.begun.i ] && ((SECONDS - since > 3)) || return
	[ ! -e $marks.done.r ] && [ ! -e $marks.done.i ]
}

# far_apart COMMAND...: 10 ms away, so that neither is through before the other has begun
far_apart() {
	local status=0
	tc qdisc add dev sw0 root netem delay 10ms
	in_peer tc qdisc add dev up0 root netem delay 10ms
	"$@" || status=$?
	tc qdisc delete dev sw0 root
	in_peer tc qdisc delete dev up0 root
	return $status
}

# refused STEP...: the provider verbs says EOPNOTSUPP to it
refused() {
	both accept swap over -- swap any "$@" >/tmp/case/refused.log 2>&1
	cat /tmp/case/refused.log
	grep -q 'Operation not supported' /tmp/case/refused.log
}

# lost FORM: siw's library sends it with the STag of 0
lost() {
	local pair=siw-software
	both accept swap fails terminate 0x0109 -- swap $1 100 over
}

# unknown: siw's library takes no such work request
unknown() {
	local pair=software-siw
	! both accept swap invalidate send 1 over -- swap got 1 close
	grep 'invalidate, failed' -B 1 /tmp/case/responder.log
	grep -qE 'post_send: (Invalid argument|Unknown error -22)' /tmp/case/responder.log
}

# refused_for lost FORM | unknown: as siw's library does so, the provider refuses
refused_for() {
	"$@" || return
	if [ $1 = lost ]; then
		refused $2 100
	else
		refused invalidate
	fi
}

for pair in software-siw siw-software verbs-software verbs-verbs; do
	capture ${pair/verbs-verbs/verbs-verbs_devices}
	check "messages, Writes and Reads of no octets" \
		both accept swap got 0 got 1 closed -- swap send 0 write 0 read 0 send 1 close
	check "messages scattered into 6 pieces" \
		both_with scatter 6 - accept swap got 60001 send 7 send 65536 got 0 closed -- \
		swap send 60001 got 7 got 65536 send 0 close
	check "gathered from 6 pieces" \
		both accept swap got 60001 has 65530 pieces 6 send 13 closed -- \
		swap pieces 6 write 65530 send 60001 got 13 close
	before=(depth 1 1) before_listen=(depth 1 1)
	if [ $pair = verbs-verbs ]; then
		reads=through
		pair='' check "verbs to verbs: 40 Reads, one end's after the other's" one_by_one 40
	else
		reads=at_once
		check "40 Reads at once, one answered at a time" at_once 40
	fi
	before=(depth 16 16) before_listen=(depth 16 16)
	check "60 Reads at once, 16 answered at a time" $reads 60
	before=(depth 2 32) before_listen=(depth 4 1) # powers of two: siw rounds up its own ORD
	check "the two want other depths" $reads 20
	before=() before_listen=()
	end_capture ${pair/verbs-verbs/verbs-verbs_devices}
done

# Not captured: it ends in the middle
pair=verbs-verbs before=(depth 1 1) before_listen=(depth 1 1)
departs fence "40 Reads at once, one answered at a time" far_apart stand_still 40
before=() before_listen=()

# solicited PAIR...: neither siw nor the provider verbs over it knows of one, so the captures do
solicited() {
	local r_plain r_event i_plain i_event
	for pair; do
		r_plain=plain r_event=solicited i_plain=plain i_event=solicited
		case $pair in *-siw | *-verbs) r_plain='' r_event='' ;; esac
		case $pair in siw-* | verbs-*) i_plain='' i_event='' ;; esac
		check "a Send with Solicited Event" both \
			accept swap got 10 $r_plain got 1000 $r_event send 20 send-se 0 closed -- \
			swap send 10 send-se 1000 got 20 $i_plain got 0 $i_event close
	done
}

# sixteen PAIR: pieces, as many as the software provider has; siw has 6
sixteen() {
	local work=(pieces 16 write 65530 send 60001 got 50003)
	local answer=(got 60001 has 65530 send 50003)
	pair=$1
	if [ $pair = software-siw ]; then
		before=(scatter 16)
		both accept swap "${answer[@]}" closed -- swap "${work[@]}" close
	else
		before_listen=(scatter 16)
		both accept swap "${work[@]}" closed -- swap "${answer[@]}" close
	fi
	local status=$?
	pair='' before=() before_listen=()
	return $status
}

inv_solicited() {
	pair=software-siw
	both accept swap got 100 send-se 1 closed -- swap send-se-inv 100 got 1 solicited close
}

capture solicited
solicited software-siw siw-software verbs-software
pair=
check "software to siw: a Send-se-inv has the opcode of one with Solicited Event" inv_solicited
end_capture solicited
capture solicited_devices
solicited verbs-verbs
end_capture solicited_devices

pair=
capture pieces
check "software to siw: gathered from 16 pieces, scattered into 16" sixteen software-siw
check "siw to software: gathered from 16 pieces, scattered into 16" sixteen siw-software
end_capture pieces

# Not captured: siw's Terminates and its STag of 0 are not the RFC's.
for pair in software-siw siw-software verbs-software verbs-verbs; do
	# A program over siw is not told that its region is gone; a Write behind shows it.
	for form in send-inv send-se-inv; do
		name="${form/send/a Send}: the region is gone"
		case $pair in
		software-siw)
			check "$name" both accept swap got 100 send 1 over -- \
				swap $form 100 got 1 try-write 8 fails terminate 0x1100
			;;
		siw-software)
			departs inv-zero "$name" lost $form
			;;
		*) departs inv-zero "$name" refused_for lost $form ;;
		esac
	done
done

pair=software-siw
departs local-inv "a region that its owner invalidates" unknown
for pair in verbs-software verbs-verbs; do
	departs local-inv "a region that its owner invalidates" refused_for unknown
done
pair=siw-software
check "a region that its owner invalidates" \
	both accept swap invalidate send 1 fails terminate 0x1100 -- swap got 1 try-write 8 over

# In jumbo frames, of which no other case has any: under emulation each packet costs
mtu() { ip link set sw0 mtu $1 && in_peer ip link set up0 mtu $1; }
mtu 9000
for pair in software-siw siw-software verbs-software verbs-verbs; do
	limit=400
	check "a Write and a Read of 100 MiB" \
		both_with memory 104857600 - accept swap got 1 has 104857600 closed -- \
		swap read 104857600 write 104857600 send 1 close
	check "a Send of 100 MiB each way" both_with buffer 104857600 receives 1 - \
		accept swap got 104857600 send 104857600 closed -- \
		swap send 104857600 got 104857600 close
done

mtu 1500

# 251 is the most that siw takes, 248 that Warpsock gives to a device of any kind
pair=software-siw
check "private data of every length" lengths $SIW 251
pair=siw-software
check "private data of every length" lengths $PEER 251
for pair in verbs-software verbs-verbs; do
	check "private data of every length" lengths $PEER 248
done
