#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ARFS in four ways: a mount that reads one-sided, one whose reads are programs, one that keeps for
three seconds what it knows, and commands that work at the server. Wall time and packets of the same
question, by the loopback interface.

    run.py [--files N] [--mib N] [--rounds N] [--nfs] [--only WORD] [--skip WAY] [--out FOLDER]
           [BUILD]

FOLDER gets results.json and a plot, ways.svg.

It runs in a network and a mount namespace of its own, and needs /dev/fuse. With --nfs the same is
asked of NFS, where the kernel has that: `./dev vm bench/arfs/lab.sh`.
"""
import argparse
import contextlib
import json
import os
import random
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nfs import Nfs

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import drawing  # noqa: E402

HOST, PORT = "127.0.0.1", "7190"
WORDS = ("error", "apple", "pear", "warp", "list", "page")
RECORD = struct.Struct("<Iq12s")  # id, price, name
LAYOUT = "u32 id; s64 price; text[12] name"
KEPT = ("-c", "3000")
NEEDLE = "the one line that is looked for"


def enter():
    """Begins again where network and mounts are its own."""
    if os.environ.get("ARFS_BENCH_INSIDE"):
        return
    how = ["unshare", "-mn", *([] if os.geteuid() == 0 else ["-Ur"])]
    if not os.path.exists("/dev/fuse") or subprocess.run([*how, "true"], check=False).returncode:
        sys.exit("it needs /dev/fuse, and namespaces for network and mounts")
    os.environ["ARFS_BENCH_INSIDE"] = "1"
    os.execvp("unshare", [*how, sys.executable, *sys.argv])


def packets():
    lines = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.lstrip().startswith("lo:")).split()[2])


def fill(top, files, mib):
    """Text files in 20 directories, of which one has the needle; and one file of records."""
    dice = random.Random(1)
    size = (mib << 20) // files
    text = " ".join(dice.choice(WORDS) + ("\n" if dice.random() < 0.1 else "")
                    for _ in range((size + (1 << 20)) // 5)).encode()
    for i in range(files):
        folder = top / f"folder {i % 20}"
        folder.mkdir(exist_ok=True)
        begin = dice.randrange(len(text) - size)
        body = text[begin:begin + size]
        if i == files // 2:
            body = body[:size // 2] + f"\n{NEEDLE}\n".encode() + body[size // 2:]
        (folder / f"file {i}.{'c' if i % 50 == 0 else 'txt'}").write_bytes(body)
    (top / "records").write_bytes(b"".join(
        RECORD.pack(i, dice.randrange(-10**9, 10**9), b"name") for i in range(400000)))
    (top / "stream").write_bytes(dice.randbytes(5 << 20))


def sources(top):
    """What the phases of Andrew's benchmark copy, and make a program of."""
    for i in range(40):
        folder = top / f"part{i % 4}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"unit{i}.c").write_text(
            f"int unit{i}(int n)\n{{\n\treturn n * {i};\n}}\n" + "/* text */\n" * 300)


class Store:
    """A server, and the tree mounted in both ways."""

    def __init__(self, build, folder, mib):
        self.apps = build / "apps/arfs"
        self.path = Path(folder)
        store = str(self.path / "store")
        subprocess.run([self.apps / "warp-arfs-server", "make", store, str(3 * mib + 128)],
                       check=True)
        self.running = [subprocess.Popen([self.apps / "warp-arfs-server", "serve", "-a", HOST,
                                          "-p", PORT, store], stdout=subprocess.PIPE)]
        self.running[0].stdout.readline()
        self.mounted = {}

    def mount(self, name, *options):
        where = self.path / name
        where.mkdir(exist_ok=True)
        self.mounted[where] = subprocess.Popen([self.apps / "warp-arfs", "-f", "-a", HOST, "-p",
                                                PORT, *options, where])
        while not os.path.ismount(where):
            time.sleep(0.05)
        return where

    def unmount(self, where):
        subprocess.run(["umount", where], check=False)
        self.mounted.pop(where).wait()

    def forget(self):
        """What the kernel keeps of the mount that lets it."""
        self.unmount(self.path / "kept")
        self.mount("kept", *KEPT)

    def end(self):
        for where in list(self.mounted):
            self.unmount(where)
        self.running[0].terminate()
        self.running[0].wait()


def question(command, cwd):
    """One time: seconds, packets, and what was printed."""
    os.sync()
    before, begin = packets(), time.monotonic()
    done = subprocess.run(command, cwd=cwd, capture_output=True, check=False, timeout=900)
    took = time.monotonic() - begin
    if done.returncode or done.stderr:
        sys.exit(f"{command}: {done.stderr.decode()}")
    return took, packets() - before, done.stdout


def andrew(source):
    """The phases; each begins where the one before has ended."""
    return (
        ("Andrew: directories", ["sh", "-c", "rm -rf work && mkdir work && cd work && "
                                 "mkdir part0 part1 part2 part3"], None),
        ("Andrew: copy", ["cp", "-r", f"{source}/.", "work"], None),
        ("Andrew: attributes", ["ls", "-lR", "work"], None),
        ("Andrew: read", ["sh", "-c", "cat work/*/*"], None),
        ("Andrew: make", ["sh", "-c", "cd work && cc -c part0/*.c && ar rc all.a *.o"], None),
    )


