#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The first moments of a connection over TCP and over DDP, compared line by line.

    moments.py WARPSOCK PROGRAM [WORD]

PROGRAM is programs/moments.py: it says which cases there are, and plays them. Each is played over
TCP, in mode on and in mode auto; WORD: those with it in their names alone. What differs on purpose
stands in DIFFERS, and in docs/limits.md; where it does not differ any more, the case fails.
"""
import difflib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

LIMIT = 90
SLEEPERS = 12  # they sleep most of the time
# In mode auto each server hears of its client before it takes it for plain, on a busy machine, too
MODES = {"on": {}, "auto": {"WARPSOCK_GRACE": "1s"}}

# The octets of a connection that nobody accepts are their sender's, who waits for it
LATE = {"client ends with 0 soon": "client ends with 0 late"}
DIFFERS = {f"client.{action}.unaccepted": LATE
           for action in ("write", "write-unblocked", "write-much", "write-then-read", "fork",
                          "shutdown-write-behind-octets", "fork-and-close", "exec", "send-away",
                          "exit")}
DIFFERS["client.close-lingering.unaccepted"] = {**LATE, "  closed soon: True":
                                                "  closed soon: False"}


def said(command, env=None):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT, text=True, errors="replace",
                              env=dict(os.environ, WARPSOCK_LOG="err", **(env or {})))
    except subprocess.TimeoutExpired:
        return ["it hangs"]
    ending = [f"it ended with {done.returncode}: {done.stderr}"] if done.returncode else []
    return done.stdout.splitlines() + ending


def compare(warpsock, program, name):
    tcp = said([program, name])
    problems = []
    for mode, env in MODES.items():
        ddp = said([warpsock, "run", "--all", "--mode", mode, "--", program, name], env)
        differs = DIFFERS.get(name, {})
        expected = [differs.get(line, line) for line in tcp]
        problems += difflib.unified_diff(expected, ddp, "tcp", mode, lineterm="", n=9)
    return problems


def main():
    warpsock, program, *word = sys.argv[1:]
    writer = tap.Writer()
    names = [name for name in said([program, "--list"]) if not word or word[0] in name]
    with ThreadPoolExecutor(SLEEPERS) as pool:
        for name, problems in zip(names, pool.map(lambda n: compare(warpsock, program, n), names)):
            writer.case(name, problems)
    writer.finish()


if __name__ == "__main__":
    main()
