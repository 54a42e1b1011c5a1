#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs over DDP with another malloc, also one that makes intercepted calls itself.

    mallocs.py WARPSOCK TALKATIVE PROGRAM...
"""
import ctypes.util
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

LIMIT = 300  # one that forks beside busy threads takes most of a minute on a busy machine


def problems_of(warpsock, library, program):
    with Stage(warpsock) as stage:
        status = stage.run("program", [program], env={"LD_PRELOAD": library}, limit=LIMIT)
        bad = [line for line in stage.text("program").splitlines() if line.startswith("not ok")]
        if status or bad:
            bad.append(f"status {status}: {stage.text('program', 'err')[-1000:]}")
    return bad


def main():
    warpsock, talkative = sys.argv[1], os.path.abspath(sys.argv[2])
    programs = [os.path.abspath(path) for path in sys.argv[3:]]
    writer = tap.Writer()
    for name in ("jemalloc", "tcmalloc_minimal", "talkative"):
        library = talkative if name == "talkative" else ctypes.util.find_library(name)
        for program in programs:
            case = f"{os.path.basename(program)} with {name}"
            if library:
                writer.case(case, problems_of(warpsock, library, program))
            else:
                writer.skip(case, f"lib{name} is not installed")
    writer.finish()


if __name__ == "__main__":
    main()
