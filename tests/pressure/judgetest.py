#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The judges of this suite: what each lets pass, and what it finds, without any server."""
import os
import sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import pressure  # noqa: E402
import protocols  # noqa: E402
import soak  # noqa: E402
import tap  # noqa: E402
import watch  # noqa: E402
from stresses import Stress, nothing  # noqa: E402

# Rounds of p99 over TCP and over DDP in ms, the slowest answer in s, what a client says; a word of
# what is found
LATENCIES = {
    "as quick as TCP": ([(10, 10)], (0.1, 0.1), [], ""),
    "three times TCP": ([(100, 290)], (0.1, 0.3), [], ""),
    "four times TCP": ([(100, 400)], (0.1, 0.4), [], "4.0 times"),
    "four times TCP, but once": ([(100, 400), (100, 400), (100, 200)], (0.1, 0.4), [], ""),
    "slower than TCP, and below the floor": ([(1, 29)], (0.1, 0.1), [], ""),
    "one answer that stalls": ([(10, 10)], (0.1, 4), [], "an answer took"),
    "one that stalls over TCP, too": ([(10, 10)], (2, 4), [], ""),
    "a client that lost bytes": ([(10, 10)], (0.1, 0.1), ["Lost"], "Lost"),
}
# What clients complain of; does it count?
COMPLAINTS = {
    "nothing": ([], False),
    "of DDP alone": (["ddp: refused"], True),
    "of TCP alone": (["tcp: refused"], False),
    "of both": (["tcp: refused", "ddp: refused"], False),
    "more of DDP": (["tcp: refused", "ddp: refused", "left: names"], True),
    "a server that does not listen": (["RuntimeError: tcp: no"], True),
}
BEFORE = {"descriptors": 20, "processes": 1, "zombies": 0, "names": 3}
LEFT = {
    "nothing more": ({}, []),
    "a few descriptors that it keeps": ({"descriptors": 24}, []),
    "descriptors": ({"descriptors": 60}, ["descriptors: 60, before 20"]),
    "a zombie": ({"zombies": 1}, ["zombies: 1, before 0"]),
    "names": ({"names": 13}, ["names: 13, before 3"]),
    "processes": ({"processes": 4}, ["processes: 4, before 1"]),
}
GROWTH = {
    "flat": ([0, 0, 0, 0, 0, 0], False),
    "more at the beginning alone": ([0, 1, 99, 99, 99, 99], False),
    "more and more": ([0, 20, 40, 60, 80, 100], True),
}


class Arm:
    def __init__(self, name, figures, slowest, said):
        self.name, self.figures, self.slowest, self.said = name, list(figures), slowest, said

    def ask(self, _seconds):
        figure = self.figures.pop(0) if len(self.figures) > 1 else self.figures[0]
        return {"p99": figure / 1000, "slowest": self.slowest, "problems": self.said, "count": 1}


def found(rounds, slowest, said):
    arms = [Arm(name, [figures[at] for figures in rounds], slowest[at], said if at else [])
            for at, name in enumerate(("tcp", "ddp"))]
    return " ".join(pressure.measure(SimpleNamespace(stress=Stress("t", nothing)), arms)[0])


def lost(got, wanted):
    try:
        protocols.compare(got, wanted)
    except protocols.Lost:
        return True
    return False


def own():
    """This process, and a file that it opens"""
    before = watch.snapshot(os.getpid(), "/nowhere")
    ends = [os.pipe() for _ in range(20)]
    wrong = watch.more(before, watch.snapshot(os.getpid(), "/nowhere"))
    for end in sum(ends, ()):
        os.close(end)
    return [] if len(wrong) == 1 and wrong[0].startswith("descriptors") else [f"it says {wrong}"]


def main():
    writer = tap.Writer()
    for name, (rounds, slowest, said, wanted) in LATENCIES.items():
        text = found(rounds, slowest, said)
        good = wanted in text if wanted else not text
        writer.case(f"latency: {name}", [] if good else [f"it finds {text!r}"])
    for name, (said, counts) in COMPLAINTS.items():
        got = pressure.judged(said)
        writer.case(f"complaints: {name}", [] if got == said * counts else [f"it says {got}"])
    for name, (changed, wanted) in LEFT.items():
        got = watch.more(BEFORE, {**BEFORE, **changed})
        writer.case(f"left: {name}", [] if got == wanted else [f"it finds {got}"])
    for name, (counts, grows) in GROWTH.items():
        got = soak.flat([{"descriptors": 20 + count, "names": 3, "memory": 1 << 20, "zombies": 0}
                         for count in counts])
        writer.case(f"soak: {name}", [] if bool(got) == grows else [f"it finds {got}"])
    writer.case("bytes: the same", ["they differ"] if lost(b"abc", b"abc") else [])
    for name, got in ("one is another", b"abd"), ("one less", b"ab"):
        writer.case(f"bytes: {name}", [] if lost(got, b"abc") else ["it is not seen"])
    writer.case("descriptors of a process", own())
    writer.finish()


if __name__ == "__main__":
    main()
