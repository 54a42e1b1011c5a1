#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A release, which the compiler has rearranged, does what the build of the other tests does.

    release.py ROOT FOLDER DIFFERENTIAL SIGNALS SAME...
"""
import subprocess
import sys
from pathlib import Path

ROOT, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
TESTS = ROOT / "tests"
LIMIT = 500
LIBRARY = FOLDER / "preload/libwarpsock-preload.so"
sys.path.insert(0, str(TESTS))
import tap  # noqa: E402


def run(command):
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)


def own_calls():
    """Ours go to the kernel: by the name that programs use they would come back to us."""
    code = run(["objdump", "-d", LIBRARY]).stdout
    wrong = [line for line in code.splitlines()
             if line.endswith(("<syscall>", "<syscall@plt>")) and ("call" in line or "jmp" in line)]
    return wrong[:5] or ([] if "<__wrap_syscall>" in code else ["there are none"])


def problems_of(script, *args):
    """Of a script of another test, with this launcher."""
    done = run([sys.executable, TESTS / script, FOLDER / "apps/warpsock", *args])
    cases = tap.judge(done.stdout, done.returncode)
    problems = [f"{case.name}: {' '.join(case.detail[:3])}" for case in cases
                if case.result == "failed"]
    return problems or ([] if cases else ["it has no cases", done.stderr[-1000:]])


def main():
    writer = tap.Writer()
    differential, signals, *same = sys.argv[3:]
    done = run([ROOT / "dev", "release", FOLDER])
    writer.case("a release is built", [done.stdout[-2000:], done.stderr[-1000:]]
                if done.returncode else [])
    if not done.returncode:
        writer.case("the library's own system calls pass by its syscall()", own_calls())
        for exe in same:
            writer.case(Path(exe).name, problems_of("e2e/same.py", exe))
        for shape in ("one", "threads"):
            writer.case(f"random programs: {shape}", problems_of(
                "differential/differential.py", differential, shape, "15000", "few"))
        writer.case("signals", problems_of("differential/signals.py", signals, "100"))
    writer.finish()


if __name__ == "__main__":
    main()
