#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks the test runner: programs that crash, hang, lie or say nothing must count as failed."""
import argparse
import contextlib
import io
import re
import sys
import tempfile
import time
from pathlib import Path

from tree import tap

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import run  # noqa: E402  (found through the line above)
import skips  # noqa: E402

# what a shell prints and does, its protocol, passed, failed, skipped
PROGRAMS = [
    ("two good cases", "echo 'ok 1 - a\nok 2 - b\n1..2'", "tap", (2, 0, 0)),
    ("cases without numbers", "echo '1..2\nok - a\nok - b'", "tap", (2, 0, 0)),
    ("a failed case", "echo '1..1\nnot ok 1 - a'; exit 1", "tap", (0, 1, 0)),
    ("a failed case, exit 0", "echo '1..1\nnot ok 1 - a'", "tap", (0, 1, 0)),
    ("a skip", "echo '1..2\nok 1 - a # SKIP no such thing\nok 2 - b'", "tap", (1, 0, 1)),
    ("a skip without a reason", "echo '1..1\nok 1 - a # SKIP'", "tap", (0, 1, 0)),
    ("everything skipped", "echo '1..0 # SKIP not here'", "tap", (0, 0, 1)),
    ("nothing at all", "true", "tap", (0, 1, 0)),
    ("an empty plan", "echo 1..0", "tap", (0, 1, 0)),
    ("a case lost", "echo '1..2\nok 1 - a'", "tap", (1, 1, 0)),
    ("a case too many", "echo '1..1\nok 1 - a\nok 2 - b'", "tap", (2, 1, 0)),
    ("no plan", "echo 'ok 1 - a'", "tap", (1, 1, 0)),
    ("a crash after the cases", "echo '1..1\nok 1 - a'; kill -SEGV $$", "tap", (1, 1, 0)),
    ("a bad exit after the cases", "echo '1..1\nok 1 - a'; exit 3", "tap", (1, 1, 0)),
    ("a bail-out", "echo '1..1\nok 1 - a\nBail out! no disk'", "tap", (1, 1, 0)),
    ("a hang", "echo '1..2\nok 1 - a'; sleep 60", "tap", (1, 1, 0)),
    ("a child that outlives it", "echo '1..1\nok 1 - a'; sleep 60 &", "tap", (1, 0, 0)),
    ("exit 0", "exit 0", "exitcode", (1, 0, 0)),
    ("exit 1", "exit 1", "exitcode", (0, 1, 0)),
    ("exit 77", "echo no such thing; exit 77", "exitcode", (0, 0, 1)),
    ("a signal", "kill -KILL $$", "exitcode", (0, 1, 0)),
    ("a sanitizer report", "echo '1..1\nok 1 - a'; echo bad >${ASAN_OPTIONS%%:*}.1",
     "tap", (1, 1, 0)),
]


def cases_of(script, protocol, timeout=20):
    script = script.replace("${ASAN_OPTIONS%%:*}", "$(expr $ASAN_OPTIONS : 'log_path=\\([^:]*\\)')")
    test = {"name": "t", "cmd": ["sh", "-c", script], "protocol": protocol, "timeout": timeout}
    return run.run_test(test, time.monotonic() + 60, False)


# Where a program says why a case failed
REASONS = [
    ("before it", "echo 'ok 1 - a\nwhy\nnot ok 2 - b\nok 3 - c\n1..3'; exit 1"),
    ("behind it", "echo 'ok 1 - a\nnot ok 2 - b\nwhy\nok 3 - c\n1..3'; exit 1"),
]


# A reason, and what becomes of it where all packages are installed
SKIPS = [
    ("no spin here", "failed"), ("there is no spin here (package spin)", "failed"),
    ("built without PMIx", "failed"), ("libjemalloc is not installed", "failed"),
    ("not root", "skipped"), ("the kernel gives no ring", "skipped"),
    ("no mount of our own: Operation not permitted", "skipped"),
]


def installed(reason):
    """What a run of one program that skips so comes to, with the options that ./dev gives."""
    suite = run.Suite("t", "build", ("t",), 60)
    test = {"name": "t", "cmd": ["printf", f"1..2\\nok 1 - a\\nok 2 - b # SKIP {reason}\\n"],
            "protocol": "tap", "timeout": 20, "is_parallel": True}
    options = re.findall(r"tests/run.py ([^\"]*)", (TESTS.parent / "dev").read_text())[0].split()
    before = run.plan, run.compile_all, sys.argv
    run.plan, run.compile_all = lambda _: ([(suite, [test])], []), lambda _: None
    sys.argv = ["run.py", *options, "style"]
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            return "skipped" if run.main() == 0 else "failed", out.getvalue()
    finally:
        run.plan, run.compile_all, sys.argv = before


