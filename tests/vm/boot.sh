#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Boots the lab's kernel under software emulation and runs one script in it: boot.sh [-t SECONDS] SCRIPT
# The script sees this host's root read-only, /tmp and /run fresh, and build-vm/out as /tmp/lab. Its output comes
# here, its exit status is ours; 124 when the time was over.
set -euo pipefail
limit=300
[ "${1:-}" = -t ] && { limit=$2; shift 2; }
script=$(readlink -f "${1:?script}")
cd "$(dirname "$(readlink -f "$0")")/../.."
lab=$PWD/build-vm
mkdir -p "$lab/out"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

share() { printf 'local,path=%s,mount_tag=%s,security_model=none%s' "$1" "$2" "${3:-}"; }
status=0
timeout -k 5 "$limit" qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 1500 \
	-nodefaults -display none -no-reboot -serial stdio \
	-kernel "$lab/vmlinuz" -initrd "$lab/initramfs.gz" \
	-append "console=ttyS0 quiet panic=-1 lab.script=$script" \
	-virtfs "$(share / host ,readonly=on,multidevs=remap)" -virtfs "$(share "$lab/out" lab)" \
	</dev/null 2>&1 | tr -d '\r' | tee "$log" | grep --line-buffered -v '^LAB-EXIT:' || status=${PIPESTATUS[0]}
[ "$status" != 124 ] || exit 124
code=$(sed -n 's/^LAB-EXIT:\([0-9]*\).*/\1/p' "$log" | tail -n 1)
[ -n "$code" ] || { echo "vm: the guest ended without an answer" >&2; exit 125; }
exit "$code"
