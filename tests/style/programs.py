#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks docs/programs.md: each program that is run has an entry about RDMA devices.

The item Checks of an entry is `CASE`: CHECK; CHECK, and more of them: these are in tests/vm/cases.
"""
import re

import tree

PAGE = "docs/programs.md"
HEAD = "## Over an RDMA device\n"
NAMED = re.compile(r"`(\w+)`: ([^`]+)")
ENTRY = re.compile(r"^- \*\*(\S+)\*\*:\n((?:  .*\n)+)", re.M)
CHECKS = re.compile(r"^  - Checks: (.*(?:\n    .*)*)", re.M)


def section(text):
    return text.partition(HEAD)[2].partition("\n## ")[0]


def entries(text):
    """What is said of each program's checks; "" where nothing is."""
    for name, items in ENTRY.findall(text):
        checks = CHECKS.search(items)
        yield name, " ".join(checks[1].split()).rstrip(".") if checks else ""


def missing(root, told):
    if not NAMED.fullmatch(told.split("; `")[0]):
        yield f"no check: {told}"
    for case, names in NAMED.findall(told):
        path = root / "tests/vm/cases" / f"{case}.sh"
        text = path.read_text() if path.is_file() else ""
        yield from (f"tests/vm/cases/{case}.sh has no \"{name}\""
                    for name in names.strip("; ").split("; ") if f'"{name}"' not in text)


def main():
    root, writer = tree.open_check(__doc__)
    path = root / PAGE
    text = path.read_text() if path.exists() else ""
    told = dict(entries(section(text)))
    run = set(re.findall(r"^### (\S+) \d", text, re.M))
    writer.case("each program that is run has an entry about devices",
                [f"{PAGE}: {name}" for name in sorted(run ^ set(told))])
    writer.case("each such entry names checks that there are",
                [f"{PAGE}: {name}: {what}" for name, checks in told.items()
                 for what in missing(root, checks)])
    writer.finish()


if __name__ == "__main__":
    main()
