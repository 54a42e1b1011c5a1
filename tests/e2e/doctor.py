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
TMPFS = "/dev/shm"
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
    ("few open files", GOOD | {"proc/self/limits": "Max open files            256         4096"}, 1,
     ("open files: 256", "! each connection is one, as with TCP: ulimit -n")),
    ("a file may not be long", GOOD | {"proc/self/limits": "Max file size  65536  65536  bytes"},
     1, ("size of a file: 64 KiB", "! the state of a connection is a file of more: ulimit -f")),
    ("a limit of memory", GOOD | {"proc/self/limits": "Max address space 1048576000 unlimited"}, 0,
     ("address space: 1024000 KiB",)),
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
        with tempfile.TemporaryDirectory(dir=TMPFS) as root:
            (Path(root) / "dev/shm").mkdir(parents=True)
            make(Path(root), files)
            done = doctor(warpsock, root)
            wrong = said(done, status, lines)
            writer.case(name, wrong and [*wrong, *(done.stdout + done.stderr).splitlines()])


class Folder:
    """A host whose folder of connections is /run, and what doctor says of it."""

    def __init__(self, writer, warpsock, root):
        self.writer, self.warpsock, self.root = writer, warpsock, Path(root)
        self.run = self.root / "run"

    def case(self, name, status, *lines, folder="/run", **env):
        done = doctor(self.warpsock, self.root, WARPSOCK_RUNTIME_DIR=folder, **env)
        wrong = said(done, status, lines)
        self.writer.case(f"the runtime folder: {name}", wrong and [*wrong,
                                                                   *done.stdout.splitlines()])


def connections(f):
    """Those that live: what a process has mapped."""
    for name in ("%016x" % number for number in range(5)):
        (f.run / name).touch()
    maps = f.root / "proc/4711/maps"
    maps.parent.mkdir(parents=True)
    line = "7f0000000000-7f0000001000 rw-s 00000000 00:19 4  %s\n"
    maps.write_text(line % "/run/0000000000000001" + line % "/run/0000000000000001" +
                    line % "/run/0000000000000003" + line % "/run/0000000000000009 (deleted)" +
                    line % "/running/0000000000000002")
    f.case("what killed processes left is not counted", 0,
           "run, there, connections: 2, left by killed processes: 3\n")
    for path in f.run.iterdir():
        path.unlink()


def runtime(writer, warpsock):
    """The folder of connections: its state, and what is wrong with it."""
    with tempfile.TemporaryDirectory(dir=TMPFS) as root:
        f = Folder(writer, warpsock, root)
        f.case("not made yet", 0, "run, not made yet\n    room: (no limit|for \\d+ connections at "
               "least, with rings of 512 KiB)\n")
        f.case("what it would stand in is missing", 1,
               "! it cannot be made: No such file or directory", folder="/no/run")
        f.run.mkdir(mode=0o700)
        f.case("there", 0, "run, there, connections: 0\n    room: ")
        f.case("room by the ring", 0, "room: (no limit|.* with rings of 8192 KiB)",
               WARPSOCK_RING="8M")
        connections(f)
        f.run.chmod(0o755)
        f.case("others may use it", 1, "run, there", "! others may use it: its mode must be 0700")
        f.run.rmdir()
        f.run.touch()
        f.case("a file", 1, "! it is no folder")
    with tempfile.TemporaryDirectory(dir=HERE) as root:
        f = Folder(writer, warpsock, root)
        f.case("no tmpfs to make it on", 1, "! it cannot be made: it would be on no tmpfs")
        f.run.mkdir(mode=0o700)
        f.case("on no tmpfs", 1, "! it is on no tmpfs")


# Two connections of its own, and then it is killed or shows what there are
OPENED = """
import os, signal, socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
client.sendall(b"x")
server = listener.accept()[0]
server.recv(1)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
subprocess.run([sys.argv[1], "doctor"])
"""


def living(writer, warpsock):
    """The same of real connections."""
    with tempfile.TemporaryDirectory(dir=TMPFS) as root:
        env = os.environ | {"WARPSOCK_RUNTIME_DIR": f"{root}/run"}
        run = [warpsock, "run", "--all", "--mode", "on", "--", sys.executable, "-c", OPENED]
        subprocess.run([*run, "kill"], env=env, timeout=LIMIT, capture_output=True)
        done = subprocess.run([warpsock, "doctor"], env=env, timeout=LIMIT, text=True,
                              capture_output=True)
        line = "run, there, connections: 0, left by killed processes: [1-9]"
        writer.case("connections of a killed program live no more",
                    [] if re.search(line, done.stdout) else done.stdout.splitlines())
        done = subprocess.run([*run, warpsock], env=env, timeout=LIMIT, text=True,
                              capture_output=True)
        line = "run, there, connections: [1-9]"
        writer.case("those of one that runs do", [] if re.search(line, done.stdout)
                    else (done.stdout + done.stderr).splitlines())


def usage(writer, warpsock):
    done = subprocess.run([warpsock, "doctor", "--nothing"], text=True, capture_output=True,
                          timeout=LIMIT)
    wrong = said(done, 125, ())
    if "there is no option --nothing" not in done.stderr:
        wrong.append(done.stderr)
    writer.case("an option that is none", wrong)


def main():
    writer = tap.Writer()
    hosts(writer, sys.argv[1])
    runtime(writer, sys.argv[1])
    living(writer, os.path.abspath(sys.argv[1]))
    usage(writer, sys.argv[1])
    writer.finish()


if __name__ == "__main__":
    main()
