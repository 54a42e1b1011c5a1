#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Several clients of ARFS at once: what one did is there for the others, and nothing twice.

    together.py WARP-ARFS-SERVER WARP-ARFS
"""
import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from world import LONG, World, enter, tap, until

ROUNDS = 1000 if LONG else 150


def each_other(writer, one, two):
    """A call at one client, then one at the other: no stale name, size, mode or byte."""
    problems = []
    for i in range(ROUNDS):
        here, there = (one, two) if i % 2 else (two, one)
        a, b = here / f"f{i % 3}", there / f"f{i % 3}"
        a.write_bytes(b"%d " % i * (i % 50 + 1))
        if b.read_bytes() != a.read_bytes() or b.stat().st_size != a.stat().st_size:
            problems.append(f"{i}: other content")
        a.chmod(0o600 + i % 64)
        if b.stat().st_mode != a.stat().st_mode:
            problems.append(f"{i}: another mode")
        a.rename(here / "moved")
        if b.exists() or not (there / "moved").exists():
            problems.append(f"{i}: a name that was")
        (there / "moved").unlink()
        if (here / "moved").exists() or a.exists():
            problems.append(f"{i}: a file that was")
    writer.case("what one client did the other one sees", problems[:9])


def open_at_both(writer, one, two):
    """A file that both have open: writes, sizes and appends of one are the other's."""
    (one / "shared").write_bytes(b"")
    a, b = (os.open(top / "shared", os.O_RDWR | os.O_APPEND) for top in (one, two))
    problems = []
    for i in range(50):
        os.write((a, b)[i % 2], b"%3d." % i)
    seen = os.pread(a, 1000, 0)
    if seen != b"".join(b"%3d." % i for i in range(50)) or os.pread(b, 1000, 0) != seen:
        problems.append(f"appended: {seen[:100]}")
    os.ftruncate(b, 7)
    if os.fstat(a).st_size != 7 or os.pread(a, 100, 0) != seen[:7]:
        problems.append("the end is not the other's")
    for fd in (a, b):
        os.close(fd)
    writer.case("a file that both have open", problems)


def appended(tops):
    """Lines of two clients at once: all are there, each whole."""
    (tops[0] / "log").write_bytes(b"")

    def append(k):
        fd = os.open(tops[k] / "log", os.O_WRONLY | os.O_APPEND)
        for i in range(ROUNDS):
            os.write(fd, b"%d %d %s\n" % (k, i, b"x" * (i * 7 % 3000)))
        os.close(fd)

    with ThreadPoolExecutor(len(tops)) as pool:
        list(pool.map(append, range(len(tops))))
    lines = (tops[0] / "log").read_bytes().splitlines()
    wanted = {b"%d %d %s" % (k, i, b"x" * (i * 7 % 3000))
              for k in range(len(tops)) for i in range(ROUNDS)}
    return [] if set(lines) == wanted and len(lines) == len(wanted) else [
        f"{len(lines)} lines, {len(set(lines) & wanted)} of {len(wanted)} are right"]


def exclusive(tops):
    """Of all who make one name only one succeeds."""
    def make(top):
        made = 0
        for i in range(ROUNDS):
            try:
                os.mkdir(top / f"only {i}")
                made += 1
            except FileExistsError:
                pass
        return made

    with ThreadPoolExecutor(len(tops)) as pool:
        made = list(pool.map(make, tops))
    return [] if sum(made) == ROUNDS else [f"{made} of {ROUNDS} directories"]


def halves(tops):
    """A writer replaces 8 KiB at once, again and again: a reader never sees parts of two."""
    path = [top / "whole" for top in tops]
    path[0].write_bytes(b"a" * 8192)

    def write(_):
        fd = os.open(path[0], os.O_WRONLY)
        for i in range(ROUNDS * 4):
            os.pwrite(fd, b"%c" % (97 + i % 26) * 8192, 0)
        os.close(fd)
        return []

    def read(top):
        fd, bad = os.open(top, os.O_RDONLY), set()
        for _ in range(ROUNDS * 2):
            data = os.pread(fd, 8192, 0)
            if len(set(data)) != 1 or len(data) != 8192:
                bad.add(f"parts of {len(set(data))} writes, {len(data)} bytes")
        os.close(fd)
        return sorted(bad)

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(write, 0)] + [pool.submit(read, top) for top in path]
        return [problem for job in jobs for problem in job.result()]


def gone(writer, one, two):
    """A file that is removed elsewhere is ESTALE here; one that is removed here is still there."""
    (one / "left").write_bytes(b"content")
    here = os.open(one / "left", os.O_RDWR)
    there = os.open(two / "left", os.O_RDWR)
    os.unlink(one / "left")
    problems = [] if os.pread(here, 10, 0) == b"content" else ["it is gone at once"]
    os.close(here)

    def stale():
        try:
            return os.pread(there, 10, 0) != b"content"
        except OSError as error:
            return error.errno == errno.ESTALE

    # The kernel tells of a close when it has time
    problems += [] if until(stale, 10) else ["no ESTALE"]
    os.close(there)
    writer.case("a file that is removed while both have it open", problems)


def shell(command, **words):
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False,
                          timeout=60, **words)
    return [] if not done.returncode else [f"{command}: {done.returncode}",
                                           *done.stderr.splitlines()[-5:]]


def programs(writer, one, two):
    source = Path(__file__).resolve().parents[2] / "unit"
    here = {"cwd": one, "env": {**os.environ, "HOME": str(one), "GIT_CONFIG_NOSYSTEM": "1"}}
    me = "-c user.name=test -c user.email=test@localhost"
    writer.case("cp -a and diff", shell(f"cp -a '{source}' {one}/unit", **here)
                + shell(f"diff -r '{source}' {two}/unit"))
    writer.case("tar", shell("tar cf unit.tar unit && mkdir t && tar xf unit.tar -C t", **here)
                + shell(f"diff -r {one}/unit {two}/t/unit && tar df {two}/unit.tar -C {one}"))
    writer.case("git", shell(
        f"git init -q repo && cd repo && cp -a ../unit . && git add . && git {me} commit -qm one &&"
        f" git mv unit other && git {me} commit -qm two && git checkout -q HEAD~1 && git gc -q &&"
        " git fsck --strict", **here)
        + shell(f"git -c safe.directory='*' clone -q {two}/repo {two}/clone && diff -r {one}/unit "
                f"{two}/clone/unit", env=here["env"]))
    writer.case("rm -r", shell(f"rm -rf {two}/repo {two}/clone {two}/t && test ! -e {one}/repo"))


def main():
    writer = tap.Writer()
    enter(writer)
    with World(*sys.argv[1:], mib=128) as world:
        one, two = world.mount("active"), world.mount("one-sided", "-1")
        each_other(writer, one, two)
        open_at_both(writer, one, two)
        gone(writer, one, two)
        tops = [one, two, world.mount("third")]
        writer.case("appends of three clients", appended(tops))
        writer.case("a name for one of three clients", exclusive(tops))
        writer.case("no read has parts of two writes", halves(tops))
        programs(writer, one, two)
        writer.case("it ends, and its store is whole", world.end())
    writer.finish()


if __name__ == "__main__":
    main()
