#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs Warpsock's test suites and counts their cases.

Which tests there are is asked of meson, so a test is registered in one place only. A suite is a
view of a build directory: some meson suites of a build with one compiler and one set of
sanitizers. A run has whole suites, or those of their tests that names (names.py) or changed files
(changed.py) pick; for these only what they need is built. Every program runs in a process group of
its own with a time limit, and its output goes to files: nothing that it leaves behind can hold the
run up.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import changed
import names
import tap
from skips import judged

ROOT = Path(__file__).resolve().parent.parent
CORES = os.cpu_count() or 1
JOBS = min(2, CORES)
BUILD_LIMIT = 900
LONG_FACTOR = 10
WHOLE_LIMIT = 4200  # seconds for all suites that run when none is named
OUTPUT_SHOWN = 60
SECOND_LOOKS = 4  # failed tests of a suite that are run once more, or one test in SHARE of it;
SHARE = 8  # where more failed, none is
TELLING = re.compile(r"error:|undefined reference|FAILED:")

# Without this a build directory that was made before Criterion came would quietly have no tests.
TESTS = ["-Dtests=enabled"]
SANITIZED = TESTS + ["-Doptimization=1", "-Db_lundef=false"]
BUILDS = {
    "build": ("gcc", TESTS),
    "build-clang": ("clang", TESTS),
    "build-asan": ("clang", SANITIZED + ["-Db_sanitize=address,undefined",
                                         "-Dc_args=-fno-sanitize-recover=all"]),
    "build-tsan": ("clang", SANITIZED + ["-Db_sanitize=thread"]),
    "build-points": ("gcc", TESTS + ["-Dpoints=true"]),
}


@dataclass
class Suite:
    name: str
    build: str
    takes: tuple  # meson suites
    limit: int  # seconds for the whole of it
    listed: bool = False  # each case is printed, not only those that failed
    timed: bool = True  # its tests have ends that meet in time: load can make one of them fail
    part: bool = False  # only tests of it that were picked: by the machine's cores, and timed each


SUITES = [
    Suite("style", "build", ("style",), 180, timed=False),
    Suite("headers", "build", ("headers",), 120, timed=False),
    Suite("unit", "build", ("unit",), 300),
    Suite("unit-clang", "build-clang", ("unit",), 300),  # asan has these, too, by clang
    Suite("asan", "build-asan", ("unit", "conformance"), 900),
    Suite("tsan", "build-tsan", ("threads",), 600),
    Suite("conformance", "build", ("conformance",), 600, listed=True),
    Suite("differential", "build", ("differential",), 900, listed=True),
    Suite("hostile", "build", ("hostile",), 300),
    Suite("pressure", "build", ("pressure",), 1500, listed=True),
    Suite("kills", "build-points", ("kills",), 900),
    Suite("e2e", "build", ("e2e",), 2100),
    Suite("bench", "build", ("bench",), 400),
    Suite("captures", "build", ("captures",), 600),
    Suite("programs", "build", ("programs",), 1500),
    Suite("cpython", "build", ("cpython",), 900),
    Suite("fuzz", "build-asan", ("fuzz",), 600, timed=False),
    Suite("vm", "build", ("vm",), 3600, timed=False),
    Suite("mutate", "build", ("mutate",), 3600, listed=True, timed=False),
]
ONLY_WHEN_ASKED = {"unit-clang", "pressure", "vm", "mutate"}
TAKE_ALL = {"vm"}  # suites whose tests take what they need of build/ without a declaration
INSTALLER = (ROOT / "dev", "packages")
PACKAGES = {"vm"}  # suites that need a list of packages of that name, which is long


REPORT = "sanitizer report"


def fail_case(name, output):
    return tap.Case(name, "failed", output.splitlines()[-OUTPUT_SHOWN:])


# --- builds -------------------------------------------------------------------------------------


def build_errors(output):
    """The lines of a failed build that say why; all of it where none is known to."""
    telling = [line for line in output.splitlines() if TELLING.search(line)]
    return "\n".join(telling[:20]) or output


def command(args, **kwargs):
    try:
        done = subprocess.run(args, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=BUILD_LIMIT, **kwargs)
    except subprocess.TimeoutExpired:
        return 1, f"error: {' '.join(args)}: ended after {BUILD_LIMIT} s"
    return done.returncode, done.stdout