# What a test does at its first run and at its second; how often it runs, passed and failed
LOOKS = [
    ("a test that fails once", "not ok 1 - a", "ok 1 - a", True, (2, 1, 0)),
    ("a test that fails twice", "not ok 1 - a", "not ok 1 - a", True, (2, 0, 1)),
    ("a test that passes", "ok 1 - a", "not ok 1 - a", True, (1, 1, 0)),
    ("a test of a suite without time", "not ok 1 - a", "ok 1 - a", False, (1, 0, 1)),
]


def looks(first, second, timed, more=()):
    """How often a test of a suite was run; its suite's cases."""
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        script = (f"echo >>{runs}; echo 1..1; "
                  f"if [ $(wc -l <{runs}) = 1 ]; then echo {first!r}; else echo {second!r}; fi")
        tests = [{"name": "t", "cmd": ["sh", "-c", script], "protocol": "tap", "timeout": 20,
                  "is_parallel": True}, *more]
        suite = run.Suite("t", "build", ("t",), 60, timed=timed)
        before, run.compile_all = run.compile_all, lambda _: None
        try:
            cases = run.run_suite(suite, tests, argparse.Namespace(long=False, once=False))
        finally:
            run.compile_all = before
        return len(runs.read_text()), cases


def about_looks(writer):
    for name, first, second, timed, wanted in LOOKS:
        count, cases = looks(first, second, timed)
        got = count, *run.tally(cases)[:2]
        told = bool(cases[0].unsteady) == (wanted == (2, 1, 0))
        writer.case(f"second look: {name}", [] if got == wanted and told else [str(cases)])
    bad = {"name": "bad", "cmd": ["false"], "protocol": "exitcode", "timeout": 20,
           "is_parallel": True}
    count, _ = looks("not ok 1 - a", "ok 1 - a", True, [bad] * run.SECOND_LOOKS)
    writer.case("second look: none where many failed", [] if count == 1 else [str(count)])
    script = "echo '1..1\nok 1 - a'; echo bad >$(expr $ASAN_OPTIONS : 'log_path=\\([^:]*\\)').1"
    test = {"name": "t", "cmd": ["sh", "-c", script], "protocol": "tap", "timeout": 20}
    done = [(test, run.run_test(test, time.monotonic() + 60, False))]
    test["cmd"] = ["sh", "-c", "echo '1..1\nok 1 - a'"]
    run.second_looks(done, time.monotonic() + 60, False)
    writer.case("second look: none for a sanitizer's report",
                [] if run.tally(done[0][1]) == (1, 1, 0) else [str(done)])


def unused():
    """Reasons that no test, and no benchmark that a test runs, has any more"""
    texts = [path.read_text(errors="replace")
             for folder in (TESTS, TESTS.parent / "bench") for path in folder.rglob("*")
             if path.suffix in (".py", ".sh", ".c", ".h") and path.name not in
             ("skips.py", "runner.py")]
    return [words for some in skips.MAY.values() for words in some
            if not any(words in text for text in texts)]


def about_skips(writer):
    for reason, wanted in SKIPS:
        got, said = installed(reason)
        writer.case(f"./dev test: skipped, for {reason}, has {wanted}",
                    said.splitlines() if got != wanted or reason not in said else [])
    writer.case("each reason for a skip is some test's", unused())


def main():
    writer = tap.Writer()
    for name, script, protocol, wanted in PROGRAMS:
        got = run.tally(cases_of(script, protocol, 1 if name == "a hang" else 20))
        problem = f"passed, failed, skipped: {got}, wanted {wanted}"
        writer.case(f"{name} counts as it should", [problem] if got != wanted else [])
    for name, script in REASONS:
        got = {case.name: case.detail for case in cases_of(script, "tap")}
        writer.case(f"why a case failed, said {name}, is shown",
                    [str(got)] if got != {"t: a": [], "t: b": ["why"], "t: c": []} else [])
    late = {"name": "t", "cmd": ["true"], "protocol": "exitcode", "timeout": 1}
    writer.case("a test after the suite's time is failed, not forgotten",
                [] if run.tally(run.run_test(late, time.monotonic() - 1, False)) == (0, 1, 0)
                else ["it was not"])
    with contextlib.redirect_stdout(io.StringIO()):
        got = [len(run.whole(usual, run.WHOLE_LIMIT + more))
               for usual, more in ((True, 1), (True, -1), (False, 1))]
    writer.case("a usual run that takes too long has failed",
                [str(got)] if got != [1, 0, 0] else [])
    about_skips(writer)
    about_looks(writer)
    writer.finish()


if __name__ == "__main__":
    main()
