# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# warp-rping and rping on siw, either as server: start-up forms, CRC, sizes, IPv4 and IPv6
# Limit: 150
warp_rping=$apps/examples/warp-rping
port=7100

# siw_serves CLIENT-OPTIONS...: rping on siw is pinged by warp-rping
siw_serves() {
	port=$((port + 1))
	start rping rping -s -a "${addr:-$SIW}" -p $port -S 65535
	await_port rping $port
	in_peer timeout -k 2 20 "$warp_rping" -c -a "${addr:-$SIW}" -p $port \
		-C "${count:-5}" -V "$@"
	local status=$?
	gone rping 2 || stop rping
	return $status
}

# warp_serves SERVER-OPTIONS... -- CLIENT-OPTIONS...: warp-rping is pinged by rping on siw
warp_serves() {
	port=$((port + 1))
	local ours=()
	while [ "$1" != -- ]; do
		ours+=("$1")
		shift
	done
	start server in_peer "$warp_rping" -s -a "${addr:-$PEER}" -p $port "${ours[@]}"
	await_port server $port
	timeout -k 2 20 rping -c -a "${addr:-$PEER}" -p $port -C "${count:-5}" -V "${@:2}" &&
		ends server 10
}

fails() { ! "$@"; }

capture ours_first
check "siw serves: as it comes" siw_serves
check "siw serves: no CRC" siw_serves --no-crc
check "siw serves: client-server model" siw_serves --no-p2p
check "siw serves: client-server model, no CRC" siw_serves --no-p2p --no-crc
check "siw serves: RTR is a Write" siw_serves --rtr write
check "siw serves: RTR is a Read" siw_serves --rtr read
for size in 26 27 1024 1411 1442 4096 65535; do
	check "siw serves: $size octets" siw_serves -S $size
	check "siw serves: $size octets, no CRC" siw_serves -S $size --no-crc
done
addr=$SIW6 check "siw serves: IPv6" siw_serves
count=100 check "siw serves: 100 pings" siw_serves
end_capture ours_first

check "siw rejects markers" fails siw_serves --markers

capture siw_first
check "warp-rping serves: as it comes" warp_serves --
check "warp-rping serves: no CRC" warp_serves --no-crc --
for size in 26 27 1024 1411 1442 4096 65535; do
	check "warp-rping serves: $size octets" warp_serves -- -S $size
	check "warp-rping serves: $size octets, no CRC" warp_serves --no-crc -- -S $size
done
addr=$PEER6 check "warp-rping serves: IPv6" warp_serves --
count=100 check "warp-rping serves: 100 pings" warp_serves --
end_capture siw_first
