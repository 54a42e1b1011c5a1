#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compiles each header of include/ alone, in each language it is for; a case for each of both.

Wire headers are for us and need static assertions; the installed ones serve older programs too.
"""
import shutil
import subprocess

import tree

FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
C, CXX = ["gcc", "clang"], ["g++", "clang++"]
LANGUAGES = {"C": (C, ["-x", "c", "-std=c11"]),
             "C++": (CXX, ["-x", "c++", "-std=c++11"])}
INSTALLED = {**LANGUAGES,
             "C99": (C, ["-x", "c", "-std=c99"]),
             "C++17": (CXX, ["-x", "c++", "-std=c++17"])}


def compile_alone(compiler, flags, root, name):
    """Twice in one unit, so that a missing guard shows."""
    source = f"#include <{name}>\n#include <{name}>\n"
    done = subprocess.run([compiler, *flags, *FLAGS, "-I", str(root / "include"), "-"], text=True,
                          input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.splitlines()[:20] if done.returncode else []


def main():
    root, writer = tree.open_check(__doc__)
    include = root / "include"
    headers = tree.ours(include, ".h") if include.is_dir() else []
    for header in headers:
        name = header.relative_to(include).as_posix()
        languages = INSTALLED if name.startswith("warp/") else LANGUAGES
        for language, (compilers, flags) in languages.items():
            compiler = next(filter(shutil.which, compilers), None)
            if compiler:
                writer.case(f"{name} as {language}", compile_alone(compiler, flags, root, name))
            else:
                writer.skip(f"{name} as {language}", f"no {language} compiler here")
    if not headers:
        writer.skip("headers", "include/ has no header")
    writer.finish()


if __name__ == "__main__":
    main()
