#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plants the faults of faults.txt in a copy, one at a time: the lab's checks they name must fail.

    mutate.py [--guests N] [WORD...]    only faults whose file or name contains a WORD; prints TAP

Patterns are those of a shell, with ? for a blank. The checks run without a fault as well, and must
pass then. All faults are built first, and one boot serves them all, but for those that end the
guest. A check must fail: that a case's time was over before it, or that its guest died, a busy host
brings about, too. It counts only for a fault that says so in a line "how: hangs" or "how: dies".
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
# What the lab runs of ours
BUILT = ["apps/warpsock", "apps/examples/warp-rping", "apps/examples/warp-kv",
         "preload/libwarpsock-preload.so", "tests/vm/script_warp",
         "tests/conformance/conformance", "tests/differential/differential",
         "tests/unit/unit_soft_ops", "tests/unit/unit_soft_ends"]
LIBRARY = "lib/libwarp.so.0"
NONE = "none"
# What may become of a check, and what finds a fault, by how that shows
RED, GREEN, LACKS = "red", "green", "no such check"
OVER, DIED = "the time was over before it", "the guest died"
HOW = {"fails": {RED}, "hangs": {RED, OVER}, "dies": {RED, DIED}}


# --- the table ------------------------------------------------------------------------------------


def load(text, origin):
    table = faults.parse(text, origin, {"how"})
    for fault in table:
        if fault.setdefault("how", "fails") not in HOW:
            raise faults.BadFault(f"{origin}: {fault['fault']}: how is one of {' '.join(HOW)}")
    return table


# --- builds ---------------------------------------------------------------------------------------


def command(args):
    done = subprocess.run(args, cwd=COPY, text=True, timeout=BUILD_LIMIT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        raise faults.BadFault("\n".join(done.stdout.splitlines()[-20:]))


def copy_source():
    shutil.rmtree(COPY / "of", ignore_errors=True)
    shutil.copytree(ROOT, COPY, symlinks=True, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns(".git", "build*", "__pycache__"),
                    copy_function=faults.copy_changed)
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
        yield replace(known[case], fault=name, only=only)


def became(script, cases):
    """Pattern -> what became of its check; cases: None when the guest died."""
    if cases is None:
        return dict.fromkeys(script.only, DIED)
    over = any(case.name == "time limit" for case in cases)
    found = {}
    for one in script.only:
        results = {case.result for case in cases if fnmatch.fnmatchcase(case.name, one)}
        found[one] = (RED if "failed" in results else GREEN if "passed" in results else
                      OVER if over else LACKS)
    return found


def tried(plan, guests):
    """Build -> CASE/PATTERN -> what became of it."""
    with lab.lock():
        lab.prepare("6.1")
        todo = [script for name, wanted in plan.items() for script in scripts_of(name, wanted)]
        died = lab.run_all(todo, lab.Guests(number=guests))
        found = {name: {} for name in plan}
        for script in todo:
            cases = None if script.label in died else lab.judge(script, died)
            found[script.fault] |= {f"{script.name}/{one}": what
                                    for one, what in became(script, cases).items()}
    return found


def problems_of(fault, with_it, without):
    """Of its checks: CASE/PATTERN -> what became of each."""
    wanted = sorted(set(fault["red"].split()))
    return ([f"{with_it[one]}: {one}" for one in wanted if with_it[one] not in HOW[fault["how"]]] +
            [f"{without[one]} without the fault: {one}" for one in wanted
             if without[one] != GREEN])


def main():
    parser = argparse.ArgumentParser(description="Plant faults that the lab must find.")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--guests", type=int, default=lab.GUESTS, metavar="N",
                        help="so many at a time")
    options = parser.parse_args()
    words = options.words
    path = HERE / "faults.txt"
    chosen = [fault for fault in load(path.read_text(), path.name)
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
    found, writer = tried(plan, options.guests), tap.Writer()
    for i, fault in enumerate(chosen):
        writer.case(fault["fault"],
                    bad[i] if i in bad else problems_of(fault, found[str(i)], found[NONE]))
    writer.finish()


if __name__ == "__main__":
    main()
