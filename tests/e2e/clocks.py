#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Deadlines hold where a library shows the program another time than the kernel's.

    clocks.py WARPSOCK STILL_CLOCK DEADLINES
"""
import glob
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

# Debian's package faketime; its time stands still unless it is told how fast it goes
FAKETIME = "/usr/lib/*/faketime/libfaketime.so.1"
LIMIT = 90


def problems_of(warpsock, program, env):
    with Stage(warpsock) as stage:
        status = stage.run("program", [program], env=env, limit=LIMIT)
        text = stage.text("program")
        bad = [line for line in text.splitlines() if line.startswith(("not ok", "#"))]
        if status or bad or "1.." not in text:
            bad.append(f"status {status}: {stage.text('program', 'err')[-1000:]}")
        report = stage.report("program") or {}
        if report.get("connections", {}).get("software") != 2:
            bad.append(f"not on DDP: {report}")
    return bad


def main():
    warpsock, still, program = sys.argv[1], *map(os.path.abspath, sys.argv[2:])
    writer = tap.Writer()
    writer.case("a clock that stands still", problems_of(warpsock, program, {"LD_PRELOAD": still}))
    found = glob.glob(FAKETIME)
    for time in ("2020-01-01 00:00:00", "+30d x0.001"):
        case = f"libfaketime, {time}"
        if found:
            env = {"LD_PRELOAD": found[0], "FAKETIME": time}
            writer.case(case, problems_of(warpsock, program, env))
        else:
            writer.skip(case, "faketime is not installed")
    writer.finish()


if __name__ == "__main__":
    main()
