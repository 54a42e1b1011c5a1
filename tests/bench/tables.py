#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tables say of results that are known: ratios of medians, their range, targets met or not."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent / "bench"), str(HERE.parent)]

import arms  # noqa: E402
import catalogue  # noqa: E402
import connections  # noqa: E402
import ends  # noqa: E402
import run  # noqa: E402
import session  # noqa: E402
import table  # noqa: E402
import tap  # noqa: E402
import targets  # noqa: E402

ARMS = {"tcp": "plain TCP", "ddp": "DDP"}


def row(tcp, ddp, how="ratio", unit="us", **more):
    return {"bench": "b", "measure": "m", "figure": "f", "place": "p", "unit": unit, "how": how,
            "better": "less", "runs": {"tcp": tcp, "ddp": ddp}} | more


# what is tried, the row, the cell of DDP
CELLS = [
    ("a ratio of medians", row([10, 20, 30], [10, 60, 20]), "1.00 (0.50 to 3.00)"),
    ("an even number of runs", row([10, 30], [30, 30]), "1.50 (1.50 to 1.50)"),
    ("a small ratio", row([1000], [1]), "0.001 (0.001 to 0.001)"),
    ("a difference", row([10, 20, 30], [12, 21, 33], "difference"), "+1.00 (-8.00 to +13.0) us"),
    ("one that is negative", row([10], [8], "difference"), "-2.00 (-2.00 to -2.00) us"),
    ("a value", row([0, 0, 0], [1, 2, 30], "value", "%"), "2.00 (1.00 to 30.0) %"),
    ("nothing to divide by", row([0, 0], [1, 1]), "-"),
    ("no value", row([1, 1], []), "-"),
    ("a run that failed", row([10, 20, 40], [10, 80]), "2.25 (0.50 to 4.00)"),
]
# op, limit, the values over TCP and over DDP, is it met?
TARGETS = [
    ("<=", 1.5, [10, 10, 10], [14, 15, 99], True),
    ("<=", 1.4, [10, 10, 10], [14, 15, 99], False),
    (">=", 1.5, [10, 10, 10], [1, 15, 15], True),
    (">=", 1.6, [10, 10, 10], [99, 15, 15], False),
    ("<=", 2, [10, 10, 10], [], None),
]


# seconds of a round, since the start, the limits of a measure and of all: how many rounds there are
ROUNDS = [(1, 0, None, None, 5), (1, 0, 3.5, None, 3), (9, 0, 3.5, None, 2), (1, 99, 3.5, 90, 1),
          (1, 80, 3.5, 90, 3)]


def target_of(op, limit, **more):
    return targets.Target("w", "b", "m", "f", op, limit, "p", **more)


def verdict(found, target):
    return targets.line(found, target)[1]


def rounds(took, since_start, limit, total):
    """How many rounds of so many seconds a measure has."""
    one = Named()
    one.scale = session.Scale("some", 1, 5, limit, total)
    now, done = session.time.monotonic(), 0
    one.begun = now - since_start
    while done < one.scale.rounds and not one.late(now - took * done, done):
        done += 1
    return done


def into_page(text, old):
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.md"
        page.write_text(old)
        run.into_page(text, page, "targets")
        return page.read_text()


def refuses_page():
    try:
        into_page("new\n", "no marks\n")
    except SystemExit:
        return True
    return False


class Named(session.Session):
    """Only names what would be measured, on a machine of two processors and many descriptors."""

    def __init__(self):
        super().__init__("warpsock", "build", session.SCALES["targets"], [arms.BASE], (),
                         targets.wanted())
        self.places = {key: ends.Place(key, title, (0,), (0,)) for key, title in
                       (("two", "a core each"), ("one", "one core"), ("free", "either"))}
        self.found = set()

    def compare(self, measure, place, figures, one, arms=None, size=None, rounds=None):
        self.found |= {(self.bench, measure, figure.name, place) for figure in figures}
        return []


