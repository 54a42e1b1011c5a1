#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server that lives long: soak.py WARPSOCK SERVER CHURN [SECONDS]

Clients come and go in each way there is, one of them is killed each second, some read slowly.
Memory, descriptors and names of the server must be flat: in the last third of the time no more
than in the second. By hand for an hour it is to come to 10^6 connections and 10^8 messages.
"""
import json
import os
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "e2e")]
import tap  # noqa: E402
import watch  # noqa: E402
from arm import Arm, raise_files  # noqa: E402
from launch import Stage  # noqa: E402
from programs import PROGRAMS  # noqa: E402
from stresses import Stress, nothing  # noqa: E402

EVENT = next(program for program in PROGRAMS if program.name == "event")
CLIENTS, SLOW = 4, 4
SECONDS, LONG_SECONDS = 12, 300
# By how much the last third may be more than the second
SLACK = {"descriptors": 16, "names": 16, "memory": 8 << 20, "zombies": 0}


class Client:
    """A churn that is started anew when it was killed; what the killed ones did counts, too."""

    def __init__(self, arm, churn, seed):
        self.arm, self.churn, self.seed = arm, churn, seed
        self.before, self.now = [0, 0], [0, 0]
        self.begin()

    def begin(self):
        self.seed += 1000
        args, env = self.arm.launched([self.churn, self.arm.port, self.seed], f"churn{self.seed}")
        self.proc = self.arm.talker(f"churn{self.seed}", args, env)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.proc.stdout:
            self.now = [int(word) for word in line.split()]

    def over(self):
        """Waits for its end; returns its status."""
        status = self.proc.wait(60)
        self.reader.join()
        self.arm.stage.running.remove(self.proc)
        self.before = [sum(pair) for pair in zip(self.before, self.now)]
        self.now = [0, 0]
        return status

    def kill(self):
        """Kills it; returns what it had to complain of before."""
        ended = self.proc.poll()
        self.proc.kill()
        self.over()
        problems = []
        if ended is not None:
            problems = [f"{self.proc.name}: status {ended}: "
                        f"{self.arm.stage.text(self.proc.name, 'err')}"]
        self.begin()
        return problems

    def stop(self):
        self.proc.stdin.close()
        status = self.over()
        return [f"{self.proc.name}: status {status}: {self.arm.stage.text(self.proc.name, 'err')}"
                ] if status else []

    def counts(self):
        return [sum(pair) for pair in zip(self.before, self.now)]


@dataclass
class Cell:
    stage: object
    server: str
    program: object
    stress: object


def sample(arm):
    return {"at": time.monotonic(), **arm.snapshot()}


def soak(arm, clients, seconds):
    """Samples of the server, and what was wrong"""
    samples, problems, choice = [], [], random.Random(1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        slow = arm.client("slow", SLOW)
        arm.hear(slow)
        for _ in range(4):
            time.sleep(1)
            problems += choice.choice(clients).kill()
            samples.append(sample(arm))
        problems += arm.end(slow)
    return samples, problems


def flat(samples):
    """What is more in the last third than in the second"""
    third = len(samples) // 3
    middle, last = samples[third:2 * third], samples[2 * third:]
    problems = []
    for name, slack in SLACK.items():
        before, after = (max(one[name] for one in some) for some in (middle, last))
        if after > before + slack:
            problems.append(f"{name}: {after}, before at most {before}")
    return problems


def run(warpsock, server, churn, seconds):
    with Stage(warpsock) as stage:
        arm = Arm(Cell(stage, server, EVENT, Stress("soak", nothing, leaves=("clients",))), "ddp",
                  "on")
        try:
            arm.begin()
            before = arm.snapshot()
            clients = [Client(arm, churn, seed) for seed in range(CLIENTS)]
            samples, problems = soak(arm, clients, seconds)
            for client in clients:
                problems += client.stop()
            problems += flat(samples) + arm.settled(before, 0)[0]
            totals = [sum(some) for some in zip(*(client.counts() for client in clients))]
            problems += arm.close()
        finally:
            arm.remove()
        last = samples[-1]
        print(f"# {totals[0]} connections and {totals[1]} messages in {seconds} s; at the end "
              f"{last['memory'] >> 10} KiB, {last['descriptors']} descriptors, "
              f"{last['names']} names; first {json.dumps(samples[0])}", flush=True)
        return problems


def main():
    warpsock, server, churn = (os.path.abspath(path) for path in sys.argv[1:4])
    raise_files()
    usual = LONG_SECONDS if os.environ.get("WARPSOCK_LONG") else SECONDS
    seconds = int((sys.argv[4:] or [usual])[0])
    writer = tap.Writer()
    try:
        writer.case(f"a server lives for {seconds} s", run(warpsock, server, churn, seconds))
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        writer.case(f"a server lives for {seconds} s", [f"{type(error).__name__}: {error}"])
    writer.finish()


if __name__ == "__main__":
    main()
