# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The provider verbs on siw, either as server: with the software provider, rping, and itself
# Limit: 300
# Table: verbs-software verbs-verbs
# No others: software's rping is in rping, and streams are in vstreams
warp_rping=$apps/examples/warp-rping
port=7800
ulimit -l unlimited
needed "a siw device in each namespace" in_peer rdma link add siw1 type siw netdev up0

# pings SERVER... -- CLIENT...: the server on siw's side, the client in the namespace; -a and -p are
# added
pings() {
	local first rest status=0
	port=$((port + 1))
	part "$@"
	start server "${first[@]}" -a "${addr:-$SIW}" -p $port
	await_port server $port
	in_peer timeout -k 2 30 "${rest[@]}" -c -a "${addr:-$SIW}" -p $port -C "${count:-5}" -V \
		>/tmp/case/client.log 2>&1 || status=$?
	cat /tmp/case/client.log
	answered /tmp/case/client.log || status=1
	# rping ends with an error when its client has gone
	[ "${first[0]}" = rping ] || ends server 10 || status=1
	gone server 2 || stop server
	return $status
}

capture first_mixed
serve=(-s -S 65535)
verbs0=("$warp_rping" --provider verbs:siw0)
verbs1=("$warp_rping" --provider verbs:siw1)
for size in 26 1442 65535; do
	check "verbs serves the software provider: $size octets" \
		pings "${verbs0[@]}" "${serve[@]}" -- "$warp_rping" -S $size
	pair=verbs-verbs
	check "$size octets" pings "${verbs0[@]}" "${serve[@]}" -- "${verbs1[@]}" -S $size
	pair=
	check "verbs serves rping: $size octets" \
		pings "${verbs0[@]}" "${serve[@]}" -- rping -S $size
	check "rping serves verbs: $size octets" \
		pings rping "${serve[@]}" -- "${verbs1[@]}" -S $size
done
addr=$SIW6 check "verbs serves the software provider: IPv6" \
	pings "${verbs0[@]}" "${serve[@]}" -- "$warp_rping"
pair=verbs-verbs
count=200 check "200 pings" pings "${verbs0[@]}" "${serve[@]}" -- "${verbs1[@]}"

# soft_serves: the other way round
soft_serves() {
	port=$((port + 1))
	start server in_peer "$warp_rping" "${serve[@]}" -a $PEER -p $port
	await_port server $port
	timeout -k 2 30 "${verbs0[@]}" -c -a $PEER -p $port -C "${count:-5}" -V "$@" &&
		ends server 10
}
pair=verbs-software
for size in 26 1442 65535; do
	check "$size octets" soft_serves -S $size
done
count=200 check "200 pings" soft_serves
pair=
check "the first active device is taken when none is named" \
	pings "$warp_rping" --provider verbs "${serve[@]}" -- "$warp_rping"

# Step by step: script_warp on siw1, script_verbs on siw0
export SCRIPT_PROVIDER=verbs:siw1
for pair in verbs-siw siw-verbs; do
	steps 1 248
done
pair=

# warp-kv: Reads of the server's memory
kv=$apps/examples/warp-kv
start store "$kv" serve -a $SIW -p 7990 --provider verbs:siw0
await_port store 7990
check "warp-kv puts by the software provider what verbs serves" \
	in_peer timeout 20 "$kv" put -a $SIW -p 7990 key value
check "warp-kv gets by verbs, 100 times" \
	in_peer timeout 20 "$kv" get -a $SIW -p 7990 --provider verbs:siw1 -r 100 key
check "warp-kv puts by verbs" \
	in_peer timeout 20 "$kv" put -a $SIW -p 7990 --provider verbs:siw1 key other
brings() { [ "$(in_peer timeout 20 "$kv" get -a $SIW -p 7990 key)" = "$1" ]; }
check "warp-kv gets by the software provider what verbs has put" brings other
stop store INT

end_capture first_mixed
adopt kv "$project/tests/e2e/kv.py" "$kv" $SIW verbs:siw0
adopt rping "$project/tests/e2e/rping.py" "$warp_rping" $SIW verbs:siw0

# The device goes with its network interface otherwise, under those who have it
needed "the device can be removed" in_peer rdma link delete siw1

check "warpsock doctor finds nothing wrong" "$apps/warpsock" doctor
doctor_says() { "$apps/warpsock" doctor | grep -q "$1"; }
check "warpsock doctor knows siw's transport, port and interface" \
	doctor_says "siw0 *iWARP, .*port 1 ACTIVE"
check "warpsock doctor knows its addresses" doctor_says "interface sw0 .*$SIW"
doctor_finds() {
	local out status=0
	out=$("$@" "$apps/warpsock" doctor) || status=$?
	echo "$out"
	[ $status = 1 ] && grep -q "! $complaint" <<<"$out"
}
# In the namespace siw0 has no interface
complaint="it has no network interface here" \
	check "warpsock doctor says that an interface is elsewhere" doctor_finds in_peer
chmod 600 /dev/infiniband/uverbs0
complaint="/dev/infiniband/uverbs. cannot be opened" \
	check "warpsock doctor says that a user may not" \
	doctor_finds setpriv --reuid 65534 --clear-groups
chmod 666 /dev/infiniband/uverbs0
no_locks() { (ulimit -l 64 && "$@"); }
complaint="registered memory counts against it" \
	check "warpsock doctor says that little memory may be locked" doctor_finds no_locks

# One thing at a time that is not as it should be
lacks() {
	local complaint=$1
	shift
	check "warpsock doctor says: $complaint" doctor_finds "$@"
}
ip link set sw0 down
lacks "no port is active" env
ip link set sw0 up
ip addr flush dev sw0
lacks "sw0 has no address" env
ip addr add $SIW/24 dev sw0
mv /dev/infiniband/uverbs0 /dev/infiniband/away
lacks "/dev/infiniband/uverbs0 is missing" env
mv /dev/infiniband/away /dev/infiniband/uverbs0
chmod 600 /dev/infiniband/rdma_cm
lacks "/dev/infiniband/rdma_cm cannot be opened" setpriv --reuid 65534 --clear-groups
chmod 666 /dev/infiniband/rdma_cm
check "warpsock doctor finds nothing wrong any more" "$apps/warpsock" doctor
