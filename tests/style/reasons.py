#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks that each reason code is given by something, and brought about by a test.

tests/style/reasons.txt has a row for each code of config/reason_list.h: the tests, as
docs/limits.md names them.
"""
import re

import limits
import tree

LIST = "config/reason_list.h"
ROWS = "tests/style/reasons.txt"
GIVERS = ("apps", "config", "lib", "preload", "stream")


def codes(root):
    return re.findall(r"X\(([A-Z_]+), \d+,", (root / LIST).read_text())


def rows(root):
    for line in tree.lines(root / ROWS):
        if line and not line.startswith("#"):
            name, what = line.split("\t", 1)
            yield name, what.strip()


def given(root):
    """The codes that some code of ours names."""
    text = "".join(path.read_text() for folder in GIVERS
                   for path in sorted((root / folder).rglob("*.c")))
    return set(re.findall(r"\bCONFIG_REASON_([A-Z_]+)", text))


def problems(root, there):
    for name, what in rows(root):
        if name not in there:
            yield f"{name}: nothing gives it"
        else:
            yield from (f"{name}: {problem}" for problem in limits.missing(root, what))


def main():
    root, writer = tree.open_check(__doc__)
    names = [name for name, _ in rows(root)]
    wanted = [name for name in codes(root) if name != "NONE"]
    writer.case("each code has its row, in their order",
                [] if names == wanted else sorted(set(names) ^ set(wanted)) or ["another order"])
    writer.case("what is given is brought about by a test", list(problems(root, given(root))))
    writer.finish()


if __name__ == "__main__":
    main()
