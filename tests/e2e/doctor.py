#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `warpsock doctor` says of hosts that are made up: files as the kernel would show them.

    doctor.py WARPSOCK
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402

LIMIT = 60
CLASS = "sys/class/infiniband"

NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
# An iWARP device on lo, which has an address everywhere, with all that it needs
GOOD = {
    f"{CLASS}/cxgb4_0/node_type": "4: RNIC",
    f"{CLASS}/cxgb4_0/ports/1/state": "4: ACTIVE",
    f"{CLASS}/cxgb4_0/ports/1/link_layer": "Ethernet",
    f"{CLASS}/cxgb4_0/ports/1/gids/0": "0007:4301:0203:0000:0000:0000:0000:0000",
    f"{CLASS}/cxgb4_0/device/net/lo": "",
    "sys/class/infiniband_verbs/uverbs0/ibdev": "cxgb4_0",
    "sys/class/infiniband_verbs/abi_version": "6",
    "sys/class/misc/rdma_cm/dev": "10:122",
    "dev/infiniband/uverbs0": "",
    "dev/infiniband/rdma_cm": "",
    "proc/self/limits": "Max locked memory         8388608              8388608              bytes",
}
ROCE = {
    f"{CLASS}/mlx5_0/node_type": "1: CA",
    f"{CLASS}/mlx5_0/ports/1/state": "4: ACTIVE",
    f"{CLASS}/mlx5_0/ports/1/link_layer": "Ethernet",
    f"{CLASS}/mlx5_0/ports/2/state": "1: DOWN",
    f"{CLASS}/mlx5_0/ports/2/link_layer": "Ethernet",
    f"{CLASS}/mlx5_0/ports/1/gid_attrs/ndevs/0": "lo",
    f"{CLASS}/mlx5_0/ports/1/gids/0": NO_GID,
    f"{CLASS}/mlx5_0/ports/1/gids/1": "0000:0000:0000:0000:0000:ffff:7f00:0001",
    "sys/class/infiniband_verbs/uverbs1/ibdev": "mlx5_0",
    "dev/infiniband/uverbs1": "",
}
IB = {
    f"{CLASS}/mthca0/node_type": "1: CA",
    f"{CLASS}/mthca0/ports/1/state": "1: DOWN",
    f"{CLASS}/mthca0/ports/1/link_layer": "InfiniBand",
}


def less(files, *names):
    return {name: text for name, text in files.items() if name not in names}


# What it is, the files, the exit status, and what is said
CASES = (
    ("no device", {}, 0, ("none: the software provider does not need any",)),
    ("one that can be used", GOOD, 0,
     ("cxgb4_0 *iWARP, driver cxgb4, port 1 ACTIVE", "interface lo 127.0.0.1", "can be used")),
    ("RoCE, one port of two", GOOD | ROCE, 0,
     ("mlx5_0 *RoCE, .*port 1 ACTIVE, port 2 DOWN",)),
    ("a port that is down", GOOD | {f"{CLASS}/cxgb4_0/ports/1/state": "1: DOWN"}, 1,
     ("! no port is active",)),
    ("one of two that cannot", GOOD | IB, 1,
     ("can be used", "mthca0 *InfiniBand, driver unknown, port 1 DOWN", "! no port is active",
      "! it has no network interface here")),
    ("RoCE without a GID", GOOD | ROCE | {f"{CLASS}/mlx5_0/ports/1/gids/1": NO_GID}, 1,
     ("can be used", "! it has no GID",)),
    ("a device of another transport", GOOD | {f"{CLASS}/cxgb4_0/node_type": "5: usNIC"}, 1,
     ("cxgb4_0 *of another kind", "! its transport is not supported",)),
    ("one that names no transport", GOOD | {f"{CLASS}/cxgb4_0/node_type": "7: unspecified"}, 1,
     ("! its transport is not supported",)),
    ("an interface that is elsewhere",
     less(GOOD, f"{CLASS}/cxgb4_0/device/net/lo") |
     {f"{CLASS}/cxgb4_0/ports/1/gid_attrs/ndevs/0": "gone0"}, 1,
     ("! it has no network interface here",)),
    ("no ib_uverbs", less(GOOD, "sys/class/infiniband_verbs/uverbs0/ibdev"), 1,
     ("! the kernel's module ib_uverbs is not loaded",)),
    ("no uverbs file", less(GOOD, "dev/infiniband/uverbs0"), 1,
     ("! /dev/infiniband/uverbs0 is missing",)),
    ("no rdma_ucm", less(GOOD, "sys/class/misc/rdma_cm/dev"), 1,
     ("! the kernel's module rdma_ucm is not loaded",)),
    ("little memory to lock", GOOD | {"proc/self/limits": "Max locked memory 65536 65536 bytes"}, 1,
     ("memory that may be locked: 64 KiB", "! registered memory counts against it")),
    ("no limit of memory", GOOD | {"proc/self/limits": "Max locked memory unlimited unlimited"}, 0,
     ("memory that may be locked: no limit",)),
    ("all of it at once", less(GOOD, "dev/infiniband/uverbs0") | {
        f"{CLASS}/cxgb4_0/node_type": "7: unspecified", f"{CLASS}/cxgb4_0/ports/1/state": "1: DOWN",
        f"{CLASS}/cxgb4_0/ports/1/gids/0": NO_GID}, 1,
     ("! its transport", "! no port", "! it has no GID", "! /dev/infiniband/uverbs0 is missing")),
    ("no rdma_cm file", less(GOOD, "dev/infiniband/rdma_cm"), 1,
     ("! /dev/infiniband/rdma_cm is missing",)),
)


def make(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    for device in (root / CLASS).glob("*/device"):
        (device / "driver").symlink_to("../../bus/pci/drivers/cxgb4")


def doctor(warpsock, root, **env):
    return subprocess.run([warpsock, "doctor", "--root", root], text=True, capture_output=True,
                          timeout=LIMIT, env=os.environ | env)


def said(done, status, lines):
    if done.returncode != status:
        return [f"exit status {done.returncode}, not {status}"]
    return [f"not said: {line}" for line in lines if not re.search(line, done.stdout)]


def hosts(writer, warpsock):
    for name, files, status, lines in CASES:
        with tempfile.TemporaryDirectory() as root:
            make(Path(root), files)
            done = doctor(warpsock, root)
            wrong = said(done, status, lines)
            writer.case(name, wrong and [*wrong, *(done.stdout + done.stderr).splitlines()])


def runtime(writer, warpsock):
    """The folder of connections: its state, and what is wrong with it."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "run"
        done = doctor(warpsock, root, WARPSOCK_RUNTIME_DIR="/run")
        wrong = said(done, 0, ("run, not made yet",))
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
        done = doctor(warpsock, root, WARPSOCK_RUNTIME_DIR="/run")
        wrong += said(done, 1, ("run, there", "! others may use it: its mode must be 0700"))
        writer.case("the runtime folder", wrong and [*wrong, *done.stdout.splitlines()])


def usage(writer, warpsock):
    done = subprocess.run([warpsock, "doctor", "--nothing"], text=True, capture_output=True,
                          timeout=LIMIT)
    writer.case("an option that is none", said(done, 125, ()))


def main():
    writer = tap.Writer()
    hosts(writer, sys.argv[1])
    runtime(writer, sys.argv[1])
    usage(writer, sys.argv[1])
    writer.finish()


if __name__ == "__main__":
    main()
