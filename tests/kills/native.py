#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Set-up by the native API, with each allocation that there is failing once.

    native.py NATIVE LIBRARY

native.c is the script; LIBRARY says which kinds of allocation can fail (BASE_FAILS of
base/point.h). A call that fails says ENOMEM, works the next time, and leaves nothing. A connection
for which its listener has no memory ends, which its other end is told.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

LIMIT = 60
MOST = 200
LEAST = {"heap": 100}
# What is free is not kept for later, nor in several places, so that what is in use can be counted
ENV = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", "LC_ALL": "C"}
RIGHT = re.compile(r"\w+: ENOMEM|connect_both: (ECONNRESET|EPIPE)")
THREAD = re.compile(r"warp_device_open: (EAGAIN|ENOMEM)")


def attempt(program, kind, nth):
    """Did it fail, and what is wrong."""
    env = {**os.environ, **ENV, "WARPSOCK_TEST_FAIL": f"-{kind[1:]}:{nth}"}
    done = subprocess.run([program, kind], env=env, capture_output=True, text=True, timeout=LIMIT,
                          check=False)
    said = done.stdout.splitlines()
    failed = f"failed at {kind} " in done.stderr
    right = THREAD if kind == "thread" else RIGHT
    problems = [line for line in said if not right.fullmatch(line)]
    if done.returncode or len(said) != failed:
        problems += [f"ended with {done.returncode}, said {said}", *done.stderr.splitlines()]
    return failed, [f"{nth}: {problem}" for problem in problems]


def sweep(program, kind):
    found, count = [], 0
    while count < MOST:
        failed, problems = attempt(program, kind, count + 1)
        found += problems
        if not failed:
            break
        count += 1
    return found, count


def main():
    program, library = os.path.abspath(sys.argv[1]), Path(sys.argv[2])
    marks = {mark.decode() for mark in re.findall(rb"warpsock-fails:(\w+)\0", library.read_bytes())}
    writer = tap.Writer()
    for kind in sorted(marks | LEAST.keys()):
        found, count = sweep(program, kind)
        if count < LEAST.get(kind, 0):
            found.append("some are never asked for")
        writer.case(f"{kind} fails, each of {count} times", found)
    writer.finish()


if __name__ == "__main__":
    main()
