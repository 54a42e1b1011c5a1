# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs in turns: each round has one run of each arm, and the arms change their order by round.

So a machine whose speed changes meanwhile changes all arms. What is kept are all values; what is
shown (table.py) are medians, their ratio, and the least and the greatest.
"""
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from arms import BASE
from ends import Ends, Failed, places

LESS, MORE = "less", "more"
TOP = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Figure:
    """One number of a run."""
    key: str
    name: str  # beside that of the measure; empty: none
    unit: str
    better: str
    how: str = "ratio"  # or difference, or value: what is shown beside the median of plain TCP
    axis: str = None  # the plot that it belongs to


@dataclass
class Row:
    """All values of one figure: a row of a table."""
    bench: str
    measure: str
    figure: str
    place: str
    unit: str
    better: str
    how: str
    axis: str = None
    size: int = None
    runs: dict = field(default_factory=dict)  # by arm
    turns: dict = field(default_factory=dict)  # in which order all of them were
    quantiles: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Scale:
    """How long a run takes, and how many rounds there are."""
    name: str
    seconds: float
    rounds: int
    limit: float = None  # seconds for a measure: then no further round begins
    total: float = None  # seconds for all: then a measure has one round

    def count(self, a_second, least=10):
        """Of something of which so many happen in a second, the number for a run."""
        return max(int(a_second * self.seconds), least)

    @property
    def short(self):
        return self.name == "short"

    @property
    def whole(self):
        return self.name == "full"


SCALES = {"full": Scale("full", 1.0, 7), "targets": Scale("targets", 0.5, 5, 25, 390),
          "quick": Scale("quick", 0.25, 3, 12, 300), "short": Scale("short", 0.03, 1)}
# What a run that measured nothing may end with: its programs, or what they printed, were wrong
WRONG = (Failed, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, OSError,
         subprocess.SubprocessError)
LEAST = 2  # rounds: of a single one there is no range
BUSY = 0.5  # of each processor, by others: then figures are told to say nothing


class Session:
    """One call of the command: its arms, its scale, and the rows that it has found."""

    def __init__(self, warpsock, build, scale, arms, foreign=(), only=None):
        self.warpsock, self.build, self.scale = warpsock, Path(build).resolve(), scale
        self.arms, self.foreign = arms, list(foreign)
        self.beside = []  # arms that one benchmark alone has
        self.only = only  # arms by benchmark and measure; None: all
        self.places = places()
        self.bench = ""
        self.rows, self.skipped = [], []
        self.turn = 0
        self.host, self.prefix = "127.0.0.1", ""
        self.ends = None
        self.notes = {}  # of benchmarks, for whoever reads their table
        self.begun = time.monotonic()
        self.settings = settings(self)  # as they are before anything runs

    def tool(self, name):
        return str(self.build / "bench/tools" / f"bench_{name}")

    def open(self):
        self.ends = Ends(self.warpsock)
        return self.ends

    def wants(self, measure):
        return self.only is None or (self.bench, measure) in self.only

    def skip(self, measure, why):
        self.skipped.append({"bench": self.bench, "measure": measure, "reason": why})
        self.say(f"{self.bench}: {measure}: left out: {why}")

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def line(self, text, end="\n"):
        """On a terminal, in the place of the progress that was shown."""
        if sys.stderr.isatty():
            print(f"\r{text}\x1b[K", end=end, file=sys.stderr, flush=True)
        elif end:
            self.say(text)

    def order(self, arms, number):
        """Rounds begin with another arm each."""
        at = number % len(arms)
        return arms[at:] + arms[:at]

    def compare(self, measure, place, figures, one, arms=None, size=None, rounds=None):
        """one(arm) makes a run and returns its values by the figures' keys."""
        if not self.wants(measure):
            return []
        measure = self.prefix + measure
        arms = list(arms or self.arms)
        if self.only is not None:
            arms = [arm for arm in arms if arm.key in self.only[self.bench, measure]]
        rows = [Row(self.bench, measure, figure.name, place, figure.unit, figure.better, figure.how,
                    figure.axis, size) for figure in figures]
        begin, total = time.monotonic(), rounds or self.scale.rounds
        number = 0
        while number < total and not self.late(begin, number):
            for arm in self.order(arms, number):
                self.progress(measure, place, number, total, arm)
                self.add(rows, figures, arm, self.attempt(measure, arm, one))
            number += 1
        self.line(f"{self.bench}: {measure}, {place}: rounds: {number}, arms: {len(arms)}, "
                  f"{time.monotonic() - begin:.1f} s")
        self.rows += [row for row in rows if row.runs.get(BASE.key)]
        return rows

    def late(self, begin, done):
        """Would one more round be beyond the limit? The first two are not, if there is time."""
        now = time.monotonic()
        if done and self.scale.total and now - self.begun > self.scale.total:
            return True
        return (done >= LEAST and bool(self.scale.limit)
                and (now - begin) / done * (done + 1) > self.scale.limit)

    def progress(self, measure, place, number, total, arm):
        self.line(f"{self.bench}: {measure}, {place}: round {number + 1} of {total}: {arm.title}",
                  "")

    def attempt(self, measure, arm, one):
        """A run that fails is told, once for each arm, and is not made up for."""
        try:
            return one(arm)
        except WRONG as error:
            self.failed(measure, arm, error)
            return None

    def failed(self, measure, arm, error):
        entry = {"bench": self.bench, "measure": measure, "arm": arm.title, "reason":
                 " ".join(str(error).split()) if isinstance(error, Failed)
                 else f"{type(error).__name__}: {error}", "failed": True}
        known = [(e["bench"], e["measure"], e.get("arm")) for e in self.skipped]
        if (entry["bench"], measure, arm.title) not in known:
            self.skipped.append(entry)
            self.line(f"{self.bench}: {measure}: {arm.title}: FAILED: {entry['reason']}")

    def add(self, rows, figures, arm, values):
        if values is None:
            return
        self.turn += 1
        for row, figure in zip(rows, figures):
            if values.get(figure.key) is None:
                continue
            row.runs.setdefault(arm.key, []).append(values[figure.key])
            row.turns.setdefault(arm.key, []).append(self.turn)
            if figure.key in values.get("quantiles", {}):
                row.quantiles.setdefault(arm.key, []).append(values["quantiles"][figure.key])

    def result(self, left_out, packages):
        return {"version": 1, "settings": {**self.settings, "packages": packages},
                "left_out": left_out, "skipped": self.skipped, "notes": self.notes,
                "arms": {arm.key: arm.title for arm in
                         [*self.arms, *self.foreign, *self.beside]},
                "rows": [asdict(row) for row in self.rows]}


# --- settings ---------------------------------------------------------------------------------


def first(path, pattern=None):
    try:
        for line in Path(path).read_text().splitlines():
            if pattern is None or line.startswith(pattern):
                return line.partition(":")[2].strip() if pattern else line.strip()
    except OSError:
        pass
    return "unknown"


def commit():
    done = subprocess.run(["git", "-C", str(TOP), "describe", "--always", "--dirty"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() or "unknown"


def settings(session):
    load = os.getloadavg()[0]
    return {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "commit": commit(),
            "processor": first("/proc/cpuinfo", "model name"),
            "processors": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "load": load, "busy": load > BUSY * len(os.sched_getaffinity(0)),
            "scale": session.scale.name,
            "rounds": session.scale.rounds, "seconds": session.scale.seconds,
            "places": {place.title: f"server on {','.join(map(str, place.server))}, client on "
                       f"{','.join(map(str, place.client))}" for place in session.places.values()}}
