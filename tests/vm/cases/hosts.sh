# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Two kernels: Warpsock on the host, rdma-core's programs on siw in the guest, a TAP between them
# Limit: 600
# Table: software-siw siw-software
# No others: streams are in hosts_streams, and a device here would be the guest's at both ends
# Network: tap
port=7050

for pair in software-siw siw-software; do
	check "host and guest: Sends to and fro" \
		both accept swap got 1 send 5000 got 65536 send 0 closed -- \
		swap send 1 got 5000 send 65536 got 0 close
	check "host and guest: the initiator writes and reads" \
		both accept swap got 1 has 65536 closed -- swap read 65536 write 65536 send 1 close
	check "host and guest: the responder writes and reads" \
		both accept swap read 65536 write 65536 send 1 closed -- swap got 1 has 65536 close
	check "host and guest: rejected" both reject -- refused private-is 0
	WARPSOCK_CRC=off check "host and guest: no CRC" \
		both accept swap got 5000 send 1 closed -- swap send 5000 got 1 close
done
