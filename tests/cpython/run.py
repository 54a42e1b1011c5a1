#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPython's own network tests, over TCP and over DDP: what passes over TCP passes over DDP.

    run.py WARPSOCK GROUP [MODULE...]

Each module runs over TCP first. Its tests that pass there run under `warpsock run --all`, in mode
on and in mode auto. Those that expected.txt names run alone, and have to fail, once in some
tries: a difference that is none any more has no place there. One that differs sometimes has to
come to its end. The tests are Debian's (libpython3.11-testsuite), for /usr/bin/python3, whatever
python3 is first in PATH.

A module that is marked LONG runs in long runs only, or a part of it: regrtest's patterns.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import expected
import tap

PYTHON = "/usr/bin/python3"
LIMIT = 600  # seconds for a module
ALONE = 60  # and for one test
KNOWN = 8  # and for one that is known to fail, which may be a hang
TRIES = 10
HANGS = 4  # tests at which a module may hang before it is given up
AGAIN = 3  # times that one which failed beside others runs alone
LONG = "long"
# A sandbox's kernel may have AF_VSOCK, and no other end for it
NEVER = ["*VSOCK*"]
# This one stays on this host all the same
RESOURCES = {"test_socketserver": ["-u", "network"]}
GROUPS = {
    "sockets": {"test_socket": ["*TCP*", "*Basic*", "*Network*", "*FileObject*", "*Timeout*",
                                "*ContextManager*", "*Sendfile*", "*NonBlocking*"],
                "test_socketserver": []},
    "waits": {"test_epoll": [], "test_select": [], "test_poll": [LONG],
              "test_selectors": ["*EpollSelector*"]},
    "clients": {"test_ftplib": [], "test_telnetlib": [], "test_httplib": [],
                "test_httpservers": [], "test_urllib2_localnet": [], "test_xmlrpc": [LONG]},
    "mail": {"test_smtplib": [], "test_poplib": [], "test_nntplib": [], "test_imaplib": [LONG]},
    "tls": {"test_ssl": ["*SimpleBackground*", "*PreHandshake*", "*test_echo*", "*starttls*",
                         "*recv*", "*read_write*"]},
    "asyncio": {"test_asyncio": ["*test_streams*", "*test_sock_lowlevel*", "*test_server*",
                                 "*test_sendfile*"]},
    "processes": {"test_multiprocessing_main_handling": [LONG],
                  "test_multiprocessing_fork": ["*Connection*", "*Listener*", "*Poll*"],
                  "test_multiprocessing_spawn": [LONG],
                  "test_multiprocessing_forkserver": [LONG]},
}


class Run:
    """One run of a module: `results` by test, True: passed; None: it did not come to its end.
    `connections` were on DDP."""

    def __init__(self, launcher, module, match, ignore, limit):
        options = [word for one in match for word in ("-m", one)]
        options += [word for one in ignore for word in ("-i", one)]
        with tempfile.TemporaryDirectory(prefix="warpsock-cpython-") as folder:
            xml, report = Path(folder) / "results.xml", Path(folder) / "report.json"
            command = [*launcher, "--report", str(report), "--"] if launcher else []
            begun = time.monotonic()
            self.text = execute([*command, PYTHON, "-m", "test", "--junit-xml", str(xml),
                                 *RESOURCES.get(module, []), *options, "-v", module], folder,
                                limit)
            self.seconds = time.monotonic() - begun
            self.results = results_of(xml)
            self.connections = connections_of(report)


def execute(command, folder, limit):
    """What it says; all that it has started ends with it."""
    with open(Path(folder) / "said", "w+b") as said:
        proc = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said,
                                stderr=subprocess.STDOUT, start_new_session=True,
                                env=dict(os.environ, TMPDIR=folder, PYTHONPATH=""))
        try:
            proc.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            pass
        finally:
            end_group(proc)
        said.seek(0)
        return said.read().decode(errors="replace").splitlines()


def end_group(proc):
    try:
        os.killpg(proc.pid, 9)
    except ProcessLookupError:
        pass
    proc.wait()


def results_of(xml):
    try:
        cases = ElementTree.parse(xml).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return None
    return {case.get("name"): case.find("failure") is None and case.find("error") is None
            for case in cases if case.find("skipped") is None}


STARTED = re.compile(r"\w+ \((test\.[\w.]+)\)")


