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

# rxe_begins: in the place of siw0 a RoCE device of software, rxe0, which no namespace has
rxe_begins() {
	local root=$project/build-vm/root kernel module
	kernel=$(uname -r)
	[ -d "$root/lib/modules/$kernel" ] || root=$project/build-vm/${kernel%.*-*}/root
	for module in crc32_generic rdma_rxe; do
		modprobe -d "$root" -S "$kernel" $module || return
	done
	echo driver rxe >/etc/libibverbs.d/rxe.driver
	rdma link delete siw0
	rdma link add rxe0 type rxe netdev sw0
}
rxe_ends() { rdma link delete rxe0; }

# counted N: so many were a device's, and no other
counted() { carried 0 "$1" 0; }