def rows(apps):
    """What is asked: of a mount, by local programs; and of the server, where it can be asked."""
    to = ("-a", HOST, "-p", PORT)
    aggregate = (
        "import struct, sys\n"
        f"prices = [p for _, p, _ in struct.iter_unpack('{RECORD.format}',"
        " open('records', 'rb').read())]\n"
        "print(len(prices), sum(prices), min(prices), max(prices))")
    return (
        ("grep, one line", ["grep", "-r", NEEDLE, "."], [apps / "warp-grep", *to, NEEDLE]),
        ("find by name", ["find", ".", "-name", "*.c"],
         [apps / "warp-find", *to, "-w", 'name ~ "[.]c$"']),
        ("sum of a column", [sys.executable, "-c", aggregate],
         [apps / "warp-sum", *to, "-l", LAYOUT, "price", "records"]),
        ("stream of 5 MiB", ["cat", "stream"], None),
    )


def asked(command, cwd, forget, rounds):
    done = []
    for _ in range(rounds):
        forget()
        done.append(question(command, cwd))
    return done


def measure(store, mounts, given, forget):
    found, counts = {}, {}
    for name, local, remote in (*rows(store.apps), *andrew(store.path / "sources")):
        if given.only not in name:
            continue
        ways = {way: (local, where) for way, where in mounts.items()}
        if remote:
            ways["at the server"] = (remote, store.path)
        for way, (command, cwd) in ways.items():
            done = asked(command, cwd, forget.get(way, lambda: None), given.rounds)
            lines = {len(one[2].splitlines()) for one in done}
            if lines != counts.setdefault(name, lines):
                sys.exit(f"{name}, {way}: {lines} lines, not {counts[name]}")
            found[name, way] = (statistics.median(one[0] for one in done),
                                statistics.median(one[1] for one in done))
    return found


def table(found, base):
    print(f"{'':20}  {'way':14}  {'seconds':>9}  {'packets':>9}  {f'of {base}: time':>19}  "
          f"{'packets':>9}")
    for (name, way), (seconds, count) in found.items():
        least = found[name, base]
        print(f"{name:20}  {way:14}  {seconds:9.3f}  {count:9.0f}  {seconds / least[0]:19.3f}  "
              f"{count / least[1]:9.5f}")


def results_write(found, base, folder):
    """As bench/plots.py wants them: the way that others are compared with is the first."""
    order = sorted(found, key=lambda which: which[1] != base)
    rows = [{"name": name, "way": way, "seconds": found[name, way][0],
             "packets": found[name, way][1]} for name, way in order]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    path.write_text(json.dumps({"ways": rows}, indent=1) + "\n", encoding="utf-8")
    return drawing.draw(path, folder)


def interface_open(wire):
    """@wire: packets as on Ethernet, for their number is to mean something."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    if wire:
        subprocess.run(["ip", "link", "set", "lo", "mtu", "1500"], check=True)
        subprocess.run(["ethtool", "-K", "lo", "tso", "off", "gso", "off", "gro", "off"],
                       check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--mib", type=int, default=100, help="of all files")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nfs", action="store_true",
                        help="and by NFS, with packets as on Ethernet")
    parser.add_argument("--only", default="", metavar="WORD", help="of what is asked")
    parser.add_argument("--skip", action="append", default=[], choices=("one-sided",),
                        help="a way that takes long where everything is emulated")
    parser.add_argument("--out", type=Path, metavar="FOLDER")
    parser.add_argument("build", nargs="?", type=Path, default=HERE.parent.parent / "build")
    given = parser.parse_args()
    if given.skip and not given.nfs:
        parser.error("ways are compared with one-sided reads, or with NFS")
    if not (given.build / "apps/arfs/warp-arfs").exists():
        sys.exit("warp-arfs is not there: it is made where clang and libfuse3 are")
    enter()
    interface_open(given.nfs)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store, nfs = Store(given.build.resolve(), folder, given.mib), None
        stack.callback(store.end)
        mounts = {"active": store.mount("active"), "kept": store.mount("kept", *KEPT)}
        forget = {"kept": store.forget}
        sources(store.path / "sources")
        fill(mounts["active"], given.files, given.mib)
        if "one-sided" not in given.skip:
            mounts = {"one-sided": store.mount("one-sided", "-1"), **mounts}
        if given.nfs:
            nfs = Nfs(folder)
            stack.callback(nfs.end)
            fill(nfs.folder, given.files, given.mib)
            mounts["NFS"] = nfs.where
            forget["NFS"] = nfs.forget
        found = measure(store, mounts, given, forget)
    base = "NFS" if given.nfs else "one-sided"
    table(found, base)
    sys.exit(results_write(found, base, given.out) if given.out else 0)


if __name__ == "__main__":
    main()
