#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks the kernel lab's planted faults: each case has one, or says why not, and each applies.

A case with none has a line "# No fault: WHY". What finds a fault, and what a case's kernel has
said, is tried here as well, without a guest.
"""
import importlib.util
import re
import subprocess
import sys
from types import SimpleNamespace

import tree

LAB = tree.ROOT / "tests/vm"
CASES = LAB / "cases"
EXEMPT = re.compile(r"^# No fault: \S.*$", re.M)
OURS = re.compile(r"\$(build|apps)/([a-z][\w./-]*)")
FOREIGN = re.compile(r"\$project/build/\S*")

sys.path.insert(0, str(tree.ROOT / "tests/mutate"))
spec = importlib.util.spec_from_file_location("lab_mutate", LAB / "mutate.py")
mutate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutate)

# what became of a case's checks, a pattern, how the fault shows, its verdict
ENDS = [
    ("a check fails", [("a b", "failed")], "a?b", "fails", None),
    ("a check passes", [("a b", "passed")], "a?b", "fails", mutate.GREEN),
    ("another one fails", [("a", "failed")], "b", "fails", mutate.LACKS),
    ("a check is skipped", [("a", "skipped")], "a", "fails", mutate.LACKS),
    ("one of two fails", [("a 1", "passed"), ("a 2", "failed")], "a*", "fails", None),
    ("the time is over", [("time limit", "failed")], "a", "fails", mutate.OVER),
    ("the time is over, as it is said", [("time limit", "failed")], "a", "hangs", None),
    ("the time is over behind a check", [("a", "passed"), ("time limit", "failed")], "a", "hangs",
     mutate.GREEN),
    ("the guest dies", None, "a", "fails", mutate.DIED),
    ("the guest dies, and was to hang", None, "a", "hangs", mutate.DIED),
    ("the guest dies, as it is said", None, "a", "dies", None),
]

TABLE = "fault: x\nfile: f\nold: a\nnew: b\nred: c/d\n"
# the kernel's log, what is of the case "one"
LOGS = [
    ("its beginning is there", "x\nlab: one begins\ny\n", "y\n"),
    ("another case's is there", "lab: two begins\ny\n",
     "lab: two begins\ny\nlab: WARNING: the log has lost where the case began\n"),
    ("nothing is there", "", "lab: WARNING: the log has lost where the case began\n"),
]


def named(table):
    return {one.split("/")[0] for fault in table for one in fault["red"].split()}


def unplanted(table):
    """Cases of which nobody knows whether they find anything."""
    for path in sorted(CASES.glob("*.sh")):
        exempt = EXEMPT.search(path.read_text())
        if (path.stem in named(table)) == bool(exempt):
            yield f"{path.name}: {'has a fault after all' if exempt else 'no fault, and no reason'}"


def out_of_reach():
    """What a case takes from a build that no fault is in."""
    for path in sorted(LAB.rglob("*.sh")):
        text = path.read_text()
        used = {("apps/" if where == "apps" else "") + what for where, what in OURS.findall(text)}
        yield from (f"{path.name}: {one} is not built with faults"
                    for one in sorted(used - set(mutate.BUILT)) if one != "apps")
        yield from (f"{path.name}: {one}" for one in FOREIGN.findall(text))


def unfit(table):
    for fault in table:
        try:
            mutate.faults.plant((tree.ROOT / fault["file"]).read_text(), fault)
        except (mutate.faults.BadFault, OSError) as error:
            yield f"{fault['fault']}: {error}"


def verdict(cases, pattern, how):
    script = SimpleNamespace(only=(pattern,))
    cases = cases and [SimpleNamespace(name=name, result=result) for name, result in cases]
    found = {f"c/{one}": what for one, what in mutate.became(script, cases).items()}
    good = dict.fromkeys(found, mutate.GREEN)
    problems = mutate.problems_of({"red": f"c/{pattern}", "how": how}, found, good)
    return problems[0].split(":")[0] if problems else None


def said(log):
    text = (LAB / "guest.sh").read_text()
    function = re.search(r"^said_since\(\) \{.*?^\}", text, re.M | re.S)[0]
    script = f'dmesg() {{ printf %s "$log"; }}\n{function}\nsaid_since one'
    return subprocess.run(["bash", "-c", script], env={"log": log, "PATH": "/usr/bin:/bin"},
                          check=True, text=True, stdout=subprocess.PIPE).stdout


def refused(text):
    try:
        mutate.load(text, "table")
    except mutate.faults.BadFault:
        return True
    return False


def main():
    writer = tree.tap.Writer()
    table = mutate.load((LAB / "faults.txt").read_text(), "faults.txt")
    writer.case("each case has a fault, or a reason", list(unplanted(table)))
    writer.case("each fault names cases that there are",
                sorted(named(table) - {path.stem for path in CASES.glob("*.sh")}))
    writer.case("each fault applies", list(unfit(table)))
    writer.case("each program of ours can have a fault", list(out_of_reach()))

    def check(name, got, wanted):
        writer.case(name, [] if got == wanted else [f"got {got!r}", f"wanted {wanted!r}"])

    for name, cases, pattern, how, wanted in ENDS:
        check(name, verdict(cases, pattern, how), wanted)
    check("a table that says how", refused(TABLE + "how: hangs\n"), False)
    check("a table that says another how", refused(TABLE + "how: so\n"), True)
    problems = mutate.problems_of({"red": "c/d", "how": "fails"}, {"c/d": mutate.RED},
                                  {"c/d": mutate.OVER})
    check("a check that needs no fault", problems, [f"{mutate.OVER} without the fault: c/d"])
    for name, log, wanted in LOGS:
        check(f"the kernel's log: {name}", said(log), wanted)
    writer.finish()


if __name__ == "__main__":
    main()
