#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs over DDP with another malloc, also one that makes intercepted calls itself.

    mallocs.py WARPSOCK TALKATIVE PROGRAM...
"""
import ctypes.util
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

TALK = 100  # so much at least is heard of it
LIMIT = 300  # one that forks beside busy threads takes most of a minute on a busy machine


def problems_of(warpsock, library, program):
    with Stage(warpsock) as stage:
        status = stage.run("program", [program], env={"LD_PRELOAD": library}, limit=LIMIT)
        bad = [line for line in stage.text("program").splitlines() if line.startswith("not ok")]
        if status or bad:
            bad.append(f"status {status}: {stage.text('program', 'err')[-1000:]}")
        said = re.search(r"^# malloc said (\d+)$", stage.text("program"), re.M)
        if os.path.basename(program) == "talk_malloc":
            least = TALK if "talkative" in library else 0
            if not said or (int(said[1]) > least) != (least > 0):
                bad.append(f"malloc said {said and said[1]}, more than {least} was to come")
    return bad


def loaded(warpsock, library):
    """The launcher preloads a library of its own, beside the one that the user named."""
    with Stage(warpsock) as stage:
        stage.run("maps", ["cat", "/proc/self/maps"], env={"LD_PRELOAD": library}, limit=LIMIT)
        maps = stage.text("maps")
    wanted = (os.path.basename(library), "libwarpsock-preload.so")
    return [f"{name} is not loaded" for name in wanted if name not in maps]


def main():
    warpsock, talkative = sys.argv[1], os.path.abspath(sys.argv[2])
    programs = [os.path.abspath(path) for path in sys.argv[3:]]
    writer = tap.Writer()
    for name in ("jemalloc", "tcmalloc_minimal", "talkative"):
        library = talkative if name == "talkative" else ctypes.util.find_library(name)
        if library:
            writer.case(f"{name} is loaded", loaded(warpsock, library))
        for program in programs:
            case = f"{os.path.basename(program)} with {name}"
            if library:
                writer.case(case, problems_of(warpsock, library, program))
            else:
                writer.skip(case, f"lib{name} is not installed")
    writer.finish()


if __name__ == "__main__":
    main()
