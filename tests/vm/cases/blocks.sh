# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A stream's connection data of every length, with and without our extension block, by librdmacm
# Limit: 300
# Table: siw-software software-siw
# No others: queue pairs give what a stream would; streams themselves do in every case
port=7480
ours=70 # octets of Warpsock's, with its block
ulimit -l unlimited # siw counts what root has pinned, too
takes='
import socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])), backlog=16)
for _ in range(int(sys.argv[3])):
    conn, _ = listener.accept()
    with conn:
        try:
            conn.recv(1)
        except ConnectionResetError:
            pass
'

# lengths STEP FROM TO: connections with such data of FROM, FROM + 1 .. octets from siw
lengths() {
	local n steps=()
	port=$((port + 1))
	for ((n = $2; n <= $3; n++)); do
		steps+=($1 $n connect $PEER $port stream-is $ours write 0 close)
	done
	start server in_peer timeout -k 2 100 "$apps/warpsock" run "${mode[@]}" -- \
		python3 -c "$takes" $PEER $port $(($3 - $2 + 1))
	await_port server $port
	timeout -k 2 100 "$project/build-vm/script_verbs" "${steps[@]}" && ends server 20
}

connects='
import socket, sys
for _ in range(int(sys.argv[3])):
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as conn:
        try:
            conn.recv(1)
        except ConnectionResetError:
            pass
'

# replies STEP FROM TO: the same by siw's Replies
replies() {
	local n steps=()
	port=$((port + 1))
	for ((n = $2; n <= $3; n++)); do
		steps+=($1 $n listen $SIW $port stream-is $ours accept close)
	done
	start server timeout -k 2 100 "$project/build-vm/script_verbs" "${steps[@]}"
	await_port server $port
	in_peer timeout -k 2 100 "$apps/warpsock" run "${mode[@]}" -- \
		python3 -c "$connects" $SIW $port $(($3 - $2 + 1)) && ends server 20
}

# Not captured: siw ends some by a Terminate, which is not the RFC's.
pair=software-siw
check "40 to 251 octets, without a block" replies stream 40 251
check "54 to 251 octets, with a block" replies stream-block 54 251
pair=siw-software
check "40 to 251 octets, without a block" lengths stream 40 251
check "54 to 251 octets, with a block" lengths stream-block 54 251
