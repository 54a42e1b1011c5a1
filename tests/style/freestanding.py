#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compiles the protocol layers as a kernel would, a case for each folder: without libc's help,
without registers for floating point, and with short frames. The files are those that kmod/Kbuild
names, and all of stream/protocol/. They may include what kmod/compat/ has, and use no function
but memory's, their own, and those of their host.

    freestanding.py [--root ROOT]
"""
import os
import re
import shutil
import subprocess
import tempfile

import tree

MEMORY = {"memcpy", "memset", "memmove", "memcmp", "calloc", "free"}
# What declares, or defines, the functions that the place where they run has for them
HOSTS = ["stream/state/host.h", "kmod/compat/base.c"]
FLAGS = ["-std=gnu11", "-O2", "-D_GNU_SOURCE", "-ffreestanding", "-Wframe-larger-than=1024",
         "-Werror", "-DDDP_SGE_MAX=8", "-DSTREAM_BATCH=4"]
WITHOUT_FLOATS = {"x86_64": ["-mno-sse", "-mno-mmx"], "aarch64": ["-mgeneral-regs-only"]}
COMPILER = os.environ.get("CC", "cc")
KBUILD = re.compile(r"\.\./(\w+)/,([^)]*)\)")
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
FUNCTION = re.compile(r"\b(\w+)\(")
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def text(root, name):
    return "\n".join(tree.lines(root / name))


def folders(root):
    """Of each folder its files."""
    found = {folder: [f"{folder}/{name[:-2]}.c" for name in names.split()]
             for folder, names in KBUILD.findall(text(root, "kmod/Kbuild"))}
    found["stream/protocol"] = [path.relative_to(root).as_posix()
                                for path in sorted((root / "stream/protocol").glob("*.c"))]
    return found


def compile_one(root, name, target):
    """What the compiler says against the file, or None."""
    done = subprocess.run([COMPILER, "-c", *FLAGS, *WITHOUT_FLOATS.get(os.uname().machine, []),
                           "-I", root, "-I", root / "include", "-o", target, root / name],
                          text=True, stderr=subprocess.PIPE, check=False)
    return f"{name}: {done.stderr.strip()}" if done.returncode else None


def symbols(target):
    """The functions and variables that an object defines, and those that it needs."""
    done = subprocess.run(["nm", "-P", target], check=True, text=True, stdout=subprocess.PIPE)
    pairs = [line.split()[:2] for line in done.stdout.splitlines()]
    return ({name for name, letter in pairs if letter.isupper() and letter != "U"},
            {name for name, letter in pairs if letter == "U"})


def strange_headers(root, name, seen):
    """The headers that a file comes to, and that a kernel has not."""
    for line in tree.lines(root / name):
        match = INCLUDE.match(line)
        if not match or match[1].startswith("linux/") or match[1] in seen:
            continue
        seen.add(match[1])
        ours = next((base + match[1] for base in ("", "include/")
                     if (root / (base + match[1])).is_file()), None)
        if ours:
            yield from strange_headers(root, ours, seen)
        elif not (root / "kmod/compat" / match[1]).is_file():
            yield f"{name} includes <{match[1]}>, which kmod/compat/ has not"


def main():
    root, writer = tree.open_check(__doc__)
    known = set(MEMORY)
    for host in HOSTS:
        known |= set(FUNCTION.findall(COMMENT.sub("", text(root, host))))
    needs, problems = {}, {}
    with tempfile.TemporaryDirectory() as scratch:
        for folder, names in folders(root).items():
            problems[folder] = []
            for name in names:
                wrong = compile_one(root, name, f"{scratch}/file.o")
                problems[folder] += [wrong] if wrong else []
                problems[folder] += strange_headers(root, name, set())
                if not wrong:
                    defined, needs[name] = symbols(f"{scratch}/file.o")
                    known |= defined
    for folder, names in folders(root).items():
        problems[folder] += [f"{name} uses {symbol}()" for name in names
                             for symbol in sorted(needs.get(name, set()) - known)]
        writer.case(f"{folder} stands alone", problems[folder])
    writer.finish()


if __name__ == "__main__":
    if not shutil.which(COMPILER):
        raise SystemExit(f"there is no {COMPILER}")
    main()
