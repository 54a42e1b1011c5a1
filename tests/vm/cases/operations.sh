# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Operations at their limits, our native API and librdmacm on siw; private data of all lengths
# Limit: 300
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

# lengths ADDR FROM TO: connections with private data of FROM, FROM + 1 .. octets in the Request and
# as many fewer than 251 in the Reply
lengths() {
	local n responder=() initiator=()
	for ((n = $2; n <= $3; n++)); do
		[ $n = "$2" ] || responder+=(listen $1 $((port + 1)))
		responder+=(private-is $n private $((251 - n)) accept swap closed)
		[ $n = "$2" ] || initiator+=(private $n connect $1 $((port + 1)))
		initiator+=(private-is $((251 - n)) swap close)
	done
	before=(private "$2")
	both "${responder[@]}" -- "${initiator[@]}"
	local status=$?
	before=()
	return $status
}

capture operations
for role in "siw serves" "warpsock serves"; do
	check "$role: messages, Writes and Reads of no octets" \
		both accept swap got 0 got 1 closed -- swap send 0 write 0 read 0 send 1 close
	check "$role: a Send with Solicited Event" \
		both accept swap got 1000 send-se 0 closed -- swap send-se 1000 got 0 close
	check "$role: gathered from 6 pieces" \
		both accept swap got 60001 has 65530 pieces 6 send 13 closed -- \
		swap pieces 6 write 65530 send 60001 got 13 close
	check "$role: 40 Reads at once, one answered at a time" \
		both_with depth 1 1 - accept swap reads 40 send 1 closed -- \
		swap reads 40 got 1 close
	check "$role: 60 Reads at once, 16 answered at a time" \
		both_with depth 16 16 - accept swap reads 60 send 1 closed -- \
		swap reads 60 got 1 close
	before=(depth 2 32) before_listen=(depth 4 1) # powers of two: siw rounds up its own ORD
	check "$role: the two want other depths" \
		both accept swap reads 20 send 1 closed -- swap reads 20 got 1 close
	before=() before_listen=()
done
end_capture operations

for role in "siw serves" "warpsock serves"; do
	limit=120
	check "$role: a Write and a Read of 100 MiB" \
		both_with memory 104857600 - accept swap got 1 has 104857600 closed -- \
		swap read 104857600 write 104857600 send 1 close
	check "$role: a Send of 16 MiB each way" \
		both_with buffer 16777216 - accept swap got 16777216 send 16777216 closed -- \
		swap send 16777216 got 16777216 close
done

role="siw serves"
check "$role: private data of 0 to 251 octets" lengths $SIW 0 251
role="warpsock serves"
check "$role: private data of 0 to 251 octets" lengths $PEER 0 251
