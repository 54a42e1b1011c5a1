#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What other processes get from one in mode auto is on DDP, as in mode on: calls_auto.py WARPSOCK
PROGRAM...
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

LIMIT = 180
# An answer that a busy host is late with is none that a peer does not give
PATIENT = {"WARPSOCK_PROBE_TIMEOUT": "10000", "WARPSOCK_GRACE": "10000"}
# Of programs that a relay serves
RELAYED = {"NOT_LOADED", "OTHER_USER"}
STARTS = {"calls_exec", "calls_spawn"}


def problems_of(stage, program):
    status = stage.run("program", [program], mode="auto", env=PATIENT, limit=LIMIT)
    if status is None:
        return [f"it has not ended after {LIMIT} s"]
    problems = [f"{case.name}: {case.detail}" for case in tap.judge(stage.text("program"), status)
                if case.result == "failed"]
    report = stage.report("program") or {"connections": {}, "fallbacks": {}}
    if not report["connections"].get("software") or report["connections"]["tcp"] or \
            set(report["fallbacks"]) - RELAYED:
        problems.append(f"the report: {report}")
    if os.path.basename(program) in STARTS and "NOT_LOADED" not in report["fallbacks"]:
        problems.append(f"no relay is in the report: {report}")
    return problems


def main():
    warpsock, *programs = sys.argv[1:]
    writer = tap.Writer()
    for program in programs:
        with Stage(warpsock) as stage:
            os.chmod(stage.dir, 0o755)  # for those who are nobody
            writer.case(f"{os.path.basename(program)} in mode auto",
                        problems_of(stage, os.path.abspath(program)))
    writer.finish()


if __name__ == "__main__":
    main()
