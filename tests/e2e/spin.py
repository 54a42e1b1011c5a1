#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which waits of a whole program spin, by the counts of its report, never by time.

    spin.py WARPSOCK ROUNDS

ROUNDS are two processes that answer each other over loopback. Both are in the report.
"""
import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import time
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

CALLS = ["recv", "poll", "select", "epoll"]
SPUN = ["found", "ended", "gap", "moved"]
ROUNDS = 3000
# Other programs may take the processors for a while
SYS_SCHED_GETATTR = 315  # x86-64
SLICE = 100 * 1000
TRIES = 20  # a second apart: other tests run beside this one


class Runs:
    def __init__(self, warpsock, rounds):
        self.warpsock, self.rounds = warpsock, rounds
        self.cpus = sorted(os.sched_getaffinity(0))

    def waits(self, *args, options=("--mode", "on"), **variables):
        """The report of one run."""
        with tempfile.TemporaryDirectory(prefix="warpsock-spin-") as folder:
            report = os.path.join(folder, "report")
            command = [self.warpsock, "run", "--all", "--report", report, *options, "--",
                       self.rounds, *map(str, args)]
            done = subprocess.run(command, env={**os.environ, **variables}, timeout=60, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if done.returncode:
                raise RuntimeError(done.stdout.strip())
            return json.loads(Path(report).read_text())

    def one(self, *args, **more):
        """Both ends on one processor."""
        return self.waits("-s", self.cpus[0], "-c", self.cpus[0], *args, **more)

    def two(self, *args, **more):
        return self.waits("-s", self.cpus[0], "-c", self.cpus[1], *args, **more)


def spun(report):
    return sum(report["waits"][name] for name in SPUN)


def expect(good, report):
    return [] if good else [json.dumps(report)]


def expect_finds(run, *args, least=ROUNDS / 2, **more):
    """So many waits find what they wait for, in one of some tries."""
    for _ in range(TRIES):
        report = run(*args, **more)
        if report["waits"]["found"] > least:
            return report, []
        time.sleep(1)
    return report, [json.dumps(report)]


def beside(writer, runs):
    for call in CALLS:
        name = f"ends on two processors, {call}"
        if len(runs.cpus) < 2:
            writer.skip(name, "the device has one processor")
            continue
        writer.case(name, expect_finds(runs.two, call, ROUNDS)[1])
    if len(runs.cpus) < 2:
        return
    report, problems = expect_finds(runs.two, "recv", ROUNDS, options=("--mode", "spin"))
    writer.case("mode spin: it spins, and there is no DDP",
                problems + expect(not report["connections"]["software"], report))
    _, problems = expect_finds(runs.two, "epoll", ROUNDS, options=("--mode", "spin"))
    writer.case("mode spin, an epoll set", problems)
    # Each second wait is short: it finds, whatever becomes of the others
    _, problems = expect_finds(runs.two, "both", 300, least=150)
    writer.case("each socket has a history of its own", problems)


def here(writer, runs):
    for call in CALLS:
        report = runs.one(call, ROUNDS)
        waits = report["waits"]
        writer.case(f"both ends on one processor, {call}",
                    expect(spun(report) < ROUNDS / 20 and waits["unlikely"] and
                           waits["peer_here"] + waits["alone"], report))


def never(writer, runs):
    report = runs.one("recv", ROUNDS, WARPSOCK_SPIN="0")
    writer.case("WARPSOCK_SPIN=0", expect(not any(report["waits"].values()), report))
    report = runs.one("recv", ROUNDS, options=("--mode", "on", "--profile", "cpu"))
    writer.case("profile cpu", expect(not any(report["waits"].values()), report))
    report = runs.waits("-l", 2000, "recv", 300)
    writer.case("what comes all 2 ms is not spun for",
                expect(report["waits"]["unlikely"] > 200, report))
    if os.geteuid():
        writer.skip("a real-time class", "not root")
        return
    report = runs.waits("-f", "recv", ROUNDS)
    writer.case("a real-time class", expect(report["waits"]["urgent"] and not spun(report),
                                            report))


def always(writer, runs):
    """Each call has its spin: nothing but a taken slot stops it."""
    for call in [*CALLS, "accept"]:
        count = 100
        report = runs.waits(call, count, WARPSOCK_SPIN_ALWAYS="on", WARPSOCK_SPIN="100us")
        writer.case(f"{call} spins before it sleeps",
                    expect(spun(report) + report["waits"]["taken"] >= count, report))
        report = runs.waits(call, count, WARPSOCK_SPIN_ALWAYS="on", WARPSOCK_SPIN="100us",
                            options=("--mode", "spin"))
        writer.case(f"{call} spins before it sleeps, in mode spin",
                    expect(spun(report) + report["waits"]["taken"] >= count, report))


def slice_of(pid):
    """Nanoseconds; 0: the kernel knows no slices (before Linux 6.12)."""
    attr = ctypes.create_string_buffer(48)
    if ctypes.CDLL(None).syscall(SYS_SCHED_GETATTR, pid, attr, 48, 0):
        return 0  # it has ended
    return struct.unpack_from("<Q", attr, 24)[0]


def children(pid):
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


def slices(writer, runs):
    """A third program that wakes up is not to wait for some milliseconds."""
    names = {"on": [], "cpu": ["--profile", "cpu"]}
    if len(runs.cpus) < 2 or not slice_of(0):
        writer.skip("slices", "one processor" if slice_of(0) else "the kernel knows no slices")
        return
    for name, options in names.items():
        run = subprocess.Popen([runs.warpsock, "run", "--all", "--mode", "on", *options, "--",
                                runs.rounds, "-s", str(runs.cpus[0]), "-c", str(runs.cpus[1]),
                                "recv", "10000000"], stderr=subprocess.DEVNULL)
        found, until = set(), time.monotonic() + (20 if name == "on" else 2)
        while time.monotonic() < until and SLICE not in found:
            time.sleep(0.05)
            found |= {slice_of(pid) for pid in [run.pid, *children(run.pid)]}
        for pid in [*children(run.pid), run.pid]:
            os.kill(pid, signal.SIGKILL)
        run.wait()
        writer.case(f"slices of threads that spin, {name}",
                    [] if (SLICE in found) == (name == "on") else [f"found {found}"])


def page(writer, runs):
    """Whatever stands in the page, programs run; leases that never end are none."""
    with tempfile.TemporaryDirectory(prefix="warpsock-spin-", dir="/dev/shm") as folder:
        os.chmod(folder, 0o700)
        leases = Path(folder, "leases-1")
        report = runs.waits("recv", 100, WARPSOCK_RUNTIME_DIR=folder)
        writer.case("the page lies in the runtime folder",
                    expect(leases.stat().st_size == 65536 and
                           leases.stat().st_mode & 0o777 == 0o600, report))
        for name, text in {"rubbish": b"\xff" * 65536, "short": b"x", "empty": b""}.items():
            leases.write_bytes(text)
            report = runs.waits("recv", 100, WARPSOCK_RUNTIME_DIR=folder,
                                WARPSOCK_SPIN_ALWAYS="on")
            writer.case(f"a page that is {name}", expect(spun(report), report))
        leases.unlink()
        leases.symlink_to("/dev/shm")
        report = runs.waits("recv", 100, WARPSOCK_RUNTIME_DIR=folder, WARPSOCK_SPIN_ALWAYS="on")
        writer.case("a page that is a link", expect(spun(report), report))


def main():
    writer = tap.Writer()
    runs = Runs(*map(os.path.abspath, sys.argv[1:]))
    for part in (here, beside, never, always, slices, page):
        part(writer, runs)
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
