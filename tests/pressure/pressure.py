#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs under stress, over TCP and over DDP at the same time.

    pressure.py WARPSOCK SERVER NO_THREAD [WORD...]

A cell is PROGRAM, STRESS and MODE; WORDs choose the cells whose names hold all of them. Of each:

- another client's p99 latency is at most RATIO times that over TCP under the same stress. Both are
  measured in turn, and the best of several rounds counts: load from elsewhere is in some of them.
  No answer takes longer than STALL, or RATIO times what one over TCP took.
- nothing is lost: each client compares every byte that it gets.
  Where a client over TCP fails, too, one over DDP may fail as often.
- nothing is leaked: descriptors, processes, names and memory of the server are soon as before.

The short form has each program under each stress in one of the modes; --long has both, and lets
slow readers, restarts and kills go on for a minute.
"""
import contextlib
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "e2e")]
import tap  # noqa: E402
from arm import Arm, raise_files  # noqa: E402
from launch import Stage  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from stresses import STRESSES  # noqa: E402

MODES = ("on", "auto")
RATIO, STALL = 3, 3.0
ROUNDS = 8
AT_ONCE = 2  # cells, which wait most of the time
LONG = bool(os.environ.get("WARPSOCK_LONG"))
# Cells, by words of their name, that are known to fail, and why
EXPECTED = {}


@dataclass
class Cell:
    program: object
    stress: object
    mode: str
    server: str
    no_thread: str
    stage: object = None

    @property
    def name(self):
        return f"{self.program.name}, {self.stress.name}, mode {self.mode}"

    def count(self, number):
        """Of a number that only a long run has whole"""
        number = number if LONG else number // 10
        return number // 10 if self.program.processes else number


def judged(problems):
    """What counts of it. TCP is the measure: what fails over TCP as often is no fault of DDP."""
    tcp = [problem for problem in problems if problem.startswith("tcp")]
    ddp = [problem for problem in problems if problem not in tcp]
    return problems if len(ddp) > len(tcp) else []


def measure(cell, arms):
    """Rounds until one is good; returns what is wrong, and the figures."""
    best, slowest, problems, last = None, {"tcp": 0, "ddp": 0}, [], {}
    for _ in range(ROUNDS):
        for arm in arms:
            with cell.stress.act(arm) if cell.stress.turns else contextlib.nullcontext():
                said = arm.ask(60 if LONG and cell.stress.minute else cell.stress.seconds)
            last[arm.name] = said["p99"]
            slowest[arm.name] = max(slowest[arm.name], said["slowest"])
            problems += [f"{arm.name}: {what}" for what in said["problems"]]
        ratio = last["ddp"] / max(last["tcp"], 1e-6)
        if best is None or ratio < best[0]:
            best = ratio, last["tcp"], last["ddp"]
        if judged(problems) or best[0] <= RATIO or last["ddp"] <= cell.stress.floor:
            break
    figures = f"p99 {last['tcp'] * 1e3:.2f} ms over TCP, {last['ddp'] * 1e3:.2f} ms over DDP"
    if not judged(problems) and best[0] > RATIO and last["ddp"] > cell.stress.floor:
        problems.append(f"{figures}; at best {best[0]:.1f} times that of TCP")
    if slowest["ddp"] > max(STALL, RATIO * slowest["tcp"]):
        problems.append(f"an answer took {slowest['ddp']:.2f} s, over TCP {slowest['tcp']:.2f} s")
    return problems, figures


def leaks(arms, before):
    """Of the arm over DDP, judged by what the one over TCP has more, too"""
    wrong, grown = [], 0
    for arm in arms:
        left, growth = arm.settled(before[arm.name], max(grown, 0))
        if arm.mode:
            wrong += [f"left: {what}" for what in left]
        grown = growth
    return wrong


def under_stress(cell, arms):
    before = {arm.name: arm.snapshot() for arm in arms}
    with contextlib.ExitStack() as acts:
        if not cell.stress.turns:
            for arm in arms:
                acts.enter_context(cell.stress.act(arm))
        problems, figures = measure(cell, arms)
    if not cell.stress.kills:
        problems += leaks(arms, before)
    for arm in arms:
        problems += [f"{arm.name}: {what}" for what in arm.ask(0.05)["problems"]]
    return problems, figures


def run(cell, warpsock):
    """What is wrong, and the figures"""
    with Stage(warpsock) as stage, contextlib.ExitStack() as folders:
        cell.stage = stage
        arms = [Arm(cell, "tcp", None), Arm(cell, "ddp", cell.mode)]
        for arm in arms:
            folders.callback(arm.remove)
        try:
            for arm in arms:
                arm.begin()
            problems, figures = under_stress(cell, arms)
            for arm in arms:
                problems += arm.close()
        except (RuntimeError, OSError, ValueError) as error:
            problems, figures = [f"{type(error).__name__}: {error}"], ""
            problems += [what for arm in arms for what in arm.problems]
        if problems and not judged(problems):
            return [], f"{figures}; over TCP, too: {problems[0]}"
        if problems:
            problems += [f"it says: {line}" for line in arms[1].said().splitlines()[-5:]]
        return problems, figures


def cells(words, server, no_thread):
    for at, program in enumerate(PROGRAMS):
        for number, stress in enumerate(STRESSES):
            for mode in MODES:
                cell = Cell(program, stress, mode, server, no_thread)
                chosen = all(word in cell.name for word in words) if words else \
                    LONG or mode == MODES[(at + number) % 2]
                if chosen:
                    yield cell


def lacking(cell):
    """Why a cell cannot be run here"""
    if cell.program.needs and not shutil.which(cell.program.needs):
        return f"there is no {cell.program.needs}"
    if cell.stress.shm and os.geteuid():
        return "no mount namespace to be had"
    return ""


def shown(writer, cell, problems, text):
    expected = [why for words, why in EXPECTED.items() if words in cell.name]
    if problems and expected:
        text += f"; known to fail: {expected[0]}: {problems[0]}"
        problems = []
    writer.case(cell.name, problems)
    print(f"# {text}", flush=True)


def main():
    warpsock, server, no_thread = (os.path.abspath(path) for path in sys.argv[1:4])
    raise_files()
    writer, began = tap.Writer(), time.monotonic()

    def timed(cell):
        begin = time.monotonic()
        problems, figures = ([], "") if lacking(cell) else run(cell, warpsock)
        return problems, f"{figures}, {time.monotonic() - begin:.1f} s"

    chosen = list(cells(sys.argv[4:], server, no_thread))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for cell, (problems, text) in zip(chosen, pool.map(timed, chosen)):
            if lacking(cell):
                writer.skip(cell.name, lacking(cell))
            else:
                shown(writer, cell, problems, text)
    print(f"# {time.monotonic() - began:.0f} s")
    writer.finish()


if __name__ == "__main__":
    main()
