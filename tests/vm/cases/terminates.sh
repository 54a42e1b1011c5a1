# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Every fault that an end can be given: who finds it says which, the other end is told, both end
# Limit: 900
# Table: software-siw siw-software
# No others: a program of sockets is told of no Terminate, and over a device of none either
port=8000

# unless_lost COMMAND...: siw keeps its Terminate to itself when it is in the middle of sending a
# message, as it may be of a Read Response, and says so when it is asked to (siw_send_terminate);
# or it closes with octets unread, and TCP drops it. Then Warpsock's end knows of none.
echo 'func siw_send_terminate +p' >/sys/kernel/debug/dynamic_debug/control
lost() {
	dmesg | grep -c 'siw_send_terminate: cannot send TERMINATE: op'
	tcp_aborts
}
unless_lost() {
	local so_far
	so_far=$(lost)
	"$@" || { ! grep -q 'Terminate sent' /tmp/case/check.out && [ "$(lost)" != "$so_far" ] &&
		ends responder 15; }
}

# found NAME SIW OURS RESPONDER -- INITIATOR: a check. Whoever finds the fault says SIW or OURS as
# 0xLTCC, which Warpsock's end then knows: it found it or was told; SIW is none: not a word.
found() {
	local name=$1 code=$3 first rest ours theirs=over
	case $pair/${finder:-responder} in
	software-siw/responder | siw-software/initiator) code=$2 ;;
	esac
	part "${@:4}"
	ours="fails terminate $code"
	local departure=
	[ $code != none ] || departure=unsaid ours="over terminate 0"
	if [ $pair = software-siw ]; then
		check "$name" ${unless:-} \
			both accept swap "${first[@]}" $theirs -- swap "${rest[@]}" $ours
	else
		check "$name" both accept swap "${first[@]}" $ours -- swap "${rest[@]}" $theirs
	fi
}

# rights RIGHTS ...: as found, the responder's memory has those rights
rights() {
	before_listen=(rights "$1")
	found "${@:2}"
	before_listen=()
}

send_4=(send 1 send 1 send 1 send 1)
for pair in software-siw siw-software; do
	# Our Terminates are judged, siw's are not the RFC's.
	[ $pair = software-siw ] || capture told
	found "a Write to an unknown STag" 0x1100 0x1100 -- write-stag
	found "a Write beyond the region" 0x1101 0x1101 -- write-end
	rights r "a Write that the rights do not allow" 0x1100 0x1100 -- try-write 8
	found "a Read of an unknown STag" 0x0100 0x0100 -- read-stag
	found "a Read beyond the region" 0x0101 0x0101 -- read-end
	if [ $pair = siw-software ]; then
		rights w "a Read that the rights do not allow" none 0x0102 -- try-read 8
	else
		before_listen=(rights w)
		departs read-rights "a Read that the rights do not allow" \
			both accept swap closed -- swap read 8 close
		before_listen=()
	fi
	before_listen=(apart)
	found "a Write to an STag of another protection domain" 0x1102 0x1102 -- try-write 8
	found "a Read of an STag of another protection domain" 0x0103 0x0103 -- try-read 8
	before_listen=()
	found "no buffer for a Send" 0x1202 0x1202 -- "${send_4[@]}" try-send 1
	before_listen=(buffer 100)
	found "a Send longer than its buffer" 0x1202 0x1205 -- try-send 200
	found "a Send of several segments longer than its buffer" 0x1202 0x1205 -- try-send 9000
	before_listen=()
	[ $pair = software-siw ] || end_capture told
done

