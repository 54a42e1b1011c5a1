#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks docs/programs.md: each program that is run has a row about RDMA devices.

The last cell of a row is `CASE`: CHECK; CHECK, and more of them: these are in tests/vm/cases.
"""
import re

import tree
from limits import rows

PAGE = "docs/programs.md"
HEAD = "## Over an RDMA device\n"
NAMED = re.compile(r"`(\w+)`: ([^`]+)")


def section(text):
    return text.partition(HEAD)[2].partition("\n## ")[0]


def missing(root, cell):
    if not NAMED.fullmatch(cell.split("; `")[0]):
        yield f"no check: {cell}"
    for case, names in NAMED.findall(cell):
        path = root / "tests/vm/cases" / f"{case}.sh"
        text = path.read_text() if path.is_file() else ""
        yield from (f"tests/vm/cases/{case}.sh has no \"{name}\""
                    for name in names.strip("; ").split("; ") if f'"{name}"' not in text)


def main():
    root, writer = tree.open_check(__doc__)
    path = root / PAGE
    text = path.read_text() if path.exists() else ""
    told = {cells[0]: cells[-1] for _, cells in rows(section(text).split("\n"))}
    run = set(re.findall(r"^### (\S+) \d", text, re.M))
    writer.case("each program that is run has a row about devices",
                [f"{PAGE}: {name}" for name in sorted(run ^ set(told))])
    writer.case("each such row names checks that there are",
                [f"{PAGE}: {name}: {what}" for name, cell in told.items()
                 for what in missing(root, cell)])
    writer.finish()


if __name__ == "__main__":
    main()
