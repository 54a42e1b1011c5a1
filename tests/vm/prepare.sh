#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Makes the kernel lab in build-vm/: Debian's kernel image (unpacked, never installed), its siw
# driver built as an external module (Debian leaves it off), and an initramfs that mounts this
# host's root read-only and runs one script in it. Nothing is done again while it is up to date.
#	prepare.sh [6.1 | 6.12 | newest | debug]
# 6.12 is that of bookworm-backports, in build-vm/6.12: all of its packages are unpacked there, and
# apt is asked with lists and caches of its own, so that the host's sources stay as they are. newest
# is the image of trixie-backports, in build-vm/newest, without siw. debug is built of Debian's
# source of 6.1 (debug_kernel.sh), in build-vm/debug, with siw in it.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
kernel=${1:-6.1}
lab=$PWD/build-vm
here=$PWD/tests/vm

say() { printf 'vm: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

mkdir -p "$lab"
gcc -O1 -g -Wall -I "$here" -I include -o "$lab/script_verbs" \
	"$here/script.c" "$here/script_verbs.c" -lrdmacm -libverbs
gcc -O1 -g -Wall -o "$lab/script_iomap" "$here/script_iomap.c" -lrdmacm
gcc -O1 -g -Wall -pthread -I include -o "$lab/script_sockets" "$here/script_sockets.c"
for shim in rsockets_shim sockets_shim; do
	gcc -O1 -g -Wall -shared -fPIC -I include -o "$lab/$shim.so" "$here/$shim.c"
done
[ "$lab/java/Http.class" -nt "$here/../programs/Http.java" ] ||
	javac -d "$lab/java" "$here/../programs/Http.java"

# A server's folder, in which the lab's network may do all: making it takes the guest a minute
postgres() {
	local tmp as=()
	tmp=$(mktemp -d)
	chmod 777 "$tmp"
	[ "$(id -u)" != 0 ] || as=(setpriv --reuid postgres --regid postgres --clear-groups)
	"${as[@]}" /usr/lib/postgresql/15/bin/initdb -D "$tmp/data" -U postgres -A trust \
		--wal-segsize 1 --no-sync >/dev/null
	echo "host all all 10.7.0.0/24 trust" >>"$tmp/data/pg_hba.conf"
	tar -C "$tmp" -cf "$lab/postgres.tar" data
	rm -r "$tmp"
}
[ -f "$lab/postgres.tar" ] || postgres

apt_of_backports() {
	local apt=$lab/apt
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"http://deb.debian.org/debian $suite main" >"$apt/sources.list"
	"$1" -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" "${@:2}"
}

# version_of PACKAGE: that of the kernel which linux-PACKAGE-amd64 depends on
version_of() {
	[ -s "$lab/version" ] || {
		apt_of_backports apt-get -q update >&2
		apt_of_backports apt-cache depends "linux-$1-amd64" |
			sed -n "s/.*Depends: linux-$1-//p" | head -n 1 >"$lab/version"
	}
	cat "$lab/version"
	[ -s "$lab/version" ] || die "no linux-$1-amd64 in $suite"
}

# Unpacks packages of backports into $lab/root
backports() {
	local tmp
	tmp=$(mktemp -d)
	(cd "$tmp" && apt_of_backports apt-get -q download "$@" >&2) || return
	for package in "$tmp"/*.deb; do
		dpkg -x "$package" "$lab/root"
	done
	rm -r "$tmp"
}

case $kernel in
6.1) # the kernel whose headers are installed: image and source must be of the same version
	version=$(apt-cache depends linux-headers-amd64 |
		sed -n 's/.*Depends: linux-headers-//p' | head -n 1)
	[ -n "$version" ] || die "no linux-headers-amd64 to be had"
	headers=/usr/src/linux-headers-$version
	source=/usr/src/linux-source-6.1.tar.xz
	[ -d "$headers" ] || die "please install linux-headers-$version"
	[ -f "$source" ] || die "please install linux-source-6.1"
	;;
6.12)
	lab=$lab/6.12 suite=bookworm-backports
	mkdir -p "$lab"
	version=$(version_of headers)
	headers=$lab/root/usr/src/linux-headers-$version
	source=$lab/root/usr/src/linux-source-6.12.tar.xz
	[ -f "$source" ] || {
		say "unpacking linux-source-6.12 and headers"
		backports linux-source-6.12 "linux-headers-$version" \
			"linux-headers-${version%-amd64}-common" "linux-kbuild-${version%-amd64}" ||
			die "bookworm-backports does not answer"
		sed -i "s|/usr/src/|$lab/root/usr/src/|" "$headers/Makefile"
	}
	;;
newest)
	lab=$lab/newest suite=trixie-backports
	mkdir -p "$lab/root"
	version=$(version_of image)
	source=$lab/version
	;;
debug)
	lab=$lab/debug
	mkdir -p "$lab"
	"$here/debug_kernel.sh" "$lab"
	version=$(cat "$lab/version")
	headers=$lab/obj
	source=$lab/kernel.sum
	;;
*)
	die "no such kernel: $kernel (there are: 6.1 6.12 newest debug)"
	;;
esac

# Ours, for the case module: built anew when a source of it is another
ddp_module() {
	local tree=$lab/module sum
	sum=$(cd "$here/../.." && find kmod mpa ddp rdmap base include tests/vectors -type f \
		! -name '*.o' ! -name '.*' | sort | xargs sha256sum | sha256sum)
	sum="$version $sum"
	[ "$(cat "$tree/sum" 2>/dev/null)" != "$sum" ] || return 0
	say "building warp_ddp for $version"
	rm -rf "$tree"
	make -s -C "$here/../../kmod" tree DEST="$tree" &&
		make -s -C "$tree/kmod" KDIR="$headers" >"$lab/module.log" 2>&1 ||
		{ tail -n 20 "$lab/module.log" >&2; die "warp_ddp did not build"; }
	echo "$sum" >"$tree/sum"
}
[ "$kernel" = newest ] || ddp_module

stamp="$version $(stat -c %Y "$source") $(cat "$here/init" "$0" | sha256sum)"
[ "$(cat "$lab/stamp" 2>/dev/null)" != "$stamp" ] || exit 0
rm -f "$lab/stamp"

image() {
	local image=boot/vmlinuz-$version
	[ "$kernel" != newest ] || image=usr/lib/modules/$version/vmlinuz
	[ -f "$lab/root/$image" ] && return
	say "unpacking linux-image-$version"
	if [ "$kernel" = newest ]; then
		backports "linux-binary-$version" "linux-modules-$version"
		ln -sfn usr/lib "$lab/root/lib"
	elif [ "$kernel" = 6.12 ]; then
		backports "linux-image-$version"
	else
		local tmp
		tmp=$(mktemp -d)
		(cd "$tmp" && apt-get -q download "linux-image-$version" >&2)
		dpkg -x "$tmp"/linux-image-*.deb "$lab/root"
		rm -r "$tmp"
	fi
	ln -sf "root/$image" "$lab/vmlinuz"
	depmod -b "$lab/root" "$version"
}

siw() {
	[ -f "$lab/siw/siw.ko" ] && return
	say "building siw from linux-source-$kernel"
	rm -rf "$lab/siw"
	mkdir "$lab/siw"
	tar -C "$lab/siw" --strip-components=5 -xf "$source" \
		"linux-source-$kernel/drivers/infiniband/sw/siw"
	# BTF of modules would take pahole
	make -s -C "$headers" M="$lab/siw" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= \
		modules >"$lab/siw.log" 2>&1 ||
		{ tail -n 20 "$lab/siw.log" >&2; die "siw did not build"; }
}

# One that turns to what comes after its Reply so late that it overlooks all that comes at once,
# which the other does now and then: for case write_retries
slow_siw() {
	local reply='/^	rv = siw_send_mpareqrep(cep, params->private_data,$/'
	[ -f "$lab/siw-slow/siw.ko" ] && return
	say "building siw that overlooks what comes first"
	rm -rf "$lab/siw-slow"
	cp -a "$lab/siw" "$lab/siw-slow"
	make -s -C "$headers" M="$lab/siw-slow" clean
	sed -i -e '1i #include <linux/delay.h>' \
		-e "$reply,/goto error;/{/goto error;/a\\	msleep(50);" -e '}' \
		"$lab/siw-slow/siw_cm.c"
	[ "$(grep -c 'msleep(50)' "$lab/siw-slow/siw_cm.c")" = 1 ] || die "siw's Reply is elsewhere"
	make -s -C "$headers" M="$lab/siw-slow" CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= \
		modules >>"$lab/siw.log" 2>&1 ||
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
		case $file in
		*.xz) xz -dc "$file" >"$fs/modules/$(basename "$file" .xz)" ;;
		*) cp "$file" "$fs/modules/" ;;
		esac
		basename "$file" .xz
	done >"$fs/modules/order"
	[ ! -f "$lab/siw/siw.ko" ] || {
		cp "$lab/siw/siw.ko" "$fs/modules/"
		echo siw.ko >>"$fs/modules/order"
	}
	(cd "$fs" && find . | cpio -o -H newc --quiet | gzip -1) >"$lab/initramfs.gz"
	rm -rf "$fs"
}

case $kernel in
6.1 | 6.12) image; siw; slow_siw ;;
newest) image ;;
esac
initramfs
echo "$stamp" >"$lab/stamp"
say "ready: $version"