# Faults that neither end would make: meddle.py does. Each line: what it does, what siw says, what
# we say, and the operation that it does it to. taken: siw does not see it.
faults='send-ddp-version    0x1206 0x1206 send 100 a Send of DDP version 2
send-rdmap-version  0x0205 0x0205 send 100 a Send of RDMAP version 2
send-opcode         0x0206 0x0206 send 100 an opcode that nobody has
send-queue          0x1201 0x1201 send 100 a Send on queue 9
send-on-reads       0x1201 0x0206 send 100 a Send on the queue of Reads
send-msn-ahead      0x1203 0x1203 send 100 a Send whose MSN is one too many
send-msn-again      0x1203 0x1203 send 100 a Send whose MSN was there before
send-mo             0x1204 0x1204 send 100 a Send with an MO
send-tagged         taken  0x0206 send 100 a Send that is tagged
send-short          0x2003 0x1000 send 100 a Send without all of its header
send-crc            0x2002 0x2002 send 100 a Send with a wrong CRC
send-inv            0x0209 0x0109 inv  100 a Send that invalidates an unknown STag
send-se-inv         0x0209 0x0109 inv  100 a Send with Solicited Event that invalidates one
write-ddp-version   0x1104 0x1104 write 100 a Write of DDP version 2
write-rdmap-version 0x0205 0x0205 write 100 a Write of RDMAP version 2
write-opcode        0x0206 0x0206 write 100 a tagged opcode that nobody has
write-untagged      taken  0x0206 write 100 a Write that is untagged
write-key           0x1100 0x1100 write 100 a Write to an STag of another key
write-before        0x1101 0x1101 write 100 a Write before the region
write-wrap          0x1000 0x1103 write 100 a Write whose TO wraps
write-short         0x2003 0x1000 write 100 a Write without all of its header
write-crc           0x2002 0x2002 write 100 a Write with a wrong CRC
read-key            0x0100 0x0100 read 100 a Read of an STag of another key
read-before         0x0101 0x0101 read 100 a Read before the region
read-wrap           none   0x0104 read 100 a Read whose TO wraps
read-msn            0x1203 0x1203 read 100 a Read Request whose MSN is one too many
read-mo             taken  0x1204 read 100 a Read Request with an MO
read-queue          taken  0x0206 read 100 a Read Request on the queue of Sends
read-short          0x2003 0x0207 read 100 a Read Request without all of its header
read-long           none   0x0207 read 100 a Read Request with octets behind it
reads-beyond-ird    0x0207 0x1202 read 60000 more Reads than IRD
response-stag       0x1100 0x1100 answer 65536 a Read Response to another STag
response-to         0x1101 0x1101 answer 65536 a Read Response to another TO
response-ends-early 0x1101 0x0207 answer 65536 a Read Response that ends early
response-too-long   0x1101 0x1101 answer 65536 a Read Response that is too long
response-unasked    0x1000 0x0206 unasked 100 a Read Response that nobody wants'
# Only that of 6.1 has been given the check
[ "$kernel" = 6.1 ] || faults=${faults/too-long   0x1101/too-long   taken}

whats=()
while read -r what _; do
	whats+=("$what")
done <<<"$faults"
for pair in software-siw siw-software; do
	port=$((port + 100))
	meddle "${whats[@]}"
	i=0
	while read -r what siw ours does octets name; do
		case $does/$pair/$siw in
		send/software-siw/taken)
			departs unchecked "$name" \
				both accept swap got $octets closed -- swap send $octets close
			;;
		write/software-siw/taken)
			departs unchecked "$name" both accept swap got 1 has $octets closed -- \
				swap write $octets send 1 close
			;;
		read/software-siw/taken)
			departs unchecked "$name" both accept swap closed -- swap read $octets close
			;;
		read/software-siw/0x0207)
			unless=unless_lost found "$name" $siw $ours -- try-read $octets
			;;
		answer/siw-software/taken)
			departs unchecked "$name" both accept swap closed -- \
				swap try-read $octets close
			;;
		answer/*) finder=initiator found "$name" $siw $ours -- try-read $octets ;;
		# Its program sees the message fail, but no end of the connection.
		inv/software-siw/*)
			found "$name" $siw $ours any got $octets -- try-send $octets
			;;
		inv/*) found "$name" $siw $ours -- try-send $octets ;;
		unasked/*) finder=initiator found "$name" $siw $ours try-send $octets -- ;;
		*) found "$name" $siw $ours -- try-$does $octets ;;
		esac
		port=$((meddled + ++i))
	done <<<"$faults"
	unmeddle
done

# In start-up: siw, as initiator, cannot agree to a Reply. Its Terminate, which is the first FPDU,
# is bare: the field of its CRC is 0.
bare() {
	local pair=siw-software
	both try-accept terminate $1 -- swap
}
pair=siw-software before=(any)
port=$((port + 100))
meddle reply-ord reply-key
pair=
check "siw gets a Reply whose ORD is above its IRD: its Terminate is read" bare 0x2006
port=$((meddled + 1))
check "siw gets a Reply that begins otherwise: its Terminate is read" bare 0x2004
before=()
unmeddle
