#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks the test runner: programs that crash, hang, lie or say nothing must count as failed.

And which tests run, and what is built for them, where names or changed files pick some.
"""
import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tree
from tree import tap

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
import changed  # noqa: E402  (found through the line above)
import names  # noqa: E402
import run  # noqa: E402
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
    run.plan, run.compile_all = lambda _: ([(suite, [test])], []), lambda *_: None
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
        before, run.compile_all = run.compile_all, lambda *_: None
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


# --- tests that are picked ----------------------------------------------------------------------


def fake(name, *suites, **fields):
    return {"name": name, "suite": [f"warpsock:{suite}" for suite in suites], "cmd": ["true"],
            "protocol": "exitcode", "timeout": 20, "is_parallel": True, "depends": [], **fields}


# What each build directory has, as meson would say
FAKES = {
    "build": [fake("mpa/rx", "unit"), fake("mpa/start", "unit"),
              fake("threads/log", "unit", "threads"), fake("style/lab", "style"),
              fake("calls-ddp", "e2e"), fake("lab", "vm"),
              fake("door", "vm"), fake("soak", "pressure"), fake("unit-like", "e2e")],
    "build-asan": [fake("mpa/rx", "unit"), fake("fuzz/mpa_rx", "fuzz")],
    "build-tsan": [fake("threads/log", "unit", "threads"), fake("threads/crew", "threads")],
    "build-points": [fake("kills", "kills"), fake("mpa/rx", "unit")],
    "build-clang": [fake("mpa/rx", "unit")],
}

# Names, and of each suite what they pick; None: nothing at all, and nobody is asked but build/
NAMES = [
    (["mpa/rx"], {"unit": ["mpa/rx"]}),
    (["pa/"], {"unit": ["mpa/rx", "mpa/start"]}),
    (["mpa/rx", "rx", "calls"], {"unit": ["mpa/rx"], "e2e": ["calls-ddp"]}),
    (["threads/log"], {"unit": ["threads/log"]}),
    (["lab"], {"style": ["style/lab"]}),
    (["--exact", "lab"], {"vm": ["lab"]}),
    (["door", "soak"], {"vm": ["door"], "pressure": ["soak"]}),
    (["mpa_rx"], {"fuzz": ["fuzz/mpa_rx"]}),
    (["unit"], {"unit": ["mpa/rx", "mpa/start", "threads/log"]}),
    (["unit", "mpa/rx"], {"unit": ["mpa/rx", "mpa/start", "threads/log"]}),
    (["style", "start"], {"style": ["style/lab"], "unit": ["mpa/start"]}),
    (["--exact", "mpa/*"], {"unit": ["mpa/rx", "mpa/start"]}),
    (["--exact", "fuzz/*_rx"], {"fuzz": ["fuzz/mpa_rx"]}),
    (["--exact", "mpa"], None),
    (["mpa/rx", "no-such"], None),
    ([""], None),
]


@contextlib.contextmanager
def replaced(module, **values):
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def planned(args, fakes=FAKES, **more):
    """What is planned for these arguments; the build directories that were configured for it."""
    asked = []

    def configure(build):
        asked.append(build)
        return fakes[build]

    with replaced(run, configure=configure, **more), replaced(sys, argv=["run.py", *args]):
        return run.plan(run.parse_options())[0], asked


def about_names(writer):
    for args, wanted in NAMES:
        try:
            plan, asked = planned(args, ROOT=TESTS.parent)
            got = {suite.name: [test["name"] for test in tests] for suite, tests in plan}
            wrong = [str(got)] if got != wanted else []
        except names.Unknown as error:
            got = wanted and str(error)
            wrong = [str(error)] if wanted is not None else []
        writer.case(f"./dev test {' '.join(args) or repr('')}: "
                    f"{'nothing' if wanted is None else ', '.join(wanted)}", wrong)
    plan, _ = planned(["style", "start"])
    writer.case("a suite that is named is whole, one of a test is not",
                [str(plan)] if [suite.part for suite, _ in plan] != [False, True] else [])
    plan, _ = planned([])
    got = [suite.name for suite, _ in plan if suite.part or suite.name in run.ONLY_WHEN_ASKED]
    writer.case("without names all suites are whole", got)
    with tempfile.TemporaryDirectory() as folder:  # where no directory is configured yet
        for name in ("unit", "threads", "conformance", "kills", "fuzz"):
            (Path(folder) / "tests" / name).mkdir(parents=True)
            (Path(folder) / "tests" / name / "meson.build").write_text(
                "['mpa_rx']" if name == "fuzz" else "")
        got = []
        for word in ("mpa/rx", "nonesuch", "fuzz/mpa"):
            with contextlib.suppress(names.Unknown):
                got.append(planned([word], ROOT=Path(folder))[1])
        writer.case("a directory is configured only for a name that it may have",
                    [str(got)] if got != [["build"], ["build", "build-asan"]] else [])


def typed(*args):
    """The exit status of the runner with these arguments, and what it prints; what it builds."""
    out, built = io.StringIO(), []
    with replaced(run, configure=FAKES.get, compile_all=lambda *some, **_: built.append(some)), \
            replaced(sys, argv=["run.py", *args]), contextlib.redirect_stdout(out):
        try:
            status = run.main()
        except SystemExit as error:
            status = error.code
    return status, out.getvalue(), built


def about_mistakes(writer):
    for name, near in (("mpa/xr", "mpa/rx"), ("strat", "mpa/start"), ("stile", "style")):
        status, _, built = typed(name, "mpa/rx")
        said = str(status)
        good = near in said.partition("did you mean")[2] and repr(name) in said and not built
        writer.case(f"an unknown name, {name}, is an error; nothing is built",
                    [] if good else [said, str(built)])
    status, out, _ = typed("mpa/")
    writer.case("the last line of a run of two tests counts them",
                [] if status == 0 and out.endswith("\n2 passed, 0 failed, 0 skipped\n") else [out])


# A suite and its tests, and what is built for them: None for all, [] for nothing
BUILT = [
    ("one test", "e2e", True, [fake("a", depends=["a"])], ["a.out"]),
    ("two tests", "e2e", True, [fake("a", depends=["a"]), fake("b", depends=["b", "a"])],
     ["a.out", "b.map", "b.out"]),
    ("a script", "e2e", True, [fake("a")], []),
    ("a test that is given the build directory", "e2e", True,
     [fake("a", cmd=["a.sh", "BUILD"], depends=["a"])], None),
    ("a test of suite vm", "vm", True, [fake("a", depends=["a"])], None),
    ("a whole suite", "e2e", False, [fake("a", depends=["a"])], None),
]


def about_builds(writer):
    for name, suite, part, tests, wanted in BUILT:
        calls = []
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "build/meson-info").mkdir(parents=True)
            files = {"a": ["a.out"], "b": ["b.out", "b.map"]}
            (Path(folder) / "build/meson-info/intro-targets.json").write_text(json.dumps(
                [{"id": key, "filename": [f"{folder}/build/{one}" for one in value]}
                 for key, value in files.items()]))
            tests = [{**test, "cmd": [word.replace("BUILD", f"{folder}/build")
                                      for word in test["cmd"]]} for test in tests]
            with replaced(run, ROOT=Path(folder),
                          compile_all=lambda _, targets=None, jobs=0: calls.append(targets)):
                run.compile_for(run.Suite(suite, "build", (suite,), 60, part=part), tests)
        writer.case(f"what is built for {name}: {'all' if wanted is None else wanted or 'nothing'}",
                    [str(calls)] if calls != ([] if wanted == [] else [wanted]) else [])


def side_by_side(part, parallel):
    """How many of four tests run at once, where a run of whole suites has two at a time."""
    with tempfile.TemporaryDirectory() as folder:
        script = (f"touch {folder}/$$; ls {folder} | wc -l >>{folder}.most; sleep 0.5; "
                  f"rm {folder}/$$")
        tests = [fake(str(number), cmd=["sh", "-c", script], is_parallel=parallel)
                 for number in range(4)]
        suite = run.Suite("t", "build", ("t",), 60, part=part)
        try:
            with replaced(run, compile_all=lambda *_: None, CORES=4, JOBS=2), \
                    contextlib.redirect_stdout(io.StringIO()):
                run.run_suite(suite, tests, argparse.Namespace(long=False, once=False))
            return max(map(int, Path(f"{folder}.most").read_text().split()))
        finally:
            Path(f"{folder}.most").unlink(missing_ok=True)


def about_cores(writer):
    for name, part, parallel, fits in (
            ("tests that were picked run by the cores", True, True, lambda most: most > 2),
            ("one that must be alone is, when picked", True, False, lambda most: most == 1),
            ("tests of a whole suite run two at a time", False, True, lambda most: most <= 2)):
        most = side_by_side(part, parallel)
        writer.case(name, [] if fits(most) else [f"{most} at once"])


def about_packages(writer):
    for args, wanted in ((["door"], "vm\n"), (["vm"], "vm\n"), (["mpa/rx"], ""), (["unit"], "")):
        with tempfile.TemporaryDirectory() as folder:
            asked = Path(folder) / "asked"
            with replaced(run, INSTALLER=("sh", "-c", f"echo $0 >>{asked}")):
                typed("--installed", *args)
            got = asked.read_text() if asked.exists() else ""
        writer.case(f"packages that {args[0]} needs beyond the usual: {wanted.strip() or 'none'}",
                    [got] if got != wanted else [])


# --- what changed -------------------------------------------------------------------------------


QUERY = """lib.a:
  input: AR
    lib.o
  outputs:
    test
