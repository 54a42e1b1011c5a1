# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Two kernels: streams between the host under warpsock and the guest under librspreload on siw
# Limit: 600
# Table: software-librspreload librspreload-software
# No others: queue pairs are in hosts, and a device here would be the guest's at both ends
# Network: tap
port=7650

theirs=server_ended
for pair in software-librspreload librspreload-software; do
	check "host and guest: both speak first" \
		sockets put 70000 get 70000 close -- put 70000 get 70000 eof close
	check "host and guest: 1000 messages each way" \
		sockets trade 1000 3 get 1 close -- trade 1000 3 put 1 eof close
	check "host and guest: 3 MB, and each shuts its direction" unless_reset $theirs sockets \
		put 3000000 shut wr get 3000000 eof close -- \
		piece 1000 get 3000000 eof put 3000000 shut wr close
	theirs=client_ended
done
