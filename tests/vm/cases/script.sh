# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Our native API and librdmacm on siw step by step: private data, rejection, operations, Terminates
# Limit: 150
# Faulty captures: faults
port=7500

capture right
for role in "siw serves" "warpsock serves"; do
	check "$role: Sends to and fro" \
		both accept swap got 1 send 5000 got 65536 send 0 closed -- \
		swap send 1 got 5000 send 65536 got 0 close
	check "$role: the initiator writes and reads" both accept swap got 1 has 65536 closed -- \
		swap read 65536 read 1 write 65536 send 1 close
	check "$role: the responder writes and reads" both accept swap read 1445 read 65536 \
		write 65536 send 1 closed -- swap got 1 has 65536 close
	for n in 1 200 248; do
		before=(private $n)
		check "$role: $n octets of private data in the Request" \
			both private-is $n accept swap closed -- swap close
		before=()
		check "$role: $n octets of private data in the Reply" \
			both private $n accept swap closed -- private-is $n swap close
		check "$role: rejected with $n octets" \
			both private $n reject -- refused private-is $n
	done
	check "$role: rejected without a word" both reject -- refused private-is 0
done
end_capture right

# Whoever finds the fault says what it is; siw's own program cannot tell what it was told.
send_4=(send 1 send 1 send 1 send 1)
capture faults
role="siw serves"
check "siw refuses a Write to an unknown STag" \
	both accept swap closed -- swap write-stag fails terminate 0x1100
check "siw refuses a Write beyond the region" \
	both accept swap closed -- swap write-end fails terminate 0x1101
check "siw refuses a Read of an unknown STag" \
	both accept swap closed -- swap read-stag fails terminate 0x0100
check "siw refuses a Read beyond the region" \
	both accept swap closed -- swap read-end fails terminate 0x0101
# librdmacm's programs do not learn of it, so the Write behind it must fail.
check "siw invalidates, and refuses a Write after that" \
	both accept swap got 100 send 1 closed -- \
	swap send-inv 100 got 1 write 8 fails terminate 0x1100
check "siw has no buffer for a Send" \
	both accept swap closed -- swap "${send_4[@]}" send 1 fails terminate 0x1202
role="warpsock serves"
check "we refuse a Write to an unknown STag" \
	both accept swap fails terminate 0x1100 -- swap write-stag closed
check "we refuse a Write beyond the region" \
	both accept swap fails terminate 0x1101 -- swap write-end closed
check "we refuse a Read of an unknown STag" \
	both accept swap fails terminate 0x0100 -- swap read-stag closed
check "we refuse a Read beyond the region" \
	both accept swap fails terminate 0x0101 -- swap read-end closed
# What siw sends from user space is always STag 0, which is no region.
check "we refuse to invalidate STag 0" \
	both accept swap fails terminate 0x0109 -- swap send-inv 100 closed
check "we have no buffer for a Send" \
	both accept swap fails terminate 0x1202 -- swap "${send_4[@]}" send 1 closed
end_capture faults
