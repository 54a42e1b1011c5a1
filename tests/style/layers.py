#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks every #include against tests/style/layers.txt, a case for each folder, and that table."""
import re
from collections import defaultdict

import tree

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
FREE = "tests"
# In these a call upwards could hide behind a declaration further down.
ROOMS = "preload"


def read_rules(path):
    allowed, only = {}, {}
    for line in tree.lines(path):
        words = line.split("#")[0].split()
        if words and words[0] == "only":
            at = words.index("in")
            only.update({prefix: words[at + 1:] for prefix in words[1:at]})
        elif words:
            allowed[words[0]] = words[1:]
    return allowed, only


def below(name, folder):
    return name == folder or name.startswith(folder + "/")


def rule_for(folder, allowed):
    fitting = [rule for rule in allowed if below(folder, rule)]
    return max(fitting, key=len, default=None)


def target_of(name, quoted, file, root):
    """The file of ours that an #include names, or None for a header of the system."""
    bases = ([file.parent] if quoted else []) + [root, root / "include"]
    for base in bases:
        if (base / name).is_file():
            return (base / name).resolve().relative_to(root).as_posix()
    return None


def judge(name, quoted, file, root, rules):
    """What is wrong with this #include, or None."""
    allowed, only = rules
    folder = file.parent.relative_to(root).as_posix()
    rule = rule_for(folder, allowed)
    target = target_of(name, quoted, file, root)
    if target is None:
        owners = next((only[prefix] for prefix in only if name.startswith(prefix)), [folder])
        if quoted:
            return f'"{name}" is no file of ours'
        if any(below(folder, owner) for owner in owners):
            return None
        return f"<{name}> is only for {' '.join(owners)}"
    if rule is None:
        return f"{folder} has no line in layers.txt"
    if any(below(target, other) for other in [rule, *allowed[rule]]):
        return None
    return f"{rule} may not include {target}"


def circles(allowed):
    """The folders that may include themselves by way of others."""
    beside = {folder: {rule_for(name, allowed) for name in names} - {folder, None}
              for folder, names in allowed.items()}
    for folder in beside:
        reached, ahead = set(), set(beside[folder])
        while ahead:
            name = ahead.pop()
            reached.add(name)
            ahead |= beside[name] - reached
        if folder in reached:
            yield f"{folder} comes back to itself"


COMMENT = re.compile(r"/\*.*?\*/", re.S)
DECLARED = re.compile(r"^(?!static|extern)[a-z][^;{}()=#]*?\b(\w+)\([^;{}]*\);", re.M)


def orphans(header, root):
    """The functions that a header declares, and no file beside it defines."""
    beside = "\n".join("\n".join(tree.lines(file)) for file in sorted(header.parent.glob("*.c")))
    for name in DECLARED.findall(COMMENT.sub("", "\n".join(tree.lines(header)))):
        if not re.search(rf"^\w[^\n;]*\b{name}\([^;{{]*\)\n\{{", beside, re.M):
            yield f"{header.relative_to(root)}: {name}() is not defined in this folder"


def main():
    root, writer = tree.open_check(__doc__)
    table = root / "tests/style/layers.txt"
    rules = read_rules(table if table.is_file() else tree.ROOT / "tests/style/layers.txt")
    problems, undefined = defaultdict(list), []
    for file in tree.ours(root, ".c", ".h"):
        parts = file.relative_to(root).parts
        if parts[0] == ROOMS and file.suffix == ".h":
            undefined += orphans(file, root)
        found = problems[rule_for(file.parent.relative_to(root).as_posix(), rules[0]) or parts[0]]
        if parts[0] == FREE:
            continue
        for number, line in enumerate(tree.lines(file), 1):
            match = INCLUDE.match(line)
            wrong = match and judge(match[2], match[1] == '"', file, root, rules)
            if wrong:
                found.append(f"{file.relative_to(root)}:{number}: {wrong}")
    problems.pop(FREE, None)
    writer.case("the table has no circle", list(circles(rules[0])))
    writer.case("a room of preload defines what it declares", undefined)
    for folder in sorted(problems):
        writer.case(f"layers of {folder}", problems[folder])
    writer.finish()


if __name__ == "__main__":
    main()
