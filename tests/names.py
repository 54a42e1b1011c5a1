# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Finds the tests that a name means: any part of a test's name.

A test may be in several suites, and in several build directories; it is run once. A name is looked
for where an answer comes soonest: first in the suites of build/ that always run, then in those of
build/ that run only when asked for, then in the other build directories. The search ends where
there is a match, and each test belongs to the first suite that has it.
"""
import difflib
import fnmatch


class Unknown(Exception):
    """Names of no suite and no test, and what may have been meant."""


def stages(suites, when_asked):
    """The suites, in the order in which a name is looked for; a match ends the search.

    Without those that only repeat, with another compiler or a sanitizer, what build/ has.
    """
    here = [suite for suite in suites if suite.build == "build"]
    taken = {name for suite in here for name in suite.takes}
    return [[suite for suite in here if suite.name not in when_asked],
            [suite for suite in here if suite.name in when_asked],
            [suite for suite in suites if not taken.issuperset(suite.takes)]]


class Search:
    def __init__(self, suites, when_asked, lists):
        self.suites = suites
        self.stages = stages(suites, when_asked)
        self.lists = lists

    def matches(self, fits, word):
        """The tests that fit, of the first stage that has some: suite name -> tests."""
        for stage in self.stages:
            found, seen = {}, set()
            for suite in stage:
                for test in self.lists.tests(suite) if self.lists.may_have(suite, word) else []:
                    if fits(test["name"]) and test["name"] not in seen:
                        seen.add(test["name"])
                        found.setdefault(suite.name, []).append(test)
            if found:
                return found
        return {}

    def near(self, word):
        """What may have been meant: tests whose names, or the last parts of these, are alike."""
        known = {suite.name: [suite.name] for suite in self.suites}
        for suite in (suite for stage in self.stages for suite in stage):
            for test in self.lists.tests(suite) if self.lists.may_have(suite, word) else []:
                for key in (test["name"], test["name"].rpartition("/")[2]):
                    known.setdefault(key, []).append(test["name"])
        alike = difflib.get_close_matches(word, known, 3)
        return list(dict.fromkeys(name for key in alike for name in known[key]))[:4]

    def find(self, words, exact=False):
        """The tests that any of the words means: suite name -> tests. Raises Unknown.

        A word is a part of a name, or, when exact, all of it: then it may be a pattern of a shell.
        """
        parts, unknown = {}, []
        for word in words:
            found = self.matches(
                lambda name: fnmatch.fnmatchcase(name, word) if exact else word in name, word)
            add(parts, found)
            if not word or not found:
                near = self.near(word)
                unknown.append(f"no such suite or test: {word!r}"
                               + (f" (did you mean {', '.join(near)}?)" if near else ""))
        if unknown:
            raise Unknown("\n".join(unknown))
        return parts


def add(parts, found):
    """Adds tests to parts (suite name -> tests), each once."""
    for suite, tests in found.items():
        have = parts.setdefault(suite, [])
        have += [test for test in tests if test not in have]
