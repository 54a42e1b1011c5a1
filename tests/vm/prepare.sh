#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Makes the kernel lab in build-vm/: Debian's kernel image (unpacked, never installed), its siw
# driver built as an external module (Debian leaves it off), and an initramfs that mounts this
# host's root read-only and runs one script in it. Nothing is done again while it is up to date.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
lab=$PWD/build-vm
here=$PWD/tests/vm

say() { printf 'vm: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# The kernel whose headers are installed: image and source must be of the same version
version=$(apt-cache depends linux-headers-amd64 |
	sed -n 's/.*Depends: linux-headers-//p' | head -n 1)
[ -n "$version" ] || die "no linux-headers-amd64 to be had"
headers=/usr/src/linux-headers-$version
source=/usr/src/linux-source-6.1.tar.xz
[ -d "$headers" ] || die "please install linux-headers-$version"
[ -f "$source" ] || die "please install linux-source-6.1"

stamp="$version $(stat -c %Y "$source") $(cat "$here/init" "$0" | sha256sum)"
mkdir -p "$lab"
gcc -O1 -g -Wall -I "$here" -o "$lab/script_verbs" "$here/script.c" "$here/script_verbs.c" \
	-lrdmacm -libverbs
gcc -O1 -g -Wall -o "$lab/script_iomap" "$here/script_iomap.c" -lrdmacm
gcc -O1 -g -Wall -pthread -o "$lab/script_sockets" "$here/script_sockets.c"
gcc -O1 -g -Wall -shared -fPIC -o "$lab/rsockets_shim.so" "$here/rsockets_shim.c"
[ "$(cat "$lab/stamp" 2>/dev/null)" != "$stamp" ] || exit 0
rm -f "$lab/stamp"

image() {
	[ -d "$lab/root/lib/modules/$version" ] && return
	say "unpacking linux-image-$version"
	local tmp
	tmp=$(mktemp -d)
	(cd "$tmp" && apt-get -q download "linux-image-$version" >&2)
	dpkg -x "$tmp"/linux-image-*.deb "$lab/root"
	rm -r "$tmp"
	ln -sf "root/boot/vmlinuz-$version" "$lab/vmlinuz"
	depmod -b "$lab/root" "$version"
}

siw() {
	[ -f "$lab/siw/siw.ko" ] && return
	say "building siw from linux-source-6.1"
	rm -rf "$lab/siw"
	mkdir "$lab/siw"
	tar -C "$lab/siw" --strip-components=5 -xf "$source" \
		linux-source-6.1/drivers/infiniband/sw/siw
	make -s -C "$headers" M="$lab/siw" CONFIG_RDMA_SIW=m modules >"$lab/siw.log" 2>&1 ||
		{ tail -n 20 "$lab/siw.log" >&2; die "siw did not build"; }
}

# Every module that one of these needs, in loading order
modules() {
	local m
	for m in virtio_pci 9pnet_virtio 9p virtio_net veth sch_netem overlay libcrc32c \
		crc32c_generic ib_core iw_cm rdma_cm ib_uverbs rdma_ucm; do
		modprobe -d "$lab/root" -S "$version" --show-depends "$m" 2>/dev/null || true
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

initramfs() {
	local fs=$lab/initramfs file
	rm -rf "$fs"
	mkdir -p "$fs"/{bin,proc,sys,dev,modules,host}
	cp /bin/busybox "$fs/bin/busybox"
	cp "$here/init" "$fs/init"
	chmod 755 "$fs/init"
	modules | while read -r file; do
		cp "$file" "$fs/modules/"
		basename "$file"
	done >"$fs/modules/order"
	cp "$lab/siw/siw.ko" "$fs/modules/"
	echo siw.ko >>"$fs/modules/order"
	(cd "$fs" && find . | cpio -o -H newc --quiet | gzip -1) >"$lab/initramfs.gz"
	rm -rf "$fs"
}

image
siw
initramfs
echo "$stamp" >"$lab/stamp"
say "ready: $version"
