# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the cases of streams over a device share: $here is on siw's side, $there in the namespace,
# $serves says which of them listens.
stream=$lab/stream.py
# What the device's end reports
report=/tmp/case/verbs.json
verbs=(env WARPSOCK_PROVIDER=verbs WARPSOCK_REPORT=$report
	"$apps/warpsock" run --all --mode on --)
soft=(env WARPSOCK_REPORT=/tmp/case/soft.json
	"$apps/warpsock" run --all --mode on --)

# ends_meet CLIENT... -- SERVER...: words of programs that take ADDR PORT behind their first word;
# $serves listens
ends_meet() {
	local first rest at=$PEER status=0
	port=$((port + 1))
	part "$@"
	[ "$serves" != here ] || at=$SIW
	if [ "$serves" = here ]; then
		start server "${here[@]}" "${rest[@]:0:3}" $at $port "${rest[@]:3}"
		await_port server $port
		in_peer timeout -k 2 60 "${there[@]}" "${first[@]:0:3}" $at $port \
			"${first[@]:3}" || status=$?
	else
		start server in_peer "${there[@]}" "${rest[@]:0:3}" $at $port "${rest[@]:3}"
		await_port server $port
		timeout -k 2 60 "${here[@]}" "${first[@]:0:3}" $at $port "${first[@]:3}" ||
			status=$?
	fi
	[ $status = 0 ] && ends server 10
}

# talk STEPS... -- STEPS...: of script_sockets' server and client; $here runs the one
# on siw's side, $there the other
talk() {
	local program=$project/build-vm/script_sockets first rest status=0
	local within=(timeout -k 2 "${limit:-40}")
	port=$((port + 1))
	part "$@"
	if [ "$serves" = here ]; then
		start server "${within[@]}" "${here[@]}" "$program" listen $SIW $port "${first[@]}"
		await_port server $port
		in_peer "${within[@]}" "${there[@]}" "$program" connect $SIW $port "${rest[@]}" ||
			status=$?
	else
		start server in_peer "${within[@]}" "${there[@]}" "$program" listen $PEER $port \
			"${first[@]}"
		await_port server $port
		"${within[@]}" "${here[@]}" "$program" connect $PEER $port "${rest[@]}" || status=$?
	fi
	echo "the client ends with $status"
	[ $status = "${status_client:-0}" ] && ends server 20 "${status_server:-0}"
}

# echoes CONNECTIONS OCTETS [ABREAST]
echoes() {
	ends_meet python3 "$stream" talk "$@" -- python3 "$stream" serve "$1"
}

# What programs do, in checks whose names begin with $which; 11 connections
forms() {
	check "${which}the client speaks first" \
		talk get 70000 put 70000 eof close -- put 70000 get 70000 close
	check "${which}the server speaks first" \
		talk put 70000 get 1 eof close -- sleep 300 get 70000 put 1 close
	check "${which}3 MB each way at once, with poll" \
		talk polling trade 3 1000000 put 1 eof close -- polling trade 3 1000000 get 1 close
	check "${which}the client shuts its direction" \
		talk get 5000 eof put 5000 close -- put 5000 shut wr get 5000 eof close
	check "${which}the server shuts its direction" \
		talk put 5000 shut wr get 5000 eof close -- get 5000 eof put 5000 close
	check "${which}the client closes" talk get 5000 eof close -- put 5000 close
	check "${which}the server closes" talk put 5000 close -- get 5000 eof close
	check "${which}4 connections at a time" echoes 4 200000 2
}

# reports PATTERN...: each is in the report, which is then begun anew
reports() {
	local pattern status=0
	cat $report
	for pattern; do
		grep -qE "$pattern" $report || status=1
	done
	rm -f $report
	return $status
}

# carried SOFTWARE VERBS TCP: so many ends of connections, without an error
carried() {
	reports "\"software\": $1, \"kernel\": 0, \"verbs\": $2, \"tcp\": $3.*\"errors\": 0"
}

# counted N: so many were a device's, and no other
counted() { carried 0 "$1" 0; }

# rxe serves the kernel's first namespace alone, so both ends are here, on one device
rxe_begins() {
	local module
	# Without the first one there are no CRCs, and nobody asks for it who could load it
	for module in crc32_generic rdma_rxe; do
		modprobe -d "$images/root" $module || return
	done
	echo driver rxe >/etc/libibverbs.d/rxe.driver
	rdma link delete siw0
	rdma link add rxe0 type rxe netdev sw0
}
