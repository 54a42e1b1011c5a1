#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the cases of a program over TCP and over DDP and compares what they say, line by line.

    same.py WARPSOCK PROGRAM [CASE]

A case that differs on purpose says itself what DDP says; that TCP says otherwise is checked too,
for a difference that is none any more has no place in docs/limits.md.
"""
import difflib
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

LIMIT = 60
TCP_LIMIT = 15
TCP_TRIES = 4
HANGS = "it hangs"


def said(command, limit=LIMIT):
    """The lines of a program's output, and how it ended when it did not end well."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=limit, text=True, errors="replace",
                              env=dict(os.environ, WARPSOCK_LOG="err"))
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace").splitlines() + [HANGS]
    ending = [f"it ended with {done.returncode}"] if done.returncode else []
    return done.stdout.splitlines() + ending


def tcp_said(command):
    """The same of the kernel's own sockets. It forgets to wake one of two that splice to one pipe
    when signals come: Linux 6.18 did so in 2 of 12 runs, without Warpsock."""
    for _ in range(TCP_TRIES):
        lines = said(command, TCP_LIMIT)
        if HANGS not in lines:
            break
    return lines


def compare(warpsock, program, name):
    expected = said([program, "--ddp", name])
    tcp = tcp_said([program, name])
    ddp = said([warpsock, "run", "--all", "--mode", "on", "--", program, name])
    if HANGS in tcp:
        return [f"TCP: {HANGS}"]
    if expected and tcp == expected:
        return ["TCP says the same as DDP is expected to"]
    first, label = (expected, "expected") if expected else (tcp, "tcp")
    return list(difflib.unified_diff(first, ddp, label, "ddp", lineterm="", n=1))


def main():
    warpsock, program, *only = sys.argv[1:]
    writer = tap.Writer()
    for name in said([program, "--list"]):
        if not only or name in only:
            writer.case(name, compare(warpsock, program, name))
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