def last_started(run):
    """The test at which a verbose run stopped; None: it began none."""
    started = [match[1] for match in map(STARTED.match, run.text) if match]
    return started[-1] if started else None


def connections_of(report):
    return json.loads(report.read_text())["connections"]["software"] if report.exists() else 0


def tail(run):
    return run.text[-25:]


def why(run, test):
    """What a verbose run says of a test that failed."""
    short = test.rsplit(".", 1)[-1]
    at = [number for number, line in enumerate(run.text)
          if line.startswith(("ERROR: ", "FAIL: ")) and short in line]
    return run.text[at[0]:at[0] + 25] if at else tail(run)


class Module:
    def __init__(self, warpsock, writer, name, match):
        self.warpsock, self.writer, self.name, self.match = warpsock, writer, name, match
        tcp = Run([], name, match, NEVER, LIMIT)
        self.good = {test for test, passed in (tcp.results or {}).items() if passed}
        self.limit = min(LIMIT, 30 + 4 * tcp.seconds)
        writer.case(f"{name}, TCP: {len(self.good)} tests pass",
                    [] if self.good else ["none does", *tail(tcp)])

    def run(self, mode, match, ignore, limit):
        return Run([self.warpsock, "run", "--all", "--mode", mode], self.name, match, ignore,
                   limit)

    def alone(self, mode, test, limit=ALONE):
        """The run, and whether the test passed."""
        run = self.run(mode, [test], [], limit)
        return run, bool((run.results or {}).get(test))

    def differs(self, mode, test):
        return any(not self.alone(mode, test, KNOWN)[1] for _ in range(TRIES))

    def unended(self, mode, test):
        """What was told, where it came to no result."""
        run = self.alone(mode, test)[0]
        return [] if test in (run.results or {}) else tail(run)

    def passes_alone(self, mode, test):
        """Whether it does, and the last run."""
        for _ in range(AGAIN):
            run, passed = self.alone(mode, test)
            if passed:
                break
        return run, passed

    def group(self, mode, known):
        """A run of all but those that are known to differ, and but each at which it hangs."""
        hung = []
        while True:
            run = self.run(mode, self.match, [*NEVER, *known, *hung], self.limit)
            last = last_started(run)
            if run.results is not None or last is None or len(hung) == HANGS:
                return run
            print(f"# {last}, {mode}: does not come to its end")
            hung.append(last)

    def failed(self, mode, run):
        """Tests that pass over TCP, did not here, and do not when they run alone either."""
        problems = []
        for test in sorted(self.good - {test for test, passed in run.results.items() if passed}):
            again, passed = self.passes_alone(mode, test)
            if passed:
                print(f"# {test}, {mode}: failed, and passed alone:")
                print("".join(f"#   {line}\n" for line in why(run, test)), end="")
            else:
                problems += [test, *why(again, test)]
        return problems

    def compare(self, mode):
        known = {test: always for test, always in expected.of(self.name, mode).items()
                 if test in self.good}
        self.good -= known.keys()
        run = self.group(mode, known)
        problems = ["it does not come to its end", *tail(run)] if run.results is None else \
            self.failed(mode, run)
        self.writer.case(f"{self.name}, mode {mode}: all that pass over TCP", problems)
        print(f"# {self.name}, {mode}: {run.seconds:.0f} s", flush=True)
        for test, always in sorted(known.items()):
            if always:
                self.writer.case(f"{test}, mode {mode}: differs, as expected.txt says",
                                 [] if self.differs(mode, test) else ["it passes"])
            else:
                self.writer.case(f"{test}, mode {mode}: comes to its end, if not always to TCP's",
                                 self.unended(mode, test))
        self.good |= known.keys()
        return run.connections


def main():
    warpsock, group, *only = sys.argv[1:]
    long = bool(os.environ.get("WARPSOCK_LONG"))
    writer, connections = tap.Writer(), Counter()
    for name, match in GROUPS[group].items():
        if (only and name not in only) or (match == [LONG] and not long and not only):
            continue
        module = Module(os.path.abspath(warpsock), writer, name, [] if long or only else match)
        for mode in expected.MODES:
            connections[mode] += module.compare(mode)
    for mode in expected.MODES:
        writer.case(f"mode {mode}: there were connections on DDP",
                    [] if connections[mode] else ["there were none"])
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
