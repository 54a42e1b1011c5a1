#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plants faults in a copy of the source, one at a time: the tests named must turn red.

Each file tests/mutate/FOLDER.txt holds faults, separated by empty lines:

    fault: what goes wrong, in words (its name)
    file: the source file
    after: a fragment that stands once in the file (optional: where to begin looking)
    old: the fragment to replace; it must stand once in the file, or once behind "after"
    new: what to put there (may be empty)
    red: names of the tests that must fail, as `meson test --list` gives them

Every fault is a case: it passes when all the tests it names fail or hang. First the same tests run
without any fault, for a test that is red anyway proves nothing. A fault that does not apply or
does not compile is a failed case: the table is to follow the source.

    mutate.py [--keep DIR] [WORD...]    only faults whose file or name contains a WORD, or that
                                        stand in a table of that name (soft.txt)
    mutate.py --check                   only: do they still apply?
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import run  # noqa: E402  (found through the line above)
import tap  # noqa: E402

FIELDS = {"fault", "file", "after", "old", "new", "red"}
REQUIRED = FIELDS - {"after"}
BUILD_LIMIT = 600


class BadFault(Exception):
    """The table and the source do not fit together."""


# --- the table ----------------------------------------------------------------------------------


def parse(text, origin, more=frozenset()):
    """The faults of one table, each a dict of its fields; more: other fields that it may have."""
    faults, fault = [], {}
    for number, line in enumerate([*text.splitlines(), ""], 1):
        key, colon, value = line.partition(":")
        if line.startswith("#"):
            continue
        if not line.strip():
            if fault and REQUIRED - fault.keys():
                raise BadFault(f"{origin}:{number}: no {' '.join(sorted(REQUIRED - fault.keys()))}")
            faults += [fault] if fault else []
            fault = {}
        elif not colon or key not in FIELDS | more or key in fault:
            raise BadFault(f"{origin}:{number}: not understood: {line}")
        else:
            fault[key] = value.strip()
    return faults


def plant(text, fault):
    """The text with the fault in it."""
    start = 0
    if "after" in fault:
        if text.count(fault["after"]) != 1:
            raise BadFault(f"{text.count(fault['after'])} places for after: {fault['after']}")
        start = text.index(fault["after"])
    rest = text[start:]
    if rest.count(fault["old"]) != 1 and not ("after" in fault and fault["old"] in rest):
        raise BadFault(f"{rest.count(fault['old'])} places for: {fault['old']}")
    if fault["old"] == fault["new"]:
        raise BadFault("old and new are the same")
    return text[:start] + rest.replace(fault["old"], fault["new"], 1)


# --- the copy -----------------------------------------------------------------------------------


def copy_changed(source, to):
    """What is the same keeps its time, so that what a fault was built from is built again."""
    if not Path(to).is_file() or Path(source).read_bytes() != Path(to).read_bytes():
        shutil.copy(source, to)


