#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Builds the debug kernel from Debian's linux-source-6.1 and debug.config:
#	debug_kernel.sh FOLDER
# It leaves FOLDER/obj, against which modules are built, FOLDER/vmlinuz and FOLDER/version, and does
# nothing while these are of this configuration and source.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
folder=$(readlink -m "$1")
source=/usr/src/linux-source-6.1.tar.xz

say() { printf 'vm: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

[ -f "$source" ] || die "please install linux-source-6.1"
sum=$({ dpkg-query -W linux-source-6.1 && gcc --version && cat "$here/debug.config" "$0"; } |
	sha256sum)
[ "$(cat "$folder/kernel.sum" 2>/dev/null)" != "$sum" ] || exit 0
rm -rf "$folder/kernel.sum" "$folder/module"
mkdir -p "$folder/obj"

version=$(dpkg-query -W linux-source-6.1)
[ "$(cat "$folder/source.version" 2>/dev/null)" = "$version" ] || {
	say "unpacking linux-source-6.1"
	rm -rf "$folder/source" "$folder/obj"
	mkdir "$folder/source" "$folder/obj"
	tar -C "$folder/source" --strip-components=1 -xf "$source"
	echo "$version" >"$folder/source.version"
}
# siw also takes this lock in a task, where a softirq may come between. PROVE_LOCKING reports only
# the first fault that it finds, and would look for none of the module's behind this one.
sed -i -E 's/(read_(un)?lock)(\(&sk->sk_callback_lock\))/\1_bh\3/' \
	"$folder"/source/drivers/infiniband/sw/siw/*.c
compiler=gcc
! command -v ccache >/dev/null || compiler="ccache gcc"
kernel=(nice -n 10 make -s -C "$folder/source" O="$folder/obj" CC="$compiler"
	KBUILD_BUILD_TIMESTAMP=0 KBUILD_BUILD_USER=lab KBUILD_BUILD_HOST=lab)
failed() { tail -n 20 "$folder/kernel.log" >&2; die "the debug kernel did not build"; }

"${kernel[@]}" KCONFIG_ALLCONFIG="$here/debug.config" allnoconfig >"$folder/kernel.log" 2>&1 ||
	failed
lost=$(grep '^CONFIG_' "$here/debug.config" | grep -vxFf "$folder/obj/.config" || true)
[ -z "$lost" ] || die "not to be had in this source: $lost"
say "building the debug kernel"
"${kernel[@]}" -j "${LAB_JOBS:-$(nproc)}" bzImage modules >>"$folder/kernel.log" 2>&1 || failed
ln -sf obj/arch/x86/boot/bzImage "$folder/vmlinuz"
cp "$folder/obj/include/config/kernel.release" "$folder/version"
echo "$sum" >"$folder/kernel.sum"
