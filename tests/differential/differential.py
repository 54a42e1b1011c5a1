#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Random programs over TCP and over DDP do the same; one that does not is made smaller.

    differential.py WARPSOCK PROGRAM SHAPE OPERATIONS [few]

The seeds are the same each time, so that a red run can be repeated; in long runs, or with
WARPSOCK_SEED, they are others. A failure comes with the command line that replays it;
"few" says only that there was one.
"""
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import tap  # noqa: E402

PROGRAM_OPS = 160
LONG_FACTOR = 10


class Run:
    def __init__(self, warpsock, program, shape):
        self.shape = shape
        self.command = [warpsock, "run", "--all", "--mode", "on", "--", program, shape]

    def __call__(self, seed, *args, limit=60):
        """Exit status and output; a run that does not end has failed."""
        try:
            done = subprocess.run([*self.command, str(seed), *args], text=True, timeout=limit,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            return 1, "it does not end"
        return done.returncode, done.stdout

    def only(self, seed, kept):
        return self(seed, "only", ",".join(map(str, kept)))


def smaller(run, seed):
    """Operations of a failing program without which it does not fail, and what it says then."""
    kept = list(range(PROGRAM_OPS))
    status, out = run.only(seed, kept)
    if not status:
        return None, out
    piece = len(kept) // 2
    while piece:
        at = 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + piece:]
            status, said = run.only(seed, fewer)
            if status:
                kept, out = fewer, said
            else:
                at += piece
        piece //= 2
    return kept, out


def problems_of(run, out):
    failed = [line.split() for line in out.splitlines() if line.startswith("FAILED")]
    if not failed:
        return out.splitlines()[-20:]
    seed = failed[0][2]
    kept, said = smaller(run, seed)
    if kept is None:
        return [f"seed {seed} fails, but not by itself:", *out.splitlines()[-20:]]
    replay = " ".join([*run.command, seed, "only", ",".join(map(str, kept))])
    return [f"again: {replay}", *said.splitlines()]


def admitted():
    """Each exception must be told of in docs/limits.md, in the words of its name."""
    text = (ROOT / "differential/exceptions.c").read_text()
    rows = [line for line in (ROOT.parent / "docs/limits.md").read_text().splitlines()
            if "differential/exceptions.c" in line]
    names = [line.split('"')[1] for line in text.splitlines() if line.startswith('\t{ "')]
    return [f"docs/limits.md has no row for: {name}" for name in names
            if not any(name in row for row in rows)]


def main():
    warpsock, program, shape, operations = sys.argv[1:5]
    few = sys.argv[5:] == ["few"]
    long = os.environ.get("WARPSOCK_LONG")
    seed = int(os.environ.get("WARPSOCK_SEED") or (random.randrange(1 << 40) if long else 1))
    operations = int(operations) * (LONG_FACTOR if long else 1)
    run = Run(os.path.abspath(warpsock), os.path.abspath(program), shape)
    writer = tap.Writer()
    status, out = run(seed, str(operations), limit=1500 * (LONG_FACTOR if long else 1))
    print(f"# {shape}: seeds from {seed}")
    for line in out.splitlines()[-12:]:
        print(f"# {line}")
    writer.case(f"{shape}: {operations} operations from seed {seed}",
                ([] if not status else out.splitlines()[-9:] if few else problems_of(run, out)))
    writer.case(f"{shape}: each exception is admitted", admitted())
    writer.finish()


if __name__ == "__main__":
    main()
