#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Boots the lab's kernel under software emulation and runs one script or command in it:
#	boot.sh [-t SECONDS] [-o FOLDER] [-k KERNEL] [-p PROCESSORS] [-n TAP | -w] \
#		[-a WORDS] \
#		SCRIPT [ARG...] | -- COMMAND...
# -w gives it two network cards, eth0 and eth1, on one wire, which can do AF_XDP without copies.
# -a adds words to the kernel's command line.
# It sees this host's root read-only, /tmp and /run fresh, and FOLDER (build-vm/out) as /tmp/lab.
# Its output comes here, its exit status is ours; 124 when the time was over, 125 when the guest
# ended without an answer.
set -euo pipefail
project=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
lab=$project/build-vm
limit=300 out=$lab/out images=$lab network=() processors=2 words=
while getopts t:o:k:p:n:wa: option; do
	case $option in
	t) limit=$OPTARG ;;
	o) out=$OPTARG ;;
	k) [ "$OPTARG" = 6.1 ] || images=$lab/$OPTARG ;;
	p) processors=$OPTARG ;;
	a) words=$OPTARG ;;
	n) network=(-netdev "tap,id=net,ifname=$OPTARG,script=no,downscript=no"
		-device "virtio-net-pci,netdev=net,mac=52:54:00:07:00:01") ;;
	w) for i in 0 1; do # the driver takes memory of AF_XDP's only for such a device
		card=virtio-net-pci,iommu_platform=on,disable-legacy=on
		network+=(-netdev "hubport,id=net$i,hubid=0"
			-device "$card,netdev=net$i,mac=52:54:00:07:00:0$i")
	   done ;;
	*) exit 2 ;;
	esac
done
before=${*:OPTIND-1:1}
shift $((OPTIND - 1))
[ $# -gt 0 ] || { sed -n 4,6p "$0" >&2; exit 2; }
# It changes its own code more often than two emulated processors bear: int3 where none should be.
[ "${images##*/}" != newest ] || processors=1
mkdir -p "$out"
[ "$before" = -- ] || set -- bash "$(readlink -f "$1")" "${@:2}"
# Another guest of the same FOLDER may be about to read it
{ printf 'cd %q\nexec' "$PWD"; printf ' %q' "$@"; echo; } >"$out/command.$$"
mv "$out/command.$$" "$out/command"
# What a busy host upsets, the check of the timer, and what emulation makes dear: a clock that is a
# device, retpolines, LSMs, and addresses that chance chooses: at others a program's code is
# translated anew, so that it takes three times as long to start
fast="no_timer_check clocksource=tsc tsc=reliable mitigations=off apparmor=0 audit=0 norandmaps"
# Linux takes 20 s to ask ACPI for each device's interrupt, and gives up after 30 s
[ "${images##*/}" != debug ] || fast+=" pci=noacpi"
fast+=" $words log_buf_len=4M" # nothing of what a case brings the kernel to say is to be lost
log=$(mktemp)
trap 'rm -f "$log"' EXIT

share() {
	printf 'local,path=%s,mount_tag=%s,security_model=none,multidevs=remap%s' "$1" "$2" "${3:-}"
}

# In the foreground: whoever ends our process group must end the machine too.
machine() {
	timeout --foreground -k 5 "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max \
		-smp "$processors" -m 1500 -nodefaults -display none -no-reboot -serial stdio \
		-kernel "$images/vmlinuz" -initrd "$images/initramfs.gz" \
		-append "console=ttyS0 quiet panic=-1 oops=panic $fast lab.project=$project" \
		-virtfs "$(share / host ,readonly=on)" \
		-virtfs "$(share "$project" project ,readonly=on)" \
		-virtfs "$(share "$out" lab)" "${network[@]}" </dev/null 2>&1
}

status=0
machine | sed -u 's/\r//g' | tee "$log" | grep --line-buffered -v '^LAB-EXIT:' ||
	status=${PIPESTATUS[0]}
[ "$status" != 124 ] || exit 124
code=$(sed -n 's/^LAB-EXIT:\([0-9]*\).*/\1/p' "$log" | tail -n 1)
[ -n "$code" ] || { echo "vm: the guest ended without an answer" >&2; exit 125; }
exit "$code"
