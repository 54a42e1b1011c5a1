# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Offered a Send alone for an RTR, siw wants a Write: who ends it for that ends the guest
# Limit: 60
# No fault: what it shows is siw's
# Dies: kernel BUG at drivers/infiniband/core/iwcm.c
port=9450
start server rping -s -a $SIW -p $port
await_port server $port
refused() {
	! in_peer timeout 20 "$apps/examples/warp-rping" -c -a $SIW -p $port --rtr send
}
check "it is refused" refused
nap 20
