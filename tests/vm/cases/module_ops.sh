# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The kernel module: one-sided operations, placement out of order, start-up of what it accepts
# Limit: 900
# No fault: faults are planted in builds of user space; the module has the same codec
module=$images/module/kmod/warp_ddp.ko
there() { [ -d /sys/module/warp_ddp ]; }
unloadable() { [ "$(cat /sys/module/warp_ddp/refcnt)" != 0 ]; }
refused() { ! rmmod warp_ddp && there; }
not_holding() { ! grep -q held /tmp/case/held.log; }

needed "it is loaded" insmod "$module"
adopt operations python3 "$lab/module_ops.py" calls
adopt early python3 "$lab/module_ooo.py" calls
adopt start python3 "$lab/module_start.py" calls
seed=$(cat /tmp/lab/seed)
check "peers that chance has made, with memory and operations, seed $seed" \
	timeout $((120 * patience)) python3 "$lab/module_ops.py" chance $seed 20
check "segments in an order that chance has made, seed $seed" \
	timeout $((120 * patience)) python3 "$lab/module_ooo.py" chance $seed 20
check "200 processes are killed at any moment, seed $seed" \
	timeout $((240 * patience)) python3 "$lab/module_ops.py" kills $seed 200
check "connections that end at each moment of start-up" \
	timeout $((240 * patience)) python3 "$lab/module_start.py" cycles 100

start held python3 "$lab/module_ops.py" hold
ceases 60 not_holding
check "it is not unloaded while operations are under way" refused
stop held KILL
check "nothing is left of a process that was killed" ceases 20 unloadable
check "it is unloaded" rmmod warp_ddp
