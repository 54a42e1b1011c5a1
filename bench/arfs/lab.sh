#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# ARFS and NFS side by side in the lab, whose kernel has nfsd: ./dev vm bench/arfs/lab.sh [ARG...]
# passes its words on to run.py. Everything there is emulated: compare the ways, not the seconds.
set -eu
project=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
for module in fuse nfsd nfsv4; do
	modprobe -d "$project/build-vm/root" "$module"
done
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$project/bench/arfs/run.py" --nfs "$@" "$project/build"
