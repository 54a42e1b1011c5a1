#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server that lets clients read alone (serve -r): they read, and the store stays as it is.

    readonly.py WARP-ARFS-SERVER WARP-ARFS
"""
import errno
import hashlib
import os
import sys

from world import World, enter, tap

CONTENT = bytes(i * 7 % 251 for i in range(100000))
MOUNTS = {"active": (), "one-sided": ("-1",), "kept": ("-c", "60000")}


def fill(top):
    (top / "folder").mkdir()
    (top / "folder" / "file").write_bytes(CONTENT)
    (top / "empty").mkdir()
    (top / "link").symlink_to("folder/file")


def reads(writer, name, top):
    problems = [] if (top / "link").read_bytes() == CONTENT else ["another content"]
    if sorted(os.listdir(top)) != ["empty", "folder", "link"]:
        problems.append(f"listed: {os.listdir(top)}")
    if (top / "folder" / "file").stat().st_size != len(CONTENT) or (top / "none").exists():
        problems.append("other attributes")
    if os.statvfs(top).f_blocks < 1000:
        problems.append("no space is told")
    fd = os.open(top / "folder" / "file", os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        problems.append(f"fsync: {error.strerror}")
    os.close(fd)
    writer.case(f"{name}: what is there can be read", problems)


def changes(top):
    """What a client could change, by name."""
    file = top / "folder" / "file"

    def write(path, how):
        fd = os.open(path, how, 0o644)
        try:
            os.write(fd, b"changed")
        finally:
            os.close(fd)
    return {
        "a new file": lambda: write(top / "new", os.O_CREAT | os.O_WRONLY),
        "a write": lambda: write(file, os.O_WRONLY),
        "an append": lambda: write(file, os.O_WRONLY | os.O_APPEND),
        "an open without content": lambda: write(file, os.O_WRONLY | os.O_TRUNC),
        "truncate": lambda: os.truncate(file, 5),
        "a mode": lambda: os.chmod(file, 0o600),
        "a time": lambda: os.utime(file, (1, 1)),
        "a folder": lambda: os.mkdir(top / "more"),
        "a link": lambda: os.link(file, top / "second"),
        "a symbolic link": lambda: os.symlink("x", top / "other"),
        "rename": lambda: os.rename(file, top / "moved"),
        "unlink": lambda: os.unlink(file),
        "rmdir": lambda: os.rmdir(top / "empty"),
    }


def refuses(writer, name, top):
    problems = []
    for what, change in changes(top).items():
        try:
            change()
            problems.append(f"{what}: done")
        except OSError as error:
            if error.errno != errno.EROFS:
                problems.append(f"{what}: {error.strerror}")
    writer.case(f"{name}: each change is refused, with EROFS", problems)


def digest(world):
    return hashlib.sha256(world.store.read_bytes()).hexdigest()


def main():
    writer = tap.Writer()
    enter(writer)
    with World(*sys.argv[1:3], mib=16) as world:
        fill(world.mount("writer"))
        problems = world.end()
        before = digest(world)
        world.serve("-r")
        for name, options in MOUNTS.items():
            top = world.mount(name, *options)
            reads(writer, name, top)
            refuses(writer, name, top)
            reads(writer, f"{name}, again", top)
        problems += world.end()
        if digest(world) != before:
            problems.append("the store is another one")
        writer.case("all end, and the store is as it was", problems)
    writer.finish()


if __name__ == "__main__":
    main()
