#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that are killed, and what becomes of those that they were connected to.

    kills.py WARPSOCK KILLS LIBRARY NUMBER [SEED]

        connect ======= the connection =======  listen . . . its child, in some shapes
           |                                      |
           +------------ side by side ------------+   a third process sends back what it gets

NUMBER kills: half of them at a random time, half at the named points of the library (base/point.h),
each of which must be reached. What must be true of those that live on is in oracle.py. NUMBER 0: a
few of each, for a planted fault to be found. WARPSOCK_LONG makes it ten times as many.
"""
import math
import os
import random
import re
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
import oracle  # noqa: E402
import stage  # noqa: E402

AT_ONCE = 3
TRIES = 12

# flags as talk.c has them, octets of who connects and who listens, the ring
SHAPES = {
    "one way": ("", 150000, 0, None),
    "the other way": ("d", 0, 150000, 65536),
    "both ways": ("", 100000, 100000, 8192),
    "long writes": ("l", 3000000, 1000000, None),
    "little room": ("ls", 400000, 200000, 65536),
    "a narrow way out": ("lnb", 1000000, 1000000, None),
    "a slow reader": ("lsbx", 0, 400000, None),
    "gone at once": ("lbxr", 600000, 0, None),
    "by turns": ("t", 100000, 100000, 65536),
    "by turns, long": ("tl", 600000, 600000, 8192),
    "by direction": ("f", 120000, 120000, 65536),
    "by direction, long": ("fls", 300000, 300000, None),
    "shared at once": ("te", 60000, 60000, None),
    "shared at once, by direction": ("fel", 300000, 300000, 65536),
    "executed, by turns": ("th", 60000, 60000, None),
    "executed, by direction": ("fhls", 200000, 200000, 65536),
    "sent, by turns": ("tm", 60000, 60000, None),
    "sent, by direction": ("fml", 300000, 300000, 65536),
    "sent at once": ("tme", 60000, 60000, 65536),
    "given away": ("c", 60000, 60000, None),
    "given away at once": ("cel", 300000, 300000, 65536),
    "shared, gone at once": ("flbx", 0, 400000, None),
    "executed behind its end": ("lszxp", 1 << 20, 0, None),
    "short reads": ("q", 200000, 200000, 65536),
    "short reads, by turns": ("tq", 200000, 200000, 8192),
    "short reads, by direction": ("fq", 200000, 200000, None),
    "beside a shell": ("y", 60000, 60000, None),
    "longer than the ring": ("lv", 1000000, 0, 8192),
    "longer than the ring, the other way": ("lvb", 0, 600000, 8192),
    "longer than the ring, by direction": ("flv", 0, 600000, 8192),
    "accepted late": ("lu", 150000, 0, None),
    "accepted late, both ways": ("u", 60000, 60000, 65536),
    "looked at late": ("o", 60000, 60000, None),
    "falling back": ("gl", 100000, 100000, None),
    "falling back, and not waiting": ("glw", 100000, 100000, None),
}
FALLING = [shape for shape in SHAPES if "g" in SHAPES[shape][0]]
FALL = 0.08  # seconds, at most
IDLE = {"idle": ("i", 20000, 20000, None), "idle, long": ("il", 100000, 100000, None)}


def victims_of(shape):
    flags = SHAPES[shape][0]
    return ["connect", "listen"] + (["child"] if set("tfc") & set(flags) else [])


class Run:
    def __init__(self, arguments):
        self.theatre = stage.Theatre(*arguments[:2])
        self.number = int(arguments[3]) * (10 if os.environ.get("WARPSOCK_LONG") else 1)
        self.seed = int(arguments[4]) if len(arguments) > 4 else random.randrange(1 << 32)
        self.random = random.Random(self.seed)
        marks = re.findall(rb"warpsock-point:(\w+)\0", Path(arguments[2]).read_bytes())
        self.points = sorted({mark.decode() for mark in marks})
        self.writer = tap.Writer()
        self.reached = defaultdict(list)  # by point: where, by whom and how often
        self.seconds = {}  # that a shape takes
        self.kills = 0

    # --- what there is to kill ---

    def survey(self, shape):
        """The shape without a kill: how long it takes, and which points it comes to."""
        begin = time.monotonic()
        case = self.theatre.play(shape, SHAPES[shape], None, stage.NOBODY, 1)
        return shape, case, time.monotonic() - begin

    def survey_points(self, pool, seed, problems):
        told = pool.map(lambda shape: (shape, self.theatre.play(
            shape, SHAPES[shape], None, stage.NOBODY, seed, point="?")), SHAPES)
        for shape, case in told:
            problems[shape] += oracle.whole(case)
            for (who, point), times in case.points.items():
                self.reached[point].append((shape, who, times))

    def survey_all(self, pool):
        problems = defaultdict(list)
        for shape, _, seconds in pool.map(self.survey, SHAPES):
            self.seconds[shape] = seconds
        # Some are come to only where somebody is late, which is not so in each run
        for seed in range(1, TRIES + 1):
            self.survey_points(pool, seed, problems)
            if all(self.reached[point] for point in self.points):
                break
        for shape in SHAPES:
            self.writer.case(f"{shape}: nobody is killed", problems[shape])

    # --- kills ---

    def at_random(self, job):
        shape, who, seed = job
        draw = random.Random(seed)
        span = self.seconds[shape]
        for _ in range(TRIES):
            case = self.theatre.play(shape, SHAPES[shape], who,
                                     stage.after(draw.random() * span), seed)
            if case.killed or oracle.whole(case):
                break
            span *= 0.6
        return f"{shape}: {who} at any time", case

    def at_point(self, job):
        point, seed = job
        draw = random.Random(seed)
        places = self.reached[point]
        for again in range(2 * TRIES):
            shape, who, times = draw.choices(places, [min(place[2], 20) for place in places])[0]
            if again >= TRIES:  # how often they come there is a matter of time, too
                shape, who, times = max(places, key=lambda place: place[2])
            nth = draw.randint(1, max(times >> again, 1))
            case = self.theatre.play(shape, SHAPES[shape], who, stage.NOBODY, seed,
                                     point=f"{point}:{nth}")
            if case.killed or case.helper or oracle.whole(case):
                break
            seed = draw.randrange(1 << 32)  # what is written decides whether they come there
        return f"at {point}", case

    def at_rest(self, job):
        shape, who, seed = job
        return f"{shape}: {who} at rest", self.theatre.play(shape, IDLE[shape], who,
                                                            stage.when_idle, seed)

    def falling(self, job):
        shape, who, seed = job
        draw = random.Random(seed)
        span = FALL
        for _ in range(TRIES):
            case = self.theatre.play(shape, SHAPES[shape], who,
                                     stage.falling_back(draw.random() * span), seed)
            if case.falling or oracle.problems(case):
                break
            seed = draw.randrange(1 << 32)
            span *= 0.6
        return f"{shape}: {who} behind a Request", case

    def jobs(self):
        each = [(shape, who) for shape in SHAPES for who in victims_of(shape)]
        half = self.number // 2 or len(each)
        whole = [each[i % len(each)] for i in range(half)]
        yield from ((self.at_random, (*pair, self.draw())) for pair in whole)
        rounds = math.ceil((self.number - self.number // 2) / max(len(self.points), 1)) or 1
        for point in self.points:
            for _ in range(rounds if self.reached[point] else 0):
                yield self.at_point, (point, self.draw())
        for shape in FALLING:
            for who in ("connect", "listen"):
                for _ in range(max(self.number // 50, 1)):
                    yield self.falling, (shape, who, self.draw())
        for shape in IDLE:
            for who in ("connect", "listen"):
                yield self.at_rest, (shape, who, self.draw())

    def draw(self):
        return self.random.randrange(1 << 32)

    def judged(self, job):
        kind, args = job
        name, case = kind(args)
        problems = oracle.problems(case, kind == self.at_rest)
        dead = case.killed or bool(case.helper)
        if not dead and not problems:
            problems = ["nobody was killed"]
        elif kind == self.falling and not case.falling and not problems:
            problems = ["its client had fallen back by then"]
        where = f"seed {case.seed}, {case.name}, {case.victim}"
        return name, dead, [f"{where}: {text}" for text in problems]

    def main(self):
        print(f"# seed {self.seed}, {len(self.points)} points", flush=True)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            self.survey_all(pool)
            found, times = defaultdict(list), Counter()
            for name, killed, problems in pool.map(self.judged, list(self.jobs())):
                found[name] += problems
                times[name] += killed
        for point in self.points:
            if not self.reached[point]:
                found[f"at {point}"].append("no shape comes to this point")
        for name in sorted(found):
            self.writer.case(f"{name}, {times[name]} kills", found[name])
        total = sum(times.values())
        self.writer.case(f"{total} kills at {len(self.points)} points",
                         [] if total >= self.number and len(self.points) >= 20 else ["too few"])
        self.theatre.close()
        self.writer.finish()


if __name__ == "__main__":
    Run(sys.argv[1:]).main()
