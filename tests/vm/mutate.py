#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plants the faults of faults.txt in a copy, one at a time: the lab's checks they name must fail.

    mutate.py [WORD...]     only faults whose file or name contains a WORD; prints TAP

Patterns are those of a shell, with ? for a blank. The checks run without a fault as well. All
faults are built first, and one boot serves them all, but for those that end the guest.
"""
import argparse
import fnmatch
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "mutate")]
import mutate as faults  # noqa: E402
import tap  # noqa: E402
sys.path.insert(0, str(HERE))
del sys.modules["run"]  # that of tests/, which mutate has
import run as lab  # noqa: E402

COPY = ROOT / "build-vm" / "faulty"
BUILD_LIMIT = 900
LIMIT = 180  # of a case that has a fault
# What the lab runs of ours
BUILT = ["apps/warpsock", "apps/examples/warp-rping", "preload/libwarpsock-preload.so",
         "tests/vm/script_warp"]
LIBRARY = "lib/libwarp.so.0"
NONE = "none"


# --- builds ---------------------------------------------------------------------------------------


def command(args):
    done = subprocess.run(args, cwd=COPY, text=True, timeout=BUILD_LIMIT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        raise faults.BadFault("\n".join(done.stdout.splitlines()[-20:]))


def copy_source():
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(ROOT, COPY, symlinks=True,
                    ignore=shutil.ignore_patterns(".git", "build*", "__pycache__"))
    command(["meson", "setup", "build", "-Dwerror=false"])


def build(name):
    command(["nice", "ninja", "-j2", "-C", "build", *BUILT])
    for path in [*BUILT, LIBRARY]:
        to = COPY / "of" / name / path
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(COPY / "build" / path, to)


def build_fault(name, fault):
    path = COPY / fault["file"]
    good = path.read_text()
    try:
        path.write_text(faults.plant(good, fault))
        build(name)
    finally:
        path.write_text(good)


# --- runs -----------------------------------------------------------------------------------------


def scripts_of(name, wanted):
    """The cases that these patterns CASE/PATTERN name, with the build of that name."""
    known = {script.name: script for script in lab.scripts()}
    for case in sorted({one.split("/")[0] for one in wanted}):
        only = tuple(one.split("/", 1)[1] for one in wanted if one.split("/")[0] == case)
        limit = min(known[case].limit, LIMIT) if name != NONE else known[case].limit
        yield replace(known[case], fault=name, only=only, limit=limit)


def judge(script, died):
    """Which of its patterns have a check that fails, and which have none that ran at all."""
    if script.label in died:  # siw did not survive the fault
        return set(script.only), set()
    cases = lab.judge(script, died)
    failed = {case.name for case in cases if case.result == "failed"}
    unended = "time limit" in failed
    red = {one for one in script.only
           if fnmatch.filter(failed, one)
           or unended and not fnmatch.filter((case.name for case in cases), one)}
    ran = {case.name for case in cases}
    return red, {one for one in script.only if one not in red and not fnmatch.filter(ran, one)}


def tried(plan):
    """Build -> its red patterns CASE/PATTERN, and those without a check."""
    with lab.lock():
        lab.prepare("6.1")
        todo = [script for name, wanted in plan.items() for script in scripts_of(name, wanted)]
        died = lab.run_all(todo, lab.Guests())
        found = {name: (set(), set()) for name in plan}
        for script in todo:
            for into, patterns in zip(found[script.fault], judge(script, died)):
                into |= {f"{script.name}/{one}" for one in patterns}
    return found


def main():
    parser = argparse.ArgumentParser(description="Plant faults that the lab must find.")
    parser.add_argument("words", nargs="*")
    words = parser.parse_args().words
    path = HERE / "faults.txt"
    chosen = [fault for fault in faults.parse(path.read_text(), path.name)
              if not words or any(w in fault["file"] or w in fault["fault"] for w in words)]
    plan = {NONE: {one for fault in chosen for one in fault["red"].split()}}
    bad = {}
    copy_source()
    build(NONE)
    for i, fault in enumerate(chosen):
        try:
            build_fault(str(i), fault)
            plan[str(i)] = set(fault["red"].split())
        except faults.BadFault as why:
            bad[i] = str(why).splitlines()
    found, writer = tried(plan), tap.Writer()
    for i, fault in enumerate(chosen):
        wanted = set(fault["red"].split())
        problems = bad.get(i) or []
        if not problems:
            red, missing = found[str(i)]
            problems = [f"green: {one}" for one in sorted(wanted - red - missing)]
            problems += [f"a pattern without a check: {one}" for one in sorted(missing)]
        problems += [f"red without the fault: {one}" for one in sorted(found[NONE][0] & wanted)]
        writer.case(fault["fault"], problems)
    writer.finish()


if __name__ == "__main__":
    main()
