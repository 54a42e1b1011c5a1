#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measures the lengths of functions and files, and prints the numbers they are judged by.

A function counts from the line of its name to its closing brace. Lengths over a limit need a line
with a reason in tests/style/exceptions.txt; a line there that excuses nothing is a failure too.
"""
import statistics
import subprocess

import tree

MEDIAN, NINE_IN_TEN, LONGEST = 13, 45, 100
FILE_LIMITS = {".c": 700, ".h": 200}


def functions(root, files):
    """Yields (path, name, lines) of each function."""
    done = subprocess.run(
        ["ctags", "-f", "-", "--sort=no", "--excmd=number", "--language-force=C", "--kinds-C=f",
         "--fields=+ne", "-L", "-"],
        cwd=root, input="\n".join(str(file.relative_to(root)) for file in files), text=True,
        check=True, stdout=subprocess.PIPE)
    for line in done.stdout.splitlines():
        name, path, _, *fields = line.split("\t")
        values = dict(field.split(":", 1) for field in fields if ":" in field)
        if "line" in values and "end" in values:
            yield path, name, int(values["end"]) - int(values["line"]) + 1


def read_exceptions(path):
    excused = {}
    for line in tree.lines(path) if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            key, _, reason = line.partition(":")
            excused[" ".join(key.split())] = reason.strip()
    return excused


def without_excuse(found, excused):
    """Those of found, a map from key to complaint, that no reason excuses."""
    return [complaint for key, complaint in found.items() if not excused.get(key)]


def main():
    root, writer = tree.open_check(__doc__)
    excused = read_exceptions(root / "tests/style/exceptions.txt")
    files = tree.ours(root, *FILE_LIMITS)
    sizes = list(functions(root, files))
    lengths = sorted(size for _, _, size in sizes) or [0]
    median = statistics.median(lengths)
    ninth = lengths[int(0.9 * (len(lengths) - 1))]
    print(f"# {len(sizes)} functions: median {median:g} lines, nine in ten at most {ninth}, "
          f"longest {lengths[-1]}")
    writer.case(f"the median function has {median:g} lines, at most {MEDIAN}",
                [f"it is {median:g}"] if median > MEDIAN else [])
    writer.case(f"nine in ten have {ninth} lines or fewer, at most {NINE_IN_TEN}",
                [f"it is {ninth}"] if ninth > NINE_IN_TEN else [])
    long = {f"{path} {name}": f"{path}: {name} has {size} lines"
            for path, name, size in sizes if size > LONGEST}
    writer.case(f"no function is over {LONGEST} lines without a reason",
                without_excuse(long, excused))
    big = {}
    for file in files:
        count = file.read_bytes().count(b"\n")
        if count > FILE_LIMITS[file.suffix]:
            name = file.relative_to(root).as_posix()
            big[name] = f"{name} has {count} lines, the limit is {FILE_LIMITS[file.suffix]}"
    writer.case("no file is over its limit without a reason", without_excuse(big, excused))
    writer.case("each exception is needed",
                [f"{key}: nothing to excuse" for key in excused if key not in long | big])
    writer.finish()


if __name__ == "__main__":
    main()
