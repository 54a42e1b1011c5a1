#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tests of CPython that are known to differ (expected.txt), and a check of that list.

Without arguments: prints TAP; each line is one, and names an entry of docs/limits.md.
"""
import re
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402

LIST = HERE / "expected.txt"
LIMITS = HERE.parent.parent / "docs/limits.md"
LINE = re.compile(r"(sometimes )?(on|auto|both) (test\.(\w+)\.\S+): (.+)")
MODES = ("on", "auto")


@dataclass(frozen=True)
class Difference:
    always: bool
    modes: tuple
    test: str
    module: str
    row: str


def read():
    """The differences, and the lines that are none."""
    found, wrong = [], []
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        match = LINE.fullmatch(line)
        if match:
            modes = MODES if match[2] == "both" else (match[2],)
            found.append(Difference(not match[1], modes, *match.groups()[2:]))
        elif line and not line.startswith("#"):
            wrong.append(f"{LIST.name}:{number}: {line}")
    return found, wrong


def of(module, mode):
    """Tests of a module that are known to differ, and whether they do so always."""
    return {one.test: one.always for one in read()[0]
            if one.module == module and mode in one.modes}


def main():
    writer = tap.Writer()
    found, wrong = read()
    entries = {line.removeprefix("### ") for line in LIMITS.read_text().splitlines()
               if line.startswith("### ")}
    names = [(one.test, mode) for one in found for mode in one.modes]
    writer.case("each line of expected.txt is a test and a reason", wrong)
    writer.case("each reason is an entry of docs/limits.md",
                sorted({f"{one.test}: {one.row}" for one in found if one.row not in entries}))
    writer.case("no test is named twice",
                sorted({f"{test}, {mode}" for test, mode in names
                        if names.count((test, mode)) > 1}))
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
