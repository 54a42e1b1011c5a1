#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Mounts that keep what they know (-c): what is shown for a while, and what an open sees at once.

    cached.py WARP-ARFS-SERVER WARP-ARFS
"""
import os
import sys
import time
from pathlib import Path

from world import World, enter, tap, until

LONG_MS, SHORT_MS = "600000", "300"


def packets():
    """By the loopback interface: nobody else is in this network."""
    lines = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines if line.lstrip().startswith("lo:")).split()[2])


def spent(what):
    before = packets()
    what()
    return packets() - before


def look(top):
    """Like ls -lR: every name, with its attributes."""
    return sorted((str(path), path.lstat().st_size, path.lstat().st_mode)
                  for path in top.rglob("*"))


def known(writer, kept, other):
    """A tree is asked for once, by directories; then it is known."""
    for i in range(6):
        (other / f"d{i}").mkdir()
        for k in range(50):
            (other / f"d{i}" / f"a name of a file {k}").write_bytes(b"x" * k)
    seen = []
    first = spent(lambda: seen.append(look(kept)))
    again = spent(lambda: seen.append(look(kept)))
    problems = [] if seen[0] == seen[1] and len(seen[0]) == 306 else ["not what is there"]
    if [line[1:] for line in seen[0]] != [line[1:] for line in look(other)]:
        problems.append("other attributes")
    # A program's answer is some packets; a name by itself would take at least two
    if not 6 <= first < 306 or again > 10:
        problems.append(f"{first} packets, then {again}")
    writer.case("names and attributes come by directories, and are kept", problems)


def read_again(writer, kept, other):
    """Content that was read is not read again, unless it is another one."""
    (other / "big").write_bytes(b"1" * 300000)
    problems = []
    for content in (b"1", b"2", b"3"):
        if content != b"1":
            (other / "big").write_bytes(content * 300000)
        for _ in range(2):
            if (kept / "big").read_bytes() != content * 300000:
                problems.append(f"not the content {content}")
    many = spent((kept / "big").read_bytes)
    if many > 20:
        problems.append(f"{many} packets for what was read")
    writer.case("content that was read is kept until it is another one", problems)


def same_size(writer, kept, other):
    """Of an open that begins when the other one has closed, whatever the kernel keeps."""
    problems = []
    for i in range(40):
        (other, kept)[i % 2].joinpath("turns").write_bytes(b"%02d" % i * 3000)
        for top in (kept, other):
            if (top / "turns").read_bytes() != b"%02d" % i * 3000:
                problems.append(f"{i}: old content")
    writer.case("an open sees what others closed before", problems[:5])


def other_length(writer, kept, other):
    """Of a file of which the kernel knows how long it was."""
    problems = []
    for i, length in enumerate((0, 100000, 10, 5000, 0, 70000)):
        other.joinpath("length").write_bytes(b"%d" % i * length)
        if kept.joinpath("length").read_bytes() != b"%d" % i * length:
            problems.append(f"not {length} bytes")
        kept.joinpath("length").stat()
    writer.case("an open sees how long others made the file", problems)


def replaced(writer, kept, other):
    """The name leads to another file: the old one is known, and is no more."""
    (other / "name").write_bytes(b"old")
    problems = [] if (kept / "name").read_bytes() == b"old" else ["not the first one"]
    (other / "new").write_bytes(b"new content")
    (other / "new").rename(other / "name")
    if (kept / "name").read_bytes() != b"new content":
        problems.append("not the second one")
    writer.case("an open of a name that leads to another file", problems)


def appended(writer, kept, other):
    """The end is where the server has it."""
    (other / "log").write_bytes(b"")
    wanted = b""
    for i in range(20):
        with open((kept, other)[i % 2] / "log", "ab", buffering=0) as file:
            file.write(b"line %d\n" % i)
        wanted += b"line %d\n" % i
    problems = [] if (kept / "log").read_bytes() == (other / "log").read_bytes() == wanted else [
        f"{(kept / 'log').read_bytes()!r}"]
    writer.case("what both append", problems)


def forgotten(writer, short, other):
    """After its time what is known is asked for again; before it, it need not be."""
    (other / "mode").write_bytes(b"")
    os.chmod(other / "mode", 0o600)
    problems = [] if (short / "mode").stat().st_mode & 0o777 == 0o600 else ["another mode"]
    if (short / "none").exists():
        problems.append("a name that is not there")
    os.chmod(other / "mode", 0o640)
    (other / "none").write_bytes(b"")
    begin = time.monotonic()
    if not until(lambda: (short / "mode").stat().st_mode & 0o777 == 0o640 and
                 (short / "none").exists(), 10):
        problems.append("it is never seen")
    if time.monotonic() - begin > 5:
        problems.append("it is seen late")
    writer.case("what is known is forgotten after its time", problems)


def gone_on(writer, kept, other):
    """A directory that changes while it is read: each name that stays is listed once."""
    (other / "many").mkdir()
    for i in range(1500):
        (other / "many" / f"a long name, so that there are many parts {i}").write_bytes(b"")
    names = set()
    with os.scandir(kept / "many") as entries:
        for n, entry in enumerate(entries):
            if entry.name in names:
                writer.case("a directory in parts", [f"twice: {entry.name}"])
                return
            names.add(entry.name)
            if n == 3:
                (other / "many" / "a long name, so that there are many parts 700").unlink()
    missing = {f"a long name, so that there are many parts {i}" for i in range(1500)} - names
    writer.case("a directory in parts", [] if len(missing) <= 1 else [f"missing: {len(missing)}"])


def longer(path):
    """Without a change of anything but what a write changes."""
    fd = os.open(path, os.O_WRONLY)
    os.write(fd, b"longer")
    os.close(fd)


def own(writer, kept, other, what, change, good):
    """What this mount changes while it lists a directory, of which it was told the rest before."""
    names = [f"a name, so that there are several parts {i:03}" for i in range(300)]
    (other / what).mkdir()
    for name in names:
        (other / what / name).write_bytes(b"1")
    with os.scandir(kept / what) as entries:
        listed = {next(entries).name}
        for name in names[1::3]:
            change(kept / what / name)
        listed |= {entry.name for entry in entries}
    problems = [f"{name}: as before" for name in names[1::3] if not good(kept / what / name)]
    problems += [f"{name}: not listed" for name in set(names) - set(names[1::3]) - listed]
    writer.case(f"{what} by the mount while it lists a directory", problems[:5])


def main():
    writer = tap.Writer()
    enter(writer, network=True)
    os.system("ip link set lo up")
    with World(*sys.argv[1:3]) as world:
        other = world.mount("other")
        kept, short = world.mount("kept", "-c", LONG_MS), world.mount("short", "-c", SHORT_MS)
        known(writer, kept, other)
        read_again(writer, kept, other)
        same_size(writer, kept, other)
        other_length(writer, kept, other)
        replaced(writer, kept, other)
        appended(writer, kept, other)
        forgotten(writer, short, other)
        own(writer, kept, other, "writes", longer, lambda path: path.stat().st_size == 6)
        own(writer, kept, other, "removals", os.unlink, lambda path: not path.exists())
        for top in (other, kept):
            gone_on(writer, top, other)
            os.system(f"rm -r '{other}/many'")
        writer.case("all end, and the store is good", world.end())
    writer.finish()


if __name__ == "__main__":
    main()
