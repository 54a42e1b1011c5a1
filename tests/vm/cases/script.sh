# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Our native API and librdmacm on siw step by step: private data, rejection, operations
# Limit: 900
# Table: operations
port=7500

capture right
for pair in software-siw siw-software; do
	check "Sends to and fro" \
		both accept swap got 1 send 5000 got 65536 send 0 closed -- \
		swap send 1 got 5000 send 65536 got 0 close
	check "the initiator writes and reads" both accept swap got 1 has 65536 closed -- \
		swap read 65536 read 1 write 65536 send 1 close
	check "the responder writes and reads" both accept swap read 1445 read 65536 \
		write 65536 send 1 closed -- swap got 1 has 65536 close
	for n in 1 200 248; do
		before=(private $n)
		check "$n octets of private data in the Request" \
			both private-is $n accept swap closed -- swap close
		before=()
		check "$n octets of private data in the Reply" \
			both private $n accept swap closed -- private-is $n swap close
		check "rejected with $n octets" \
			both private $n reject -- refused private-is $n
	done
	check "rejected without a word" both reject -- refused private-is 0
done
end_capture right