def nameless():
    """Targets whose figure no benchmark has."""
    connections.descriptors = lambda *_: True
    catalogue.missing = lambda _: []
    named = Named()
    for name in targets.benches():
        catalogue.run(named, name)
    return [target.what for target in targets.TARGETS
            for measure in filter(None, (target.measure, target.beside))
            if (target.bench, measure, target.figure, target.place) not in named.found]


def packages():
    """Those that benchmarks name, and ./dev does not install for them."""
    text = (HERE.parent.parent / "dev").read_text()
    listed = re.search(r'\[bench\]="([^"]*)"', text)[1].split()
    wanted = {package for bench in catalogue.BENCHES.values() for _, package in bench.needs}
    return sorted((wanted | {arm.package for arm in arms.FOREIGN}) - set(listed))


def dev_bench(name):
    """What ./dev bench NAME does, without doing it."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "python3"
        python.write_text('#!/bin/sh\necho "$@"\n')
        python.chmod(0o755)
        begin = 'eval "$(sed -n \'/^verb_bench/,/^}/p\' dev)"; need() { :; }; build() { :; }; '
        script = begin + 'verb_release() { echo release; }; verb_bench "$@" 2>&1'
        return subprocess.run(["bash", "-c", script, "dev", name], text=True, check=True,
                              cwd=HERE.parent.parent, timeout=60, stdout=subprocess.PIPE,
                              env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}).stdout


def main():
    writer = tap.Writer()

    def check(name, got, wanted):
        writer.case(name, [] if got == wanted else [f"got {got!r}", f"wanted {wanted!r}"])

    for name, one, wanted in CELLS:
        check(name, table.cell(one, "ddp"), wanted)
    for op, limit, tcp, ddp, wanted in TARGETS:
        check(f"{ddp} against {tcp} is {op} {limit}: {wanted}",
              verdict({"rows": [row(tcp, ddp)]}, target_of(op, limit)), wanted)
    both = {"rows": [row([1, 1, 1], [80, 80, 100]), row([1, 1, 1], [100, 100, 100], measure="o")]}
    check("a rate of its own", verdict(both, target_of(">=", 0.9, beside="o")), False)
    check("a lower limit for it", verdict(both, target_of(">=", 0.8, beside="o")), True)
    for better, op, wanted in (("less", "<=", False), ("more", ">=", True)):
        others = row([9], [4], better=better)
        others["runs"] |= {"a": [3, 3], "b": [4, 9], "c": [5]}
        check(f"the best of others, of which {better} is better",
              verdict({"rows": [others]}, target_of(op, 0.6, base="a b c")), wanted)
        others["runs"]["c"] = []
        check("one of them has no run", verdict({"rows": [others]},
                                                target_of(op, 0.6, base="a b c")), None)
    for ddp, wanted in ((1.001, True), (2, False)):
        check(f"{ddp} where plain TCP has 1",
              verdict({"rows": [row([1], [ddp], "value")]}, target_of("<=", None)), wanted)
    check("a table has a column for each arm", table.table([row([10], [20])], ARMS), [
        "| what | where | better | plain TCP | DDP |", "| --- | --- | --- | --- | --- |",
        "| m: f | p | less | 10.0 (10.0 to 10.0) us | 2.00 (2.00 to 2.00) |"])
    begin, end = run.MARKS["targets"]
    for took, since_start, limit, total, wanted in ROUNDS:
        check(f"rounds of {took} s, limits {limit} and {total}, {since_start} s from the start",
              rounds(took, since_start, limit, total), wanted)
    check("each target is a figure of a benchmark", nameless(), [])
    check("./dev installs what benchmarks need", packages(), [])
    for name in catalogue.ELSEWHERE:
        check(f"./dev bench {name}", dev_bench(name), f"bench/run.py {name}\n")
    check("./dev bench all", dev_bench("all"), "release\nbench/run.py --warpsock "
          "build-release/apps/warpsock all\n")
    check("results go into a page, between its marks",
          into_page("new\n", f"before\n{begin}\nold\n{end}\nbehind\n"),
          f"before\n{begin}\nnew\n{end}\nbehind\n")
    check("a page without marks is refused", refuses_page(), True)
    writer.finish()


if __name__ == "__main__":
    main()
