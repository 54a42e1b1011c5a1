#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks docs/limits.md and docs/strangers.md: each entry names tests that exist, in order.

An entry is a heading of the third level and a list: what differs, what to do about it, its tests.
The item Test has `FILE`: WORDS, and more of them behind "; `". FILE is below tests/ and has the
words in it, at one place, however its lines break.
"""
import re

import tree

# What the items of an entry are called: one of these sets, in this order, and its Test
PAGES = {
    "docs/limits.md": [["TCP", "DDP", "Do"], ["Log", "Reason"], ["Result", "Do"]],
    "docs/strangers.md": [["Result", "Remains"]],
}
TEST = re.compile(r"`([^`]+)`: (.+?)(?:; (?=`)|$)")
ITEM = re.compile(r"- ([A-Z]\w*):(?: |$)(.*)")


class Entry:
    def __init__(self, number, section, name):
        self.number, self.section, self.name = number, section, name
        self.items = []  # [key, text]

    def add(self, line):
        item = ITEM.match(line)
        if item:
            self.items.append([item[1], item[2].strip()])
        elif line.startswith("  ") and self.items:
            self.items[-1][1] += " " + line.strip()
        elif line.strip():
            self.items.append(["", line])  # what is no item of a list is one without a name

    def keys(self):
        return [key for key, _ in self.items]

    def of(self, key):
        return dict(self.items).get(key, "")


def entries(text):
    section, entry = "", None
    for number, line in enumerate(text, 1):
        if line.startswith("### "):
            entry = Entry(number, section, line[4:].strip())
            yield entry
        elif line.startswith("#"):
            section, entry = line, None
        elif entry:
            entry.add(line)


def holds(path, words):
    text = path.read_text(errors="replace")
    return " ".join(words.split()) in " ".join(re.sub(r'"\s*"', "", text).split())


def missing(root, named):
    tests = TEST.findall(named)
    if not tests:
        yield f"no test: {named}"
    for name, words in tests:
        path = root / "tests" / name
        if not path.is_file():
            yield f"there is no tests/{name}"
        elif not holds(path, words):
            yield f"tests/{name} has no \"{words}\""


def judge(root, page):
    """What is wrong with entries, and with their order."""
    problems, unsorted, before = [], [], None
    path = root / page
    for entry in list(entries(tree.lines(path))) if path.exists() else []:
        where = f"{page}:{entry.number}"
        if entry.keys() not in [[*keys, "Test"] for keys in PAGES[page]]:
            problems.append(f"{where}: {entry.keys()} are its items")
        problems += [f"{where}: {key} is empty" for key, text in entry.items if not text]
        problems += [f"{where}: {what}" for what in missing(root, entry.of("Test"))]
        if before and before.section == entry.section and \
                before.name.lower() > entry.name.lower():
            unsorted.append(f"{where}: {entry.name} stands behind {before.name}")
        before = entry
    return problems, unsorted


def main():
    root, writer = tree.open_check(__doc__)
    found = [judge(root, page) for page in PAGES]
    writer.case("each difference has a test that exists", sum((each[0] for each in found), []))
    writer.case("entries are in order", sum((each[1] for each in found), []))
    writer.finish()


if __name__ == "__main__":
    main()
