# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Finds the tests that concern the files changed against a revision, and says why each does.

What C code goes into, ninja knows. The interposer and the launcher are the end of that way: half of
all tests run them. Which of these to run, and which where ninja knows nothing, is written down in
concerns.txt. A script of the tests concerns the tests that run it, and what imports or names it.
"""
import fnmatch
import json
import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import names

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests/concerns.txt"
SCRIPTS = ("tests/**/*.py", "tests/**/*.sh", "bench/**/*.py", "bench/**/*.sh", "apps/*.py")
SHOWN = 6  # names of tests in a line that says why


class Wrong(Exception):
    """A revision that is none."""


def output(*command, cwd=ROOT):
    return subprocess.run(command, cwd=cwd, check=True, text=True, stdout=subprocess.PIPE).stdout


def files(revision, root=ROOT):
    """The paths that differ from the revision, those that git does not know yet among them."""
    done = subprocess.run(["git", "diff", "--name-only", "--no-renames", revision, "--"], cwd=root,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Wrong(f"no such revision: {revision}")
    new = output("git", "ls-files", "-o", "--exclude-standard", cwd=root)
    return sorted({*done.stdout.splitlines(), *new.splitlines()})


# --- the table ----------------------------------------------------------------------------------


def rows(text):
    """Of each row, the pattern of files and the patterns of tests; and the files at which ends
    what ninja is asked."""
    table, ends = [], set()
    for line in text.splitlines():
        pattern, colon, tests = line.partition(":")
        if pattern == "end":
            ends |= set(tests.split())
        elif colon and not line.startswith("#"):
            table.append((pattern.strip(), tests.split()))
    return table, ends


def words_for(path, table):
    """The patterns of tests in the rows that a path fits; None where it fits none."""
    stem, folder = Path(path).name.partition(".")[0], Path(path).parent.name
    found = [word.replace("{stem}", stem).replace("{folder}", folder) for pattern, words in table
             if fnmatch.fnmatchcase(path, pattern) for word in words]
    fits = any(fnmatch.fnmatchcase(path, pattern) for pattern, _ in table)
    return list(dict.fromkeys(found)) if fits else None


# --- what ninja knows ---------------------------------------------------------------------------


def targets(build):
    """The files of each target of a build directory, as ninja names them, by meson's id."""
    listed = json.loads((build / "meson-info/intro-targets.json").read_text())
    return {target["id"]: [os.path.relpath(name, build) for name in target["filename"]]
            for target in listed}


def parse_query(text, users):
    """Adds what `ninja -t query` says: users[file] are what is made of it."""
    made, inside = None, False
    for line in text.splitlines():
        if not line.startswith(" "):
            made = line.rstrip(":")
        elif line.startswith("  ") and not line.startswith("   "):
            inside = line.startswith("  input:")
        elif inside and not line.startswith("    ||"):
            users[line.strip().removeprefix("| ")].add(made)


def parse_deps(text, users):
    """Adds what the compilers told ninja about headers; returns the objects that have told."""
    told, made = set(), None
    for line in text.splitlines():
        if line.startswith(" "):
            users[line.strip()].add(made)
        elif line:
            made = line.partition(": #deps")[0]
            told.add(made)
    return told


class Graph:
    """What is made of what in a build directory."""

    def __init__(self, build):
        self.build, self.users = build, defaultdict(set)
        made = [line.rpartition(":")[0]
                for line in output("ninja", "-t", "targets", "all", cwd=build).splitlines()]
        parse_query(output("ninja", "-t", "query", *made, cwd=build), self.users)
        told = parse_deps(output("ninja", "-t", "deps", cwd=build), self.users)
        # Only what was compiled once has told of its headers
        self.whole = all(name in told for name in made if name.endswith(".c.o"))

    def reached(self, path, ends):
        """All that is made of a file of the source, up to the ends and without them."""
        begin = os.path.relpath(ROOT / path, self.build)
        seen, todo = {begin}, [begin]
        while todo:
            for user in self.users.get(todo.pop(), ()):
                if user not in seen and user not in ends:
                    seen.add(user)
                    todo.append(user)
        return seen


# --- scripts ------------------------------------------------------------------------------------


