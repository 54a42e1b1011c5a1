# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The kernel module: what chance throws at it, for as long as run.py --seconds says
# Limit: 300
# No fault: faults are planted in builds of user space; the module has the same codec
module=$images/module/kmod/warp_ddp.ko
seed=$(cat /tmp/lab/seed)
seconds=$(cat /tmp/lab/seconds)

needed "it is loaded" insmod "$module"
check "streams, calls and ends that chance has made, seed $seed" \
	timeout $((seconds + 120 * patience)) python3 "$lab/module_fuzz.py" $seed $seconds
sed 's/^/# /' /tmp/case/check.out | tail -n 5
check "it is unloaded" rmmod warp_ddp
