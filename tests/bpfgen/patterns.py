#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Generated regular expressions as code, against regexec(3) and Python's re.

    patterns.py EVALUATE [SEED]

Each pattern is searched in a row of texts; a case is one text. WARPSOCK_LONG: ten times as many.
"""
import os
import random
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

PATTERNS, TEXTS = 2500, 25


class Maker:
    """Makes patterns for one judge: what both understand alike, and nothing else.

    glibc's regexec takes ^ and $ in a repeated group for true where they are not, so for it they
    stand at the ends only. Python's re needs time that grows exponentially with a text's length.
    """

    def __init__(self, rng, posix):
        self.rng, self.posix = rng, posix

    def some(self, *choices):
        return self.rng.choice(choices)

    def member(self):
        if not self.posix and self.rng.random() < 0.2:
            return self.some(r"\d", r"\w", r"\s", r"\D", r"\]", r"\-", r"\x41-\x43", r"\n")
        return self.some("a", "b", "c", "a-c", "b-z", "A-C", "0-9", ".", "+")

    def byte_class(self):
        inside = "".join(self.member() for _ in range(self.rng.randint(1, 3)))
        if self.posix and self.rng.random() < 0.2:
            inside += self.some("[:digit:]", "[:upper:]", "[:punct:]", "[:alnum:]", "[:space:]")
        return f"[{self.some('', '', '^')}{inside}]"

    def atom(self, depth):
        roll = self.rng.random()
        if roll < 0.45:
            return self.some("a", "b", "c", "ab", "d", "A", "1", " ")
        if roll < 0.55:
            return "."
        if roll < 0.68:
            return self.byte_class()
        if roll < 0.74:
            return self.some(r"\.", r"\*", r"\(", r"\\") if self.posix else self.some(
                r"\.", r"\d", r"\w", r"\S", r"\x62", r"\n", r"\t", r"\W", r"\\")
        if depth and roll < 0.94:
            return f"({'' if self.posix else self.some('', '?:')}{self.either(depth - 1)})"
        return self.some("a", "b") if self.posix else self.some("^", "$")

    def repeat(self, depth):
        atom = self.atom(depth)
        if atom in ("^", "$") or self.rng.random() < 0.62:
            return atom
        low = self.rng.randint(0, 3)
        return atom + self.some("*", "+", "?", "*", f"{{{low}}}", f"{{{low},}}",
                                f"{{{low},{low + self.rng.randint(0, 2)}}}")

    def either(self, depth):
        ways = ["".join(self.repeat(depth) for _ in range(self.rng.randint(1, 4)))
                for _ in range(self.some(1, 1, 1, 2, 3))]
        return "|".join(ways)

    def pattern(self):
        if not self.posix or self.rng.random() < 0.7:
            return self.either(2)
        return f"{self.some('', '^')}({self.either(2)}){self.some('', '$')}"

    def text(self):
        letters = "abcdABC1 .+\\(*" if self.posix else "abcdABC1 .+\n\n\t\\-]\x00\xff"
        weights = [8, 8, 6, 2] + [1] * (len(letters) - 4)
        length = self.rng.choice((0, 1, 2, 3, 5, 8, 13, 21, 40) if self.posix else range(11))
        return bytes(ord(c) for c in self.rng.choices(letters, weights, k=length))


def line_of(pattern, flags, texts):
    return " ".join([str(flags), *((word.hex() or "-") for word in [pattern, *texts])]) + "\n"


def evaluate(program, mode, lines):
    done = subprocess.run([program, mode], input="".join(lines), text=True, timeout=250,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"not ok 1 - {mode}\n# {done.stderr}\n1..1")
    return done.stdout.splitlines()


def parted(lines, tests):
    """The answers to each pattern: a list, or the refusal."""
    at = iter(lines)
    for _, _, texts in tests:
        first = next(at)
        if first.startswith("!"):
            yield first
        else:
            yield [first, *(next(at) for _ in texts[1:])]


def by_python(pattern, flags, text):
    """Where the first match ends, the leftmost begins, and the first line with one begins."""
    source = re.sub(rb"(?<!\\)((?:\\\\)*)\$", rb"\1\\Z", pattern)
    wanted = re.compile(source, re.I if flags else 0)
    found = wanted.search(text)
    ends = re.compile(rb"(?:" + source + rb")\Z", re.I if flags else 0)
    first = next((end for end in range(len(text) + 1) if ends.search(text, 0, end)), -1)
    if rb"\Z" in source:  # then the end of a part is no end of the text
        first = None
    line, start = -1, 0
    for piece in text.removesuffix(b"\n").split(b"\n") if text else ():
        if wanted.search(piece):
            line = start
            break
        start += len(piece) + 1
    return first, found.start() if found else -1, line


def python_says(answer, pattern, flags, text):
    """What is wrong with an answer"""
    search, begin, end, line = map(int, answer.split())
    first, start, first_line = by_python(pattern, flags, text)
    if first is not None and search != first:
        return f"the first end is {search}, not {first}"
    if (search < 0) != (start < 0) or begin != start:
        return f"it begins at {begin}, not {start}"
    if line != first_line:
        return f"the first line is at {line}, not {first_line}"
    source = re.sub(rb"(?<!\\)((?:\\\\)*)\$", rb"\1\\Z", pattern)
    ends = [e for e in range(start, len(text) + 1)
            if re.compile(rb"(?:" + source + rb")\Z", re.I if flags else 0)
            .match(text, start, e)] if start >= 0 and rb"\Z" not in source else []
    if ends and end != ends[-1]:
        return f"it ends at {end}, not {ends[-1]}"
    return None


def make(rng, posix, count):
    maker, tests = Maker(rng, posix), []
    while len(tests) < count:
        pattern, flags = maker.pattern().encode("latin-1"), int(rng.random() < 0.2)
        if len(pattern) < 80:
            tests.append((pattern, flags, [maker.text() for _ in range(TEXTS)]))
    return tests


def compare(writer, program, rng, posix, count):
    tests = make(rng, posix, count)
    lines = [line_of(*test) for test in tests]
    ours = list(parted(evaluate(program, "regex", lines), tests))
    theirs = list(parted(evaluate(program, "posix", lines), tests)) if posix else ours
    problems, cases, refused = [], 0, 0
    for (pattern, flags, texts), mine, other in zip(tests, ours, theirs):
        if isinstance(mine, str) or isinstance(other, str):
            refused += 1
            if mine != other and not (isinstance(mine, str) and "more than" in mine):
                problems.append(f"{pattern} {flags}: {mine[:80]}, by the other {other[:80]}")
            continue
        for text, answer, judged in zip(texts, mine, other):
            cases += 1
            if posix:
                wrong = answer.split()[1:3] != judged.split() and f"{answer}, not {judged}"
            else:
                wrong = python_says(answer, pattern, flags, text)
            if wrong:
                problems.append(f"{pattern} {flags} in {text}: {wrong}")
    if refused > count // 20:
        problems.append(f"{refused} patterns were refused")
    judge = "regexec" if posix else "Python's re"
    writer.case(f"{cases} texts are as for {judge}", problems[:20])


def main():
    count = PATTERNS * (10 if os.environ.get("WARPSOCK_LONG") else 1)
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    writer = tap.Writer()
    compare(writer, sys.argv[1], random.Random(seed), True, count)
    compare(writer, sys.argv[1], random.Random(seed + 1), False, count)
    writer.finish()


if __name__ == "__main__":
    main()