lib.o:
  input: CC
    ../lib.c
    || made.h
  outputs:
    lib.a
test:
  input: LINK
    lib.a
    | other.so
  outputs:
    all
"""
DEPS = """lib.o: #deps 2, deps mtime 1 (VALID)
    ../lib.c
    ../lib.h

"""


def about_graph(writer):
    users = changed.defaultdict(set)
    changed.parse_query(QUERY, users)
    told = changed.parse_deps(DEPS, users)
    graph = object.__new__(changed.Graph)
    graph.build, graph.users = changed.ROOT / "build", users
    got = [sorted(graph.reached(*some)) for some in (
        ("lib.h", ()), ("lib.h", {"lib.a"}), ("made.h", ()))]
    wanted = [["../lib.h", "lib.a", "lib.o", "test"], ["../lib.h", "lib.o"], ["../made.h"]]
    writer.case("what a header goes into, up to the ends; not what is only made before it",
                [] if got == wanted and told == {"lib.o"} and users["other.so"] == {"test"}
                else [str(got)])


TABLE = """# a: comment
end: x.so y
lib/*: one two
lib/a.c: two three
fuzz/*.c: fuzz/{stem}
seeds/*: fuzz/{folder}
"""


def about_table(writer):
    table, ends = changed.rows(TABLE)
    got = {path: changed.words_for(path, table) for path in
           ("lib/a.c", "lib/b.c", "fuzz/rx.c", "seeds/rx/1", "a.c")}
    writer.case("rows of the table add up", [] if ends == {"x.so", "y"} and got == {
        "lib/a.c": ["one", "two", "three"], "lib/b.c": ["one", "two"], "fuzz/rx.c": ["fuzz/rx"],
        "seeds/rx/1": ["fuzz/rx"], "a.c": None} else [str(got)])
    table, _ = changed.rows(changed.TABLE.read_text())
    root = TESTS.parent
    paths = [str(path.relative_to(root)) for path in tree.ours(root, "")]
    writer.case("each row of tests/concerns.txt has files",
                [pattern for pattern, _ in table
                 if not any(changed.fnmatch.fnmatchcase(path, pattern) for path in paths)])
    known = [suite.name for suite in run.SUITES]
    known += [test["name"] for test in json.loads(Path(sys.argv[1]).read_text())]
    known += [f"fuzz/{path.stem}" for path in (TESTS / "fuzz").glob("*.c")]
    known += re.findall(r"test\('([^']+)'", (TESTS / "kills/meson.build").read_text())
    writer.case("each row of tests/concerns.txt has tests",
                [f"{pattern}: {word}" for pattern, words in table for word in words
                 if "{" not in word and not changed.fnmatch.filter(known, word)])
    writer.case("each file of the source has a row beside those for its suffix",
                [path for path in paths if path.endswith((".c", ".h")) and "/" in path
                 and not path.startswith(("tests/", "bench/", "apps/active", "apps/examples"))
                 and not any(changed.fnmatch.fnmatchcase(path, pattern) for pattern, _ in table
                             if not pattern.startswith("*"))])


# A script, its text, a file of the tests, and whether the script stands on it
MENTIONS = [
    ("tests/e2e/a.py", "import sys\nimport judge\n", "tests/e2e/judge.py", True),
    ("tests/e2e/a.py", "from judge import one\n", "tests/e2e/judge.py", True),
    ("tests/e2e/a.py", "import os, judge\n", "tests/e2e/judge.py", True),
    ("tests/e2e/a.py", "import judgement\n", "tests/e2e/judge.py", False),
    ("tests/e2e/a.py", "no import of judge here\n", "tests/e2e/judge.py", False),
    ("tests/e2e/a.sh", ". \"${0%/*}/cases.sh\"\n", "tests/e2e/cases.sh", True),
    ("tests/cpython/run.py", "HERE / 'expected.txt'", "tests/cpython/expected.txt", True),
    ("tests/e2e/a.py", "see tests/run.py", "tests/programs/run.py", False),
    ("tests/programs/play.py", "import run\n", "tests/run.py", False),
]


def repository(folder):
    """A repository with a file that changed, one that went, and one that is new."""
    def git(*args):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"})
    git("init", "-q")
    for name in ("same", "changed", "gone", "committed"):
        (folder / name).write_text(name)
    git("add", ".")
    git("commit", "-qm", "a")
    (folder / "committed").write_text("later")
    git("commit", "-qam", "b")
    (folder / "changed").write_text("later")
    (folder / "gone").unlink()
    (folder / "new").write_text("new")


def about_files(writer):
    for script, text, path, wanted in MENTIONS:
        got = changed.mentions(script, text, path)
        writer.case(f"{script} {'stands' if wanted else 'does not stand'} on {path}: "
                    + " ".join(text.split()),
                    [str(got)] if got != wanted else [])
    with tempfile.TemporaryDirectory() as name:
        repository(Path(name))
        got = changed.files("HEAD", name), changed.files("HEAD~1", name)
        wanted = ["changed", "gone", "new"], ["changed", "committed", "gone", "new"]
        writer.case("what changed since a revision, and what git does not know",
                    [str(got)] if got != wanted else [])
        try:
            got = changed.files("nothing", name)
        except changed.Wrong as error:
            got = str(error)
        writer.case("a revision that is none is an error",
                    [str(got)] if got != "no such revision: nothing" else [])


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
    for about in (about_names, about_mistakes, about_builds, about_cores, about_packages,
                  about_graph, about_table, about_files):
        about(writer)
    writer.finish()


if __name__ == "__main__":
    main()
