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
	local client=() at=$PEER status=0
	port=$((port + 1))
	while [ "$1" != -- ]; do
		client+=("$1")
		shift
	done
	shift
	[ "$serves" != here ] || at=$SIW
	if [ "$serves" = here ]; then
		start server "${here[@]}" "$1" "$2" "$3" $at $port "${@:4}"
		await_port server $port
		in_peer timeout -k 2 60 "${there[@]}" "${client[@]:0:3}" $at $port \
			"${client[@]:3}" || status=$?
	else
		start server in_peer "${there[@]}" "$1" "$2" "$3" $at $port "${@:4}"
		await_port server $port
		timeout -k 2 60 "${here[@]}" "${client[@]:0:3}" $at $port "${client[@]:3}" ||
			status=$?
	fi
	[ $status = 0 ] && ends server 10
}

# echoes CONNECTIONS OCTETS [ABREAST]
echoes() {
	ends_meet python3 "$stream" talk "$@" -- python3 "$stream" serve "$1"
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
