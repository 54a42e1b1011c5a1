# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The kernel module: loaded, its self-test, connections over loopback, faults, refusals, unloaded
# Limit: 300
# No fault: faults are planted in builds of user space; the module has the same codec
module=$images/module/kmod/warp_ddp.ko
said() { dmesg | grep -q "warp_ddp: $1"; }
there() { [ -d /sys/module/warp_ddp ]; }
references() { cat /sys/module/warp_ddp/refcnt; }
unloadable() { [ "$(references)" != 0 ]; }
refused() { ! rmmod warp_ddp && there; }

needed "it is loaded" insmod "$module" selftest=1
check "its self-test passes" said "self-test: 16 vectors passed"
adopt calls python3 "$lab/module.py" calls
check "1000 connections" timeout 120 python3 "$lab/module.py" cycles 1000
start held python3 "$lab/module.py" hold
nap 2
check "it is not unloaded while a connection lives" refused
stop held KILL
check "nothing is left of a process that was killed" ceases 20 unloadable
check "it is unloaded" rmmod warp_ddp
check "it is loaded once more" insmod "$module"
check "and unloaded" rmmod warp_ddp
