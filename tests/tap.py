# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Test Anything Protocol, read with suspicion and written with care.

A test program is believed only as far as its whole output holds together: it must announce a plan,
keep it, and exit as its cases say. Anything else becomes a failed case of its own, so that a
program that crashed half-way can never count as passed.
"""
import re
import sys
from dataclasses import dataclass, field

CASE = re.compile(r"(not )?ok\b *(\d+)? *(?:- *)?(.*)")
PLAN = re.compile(r"1\.\.(\d+)\s*(?:# *skip\b\S*\s*(.*))?$", re.I)
SKIP = re.compile(r"(.*?)\s*# *skip\b[^\s]*\s*(.*)$", re.I)
CRITERION_TIME = re.compile(r"\s+\(\d+\.\d+s\)$")


@dataclass
class Case:
    name: str
    result: str  # passed, failed or skipped
    detail: list = field(default_factory=list)  # a skipped case: its reason
    unsteady: list = field(default_factory=list)  # its test failed once, and said this

    @property
    def reason(self):
        return " ".join(self.detail) or "no reason given"


def parse_case(match):
    bad, _, text = match.groups()
    skip = SKIP.match(text)
    if skip and not bad:
        reason = skip[2].strip()
        if not reason:
            return Case(skip[1], "failed", ["skipped without a reason"])
        return Case(skip[1], "skipped", [reason])
    return Case(CRITERION_TIME.sub("", text).strip(), "failed" if bad else "passed")


def parse(text):
    """The cases in text, and the complaints about text as a whole."""
    cases, complaints, plans = [], [], []
    before = []  # a program in C says why before the case's line, a script behind it
    for line in text.splitlines():
        match = CASE.match(line)
        plan = PLAN.match(line)
        if match:
            cases.append(parse_case(match))
            if cases[-1].result == "failed":
                cases[-1].detail += before
            before = []
        elif plan:
            plans.append(plan)
        elif line.startswith("Bail out!"):
            complaints.append(line)
        elif cases and cases[-1].result == "failed":
            cases[-1].detail.append(line)
        else:
            before.append(line)
    if len(plans) != 1:
        complaints.append(f"{len(plans)} plans in its output, one is needed")
    elif int(plans[0][1]) != len(cases):
        complaints.append(f"{plans[0][1]} cases planned, {len(cases)} reported")
    elif not cases and plans[0][2]:
        cases.append(Case("all of it", "skipped", [plans[0][2]]))
    elif not cases:
        complaints.append("it has no case")
    return cases, complaints


def judge(text, status):
    """The cases of a finished program; status is its exit status, negative for a signal."""
    cases, complaints = parse(text)
    if status < 0:
        complaints.append(f"it died by signal {-status}")
    elif status > 0 and not any(case.result == "failed" for case in cases):
        complaints.append(f"it exited with status {status}, but no case failed")
    if complaints:
        cases.append(Case("the program as a whole", "failed", complaints))
    return cases


class Writer:
    """What a checker script prints: a case at a time, the plan at the end."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def case(self, name, problems=()):
        self.count += 1
        print(f"{'not ok' if problems else 'ok'} {self.count} - {name}")
        for problem in problems:
            print(f"# {problem}")
        self.failed += bool(problems)
        sys.stdout.flush()

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}")

    def finish(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)
