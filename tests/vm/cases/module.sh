# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The kernel module: its self-test, connections over loopback and with siw, faults, unloading
# Limit: 900
# No fault: faults are planted in builds of user space; the module has the same codec
module=$images/module/kmod/warp_ddp.ko
said() { dmesg | grep -q "warp_ddp: $1"; }
there() { [ -d /sys/module/warp_ddp ]; }
references() { cat /sys/module/warp_ddp/refcnt; }
unloadable() { [ "$(references)" != 0 ]; }
not_holding() { ! grep -q held /tmp/case/held.log; }
refused() { ! rmmod warp_ddp && there; }

needed "it is loaded" insmod "$module" selftest=1
check "its self-test passes" said "self-test: 16 vectors passed"
adopt calls python3 "$lab/module.py" calls
seed=$(cat /tmp/lab/seed)
check "streams that chance has made, seed $seed" \
	timeout $((60 * patience)) python3 "$lab/module.py" chance $seed 12
check "1000 connections" timeout $((360 * patience)) python3 "$lab/module.py" cycles 1000

# steps SENDS...: of script_verbs' for a message of each size each way, ours or its first
verbs=$project/build-vm/script_verbs
sizes=(0 1 1430 1431 1432 5000 65536)
steps() {
	local size
	for size in "${sizes[@]}"; do
		if [ "$1" = first ]; then script+=(send $size got $size)
		else script+=(got $size send $size); fi
	done
}
# by_siw asks|serves|listens CRC: the module in the peer's namespace, over veth; it starts up itself
# where it listens
by_siw() {
	local script=() mine=(in_peer timeout 60 python3 "$lab/module.py" $1)
	port=$((port + 1))
	if [ $1 = asks ]; then
		steps last
		start verbs "$verbs" listen $SIW $port accept "${script[@]}" closed
		await_port verbs $port
		"${mine[@]}" $SIW $port $2 "${sizes[@]}" && ends verbs 20
	else
		steps first
		[ $1 = serves ] || mine[4]=$lab/module_start.py
		start module "${mine[@]}" $PEER $port $2 "${sizes[@]}"
		await_port module $port
		timeout 60 "$verbs" connect $PEER $port "${script[@]}" close &&
			ends module 20
	fi
}
port=7900
ulimit -l unlimited
capture siw
for crc in 1 0; do
	[ $crc = 1 ] || { end_capture siw; capture siw_crc_off; }
	check "siw takes and sends messages, CRC $crc" by_siw asks $crc
	check "siw starts, CRC $crc" by_siw serves $crc
	check "siw starts, and the kernel answers, CRC $crc" by_siw listens $crc
done
end_capture siw_crc_off

start held python3 "$lab/module.py" hold
ceases 60 not_holding
check "it is not unloaded while a connection lives" refused
stop held KILL
check "nothing is left of a process that was killed" ceases 20 unloadable
check "it is unloaded" rmmod warp_ddp
check "it is loaded once more" insmod "$module"
check "and unloaded" rmmod warp_ddp
