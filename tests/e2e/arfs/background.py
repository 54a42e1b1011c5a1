#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-arfs in the background: when it ends the mount is there, or it says why not.

    background.py WARP-ARFS-SERVER WARP-ARFS
"""
import contextlib
import os
import subprocess
import sys
from pathlib import Path

from world import HOST, World, enter, run, tap, until

MOUNT = os.path.abspath(sys.argv[2])


def asked(world, *words, port=None):
    """Where the test's folder is the current one, and with a pipe as standard error."""
    return subprocess.run([MOUNT, "-a", HOST, "-p", port or world.port, "-t", "200", *words],
                          cwd=world.path, capture_output=True, text=True, check=False, timeout=30)


def mounted(writer, world):
    top = world.path / "here"
    top.mkdir()
    done = asked(world, "here")
    problems = [f"{done.returncode}: {done.stderr}"] if done.returncode or done.stderr else []
    if not os.path.ismount(top):
        problems.append("it is not there")
    else:
        (top / "file").write_text("text")
        if subprocess.run(["umount", top], check=False).returncode:
            problems.append("it cannot be unmounted")
    writer.case("a folder by its name in the current one", problems)

    def gone():
        wanted = (MOUNT.encode(), world.port.encode(), b"here")
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if set(wanted) <= set(path.read_bytes().split(b"\0")):
                    return False
        return True
    writer.case("behind umount the process ends", [] if until(gone, 10) else ["it lives"])


def refused(writer, world):
    for what, words, port, text in (
            ("no server", ("here",), "1", "refused"),
            ("no folder", ("there",), None, "there"),
            ("a file for a folder", ("store",), None, "store")):
        done = asked(world, *words, port=port)
        good = done.returncode == 3 and text in done.stderr
        writer.case(what, [] if good else [f"{done.returncode}: {done.stderr}"])


def no_room(writer, world):
    """A disk that has no room for all of a store: it is told at once, and no client ends it."""
    disk = world.path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "disk", disk],
                      check=False).returncode:
        writer.skip("a disk without room", "no tmpfs can be mounted")
        return
    problems = run(sys.argv[1], "make", str(disk / "store"), "16").problems(3, err="No space")
    if os.listdir(disk):
        problems.append(f"left: {os.listdir(disk)}")
    small = world.path / "small"
    problems += run(sys.argv[1], "make", str(small), "16").problems()
    subprocess.run(["cp", "--sparse=always", small, disk / "store"], check=False)
    problems += run(sys.argv[1], "serve", "-a", HOST, "-p", "0", str(disk / "store")).problems(
        3, err="No space")
    subprocess.run(["umount", disk], check=False)
    writer.case("a disk that has no room for the store", problems)

    again = run(sys.argv[1], "serve", "-a", HOST, "-p", "0", str(world.store))
    writer.case("a store that another one serves", again.problems(3, err="another process"))


def main():
    writer = tap.Writer()
    enter(writer)
    with World(*sys.argv[1:3], mib=16) as world:
        mounted(writer, world)
        refused(writer, world)
        no_room(writer, world)
        writer.case("all end, and the store is good", world.end())
    writer.finish()


if __name__ == "__main__":
    main()
