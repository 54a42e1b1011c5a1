#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each benchmark of ./dev bench in its short form: it works, and its table and JSON are whole.

    bench.py WARPSOCK BUILD [NAME...]

How fast anything is does not matter here.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(TOP / "bench")]

import arms  # noqa: E402
import catalogue  # noqa: E402
import tap  # noqa: E402

RUN = [sys.executable, str(TOP / "bench/run.py")]
ARMS = ["tcp", "ddp"]
OTHERS = {"carriers": ["tcp", "uring"]}  # benchmarks with arms of their own
BESIDE = {"latency": ["ucx-tag", "ucx-put", "ucx-get", "ucx-am", "fi"],
          "bandwidth": ["ucx-tag", "ucx-put", "ucx-am"]}
PLOTS = {"latency": {"latency.svg", "cpu-by-messages.svg", "distribution-latency-*.svg"},
         "bandwidth": {"bandwidth.svg", "cpu-by-bytes.svg"}}
BAD = (["sing"], ["latency", "--arms", "sing"], ["latency", "--rounds", "0"],
       ["latency", "--seconds", "-1"], ["--render", "/nowhere/results.json"])


def run(*args):
    return subprocess.run([*RUN, *map(str, args)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=280)


def row_problems(row, text):
    name = f"{row['measure']}: {row['figure']}, {row['place']}"
    for arm in OTHERS.get(row["bench"], ARMS):
        values = row["runs"].get(arm, [])
        # Memory is a difference, and of few connections it may be none
        if len(values) != 1 or not all(math.isfinite(v) and (v >= 0 or row["unit"] == "KiB")
                                       for v in values):
            yield f"{name}: {arm}: {values}"
    if f"| {row['measure']}" not in text or row["unit"] not in text:
        yield f"{name} is not in the table"
    turns = [turn for several in row["turns"].values() for turn in several]
    if len(set(turns)) != len(turns):
        yield f"{name}: two runs in one turn"


def beside_problems(name, rows):
    """Each system beside ours has a figure, where it has a processor for each end."""
    if len(os.sched_getaffinity(0)) < 2:
        return
    seen = {key for row in rows for key, runs in row["runs"].items() if min(runs) > 0}
    yield from (f"no figure of {key}" for key in BESIDE.get(name, []) if key not in seen)


def problems_of(name, found, text, folder):
    rows = [row for row in found["rows"] if row["bench"] == name]
    section = text.partition(f"### {name}\n")[2].partition("\n###")[0]
    yield from (wrong for row in rows for wrong in row_problems(row, section))
    yield from beside_problems(name, rows)
    yield from (f"no {plot}" for plot in PLOTS.get(name, set())
                if not [path for path in folder.glob(plot) if "<svg" in path.read_text()])
    yield from (f"{entry['measure']}, {entry['arm']}: {entry['reason']}"
                for entry in found["skipped"] if entry["bench"] == name and entry.get("failed"))


def case(writer, name, found, text, folder):
    problems = list(problems_of(name, found, text, folder))
    left = [f"{entry['measure']}: {entry['reason']}" for entry in found["skipped"]
            if entry["bench"] == name and not entry.get("failed")]
    if left and not problems:
        writer.skip(name, left[0].partition(": ")[2])
    elif not problems and not any(row["bench"] == name for row in found["rows"]):
        writer.case(name, ["it has no row"])
    else:
        writer.case(name, problems)


def again(folder, text):
    """A file of results gives the same table again."""
    done = run("--render", folder / "results.json", "--out", folder / "again")
    if done.returncode or done.stdout != text:
        return [f"{done.returncode}, {done.stderr}"]
    same = (folder / "again/results.md").read_text() == (folder / "results.md").read_text()
    return [] if same else ["another file"]


def all_of_them(writer, names, folder, warpsock, build):
    keys = ["ddp", *sorted({key for keys in BESIDE.values() for key in keys})]
    done = run(*names, "--short", "--arms", ",".join(keys), "--out", folder, "--warpsock", warpsock,
               "--build", build)
    print("".join(f"# {line}\n" for line in done.stderr.splitlines()), end="")
    path = folder / "results.json"
    if not path.exists():
        writer.case("there are results", [f"status {done.returncode}", *done.stderr.splitlines()])
        return
    found = json.loads(path.read_text())
    for name in names:
        case(writer, name, found, done.stdout, folder)
    failed = any(entry.get("failed") for entry in found["skipped"])
    writer.case("the exit status tells whether a run has failed",
                [] if done.returncode == failed else [f"{done.returncode}"])
    writer.case("a file of results is shown again", again(folder, done.stdout))


def arms_problems(folder, warpsock, build):
    """Each arm of ours is run, or left out with a reason."""
    done = run("steady", "--short", "--arms", ",".join(arm.key for arm in arms.ARMS[1:]), "--out",
               folder, "--warpsock", warpsock, "--build", build)
    if done.returncode:
        return [f"status {done.returncode}", *done.stderr.splitlines()]
    found = json.loads((folder / "results.json").read_text())
    return [f"{arm.key}: {row['measure']}: {row['runs'].get(arm.key)}" for row in found["rows"]
            for arm in arms.ARMS
            if bool(row["runs"].get(arm.key)) == bool(found["left_out"].get(arm.title))]


# Launchers that do what no launcher should, and what has to be told of a run by them
FAKES = {
    "a launcher that cannot run": ("""case "$*" in *"-- /bin/true") exit 0 ;; esac
echo no luck >&2; exit 3""", "no luck"),
    "a launcher whose connections stay on TCP": ("""
while [ "$1" != -- ]; do [ "$1" != --report ] || report=$2; shift; done
shift
[ -z "$report" ] || echo '{"connections": {"software": 0, "tcp": 1}, "fallbacks": {}}' >"$report"
exec "$@\"""", "its connections were not"),
    "a launcher that makes no report": ("""while [ "$1" != -- ]; do shift; done
shift; exec "$@\"""", "made no report"),
}


def fake_problems(folder, build, script, wanted):
    """What is measured by such a launcher has failed, and plain TCP's figures stay."""
    launcher = folder / "launcher"
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    done = run("steady", "--short", "--arms", "ddp", "--out", folder, "--warpsock", launcher,
               "--build", build)
    found = json.loads((folder / "results.json").read_text())
    reasons = [entry["reason"] for entry in found["skipped"] if entry.get("failed")]
    if done.returncode != 1 or len(reasons) != 2 or not all(wanted in one for one in reasons):
        yield f"status {done.returncode}, {reasons}"
    if any(list(row["runs"]) != ["tcp"] for row in found["rows"]) or not found["rows"]:
        yield f"{found['rows']}"
    if done.stdout.count(wanted) != 2:
        yield f"it is not told: {done.stdout}"


def main():
    warpsock, build, *names = sys.argv[1:]
    writer = tap.Writer()
    with tempfile.TemporaryDirectory(prefix="warpsock-bench-test-") as folder:
        all_of_them(writer, names or list(catalogue.BENCHES), Path(folder), warpsock, build)
        writer.case("each arm is run, or left out with a reason",
                    arms_problems(Path(folder), warpsock, build))
        for name, (script, wanted) in FAKES.items():
            writer.case(name, list(fake_problems(Path(folder), build, script, wanted)))
    listed = run()
    writer.case("without a name they are listed", [] if not listed.returncode and all(
        f"  {name} " in listed.stdout for name in catalogue.BENCHES) else [listed.stdout])
    for args in BAD:
        done = run(*args)
        writer.case(f"{' '.join(args)}: refused with a word", [] if done.returncode and done.stderr
                    and "Traceback" not in done.stderr else [f"{done}"])
    writer.finish()


if __name__ == "__main__":
    main()