def mentions(script, text, path):
    """Whether a script's text imports the file or has its name, and means no other of that name."""
    name, beside = Path(path).name, Path(script).parent / Path(path).name
    if str(beside) != path and (ROOT / beside).exists():
        return False
    if any(path.endswith(found.lstrip("./")) for found in
           re.findall(rf"[\w./-]*\b{re.escape(name)}\b", text)):
        return True
    return path.endswith(".py") and bool(re.search(
        rf"^\s*(?:from|import)\s(?:[\w, ]*,)?\s*{re.escape(name[:-3])}\b", text, re.M))


def behind(path, texts, known):
    """The scripts that stand on a file of the tests, and those that stand on these, with it. It
    goes no further than scripts whose tests are known."""
    seen, todo = {path}, [path]
    while todo:
        at = todo.pop()
        for user, text in texts.items():
            if user not in seen and mentions(user, text, at):
                seen.add(user)
                if not known(user):
                    todo.append(user)
    return seen


# --- the choice ---------------------------------------------------------------------------------


class Choice:
    """Tests for changed files. A test is one of build/ and of a suite that always runs, unless the
    table names it."""

    def __init__(self, search, table, ends, graph):
        self.search, self.table, self.ends, self.graph = search, table, ends, graph
        self.files = targets(graph.build)
        self.texts = {str(path.relative_to(ROOT)): path.read_text(errors="replace")
                      for pattern in SCRIPTS for path in ROOT.glob(pattern)}

    def those(self, fits):
        """suite name -> tests of the suites that always run in build/."""
        found = {}
        for suite in self.search.stages[0]:
            for test in self.search.lists.tests(suite):
                if fits(test) and not any(test in tests for tests in found.values()):
                    found.setdefault(suite.name, []).append(test)
        return found

    def by_graph(self, path):
        made = self.graph.reached(path, self.ends)
        return self.those(lambda test: any(name in made for target in test["depends"]
                                           for name in self.files[target]))

    def has_row(self, path):
        return words_for(path, self.table) is not None

    def by_scripts(self, path):
        if not path.startswith(("tests/", "bench/", "apps/")):
            return {}
        scripts = {str(ROOT / name) for name in behind(path, self.texts, self.has_row)}
        return self.those(lambda test: not scripts.isdisjoint(test["cmd"]))

    def by_table(self, words):
        """A test that is not here, as where a library was not found, is none."""
        found = {}
        for word in words:
            suites = [suite for suite in self.search.suites if suite.name == word]
            picked = {suite.name: self.search.lists.tests(suite) for suite in suites} or \
                self.search.matches(lambda name: fnmatch.fnmatchcase(name, word), word)
            names.add(found, picked)
        return found

    def of(self, path):
        """Pairs of a reason and of tests, for one changed file."""
        words = words_for(path, self.table)
        yield "what it is built into", self.by_graph(path)
        if words is None or not path.endswith((".py", ".sh")):
            yield "the tests' scripts", self.by_scripts(path)
        yield f"tests/{TABLE.name}", self.by_table(words or [])


def told(path, reason, found):
    listed = [test["name"] for tests in found.values() for test in tests]
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return f"{path}: {reason}: {', '.join(listed[:SHOWN])}{more}"


def meant(path):
    """The paths for which a changed path stands: a meson.build is about its whole folder."""
    folder = ROOT / path
    if folder.name != "meson.build" or len(Path(path).parts) < 2:
        return [path]
    return [path, *(str(file.relative_to(ROOT)) for file in folder.parent.glob("*.[ch]"))]


def choose(revision, search, build_all):
    """The tests for what differs from a revision, suite name -> tests; prints why."""
    paths = files(revision)
    if not paths:
        print(f"nothing differs from {revision}")
        return {}
    table, ends = rows(TABLE.read_text())
    search.lists.tests(search.stages[0][0])  # configures build/
    graph = Graph(ROOT / "build")
    if not graph.whole and any(path.endswith(".h") for path in paths):
        print("a header has changed, and what includes it is known when all is built: building",
              flush=True)
        build_all("build")
        graph = Graph(ROOT / "build")
    choice, chosen = Choice(search, table, ends, graph), {}
    for path in paths:
        some = defaultdict(dict)
        for one in meant(path):
            for reason, found in choice.of(one):
                names.add(some[reason], found)
        for reason, found in some.items():
            names.add(chosen, found)
            if any(found.values()):
                print(told(path, reason, found))
        if not any(map(any, (found.values() for found in some.values()))):
            print(f"{path}: no test is known to concern it")
    return chosen
