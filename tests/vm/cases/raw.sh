# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The lab itself: rping on siw against a peer of a few lines that shares nothing with Warpsock
# No fault: Warpsock has no part in it
# Limit: 400
# Faulty captures: faults
raw=$lab/rawpeer.py

raw_serves() {
	start server in_peer python3 "$raw" server $PEER 7001 "$@"
	await_port server 7001
	timeout -k 2 60 rping -c -a $PEER -p 7001 -C 3 -V -S 2000 && ends server 10
}
capture good_crc_off
check "rping on siw pings" raw_serves
start rping rping -s -P -a $SIW -p 7000 -S 65535
await_port rping 7000
check "rping on siw serves: 5 pings" in_peer python3 "$raw" client $SIW 7000 --count 5
end_capture good_crc_off
capture good
check "rping on siw pings: CRC" raw_serves --crc
check "rping on siw serves: CRC, 4000 octets" \
	in_peer python3 "$raw" client $SIW 7000 --count 2 --crc --size 4000
end_capture good
capture faults
adopt startup in_peer python3 "$raw" startup $SIW 7000
adopt faults in_peer python3 "$raw" faults $SIW 7000
end_capture faults
stop rping
