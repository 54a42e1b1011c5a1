#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks which file of a folder uses which, a case for each folder of tests/style/order.txt.

    order.py [--root ROOT] [COMPILE_COMMANDS]

A file uses another one when its object needs a function or a variable that the other's object
defines. The objects are those of a build, by its compile_commands.json; without one each file is
compiled for the check. A use of a file in a higher layer is wrong, and so is a circle of uses.
"""
import argparse
import json
import os
import subprocess
import tempfile
from collections import defaultdict
from fnmatch import fnmatchcase
from pathlib import Path

import tree

UNDEFINED = "Uvw"  # nm's letters; the other small ones are of symbols that only their file has


def read_order(path):
    """Of each folder the layers, lowest first: (name, patterns of files)."""
    order, layers = {}, None
    for line in tree.lines(path):
        text = line.split("#")[0].rstrip()
        if text.startswith("["):
            layers = order[text.strip("[]")] = []
        elif text.startswith((" ", "\t")):
            layers[-1][1].extend(text.split())
        elif text:
            name, _, files = text.partition(":")
            layers.append((name, files.split()))
    return order


def built(root, database):
    """The objects of our files, each in the folder of its own library: file -> objects."""
    objects = defaultdict(list)
    for entry in json.loads(database.read_text()):
        folder = Path(entry["directory"])
        file = Path(os.path.normpath(folder / entry["file"]))
        if root in file.parents:
            name = file.relative_to(root).as_posix()
            # Tests build files of ours, too, with functions of theirs in place of others.
            if entry["output"].split("/")[0] == name.split("/")[0]:
                objects[name].append(str(folder / entry["output"]))
    return objects


def compiled(root, files, scratch):
    objects = {}
    for number, file in enumerate(files):
        target = f"{scratch}/{number}.o"
        subprocess.run(["cc", "-c", "-I", root, "-o", target, root / file], check=True)
        objects[file] = [target]
    return objects


def symbols(objects):
    """What the objects define and what they need: (object, name, is it needed)."""
    done = subprocess.run(["nm", "-A", "-P", *objects], check=True, text=True,
                          stdout=subprocess.PIPE)
    for line in done.stdout.splitlines():
        path, _, rest = line.partition(": ")
        name, letter = rest.split()[:2]
        if letter in UNDEFINED or letter.isupper():
            yield path, name, letter in UNDEFINED


def uses_of(objects):
    """file -> other file -> names of the other's that it uses."""
    files = {path: file for file, paths in objects.items() for path in paths}
    owners, needs = defaultdict(set), []
    for path, name, needed in symbols(sorted(files)):
        if needed:
            needs.append((files[path], name))
        else:
            owners[name].add(files[path])
    uses = defaultdict(lambda: defaultdict(set))
    for file, name in needs:
        for owner in owners[name] - {file}:
            uses[file][owner].add(name)
    return uses


def reached(file, uses):
    """The files that a file uses, by way of others too."""
    found, ahead = set(), list(uses[file])
    while ahead:
        other = ahead.pop()
        if other not in found:
            found.add(other)
            ahead += uses[other]
    return found


def sentences(file, others, uses, words):
    return [f"{file} uses {' '.join(sorted(uses[file][other]))} of {other}{words}"
            for other in sorted(others)]


def circles(files, uses):
    """Says of each circle which files are in it, and what ties them together."""
    below = {file: reached(file, uses) for file in files}
    told = set()
    for file in files:
        ring = {other for other in below[file] if file in below[other]}
        if file in ring and file not in told:
            told |= ring
            yield f"a circle of {len(ring)} files: {' '.join(sorted(ring))}"
            for one in sorted(ring):
                yield from sentences(one, ring & set(uses[one]), uses, "")


def ranks_of(folder, files, layers):
    """Of each file the number of its layer, and what is wrong with the list of layers."""
    ranks, wrong = {}, []
    for file in files:
        name = file[len(folder) + 1:-len(".c")]
        fitting = [rank for rank, (_, patterns) in enumerate(layers)
                   if any(fnmatchcase(name, pattern) for pattern in patterns)]
        if layers and len(fitting) != 1:
            wrong.append(f"{file} stands in {len(fitting)} layers of order.txt, not in one")
        ranks[file] = fitting[0] if fitting else 0
    names = [file[len(folder) + 1:-len(".c")] for file in files]
    wrong += [f"order.txt names {pattern} of {folder}, and there is no such file"
              for _, patterns in layers for pattern in patterns
              if not any(fnmatchcase(name, pattern) for name in names)]
    return ranks, wrong


def problems_of(folder, layers, root, objects):
    files = [path.relative_to(root).as_posix() for path in tree.ours(root, ".c")]
    files = [file for file in files if file.startswith(folder + "/")]
    ranks, wrong = ranks_of(folder, files, layers)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            if objects is None:
                objects = compiled(root, files, scratch)
            uses = uses_of({file: objects[file] for file in files if file in objects})
    except subprocess.CalledProcessError as error:
        return wrong + [str(error)]
    if not any(file in objects for file in files):
        wrong.append(f"nothing of {folder} is built")
    for file in files:
        above = {other for other in uses[file] if ranks[other] > ranks[file]}
        wrong += sentences(file, above, uses, ", which stands above it")
    return wrong + list(circles(files, uses))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database", nargs="?", type=Path)
    parser.add_argument("--root", type=Path, default=tree.ROOT)
    given = parser.parse_args()
    root, writer = given.root.resolve(), tree.tap.Writer()
    objects = built(root, given.database) if given.database else None
    for folder, layers in read_order(root / "tests/style/order.txt").items():
        writer.case(f"order of {folder}", problems_of(folder, layers, root, objects))
    writer.finish()


if __name__ == "__main__":
    main()
