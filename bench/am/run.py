#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Active Messages against bare UDP: each pair of programs in turns, several rounds in one run.

    run.py [--realtime] BUILD [ROUNDS]

With --realtime (root) the programs run before all others, for machines that others use too.
The waits of AM_WaitSema are compared with such as never spin: with AMUDP_SPIN=0.
Prints for each measure the medians, the ratio, its least and greatest, and its goal. A ratio is the
median of the ratios of the rounds, so that a machine whose speed changes in between does not
matter. The drivers follow: xdp.sh, or why it cannot be run.
"""
import os
import statistics
import subprocess
import sys
from pathlib import Path


PREFIX = []
MEMORY = 8 << 20  # what amside sends stands in so many octets
CACHED = 512 << 10  # and when a core's own cache is to keep it
TRIES = 3  # of a program that measures nothing
CANNOT = 77  # xdp.sh has said why


def run(*command, env=None):
    for _ in range(TRIES):
        done = subprocess.run(PREFIX + [str(c) for c in command], stdout=subprocess.PIPE,
                              timeout=60, check=True, env={**os.environ, **(env or {})})
        figure = float(done.stdout.split()[-1])
        if figure > 0:
            return figure
    sys.exit(f"run.py: {' '.join(map(str, command))}: nothing came, {TRIES} times")


def measures(build):
    bare, am = build + "/bench/am/bare", [build + "/bench/am/amside", 2, "L"]
    fault = {f"{rate}": {"AMUDP_FAULT_RATE": str(rate)} for rate in (0.01, 0.1)}
    ping = ["pingpong", 64, 10000, "spin"]
    lossy = ["pingpong", 64, 5000, "spin"]
    cpus = len(os.sched_getaffinity(0))

    def pairs(each, env=None):
        """Round trips of all ranks at once, each asleep until its message; even many of them."""
        ranks = max(2, each * cpus // 2 * 2)
        return run(am[0], ranks, "L", "pairs", 64, 8000 // ranks, env=env)
    return [
        ("64 B round trip, spinning, us", "<=", 1.15,
         lambda: run(*am, *ping), lambda: run(bare, *ping)),
        ("64 B round trip, blocking, us", "<=", None,
         lambda: run(*am, "pingpong", 64, 2000, "block"),
         lambda: run(bare, "pingpong", 64, 2000, "block")),
        *[(f"AM_WaitSema, {each} ranks a processor, us", "<=", 1.15,
           lambda each=each: pairs(each),
           lambda each=each: pairs(each, {"AMUDP_SPIN": "0"})) for each in (1, 2, 4)],
        ("64 B messages a second", ">=", 0.8,
         lambda: run(*am, "rate", 64, 0.4), lambda: run(bare, "rate", 64, 0.4)),
        ("bulk octets a second", ">=", 0.9,
         lambda: run(*am, "bulk", 0.4), lambda: run(bare, "bulk", 0.4)),
        ("bulk octets a second, both from a cache", ">=", None,
         lambda: run(*am, "bulk", 0.4, CACHED), lambda: run(bare, "bulk", 0.4, CACHED)),
        ("bulk octets a second, both from memory", ">=", 0.9,
         lambda: run(*am, "bulk", 0.4), lambda: run(bare, "bulk", 0.4, MEMORY)),
        ("bulk octets a second, both checksummed", ">=", None,
         lambda: run(*am, "bulk", 0.4, env={"AMUDP_CHECKSUM": "yes"}),
         lambda: run(bare, "bulk", 0.4, MEMORY, "sum")),
        ("round trip at 1 % loss against none, us", "<=", 1.2,
         lambda: run(*am, *lossy, env=fault["0.01"]), lambda: run(*am, *lossy)),
        ("round trip at 10 % loss against none, us", "<=", 3.0,
         lambda: run(*am, *lossy, env=fault["0.1"]), lambda: run(*am, *lossy)),
    ]


def compare(build, rounds):
    for name, direction, goal, ours, theirs in measures(build):
        pairs = [(ours(), theirs()) for _ in range(rounds)]
        ratios = [a / b for a, b in pairs]
        ratio = statistics.median(ratios)
        met = ""
        if goal:
            good = ratio <= goal if direction == "<=" else ratio >= goal
            met = f"{direction} {goal}: {'met' if good else 'MISSED'}"
        a, b = (statistics.median(side) for side in zip(*pairs))
        print(f"{name:42} {a:14.2f} {b:14.2f}  ratio {ratio:5.2f} "
              f"({min(ratios):.2f} to {max(ratios):.2f})  {met}", flush=True)


def main():
    args = [arg for arg in sys.argv[1:] if arg != "--realtime"]
    options = [arg for arg in sys.argv[1:] if arg == "--realtime"]
    if options:
        PREFIX.extend(["chrt", "-f", "10"])
    build, rounds = os.path.abspath(args[0]), int(args[1]) if len(args) > 1 else 5
    compare(build, rounds)
    drivers = [Path(__file__).parent / "xdp.sh", *options, build, str(rounds)]
    code = subprocess.run(drivers).returncode
    sys.exit(0 if code == CANNOT else code)


if __name__ == "__main__":
    main()