def setup(build, compiler, options):
    """Sets a build directory up. build/ may be somebody's with options of theirs: those stay."""
    if build == "build" and (ROOT / build / "build.ninja").exists():
        options = ["--reconfigure", *options]
    else:
        shutil.rmtree(ROOT / build, ignore_errors=True)
    status, out = command(["meson", "setup", build, *options], env=dict(os.environ, CC=compiler))
    if status:
        raise RuntimeError(out)


def configure(build):
    """Returns meson's tests of a build directory, which is made anew when its options changed."""
    compiler, options = BUILDS[build]
    stamp = ROOT / build / ".configured"
    wanted = " ".join([compiler, *options])
    if not stamp.exists() or stamp.read_text() != wanted:
        setup(build, compiler, options)
        stamp.write_text(wanted)
    # A reconfiguration that is due must come before the list of tests is read.
    status, out = command(["ninja", "-C", build, "build.ninja"])
    if status:
        raise RuntimeError(out)
    return tests_of(ROOT / build)


def tests_of(build):
    """Meson's tests of a configured build directory."""
    listed = subprocess.run(["meson", "introspect", "--tests", str(build)], text=True, check=True,
                            stdout=subprocess.PIPE)
    tests = json.loads(listed.stdout)
    for test in tests:
        # As meson does: programs among the arguments are named from the build directory.
        test["workdir"] = test["workdir"] or build
    return tests


def compile_all(build, targets=(), jobs=JOBS):
    """Builds these targets; all where there are none."""
    status, out = command(["nice", "ninja", "-k", "0", "-j", str(jobs), "-C", build, *targets])
    if status:
        raise RuntimeError(out)


def compile_for(suite, tests):
    """Builds what a suite needs: all, or what those of its tests need that were picked."""
    if not suite.part:
        compile_all(suite.build)
        return
    build = ROOT / suite.build
    # What is given the whole build directory may take anything of it
    if suite.name in TAKE_ALL or any(str(build) in test["cmd"] for test in tests):
        compile_all(suite.build, jobs=CORES)
        return
    files = changed.targets(build)
    needed = sorted({file for test in tests for name in test["depends"] for file in files[name]})
    if needed:
        compile_all(suite.build, needed, CORES)


# --- one test program ---------------------------------------------------------------------------


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def sanitizer_env(scratch):
    """Reports go to files, so that one from a process nobody waits for is seen too."""
    to_file = f"log_path={scratch}/report:abort_on_error=0"
    return {
        "ASAN_OPTIONS": f"{to_file}:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": f"{to_file}:print_stacktrace=1:halt_on_error=1",
        "TSAN_OPTIONS": f"{to_file}:halt_on_error=0:die_after_fork=0",
    }


def execute(test, limit, scratch, long):
    """Runs a program; returns its exit status (None: out of time), its stdout and its stderr."""
    env = dict(os.environ, **sanitizer_env(scratch), **test.get("env", {}))
    env["WARPSOCK_LONG"] = "1" if long else ""
    with open(scratch / "out", "wb") as out, open(scratch / "err", "wb") as err:
        proc = subprocess.Popen(test["cmd"], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                cwd=test.get("workdir"), env=env, start_new_session=True)
        try:
            status = proc.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            end_group(proc.pid)
            proc.wait()
    return (status, *((scratch / name).read_text(errors="replace") for name in ("out", "err")))


def cases_of(test, status, out, err, limit):
    if status is None:
        cases, _ = tap.parse(out)
        return cases + [fail_case("time limit", f"{out}\n{err}\nended after {limit:.0f} s")]
    if test["protocol"] == "tap":
        return tap.judge(out, status)
    if status == 77:
        return [tap.Case("", "skipped", (out + err).splitlines()[-1:])]
    if status:
        return [fail_case("", f"{out}\n{err}\nexit status {status}")]
    return [tap.Case("", "passed")]


