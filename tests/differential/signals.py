#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Scenes with signals, over TCP and over DDP, say the same.

    signals.py WARPSOCK PROGRAM SCENES

A scene in which both differ is played again, for Linux itself may say one of two things of it:
over DDP it may say only what it has said over TCP. A failure comes with the command line that
plays the scene. Signals at random moments come again for the same reason: Linux may find a
descriptor not ready, and a signal behind that, before the call sleeps. The seeds are the same
each time; in long runs, or with WARPSOCK_SEED, they are others.
"""
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

LIMIT = 600
LONG = 10  # times as many scenes
AGAIN = 5
FAILURES = 5
RIGHT = "wrong none, lost none"


def said(command):
    """Lines of output. What the log warns of on a slow machine is none of the program's."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=LIMIT, text=True, env=dict(os.environ, WARPSOCK_LOG="err"))
    except subprocess.TimeoutExpired:
        return ["it does not end"]
    return done.stdout.splitlines() + ([f"it ended with {done.returncode}"] if done.returncode
                                       else [])


class Worlds:
    def __init__(self, warpsock, program):
        self.tcp = [program]
        self.ddp = [warpsock, "run", "--all", "--mode", "on", "--", program]

    def both(self, *args):
        with ThreadPoolExecutor(2) as pool:
            return pool.map(said, ([*self.tcp, *args], [*self.ddp, *args]))

    def differs(self, tcp, ddp):
        """One scene in which they did: problems, if it was not chance."""
        seed = tcp.split()[0]
        known, seen = {tcp}, {ddp}
        for _ in range(AGAIN):
            once, other = self.both(seed, "1")
            known.update(once)
            seen.update(other)
        if seen <= known:
            return []
        return [f"again: {' '.join([*self.ddp, seed, '1'])}", *(f"TCP: {line}" for line in known),
                *(f"DDP: {line}" for line in seen - known)]

    def scenes(self, seed, count):
        tcp, ddp = self.both(str(seed), str(count))
        if len(tcp) != count or len(ddp) != count:
            return [f"{len(tcp)} scenes over TCP, {len(ddp)} over DDP", *tcp[-1:], *ddp[-1:]]
        problems = []
        for one, other in zip(tcp, ddp):
            if one != other and len(problems) < FAILURES * 3:
                problems += self.differs(one, other)
        return problems

    def storm(self, seed):
        runs = [[list(lines) for lines in self.both("storm", str(seed))]]
        while len(runs) < AGAIN and any(not line.endswith(RIGHT) for line in sum(runs[-1], [])):
            runs.append([list(lines) for lines in self.both("storm", str(seed))])
        if not runs[0][0] or len({len(lines) for both in runs for lines in both}) > 1:
            return ["there is less than everything", *runs[-1][0], *runs[-1][1]]
        return [problem for number in range(len(runs[0][0]))
                for problem in storm_judge([(tcp[number], ddp[number]) for tcp, ddp in runs])]


def storm_judge(runs):
    """One kind of call in all @runs, as TCP and DDP had it. What never happens over TCP never
    happens over DDP, and what does not always happen there does not here."""
    tcp, ddp = ({line for line in lines if not line.endswith(RIGHT)} for lines in zip(*runs))
    tcp_right, ddp_right = (any(line.endswith(RIGHT) for line in lines) for lines in zip(*runs))
    if ddp <= tcp and (ddp_right or not tcp_right):
        return []
    return [f"TCP: {line}" for line in tcp] + [f"DDP: {line}" for line in ddp]


def main():
    warpsock, program, scenes = sys.argv[1:4]
    long = os.environ.get("WARPSOCK_LONG")
    seed = int(os.environ.get("WARPSOCK_SEED") or (random.randrange(1 << 40) if long else 1))
    worlds = Worlds(os.path.abspath(warpsock), os.path.abspath(program))
    writer = tap.Writer()
    count = int(scenes) * (LONG if long else 1)
    writer.case(f"{count} scenes from seed {seed}", worlds.scenes(seed, count))
    writer.case(f"signals at random moments, seed {seed % 1000}", worlds.storm(seed % 1000))
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
