#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks pages: lines, sentences, links, names of files, and words that were given up.

A sentence ends with a full stop, a question or an exclamation mark, or with its paragraph, its item
of a list or its cell of a table. A cell counts where it ends with a full stop: others are no
sentences. What stands as it is printed, and what programs have written, does not count.
"""
import re

import tree

LINE_MAX = 100
WORDS_MAX = 25
CODE = (".c", ".h")

# What a program writes: from this line on, or between comments "NAME: begin" and "NAME: end"
WRITTEN = {"docs/conformance.md": "| case |", "docs/interop.md": "# What was run last"}
BEGIN, END = re.compile(r"<!-- .*\bbegin\b.* -->"), re.compile(r"<!-- .*\bend\b.* -->")
ITEM = re.compile(r"([-*]|\d+\.)\s+")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"`([a-z]+)(/[a-z0-9_/.-]+\.[a-z]+)`")
STOP = re.compile(r'(?<=[.!?])[)"*`]*\s+')

# Words of ours that were given up, and what is said instead. They are looked for in pages and in
# code, but not in tests/, which may have them in another sense.
GIVEN_UP = {
    r"\b[Bb]ells?\b|\b[Dd]oorbells?\b": "wakeup fd",
    r"\b[Hh]eirs?\b": "inherited",
    r"\b[Bb]eque(st|ath)\w*": "linger handoff",
    r"\b[Gg]ifts?\b": "inherited by a spawn",
    r"\b[Nn]udg(e|es|ed|ing)\b": "zero-length Write",
    r"\b[Nn]ap(s|ping)?\b": "interruptible sleep",
    r"\b[Aa]ttendants?\b": "worker thread",
    r"\b[Hh]arvest\w*": "collect",
    r"\b[Pp]rocess(es)? apart\b": "helper process",
    r"\brooms of preload\b": "layers",
}


def by_hand(path, text):
    """(number, line) of what was not written by a program."""
    start, written = WRITTEN.get(path), False
    for number, line in enumerate(text, 1):
        if start and line.startswith(start):
            return
        if BEGIN.search(line):
            written = True
        if not written:
            yield number, line
        if END.search(line):
            written = False


def prose(path, text):
    """The same without blocks that stand as they are printed."""
    fenced, before = False, ""
    for number, line in by_hand(path, text):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        printed = line.startswith("    ") and not before.strip()
        if not fenced and not fence and not printed:
            yield number, line
            before = line


def too_long(path, text):
    return [f"{path}:{number}: {len(line)} columns" for number, line in prose(path, text)
            if len(line) > LINE_MAX]


def paragraphs(lines):
    part = []
    for line in [*lines, ""]:
        item, row = ITEM.match(line.strip()), line.startswith("|")
        if part and (not line.strip() or item or row or line.startswith("#")):
            yield " ".join(part)
            part = []
        if row:
            yield from (cell for cell in map(str.strip, line.strip("|").split("|"))
                        if cell.endswith("."))
        elif line.strip() and not line.startswith("#"):
            part.append(line.strip()[item.end() if item else 0:])


def sentences(path, text):
    """How many words each has."""
    for part in paragraphs(line for _, line in prose(path, text)):
        for sentence in STOP.split(LINK.sub("]", part)):
            words = sum(bool(re.search(r"\w", word)) for word in sentence.split())
            if words:
                yield words


def mean(path, text):
    words = list(sentences(path, text))
    return sum(words) / len(words) if words else 0


def anchors(text):
    fenced = False
    for line in text:
        fenced ^= line.lstrip().startswith("```")
        if line.startswith("#") and not fenced:
            words = LINK.sub("]", line.lstrip("#").strip()).lower()
            yield re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def broken_links(root, path, text):
    for target in LINK.findall("\n".join(text)):
        name, _, anchor = target.partition("#")
        page = (root / path).parent / name if name else root / path
        if re.match(r"\w+:", target):
            continue
        if not page.exists():
            yield f"{path}: there is no {target}"
        elif anchor and page.suffix == ".md" and anchor not in anchors(tree.lines(page)):
            yield f"{path}: {target}: there is no such heading"


def missing_files(root, path, text):
    """Files of a folder of ours that are not there; folders of others are not looked at."""
    for number, line in by_hand(path, text):
        for folder, name in FILE.findall(line):
            if (root / folder).is_dir() and not (root / (folder + name)).exists():
                yield f"{path}:{number}: there is no {folder}{name}"


def given_up(path, text):
    lines = by_hand(path, text) if path.endswith(".md") else enumerate(text, 1)
    for number, line in lines:
        for word, better in GIVEN_UP.items():
            if re.search(word, line):
                yield f"{path}:{number}: {better}, not {re.search(word, line)[0]}"


def main():
    root, writer = tree.open_check(__doc__)
    texts = {file.relative_to(root).as_posix(): tree.lines(file)
             for file in tree.ours(root, ".md", *CODE)
             if file.relative_to(root).parts[0] != "LICENSES"}
    pages = {path: text for path, text in texts.items() if path.endswith(".md")}
    means = {path: mean(path, text) for path, text in pages.items()}
    for path, words in means.items():
        print(f"# {path}: {words:.1f} words in a sentence")
    writer.case(f"no line of a page is over {LINE_MAX} columns",
                [wrong for path, text in pages.items() for wrong in too_long(path, text)])
    writer.case(f"a page's sentences have {WORDS_MAX} words in the mean, at most",
                [f"{path}: {words:.1f}" for path, words in means.items() if words > WORDS_MAX])
    writer.case("each link leads somewhere",
                [wrong for path, text in pages.items() for wrong in broken_links(root, path, text)])
    writer.case("each file that a page names is there",
                [wrong for path, text in pages.items()
                 for wrong in missing_files(root, path, text)])
    writer.case("words that were given up are not used",
                [wrong for path, text in texts.items() if not path.startswith("tests/")
                 for wrong in given_up(path, text)])
    writer.finish()


if __name__ == "__main__":
    main()
