#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks what can be seen of the house style in the text itself; a case for each rule."""
import re

import tree

CODE = (".c", ".h")
TEXT = CODE + (".py", ".sh", ".txt", ".md", ".build", ".list", ".map", ".rst")
LINE_MAX = 100
AM_NAMES = "include/warp/amudp"

SPDX_C = re.compile(r"/\* SPDX-License-Identifier: GPL-2\.0-only( OR BSD-2-Clause)? \*/$")
SPDX_SCRIPT = re.compile(r"# SPDX-License-Identifier: GPL-2\.0-only OR BSD-2-Clause$")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
TYPEDEF = re.compile(r"\s*typedef\s+(struct|union)\b")
DEAD = re.compile(r"\s*#\s*if\s+0\b")


def each_line(test, *suffixes):
    """Makes a check of a test that is given a line (and its path) and says what is wrong."""
    def check(path, text):
        if path.endswith(suffixes):
            for number, line in enumerate(text, 1):
                wrong = test(path, line)
                if wrong:
                    yield f"{path}:{number}: {wrong}"
    return check


def trailing(_path, line):
    return line != line.rstrip() and "white space at the end"


def too_long(_path, line):
    width = len(line.expandtabs(8))
    return width > LINE_MAX and f"{width} columns"


def unfinished(_path, line):
    match = UNFINISHED.search(line)
    return match and f"{match[0]} left behind"


def typedef(path, line):
    return TYPEDEF.match(line) and not path.startswith(AM_NAMES) and "typedef of a struct"


def dead(_path, line):
    return DEAD.match(line) and "dead code"


def licence(path, text):
    if path.endswith(CODE):
        good = SPDX_C.match(text[0])
    elif path.endswith((".py", ".sh", ".build")):
        good = any(SPDX_SCRIPT.match(line) for line in text[:2])
    else:
        return
    if not good:
        yield f"{path}: no SPDX line at its start"


def chapter(path, text):
    if not path.endswith(".c"):
        return
    body = "\n".join(text[1:])
    comment = re.match(r"/\*\n(( \*.*\n)+?) \*/", body)
    if not comment or len(comment[1].split()) < 6:
        yield f"{path}: opens with no chapter comment"


RULES = {
    "no white space at the end of a line": each_line(trailing, *TEXT),
    "each file says its licence first": licence,
    "each .c opens with a chapter": chapter,
    f"no line is over {LINE_MAX} columns": each_line(too_long, *CODE, ".py", ".sh"),
    "nothing is left to be done": each_line(unfinished, *TEXT),
    "no typedef of a struct": each_line(typedef, *CODE),
    "no code is switched off": each_line(dead, *CODE),
}


def main():
    root, writer = tree.open_check(__doc__)
    texts = {file.relative_to(root).as_posix(): tree.lines(file)
             for file in tree.ours(root, *TEXT)
             if file.relative_to(root).parts[0] != "LICENSES"}
    for rule, check in RULES.items():
        writer.case(rule, [wrong for path, text in texts.items() for wrong in check(path, text)])
    writer.finish()


if __name__ == "__main__":
    main()