def run_test(test, deadline, long):
    limit = min(test["timeout"] * (LONG_FACTOR if long else 1), deadline - time.monotonic())
    if limit <= 0:
        return [fail_case("not run", "the suite's time was up")]
    with tempfile.TemporaryDirectory(prefix="warpsock-test-") as name:
        scratch = Path(name)
        status, out, err = execute(test, limit, scratch, long)
        cases = cases_of(test, status, out, err, limit)
        for report in sorted(scratch.glob("report*")):
            cases.append(fail_case(REPORT, report.read_text(errors="replace")))
    if err and any(case.result == "failed" for case in cases):
        cases[-1].detail += ["standard error:"] + err.splitlines()[-OUTPUT_SHOWN:]
    for case in cases:
        case.name = f"{test['name']}: {case.name}" if case.name else test["name"]
    return cases


# --- suites -------------------------------------------------------------------------------------


def pick(suite, tests):
    wanted = {f"warpsock:{name}" for name in suite.takes}
    return [test for test in tests if wanted & set(test["suite"])]


def second_looks(done, deadline, long):
    """Runs what failed once more, by itself. A test that passes then is unsteady, and told of.

    A sanitizer's report is a fault however seldom it comes, and has no second look.
    """
    failed = [at for at, (_, cases) in enumerate(done) if tally(cases)[1]]
    if len(failed) > max(SECOND_LOOKS, len(done) // SHARE):
        return
    for at in failed:
        test, first = done[at]
        wrong = [case for case in first if case.result == "failed"]
        if any(case.name.endswith(REPORT) for case in wrong):
            continue
        again = run_test(test, deadline, long)
        if not tally(again)[1]:
            again[0].unsteady = [line for case in wrong for line in (case.name, *case.detail)]
            done[at] = test, again


def run_suite(suite, tests, options):
    began = time.monotonic()
    try:
        compile_for(suite, tests)
    except RuntimeError as error:
        return [fail_case("the build", build_errors(str(error)))]
    print(f"{suite.name:<13} built in {time.monotonic() - began:.1f} s", flush=True)
    deadline = time.monotonic() + suite.limit * (LONG_FACTOR if options.long else 1)

    def pair(test):
        start = time.monotonic()
        cases = run_test(test, deadline, options.long)
        if suite.part:
            print(f"{time.monotonic() - start:8.1f} s  {test['name']}", flush=True)
        return test, cases

    with ThreadPoolExecutor(CORES if suite.part else JOBS) as pool:
        done = list(pool.map(pair, (test for test in tests if test["is_parallel"])))
    done += [pair(test) for test in tests if not test["is_parallel"]]
    if suite.timed and not options.once:
        second_looks(done, deadline, options.long)
    return [case for _, cases in done for case in cases]


def tally(cases):
    return tuple(sum(case.result == result for case in cases)
                 for result in ("passed", "failed", "skipped"))


def report(name, cases, seconds, listed=False):
    passed, failed, skipped = tally(cases)
    print(f"{name:<13} {passed:5} passed {failed:4} failed {skipped:4} skipped "
          f"{seconds:8.1f} s")
    for case in cases:
        if listed and case.result != "failed":
            print(f"  {case.result} {case.name}")
        for word, lines in (("FAILED", case.detail if case.result == "failed" else None),
                            ("UNSTEADY", case.unsteady or None)):
            if lines is not None:
                print(f"  {word} {case.name}", *(f"    | {line}" for line in lines), sep="\n")
    sys.stdout.flush()


def whole_suites(options):
    """The suites that run as a whole."""
    wanted = {suite.name for suite in SUITES} & set(options.names)
    if not options.names and options.changed is None:
        wanted = {suite.name for suite in SUITES} - ONLY_WHEN_ASKED
        if options.long:
            wanted |= {"unit-clang", "pressure", "vm"}
    if options.mutate:
        wanted.add("mutate")
    return wanted


class Lists:
    """The tests of the suites. A build directory is configured when it is first asked for."""

    def __init__(self):
        self.known, self.failures = {}, []

    def tests(self, suite):
        if suite.build not in self.known:
            self.known[suite.build] = []
            try:
                self.known[suite.build] = configure(suite.build)
            except RuntimeError as error:
                self.failures.append(fail_case(f"{suite.build}: configuration", str(error)))
        return pick(suite, self.known[suite.build])

    def may_have(self, suite, word):
        """Whether it is worth while to ask. To configure a directory of its own takes seconds, and
        a test's name, or the last part of it, stands in its folder's meson.build."""
        if suite.build == "build" or (ROOT / suite.build / ".configured").exists():
            return True
        texts = [(ROOT / "tests" / folder / "meson.build").read_text() for folder in suite.takes]
        pieces = re.split(r"[][*?]", word.rpartition("/")[2])
        return any(all(piece in text for piece in pieces) for text in texts)


def plan(options):
    """Pairs of suite and tests, without the suites that have none; and failed configurations.

    Raises names.Unknown where a name means nothing.
    """
    wanted, lists = whole_suites(options), Lists()
    search = names.Search(SUITES, ONLY_WHEN_ASKED, lists)
    try:
        parts = search.find([name for name in options.names if name not in wanted], options.exact)
        if options.changed is not None:
            names.add(parts, changed.choose(options.changed, search, compile_all))
    except names.Unknown:
        if not lists.failures:
            raise
        return [], lists.failures
    planned = []
    for suite in SUITES:
        tests = lists.tests(suite) if suite.name in wanted else parts.get(suite.name)
        if tests:
            planned.append((replace(suite, part=suite.name not in wanted), tests))
    return planned, lists.failures


def whole(usual, seconds):
    """The time of the whole run: a failed case when it is a usual one, and too long."""
    cases = []
    if usual and seconds > WHOLE_LIMIT:
        cases.append(fail_case("the time", f"{seconds:.0f} s; at most {WHOLE_LIMIT} s"))
    report("the whole", cases, seconds)
    return cases


def install_for(planned):
    """Installs what the planned suites need beyond what each run needs."""
    lists = [suite.name for suite, _ in planned if suite.name in PACKAGES]
    if lists and subprocess.run([*INSTALLER, *lists], stdin=subprocess.DEVNULL).returncode:
        sys.exit(f"the packages of {' '.join(lists)} could not be installed")


def parse_options():
    parser = argparse.ArgumentParser(prog="./dev test", description="Run the tests.")
    parser.add_argument("--list", action="store_true", help="print the plan and end")
    parser.add_argument("--long", action="store_true", help="long runs where a test has one")
    parser.add_argument("--mutate", action="store_true", help="also plant faults: tests must fail")
    parser.add_argument("--once", action="store_true",
                        help="no second look: a test that fails has failed")
    parser.add_argument("--installed", action="store_true",
                        help="all packages are: what is skipped for want of one has failed")
    parser.add_argument("--exact", action="store_true",
                        help="a NAME is the whole name of a test, or a pattern as of a shell")
    parser.add_argument("--changed", nargs="?", const="HEAD", metavar="REV",
                        help="the tests that concern what differs from a revision (HEAD)")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="a suite, or any part of the names of tests")
    return parser.parse_args()


