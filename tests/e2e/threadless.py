#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs where the interposer gets no thread, or only one with a large stack.

    threadless.py WARPSOCK NO_THREAD LARGE_TLS THREADLESS DEADLINES
"""
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

LIMIT = 120


def problems_of(warpsock, library, program, mode, spoken):
    with Stage(warpsock) as stage:
        env = {"LD_PRELOAD": library}
        status = stage.run("program", [program], mode=mode, env=env, limit=LIMIT)
        said, err = stage.text("program"), stage.text("program", "err")
        bad = [line for line in said.splitlines() if line.startswith(("not ok", "#"))]
        if status or bad or "1.." not in said:
            bad.append(f"status {status}: {err[-1000:]}")
        lines = re.findall(r"^warpsock\[(\d+)\] warn: (no thread .*?):", err, re.M)
        if bool(lines) != spoken or len(set(lines)) != len(lines):
            bad.append(f"of threads it says: {lines}")
        report = stage.report("program") or {}
        if not report.get("connections", {}).get("software"):
            bad.append(f"not on DDP: {report}")
    return bad


def main():
    warpsock, none, large, *programs = sys.argv[1], *map(os.path.abspath, sys.argv[2:])
    writer = tap.Writer()
    for library, name, spoken in (none, "no thread", True), (large, "600 KiB of TLS", False):
        for program in programs:
            for mode in "on", "auto":
                writer.case(f"{name}: {os.path.basename(program)}, mode {mode}",
                            problems_of(warpsock, library, program, mode, spoken))
    writer.finish()


if __name__ == "__main__":
    main()
