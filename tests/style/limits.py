#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks docs/limits.md and docs/strangers.md: each row names tests that there are, in order.

The last cell of a row is `FILE`: WORDS, and more of them behind "; `". FILE is below tests/ and
has the words in it, at one place, however its lines break.
"""
import re

import tree

PAGES = ("docs/limits.md", "docs/strangers.md")
TEST = re.compile(r"`([^`]+)`: (.+?)(?:; (?=`)|$)")
CELLS = 4


def rows(text):
    """(number, cells) of each row of each table; a heading's row is not one."""
    body = False
    for number, line in enumerate(text, 1):
        if not line.startswith("|"):
            body = False
        elif set(line) <= set("|- "):
            body = True
        elif body:
            yield number, [cell.strip() for cell in line.strip("|").split("|")]


def holds(path, words):
    text = path.read_text(errors="replace")
    return " ".join(words.split()) in " ".join(re.sub(r'"\s*"', "", text).split())


def missing(root, cell):
    tests = TEST.findall(cell)
    if not tests:
        yield f"no test: {cell}"
    for name, words in tests:
        path = root / "tests" / name
        if not path.is_file():
            yield f"there is no tests/{name}"
        elif not holds(path, words):
            yield f"tests/{name} has no \"{words}\""


def judge(root, page):
    """What is wrong with rows, and with their order."""
    problems, unsorted, before = [], [], (0, "")
    path = root / page
    for number, cells in rows(tree.lines(path)) if path.exists() else []:
        if len(cells) != CELLS or not all(cells):
            problems.append(f"{page}:{number}: {CELLS} cells are wanted, none of them empty")
            continue
        problems += [f"{page}:{number}: {what}" for what in missing(root, cells[-1])]
        if before[0] == number - 1 and before[1].lower() > cells[0].lower():
            unsorted.append(f"{page}:{number}: {cells[0]} stands behind {before[1]}")
        before = (number, cells[0])
    return problems, unsorted


def main():
    root, writer = tree.open_check(__doc__)
    found = [judge(root, page) for page in PAGES]
    writer.case("each difference has a test that exists", sum((each[0] for each in found), []))
    writer.case("rows stand in order", sum((each[1] for each in found), []))
    writer.finish()


if __name__ == "__main__":
    main()
