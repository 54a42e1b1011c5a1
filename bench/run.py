#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Benchmarks: what is over DDP, and how it compares with plain TCP.

    run.py [NAME...] [--quick] [--arms KEY,KEY] [--rounds N] [--seconds N] [--out FOLDER]
    run.py targets [--quick]
    run.py --render FILE [--out FOLDER]

Without NAME: what there is. A run leaves results.json, results.md and plots (SVG) in FOLDER.
"""
import argparse
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import arms
import catalogue
import drawing
import table
import targets
from session import SCALES, TOP, Session

HERE = Path(__file__).resolve().parent
MARKS = {name: (f"<!-- {name}: begin -->", f"<!-- {name}: end -->")
         for name in ("measured", "targets")}


def listing():
    width = max(map(len, [*catalogue.BENCHES, *catalogue.TABLES]))
    for name, bench in catalogue.BENCHES.items():
        print(f"  {name:{width}}  {bench.text}")
    print(f"  {'all':{width}}  all of these, in one table")
    for name, text in catalogue.TABLES.items():
        print(f"  {name:{width}}  {text}")


def into_page(text, page, name):
    """The results in place of those between the two marks of a page."""
    begin, end = MARKS[name]
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        sys.exit(f"{page}: it has no lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n{text}{end}{after}")


def render(found, folder, path, page=None):
    """The table to standard output and a file, and the plots beside it."""
    aims = found["settings"]["targets"]
    text = table.markdown(found, {name: bench.text for name, bench in catalogue.BENCHES.items()})
    shown = text
    if aims:
        head = map(table.fold, table.settings(found))
        shown = "\n\n".join([*head, targets.markdown(found)])
        text += f"\n### Targets\n\n{targets.markdown(found)}"
    (folder / "results.md").write_text(text)
    print(text)
    if page:
        into_page(shown, page, "targets" if aims else "measured")
    drawn = any(row["axis"] or row["quantiles"] for row in found["rows"])
    why = drawing.draw(path, folder) if drawn else None
    made = "tables and plots" if drawn else "tables"
    print(f"no plots: {why}" if why else f"{made}: {folder}", file=sys.stderr)


def measured(given, names, only=None):
    """Runs the benchmarks and returns all that was found."""
    scale = SCALES["short" if given.short else "quick" if given.quick else "targets" if only
                   else "full"]
    scale = dataclasses.replace(scale, rounds=given.rounds or scale.rounds,
                                seconds=given.seconds or scale.seconds)
    keys = set(filter(None, given.arms.split(",")))
    keys = keys or {key for arms_of in (only or {}).values() for key in arms_of}
    mine, left = arms.chosen(given.warpsock, keys, given.quick or given.short)
    foreign, missing = arms.foreign_chosen(keys)
    session = Session(given.warpsock, given.build, scale, mine, foreign, only)
    session.say(f"arms: {', '.join(arm.title for arm in [*mine, *foreign])}")
    for name, why in (left | missing).items():
        session.say(f"left out: {name}: {why}")
    try:
        for name in names:
            catalogue.run(session, name)
    except KeyboardInterrupt:
        session.skip("the rest", "interrupted")
        session.skipped[-1]["failed"] = True
    found = session.result(left | missing, catalogue.packages(names))
    found["settings"]["targets"] = only is not None
    return found


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer runs")
    parser.add_argument("--short", action="store_true", help="to try it: the figures say nothing")
    parser.add_argument("--arms", default="", help="these only, beside plain TCP: "
                        + ",".join(arm.key for arm in arms.ARMS + arms.FOREIGN))
    parser.add_argument("--rounds", type=int, help="runs of each arm")
    parser.add_argument("--seconds", type=float, help="of a run, where it has a time")
    parser.add_argument("--out", type=Path, help="folder for the results; bench-results otherwise")
    parser.add_argument("--render", type=Path, metavar="FILE", help="show results.json again")
    parser.add_argument("--page", type=Path, help="a page whose results are to be these")
    parser.add_argument("--warpsock", default=TOP / "build/apps/warpsock")
    parser.add_argument("--build", default=TOP / "build")
    given = parser.parse_args()
    known = {arm.key for arm in arms.ARMS + arms.FOREIGN}
    unknown = set(filter(None, given.arms.split(","))) - known
    if unknown:
        parser.error(f"no such arm: {', '.join(sorted(unknown))}")
    if given.rounds is not None and given.rounds < 1 or given.seconds is not None and not (
            0 < given.seconds <= 600):
        parser.error("--rounds is at least 1, --seconds above 0 and at most 600")
    unknown = set(given.names) - set(catalogue.BENCHES) - {"all", "targets"}
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))} (./dev bench lists them)")
    return given


def again(given):
    """A file of results, shown as when it was made."""
    try:
        found = json.loads(given.render.read_text())
        version = found["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{given.render}: no results: {error}")
    if version != 1:
        sys.exit(f"{given.render}: version {version}; this program knows 1")
    folder = given.out or given.render.resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    try:
        render(found, folder, given.render, given.page)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        sys.exit(f"{given.render}: no whole results: {type(error).__name__}: {error}")


def main():
    if sys.argv[1:] and sys.argv[1] in catalogue.ELSEWHERE:
        catalogue.elsewhere(sys.argv[1:])
    given = parse()
    if given.render:
        again(given)
        return 0
    if not given.names:
        listing()
        return 0
    names = list(catalogue.BENCHES) if "all" in given.names else [
        name for name in given.names if name in catalogue.BENCHES]
    only = None
    if "targets" in given.names:
        only, names = targets.wanted(), targets.benches()
    folder = given.out or TOP / "bench-results"
    folder.mkdir(parents=True, exist_ok=True)
    found = measured(given, names, only)
    path = folder / "results.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    render(found, folder, path, given.page)
    return 1 if any(entry.get("failed") for entry in found["skipped"]) else 0


if __name__ == "__main__":
    sys.exit(main())