def main():
    # In the background of a shell both are ignored, and would be in all programs under test
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    options = parse_options()
    try:
        planned, all_cases = plan(options)
    except (names.Unknown, changed.Wrong) as error:
        sys.exit(str(error))
    print("plan: " + ", ".join(f"{suite.name} {len(tests)}" for suite, tests in planned)
          + " (test programs)", flush=True)
    if options.list:
        for suite, tests in planned:
            for test in tests:
                print(f"  {suite.name:<12} {test['name']}")
        return 0
    if options.installed:
        install_for(planned)
    if all_cases:
        report("configure", all_cases, 0)
    skips, unsteady, broken = [], [], []
    began = time.monotonic()
    for suite, tests in planned:
        start = time.monotonic()
        cases = run_suite(suite, tests, options)
        if options.installed:
            cases = [judged(case) for case in cases]
        report(suite.name, cases, time.monotonic() - start, suite.listed)
        skips += [(suite, case) for case in cases if case.result == "skipped"]
        unsteady += [f"{suite.name}: {case.name}" for case in cases if case.unsteady]
        broken += [f"{suite.name}: {case.name}" for case in cases if case.result == "failed"]
        all_cases += cases
    usual = not (options.long or options.mutate or options.names or options.changed)
    all_cases += whole(usual, time.monotonic() - began)
    if skips:
        print("skipped:")
    for suite, case in skips:
        print(f"  {suite.name}: {case.name}: {case.reason}")
    if unsteady:
        print("unsteady, failed once and passed when run again:", *unsteady, sep="\n  ")
    if broken:
        print("failed:", *broken, sep="\n  ")
    passed, failed, skipped = tally(all_cases)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
