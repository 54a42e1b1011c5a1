#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ARFS compared with a file system of the host: the same random operations, and odd corners.

    compare.py WARP-ARFS-SERVER WARP-ARFS

Two clients, of which one reads one-sided, take turns with the operations on ARFS.
"""
import errno
import os
import random
import shutil
import stat
import subprocess
import sys
import time

from world import LONG, WAYS, World, enter, tap

OPERATIONS = 1500
NAMES = ["a", "b", "c", "d", "e.txt", "x" * 255, "é ü", "-f"]


def tried(call, *args, **words):
    """What a call gives, or the name of its error."""
    try:
        return call(*args, **words)
    except OSError as error:
        return errno.errorcode.get(error.errno, error.errno)


def facts(path):
    """What is the same of a file wherever it is."""
    s = os.lstat(path)
    size = 0 if stat.S_ISDIR(s.st_mode) else s.st_size
    links = 0 if stat.S_ISDIR(s.st_mode) else s.st_nlink
    return s.st_mode, links, s.st_uid, s.st_gid, size, s.st_rdev


def content(path):
    with open(path, "rb") as file:
        return file.read()


def tree(top):
    """All of a file system: names, facts, and content."""
    found = {}
    for folder, names, files in os.walk(top):
        for name in names + files:
            path = os.path.join(folder, name)
            seen = facts(path)
            kind = stat.S_IFMT(seen[0])
            found[os.path.relpath(path, top)] = (
                seen, content(path) if kind == stat.S_IFREG else
                os.readlink(path) if kind == stat.S_IFLNK else None)
    return found


def write_at(path, flags, offset, data):
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        return os.pwrite(fd, data, offset)
    finally:
        os.close(fd)


def append(path, data):
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        return os.write(fd, data)
    finally:
        os.close(fd)


def read_at(path, offset, size):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.pread(fd, size, offset)
    finally:
        os.close(fd)


def unlinked(path):
    """A file is still there for who has it open."""
    fd = os.open(path, os.O_RDWR)
    try:
        os.unlink(path)
        os.pwrite(fd, b"still here", 3)
        return os.pread(fd, 100, 0), os.fstat(fd).st_nlink
    finally:
        os.close(fd)


def operation(dice):
    """A call as (function, arguments); paths are lists of names."""
    def path():
        return [dice.choice(NAMES) for _ in range(dice.choice((1, 1, 2, 2, 3)))]

    size = dice.choice((0, 1, 100, 4095, 4096, 4097, 20000, 70000))
    offset = dice.choice((0, 0, 1, 4090, 4096, 12288, 50000, 60000, 1 << 20))
    data = dice.randbytes(size)
    return dice.choice([
        (os.mkdir, path(), dice.choice((0o755, 0o700, 0o1777))), (os.mkdir, path()),
        (write_at, path(), os.O_CREAT, offset, data), (write_at, path(), 0, offset, data),
        (write_at, path(), os.O_CREAT | os.O_EXCL, 0, data), (append, path(), data),
        (write_at, path(), os.O_CREAT | os.O_TRUNC, offset, data), (unlinked, path()),
        (read_at, path(), offset, size), (os.truncate, path(), offset), (os.unlink, path()),
        (os.truncate, path(), size), (os.rmdir, path()), (os.rename, path(), path()),
        (os.rename, path(), path()), (os.link, path(), path()), (os.readlink, path()),
        (os.symlink, "/".join(path()), path()), (os.chmod, path(), dice.randrange(0o1000)),
        (os.chown, path(), dice.choice((0, 5)), dice.choice((0, 7, -1))),
        (os.utime, path(), (dice.randrange(1 << 31), 12345)), (facts, path()),
        (lambda p: sorted(os.listdir(p)), path()), (os.mkfifo, path())])


def done(top, call):
    function, *args = call
    words = [os.path.join(top, *arg) if isinstance(arg, list) else arg for arg in args]
    if function is os.symlink:
        words[0] = args[0]
    return tried(function, *words)


def differences(left, right):
    return [f"{key}: {str(left.get(key))[:200]} on the host, {str(right.get(key))[:200]} here"
            for key in sorted(left.keys() | right.keys()) if left.get(key) != right.get(key)][:8]


def random_operations(writer, host, mounts, seed):
    dice, problems = random.Random(seed), []
    for i in range(OPERATIONS):
        call = operation(dice)
        if call[0] is os.mkfifo:
            continue
        wanted, got = done(host, call), done(mounts[i % len(mounts)], call)
        if wanted != got:
            problems.append(f"{i}: {call[0].__name__} {str(call[1:])[:100]}: {str(wanted)[:80]} "
                            f"on the host, {str(got)[:80]} here")
        if len(problems) > 5:
            break
        if i % 500 == 499:
            problems += differences(tree(host), tree(mounts[i // 500 % len(mounts)]))
    writer.case(f"{OPERATIONS} random operations, seed {seed}", problems)


# --- corners: each is done on the host and here, and gives the same ---


def names(top):
    os.mkdir(f"{top}/long")
    return [tried(os.mkdir, f"{top}/long/" + "n" * n) for n in (255, 256, 300)] + [
        tried(os.mkdir, f"{top}/long/."), tried(os.rmdir, f"{top}/long/."),
        tried(os.rmdir, f"{top}/long/.."), tried(os.rmdir, f"{top}/long"),
        tried(os.mkdir, f"{top}/none/x"), tried(os.unlink, f"{top}/long"),
        sorted(os.listdir(f"{top}/long"))]


def renames(top):
    for name in "abc":
        os.mkdir(f"{top}/{name}")
    os.mkdir(f"{top}/a/in")
    for name in "fg":
        write_at(f"{top}/{name}", os.O_CREAT, 0, name.encode())
    os.link(f"{top}/f", f"{top}/f2")
    pairs = ["a a/in/x", "a a", "a a/in", "a/in a", "f f2", "f f", "f b", "b f", "b a", "b c",
             "a/in c", "g f", "c a/new", "nothing x", "f a/new/f", "a/new a/new/f/x", "a .."]
    return [tried(os.rename, *(f"{top}/{word}" for word in pair.split())) for pair in pairs] + [
        os.path.exists(f"{top}/f2"), os.stat(f"{top}/f2").st_nlink, os.stat(f"{top}/a").st_nlink,
        sorted(os.listdir(f"{top}/a"))]


def links(top):
    write_at(f"{top}/one", os.O_CREAT, 0, b"x")
    os.mkdir(f"{top}/dir")
    os.symlink("nowhere", f"{top}/dangling")
    target = "t" * 4095
    return [tried(os.link, f"{top}/dir", f"{top}/dir2"), tried(os.link, f"{top}/one", f"{top}/two"),
            tried(os.link, f"{top}/one", f"{top}/two"), os.stat(f"{top}/two").st_nlink,
            tried(os.link, f"{top}/dangling", f"{top}/d2", follow_symlinks=False),
            os.readlink(f"{top}/d2"), tried(os.stat, f"{top}/d2"),
            tried(os.symlink, target, f"{top}/far"), os.readlink(f"{top}/far") == target,
            os.lstat(f"{top}/far").st_size, tried(os.symlink, "t" * 4096, f"{top}/too-far"),
            tried(os.symlink, "", f"{top}/empty"),
            tried(os.readlink, f"{top}/one"), tried(os.open, f"{top}/dangling", os.O_RDONLY),
            tried(write_at, f"{top}/dangling", os.O_CREAT, 0, b"y"), content(f"{top}/nowhere")]


def sizes(top):
    path = f"{top}/file"
    write_at(path, os.O_CREAT, 0, b"a" * 10000)
    os.truncate(path, 5000)
    os.truncate(path, 9000)
    first = content(path)
    write_at(path, 0, 20000, b"z")
    os.truncate(path, 0)
    write_at(path, 0, 100, b"q")
    os.truncate(path, 60 << 20)
    write_at(path, 0, (60 << 20) - 3, b"end")
    return [first, content(path)[:200], os.stat(path).st_size, read_at(path, (60 << 20) - 8, 50),
            read_at(path, 1 << 30, 5), read_at(path, (60 << 20) - 1, 5),
            tried(os.truncate, path, -1), tried(os.truncate, top, 5),
            tried(read_at, top, 0, 5), tried(os.open, top, os.O_WRONLY)]


def holes(top):
    path = f"{top}/sparse"
    write_at(path, os.O_CREAT, 50 << 20, b"x")
    write_at(path, 0, 100000, b"y" * 5000)
    before = os.stat(path).st_blocks < 200
    os.truncate(path, 100001)
    os.truncate(path, 200000)
    return [before, content(path)]


def modes(top):
    os.mkdir(f"{top}/group", 0o755)
    os.chown(f"{top}/group", 0, 7)
    os.chmod(f"{top}/group", 0o2775)
    os.mkdir(f"{top}/group/dir")
    write_at(f"{top}/group/file", os.O_CREAT, 0, b"x")
    os.chmod(f"{top}/group/file", 0o4711)
    write_at(f"{top}/group/file", 0, 0, b"xyz")
    os.utime(f"{top}/group/file", ns=(1234567890123456789, 987654321987654321))
    seen = os.stat(f"{top}/group/file")
    return [facts(f"{top}/group/dir"), facts(f"{top}/group/file"), seen.st_mtime_ns,
            seen.st_atime_ns]


def times(top):
    """Which times a change touches."""
    def seen(path):
        s = os.lstat(path)
        return s.st_mtime_ns, s.st_ctime_ns

    def touched(path, call, *args):
        before = seen(path)
        time.sleep(0.02)
        tried(call, *args)
        after = seen(path)
        return tuple(a != b for a, b in zip(before, after))

    file, folder = f"{top}/file", f"{top}/dir"
    os.mkdir(folder)
    write_at(file, os.O_CREAT, 0, b"x")
    return [touched(file, write_at, file, 0, 0, b"y"), touched(file, os.chmod, file, 0o600),
            touched(file, os.link, file, f"{folder}/l"), touched(folder, os.unlink, f"{folder}/l"),
            touched(file, os.truncate, file, 0), touched(file, os.rename, file, f"{top}/file2"),
            touched(folder, os.mkdir, f"{folder}/x"), touched(top, os.rmdir, f"{folder}/x"),
            touched(folder, os.rmdir, f"{folder}/none")]


def open_files(top):
    path = f"{top}/file"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, b"one")
    other = os.open(path, os.O_RDWR | os.O_APPEND)
    results = [tried(os.open, path, os.O_RDWR | os.O_CREAT | os.O_EXCL)]
    write_at(f"{top}/new", os.O_CREAT, 0, b"new")
    os.rename(f"{top}/new", path)
    os.write(other, b"two")
    results += [os.pread(fd, 10, 0), content(path), os.fstat(fd).st_nlink]
    os.ftruncate(fd, 2)
    results += [os.pread(other, 10, 0), os.fstat(other).st_size]
    os.unlink(path)
    os.close(other)
    os.write(fd, b"three")
    results += [os.pread(fd, 20, 0), sorted(os.listdir(top))]
    os.close(fd)
    return results


def many(top):
    os.mkdir(f"{top}/many")
    for i in range(700):
        write_at(f"{top}/many/file {i}" + "x" * (i % 50), os.O_CREAT, 0, b"")
    listed = os.scandir(f"{top}/many")
    seen = []
    for i, entry in enumerate(listed):  # removed while they are listed
        seen.append(entry.name)
        os.unlink(entry.path)
        if i == 300:
            write_at(f"{top}/many/late", os.O_CREAT, 0, b"")
    left = [name for name in os.listdir(f"{top}/many") if name != "late"]
    return [sorted(set(seen) - {"late"}), len(seen) - len(set(seen)), left]


def special(top):
    os.mkfifo(f"{top}/fifo", 0o640)
    results = [facts(f"{top}/fifo")]
    if os.geteuid() == 0:
        results.append(tried(os.mknod, f"{top}/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3)))
        results.append(tried(facts, f"{top}/null"))
    return results


CORNERS = [names, renames, links, sizes, holes, modes, times, open_files, many, special]


def corners(writer, host, mounts):
    for corner in CORNERS:
        os.mkdir(f"{host}/{corner.__name__}")
        wanted = tried(corner, f"{host}/{corner.__name__}")
        for name, mount in mounts.items():
            top = f"{mount}/{corner.__name__} {name}"
            os.mkdir(top)
            got = tried(corner, top)
            problems = [] if wanted == got else [
                f"{i}: {str(a)[:150]} on the host, {str(b)[:150]} here"
                for i, (a, b) in enumerate(zip(wanted, got)) if a != b] or [str(got)[:200]]
            writer.case(f"{corner.__name__}, {name}", problems)


def host_mount(world, host):
    """An ext4 of the test's own; a tmpfs where none can be mounted."""
    image = world.path / "ext4"
    for kind, *commands in (
            ("ext4", ["truncate", "-s", "256M", image], ["mkfs.ext4", "-q", "-b", "4096", image],
             ["mount", "-o", "loop", image, host]),
            ("tmpfs", ["mount", "-t", "tmpfs", "arfs-test", host])):
        if all(shutil.which(command[0]) and
               not subprocess.run(command, capture_output=True, check=False).returncode
               for command in commands):
            return kind
    raise RuntimeError("nothing to compare with")


def main():
    writer = tap.Writer()
    enter(writer)
    os.umask(0o022)
    with World(*sys.argv[1:], mib=256) as world:
        host = world.path / "host"
        host.mkdir()
        print(f"# compared with {host_mount(world, host)}")
        mounts = {name: world.mount(name, *options) for name, options in WAYS.items()}
        (host / "random").mkdir()
        (mounts["active"] / "random").mkdir()
        random_operations(writer, host / "random", [m / "random" for m in mounts.values()], 1)
        (host / "corners").mkdir()
        (mounts["active"] / "corners").mkdir()
        corners(writer, host / "corners", {n: m / "corners" for n, m in mounts.items()})
        writer.case("it ends, and its store is whole", world.end())
        os.system(f"umount {host}")
    writer.finish()


if __name__ == "__main__":
    main()
