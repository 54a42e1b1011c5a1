#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks the fault planter: tables that do not fit and faults that survive must count as failed."""
import sys

from tree import ROOT, tap

sys.path.insert(0, str(ROOT / "tests/mutate"))
import mutate  # noqa: E402  (found through the line above)

TEXT = "int a = 1;\nint f(void) { return 1; }\nint g(void) { return 1; }\n"
WHOLE = "fault: x\nfile: base/a.c\nold: a\nnew: b\nred: base/a base/b\n"


def fault(**fields):
    return dict({"fault": "x", "file": "f", "old": "a = 1", "new": "a = 2", "red": "t u"}, **fields)


# name, fault, the text wanted, or None when it must be refused
PLANTED = [
    ("a fragment", fault(), TEXT.replace("a = 1", "a = 2")),
    ("a fragment taken out", fault(new=""), TEXT.replace("a = 1", "")),
    ("a fragment that is not there", fault(old="a = 3"), None),
    ("a fragment that is there twice", fault(old="return 1"), None),
    ("the first behind a place", fault(old="return 1", new="return 2", after="g(void)"),
     TEXT.replace("g(void) { return 1", "g(void) { return 2")),
    ("a fragment before its place only", fault(after="g(void)"), None),
    ("a place that is not there", fault(after="h(void)"), None),
    ("no change", fault(new="a = 1"), None),
]

# name, table, how many faults it holds, or None when it must be refused
TABLES = [
    ("one fault", WHOLE, 1),
    ("two faults", WHOLE + "\n# between\n" + WHOLE, 2),
    ("nothing", "# only words\n", 0),
    ("a fault that names no test", WHOLE.replace("red: base/a base/b\n", ""), None),
    ("a field twice", WHOLE + "red: base/c\n", None),
    ("an unknown field", WHOLE + "why: so\n", None),
    ("a line of no form", WHOLE + "so\n", None),
]


class Answer:
    """Stands for a copy of the source whose tests answer alike."""

    def __init__(self, seen):
        self.seen = seen

    def try_fault(self, _fault):
        if isinstance(self.seen, Exception):
            raise self.seen
        return self.seen


# name, the tests that see it, the tests red before, the verdict
VERDICTS = [
    ("seen by all", ["t", "u"], set(), "killed"),
    ("seen by one of two", ["t"], set(), "SURVIVED"),
    ("seen by none", [], set(), "SURVIVED"),
    ("red before", ["t", "u"], {"u"}, "no baseline"),
    ("does not build", mutate.BadFault("no"), set(), "does not apply"),
]


def answer(function, *args):
    try:
        return function(*args)
    except mutate.BadFault:
        return None


def main():
    writer = tap.Writer()

    def check(name, got, wanted):
        writer.case(name, [] if got == wanted else [f"got {got!r}", f"wanted {wanted!r}"])

    for name, planted, wanted in PLANTED:
        check(f"planting {name}", answer(mutate.plant, TEXT, planted), wanted)
    for name, table, wanted in TABLES:
        faults = answer(mutate.parse, table, "table")
        check(f"a table with {name}", faults if faults is None else len(faults), wanted)
    for name, seen, before, wanted in VERDICTS:
        verdict, problems = mutate.judge(Answer(seen), fault(), before)
        check(f"a fault {name}", (verdict, bool(problems)), (wanted, wanted != "killed"))
    writer.finish()


if __name__ == "__main__":
    main()
