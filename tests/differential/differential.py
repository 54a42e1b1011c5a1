#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Random programs over TCP and over DDP do the same; one that does not is made smaller.

    differential.py WARPSOCK PROGRAM SHAPE OPERATIONS [few]

The seeds are the same each time, so that a red run can be repeated; in long runs, or with
WARPSOCK_SEED, they are others. A failure comes with the command line that replays it;
"few" says only that there was one.

A long run lasts LONG_MINUTES (30) whatever OPERATIONS says, in one process after another, and
goes on behind a failure: each is told at the end.
"""
import os
import random
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import tap  # noqa: E402

PROGRAM_OPS = 160
LIMIT = 1500
LONG_MINUTES = 30
LONG_BATCH = 20000  # operations of one process
LONG_FAILURES = 10


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
    page = " ".join((ROOT.parent / "docs/limits.md").read_text().split())
    names = [line.split('"')[1] for line in text.splitlines() if line.startswith('\t{ "')]
    return [f"docs/limits.md has no entry for: {name}" for name in names
            if f"`differential/exceptions.c`: {name}" not in page]


def last_seed(out):
    """The seed of the last program that was run; None where that cannot be seen."""
    words = out.split()
    if "FAILED" in words:
        return int(words[words.index("FAILED") + 2])
    return int(words[-1]) if words[-3:-1] == ["last", "seed"] else None


def programs(count):
    """Of the line "N operations in M programs, the last seed S"."""
    words = count.split()
    return (int(words[0]), int(words[3])) if len(words) == 9 else (0, 0)


def long_run(run, writer, seed, minutes):
    begin, failures = time.monotonic(), 0
    sums = [0, 0]
    print(f"# {run.shape}: {minutes:g} minutes, seeds from {seed}", flush=True)
    while seed is not None and failures < LONG_FAILURES and \
            time.monotonic() - begin < minutes * 60:
        status, out = run(seed, str(LONG_BATCH), limit=LIMIT)
        if status:
            failures += 1
            writer.case(f"{run.shape}: a batch from seed {seed}", problems_of(run, out))
        else:
            sums = [a + b for a, b in zip(sums, programs(out.splitlines()[-1]))]
        last = last_seed(out)
        seed = None if last is None else last + 1
    writer.case(f"{run.shape}: {sums[0]} operations in {sums[1]} programs that did not fail, "
                f"the last seed {last}", [] if not failures else [f"{failures} failures"])


def short_run(run, writer, seed, operations, few):
    status, out = run(seed, str(operations), limit=LIMIT)
    print(f"# {run.shape}: seeds from {seed}")
    for line in out.splitlines()[-12:]:
        print(f"# {line}")
    writer.case(f"{run.shape}: {operations} operations from seed {seed}",
                ([] if not status else out.splitlines()[-9:] if few else problems_of(run, out)))


def main():
    warpsock, program, shape, operations = sys.argv[1:5]
    few = sys.argv[5:] == ["few"]
    long = os.environ.get("WARPSOCK_LONG") and not few
    seed = int(os.environ.get("WARPSOCK_SEED") or (random.randrange(1 << 40) if long else 1))
    run = Run(os.path.abspath(warpsock), os.path.abspath(program), shape)
    writer = tap.Writer()
    if long:
        long_run(run, writer, seed, float(os.environ.get("LONG_MINUTES") or LONG_MINUTES))
    else:
        short_run(run, writer, seed, operations, few)
    writer.case(f"{shape}: each exception is admitted", admitted())
    writer.finish()


if __name__ == "__main__":
    main()