class Copy:
    """A copy of the source with a build directory; only what a fault touches is built again."""

    def __init__(self, where):
        self.source, self.build = where / "source", where / "build"
        skip = shutil.ignore_patterns(".git", "build*", "__pycache__")
        shutil.copytree(ROOT, self.source, ignore=skip, symlinks=True, dirs_exist_ok=True,
                        copy_function=copy_changed)
        # A fault may leave something unused; that is not what is to be found here.
        self.command(["meson", "setup", str(self.build), str(self.source), "-Dwerror=false",
                      "-Dpoints=true", *run.TESTS])
        self.tests = {test["name"]: test for test in run.tests_of(self.build)}
        self.files = self.targets()
        self.limits = {}

    def command(self, args):
        done = subprocess.run(args, cwd=self.source, text=True, timeout=BUILD_LIMIT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            raise BadFault("does not build:\n" + run.build_errors(done.stdout))

    def targets(self):
        """By meson's name of a target: what ninja calls its files."""
        listed = subprocess.run(["meson", "introspect", "--targets", str(self.build)], text=True,
                                check=True, stdout=subprocess.PIPE)
        return {target["id"]: [str(Path(name).relative_to(self.build))
                               for name in target["filename"]]
                for target in json.loads(listed.stdout)}

    def make(self, names):
        """Builds what these tests run, and no more."""
        wanted = {name for test in names for target in self.tests[test]["depends"]
                  for name in self.files[target]}
        self.command(["nice", "ninja", "-j", str(run.JOBS), "-C", str(self.build),
                      *sorted(wanted)])

    def red(self, names):
        """Builds, and returns those of the tests that fail."""
        unknown = [name for name in names if name not in self.tests]
        if unknown or not names:
            raise BadFault(f"no such test: {' '.join(unknown) or '(none named)'}")
        self.make(names)
        return [name for name in names if self.test_fails(name)]

    def test_fails(self, name):
        """A test that takes several times as long as it did without a fault hangs."""
        limit = self.limits.get(name, self.tests[name]["timeout"])
        test, begin = dict(self.tests[name], timeout=limit), run.time.monotonic()
        cases = run.run_test(test, begin + limit, False)
        self.limits.setdefault(name, 30 + 5 * (run.time.monotonic() - begin))
        return any(case.result == "failed" for case in cases)

    def try_fault(self, fault):
        """The tests that see the fault."""
        path = self.source / fault["file"]
        if not path.is_file():
            raise BadFault(f"no file {fault['file']}")
        good = path.read_text()
        bad = plant(good, fault)
        try:
            path.write_text(bad)
            return self.red(fault["red"].split())
        finally:
            path.write_text(good)


# --- the run ------------------------------------------------------------------------------------


def judge(copy, fault, red_before):
    """The verdict on a fault, and its problems."""
    stale = sorted(red_before & set(fault["red"].split()))
    if stale:
        return "no baseline", [f"red without the fault: {' '.join(stale)}"]
    try:
        seen = copy.try_fault(fault)
    except BadFault as error:
        return "does not apply", str(error).splitlines()
    green = [name for name in fault["red"].split() if name not in seen]
    return ("SURVIVED", [f"still green: {' '.join(green)}"]) if green else ("killed", [])


def baseline(copy, faults):
    names = {name for fault in faults for name in fault["red"].split()}
    return set(copy.red(sorted(names & copy.tests.keys()))) if names & copy.tests.keys() else set()


def load(words):
    faults = []
    for path in sorted(Path(__file__).parent.glob("*.txt")):
        faults += [fault for fault in parse(path.read_text(), path.name)
                   if not words or path.name in words or
                   any(word in fault["file"] + " " + fault["fault"] for word in words)]
    return faults


def check(faults):
    writer = tap.Writer()
    for fault in faults:
        problems = []
        try:
            plant((ROOT / fault["file"]).read_text(), fault)
        except (BadFault, OSError) as error:
            problems = [str(error)]
        writer.case(f"{fault['file']}: {fault['fault']}", problems)
    writer.finish()


def run_all(where, faults):
    writer = tap.Writer()
    copy = Copy(where)
    red_before = baseline(copy, faults)
    verdicts = []
    for fault in faults:
        verdict, problems = judge(copy, fault, red_before)
        verdicts.append((verdict, fault))
        writer.case(f"{fault['file']}: {fault['fault']}", problems)
    for verdict, fault in verdicts:
        print(f"# {verdict:<14} {fault['file']:<24} {fault['fault']}")
    print(f"# {sum(verdict == 'killed' for verdict, _ in verdicts)} of {len(faults)} killed")
    writer.finish()


def main():
    parser = argparse.ArgumentParser(description="Plant faults that tests must find.")
    parser.add_argument("--keep", type=Path, help="use this directory again from run to run")
    parser.add_argument("--check", action="store_true", help="only: do the faults still apply?")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_args()
    faults = load(options.words)
    if options.check:
        check(faults)
    if options.keep:
        run_all(options.keep.resolve(), faults)
    with tempfile.TemporaryDirectory(prefix="warpsock-mutate-") as name:
        os.chmod(name, 0o755)  # tests become other users, who run what is in it
        run_all(Path(name), faults)


if __name__ == "__main__":
    main()
