#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Active Messages on AF_XDP without copies, in the lab: zerocopy.sh BUILD
#
#   +--- the guest, Linux of trixie-backports --------------------+
#   |  namespace A                               namespace B      |
#   |  va 10.77.0.1 ---- QEMU's virtual wire ---- vb 10.77.0.2    |
#   +-------------------------------------------------------------+
#
# Both ends are virtio_net, whose driver does both directions without copies since Linux 6.13.
set -eu
build=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
command -v qemu-system-x86_64 >/dev/null || {
	echo "1..0 # SKIP there is no QEMU here"
	exit 0
}
"$here/prepare.sh" newest >&2
exec "$here/boot.sh" -t 1500 -k newest -o "$here/../../build-vm/newest/out" -w \
	"$here/../e2e/am-xdp.sh" "$build" eth0 eth1
