#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A writer that ends at once loses nothing: its slow reader gets every octet and then the end.

    closing.py WARPSOCK CLOSING

Both roles, each way to end, and amounts around the ring; the reader takes a megabyte in a second
through a receive buffer of 16 KiB. The writer speaks first also where it listens.
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

WAYS = ("close", "shutdown", "return", "exit", "quick_exit", "_exit", "_Exit")
RATE = 1000000
LIMIT = 150
SLEEPERS = 8  # they sleep most of the time


def amounts(warpsock):
    """Around the ring that the product has if nobody says another."""
    said = subprocess.run([warpsock, "options"], capture_output=True, text=True, check=True).stdout
    number, unit = re.search(r"WARPSOCK_RING +default +(\d+)(\w?)", said).groups()
    ring = int(number) << {"": 0, "k": 10, "K": 10, "M": 20}[unit]
    return 65536, ring, ring + 1, 10 << 20


def problems_of(warpsock, program, writer, way, octets):
    """writer: connect or listen; the reader does the other."""
    reader = "listen" if writer == "connect" else "connect"
    args = {"write": [program, "write", writer, way, str(octets)],
            "read": [program, "read", reader, str(RATE), str(octets)]}
    first, second = ("read", "write") if writer == "connect" else ("write", "read")
    with Stage(warpsock) as stage:
        running = {first: stage.start(first, args[first])}
        port = stage.wait_text(first, limit=60).split()[0]
        running[second] = stage.start(second, args[second] + [port])
        status = {name: stage.end(proc, LIMIT) for name, proc in running.items()}
        problems = [f"{name} ended with {status[name]}: {stage.text(name, 'err')}"
                    for name in args if status[name] != 0]
        said = stage.text("read").splitlines()[-1:]
        if said != [f"{octets} end"]:
            problems.append(f"the reader says: {said}")
        for name in args:
            report = stage.report(name) or {}
            if report.get("connections", {}).get("software") != 1:
                problems.append(f"{name} was not on DDP: {report}")
    return problems


def main():
    warpsock, program = sys.argv[1], os.path.abspath(sys.argv[2])
    cases = [(writer, way, octets) for octets in reversed(amounts(warpsock)) for way in WAYS
             for writer in ("connect", "listen")]
    out = tap.Writer()
    with ThreadPoolExecutor(SLEEPERS) as pool:
        found = pool.map(lambda case: problems_of(warpsock, program, *case), cases)
        for (writer, way, octets), problems in zip(cases, found):
            out.case(f"{octets} octets, then {way}, by who {writer}s", problems)
    out.finish()


if __name__ == "__main__":
    main()
