# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The two ends of a benchmark: programs that are pinned, started by an arm and looked after.

    server, on its processors --- loopback, or a network that is far --- client, on its own

Each end runs with the launcher or without, as its arm says; both ends of a run alike.
"""
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from arms import DDP

LIMIT = 120
MEASURED = 0.02  # seconds between two looks at a server that starts


class Failed(Exception):
    """A run that measured nothing, and why."""


@dataclass(frozen=True)
class Place:
    """Which processors the ends may use."""
    key: str
    title: str
    server: tuple
    client: tuple


def places():
    """By name. With one processor there is one place."""
    cpus = sorted(os.sched_getaffinity(0))
    one = Place("one", "one core", (cpus[0],), (cpus[0],))
    if len(cpus) < 2:
        return {"one": one}
    two = (cpus[0], cpus[-1])
    return {"two": Place("two", "a core each", two[:1], two[1:]), "one": one,
            "free": Place("free", "either of two cores", two, two)}


@dataclass
class Done:
    text: str
    cpu: float  # seconds, user and system
    seconds: float
    report: dict = None


def cpu_of(pid):
    """Seconds of a process and of all below it, of children that have ended, too."""
    clock = (~pid << 3) | 2  # clock_getcpuclockid()
    try:
        total = time.clock_gettime(clock)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        below = " ".join((task / "children").read_text() for task in tasks).split()
    except (OSError, ProcessLookupError):
        return 0.0
    total += (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return total + sum(cpu_of(int(child)) for child in below)


def family(pid):
    """A process and all below it."""
    try:
        below = " ".join((task / "children").read_text()
                         for task in Path(f"/proc/{pid}/task").iterdir()).split()
    except OSError:
        return []
    return [pid, *(one for child in below for one in family(int(child)))]


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def listens(port, pid="self"):
    """Looked up in the network namespace of a process, not tried: a try would be a connection."""
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return False
    return any(line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
               for line in lines)


class Ends:
    """The programs of one benchmark; none of them outlives it."""

    def __init__(self, warpsock, enter=None, leave=None):
        self.warpsock = os.path.abspath(warpsock)
        self.enter, self.leave = enter, leave  # take a server's process, a client's, to its network
        self.folder = Path(tempfile.mkdtemp(prefix="warpsock-bench-"))
        self.folder.chmod(0o777)  # servers of other users
        self.running = []
        self.number = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, arm, cpus, args, report=None):
        words = ["taskset", "-c", ",".join(map(str, cpus))]
        if arm and arm.launch is not None:
            words += [self.warpsock, "run", *arm.launch]
            words += ["--report", str(report)] if report else []
            words.append("--")
        return words + [str(arg) for arg in args]

    def begin(self, name, words, env=None, server=False, inside=None, **kwargs):
        """inside: called in the new process before the program is executed."""
        calls = [call for call in (self.enter if server else self.leave, inside) if call]
        paths = [self.folder / f"{name}.{stream}" for stream in ("out", "err")]
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        with open(paths[0], "wb") as out, open(paths[1], "wb") as err:
            proc = subprocess.Popen(words, stdout=out, stderr=err, cwd=self.folder,
                                    env={**os.environ, **(env or {})}, start_new_session=True,
                                    preexec_fn=lambda: [call() for call in calls], **kwargs)
        self.running.append(proc)
        return proc

    def text(self, name, stream="out"):
        return (self.folder / f"{name}.{stream}").read_text(errors="replace")

    def said(self, name):
        return "; ".join((self.text(name, "err") + self.text(name)).strip().splitlines()[-4:])

    def serve(self, arm, place, args, port, env=None, **kwargs):
        """Starts a server and waits until it listens."""
        self.number += 1
        name = f"server-{self.number}"
        words = self.command(arm, place.server, args)
        proc = self.begin(name, words, {**(arm.env if arm else {}), **(env or {})}, server=True,
                          **kwargs)
        end = time.monotonic() + 30
        while not listens(port, proc.pid):
            if proc.poll() is not None or time.monotonic() > end:
                raise Failed(f"{args[0]} does not listen at port {port}: {self.said(name)}")
            time.sleep(MEASURED)
        return proc

    def wait(self, proc, name, limit):
        """The processor time of a program that ends by itself, and well."""
        fd = os.pidfd_open(proc.pid)
        ended = select.select([fd], [], [], limit)[0]
        os.close(fd)
        if not ended:
            raise Failed(f"{name} does not end in {limit} s: {self.said(name)}")
        _, status, usage = os.wait4(proc.pid, 0)
        proc.returncode = os.waitstatus_to_exitcode(status)
        self.running.remove(proc)
        if proc.returncode:
            raise Failed(f"{name} ended with {proc.returncode}: {self.said(name)}")
        return usage.ru_utime + usage.ru_stime

    def client(self, arm, place, args, limit=LIMIT, env=None, own_cpus=False, judged=True,
               **kwargs):
        """Runs a client to its end. One that pins its ends itself may use all processors."""
        name = Path(str(args[0])).name
        report = self.folder / "client.json"
        report.unlink(missing_ok=True)
        begin = time.monotonic()
        cpus = os.sched_getaffinity(0) if own_cpus else place.client
        proc = self.begin(name, self.command(arm, cpus, args, report),
                          {**(arm.env if arm else {}), **(env or {})}, **kwargs)
        cpu = self.wait(proc, name, limit)
        seconds = time.monotonic() - begin
        if arm and arm.launch is not None and judged:
            judge(arm, report, name)
        return Done(self.text(name), cpu, seconds)

    @contextlib.contextmanager
    def beside(self, arm, place, args, **kwargs):
        """A client that runs while something else is measured."""
        self.number += 1
        name = f"beside-{self.number}"
        proc = self.begin(name, self.command(arm, place.client, args), dict(arm.env), **kwargs)
        try:
            yield proc, name
            if proc.poll() is not None:
                raise Failed(f"{args[0]} ended too early: {self.said(name)}")
        finally:
            self.end(proc)

    def until_said(self, proc, name, wanted, limit=LIMIT):
        end = time.monotonic() + limit
        while wanted not in self.text(name):
            if proc.poll() is not None or time.monotonic() > end:
                raise Failed(f"{name} does not say {wanted!r}: {self.said(name)}")
            time.sleep(MEASURED)

    def end(self, proc):
        """Ends a program and all that it has started."""
        if proc not in self.running:
            return
        self.running.remove(proc)
        for number, limit in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(proc.pid, number)
            try:
                proc.wait(limit)
                break
            except subprocess.TimeoutExpired:
                continue
        with contextlib.suppress(ProcessLookupError):
            os.killpg(proc.pid, signal.SIGKILL)

    def stop(self):
        for proc in list(self.running):
            self.end(proc)


def judge(arm, path, name):
    """The connections of a run were what the arm is about."""
    if not path.exists() or not path.read_text().strip():
        raise Failed(f"{name}: the interposer made no report")
    report = json.loads(path.read_text())
    found = report["connections"]
    ddp = found["software"] + found.get("verbs", 0) + found.get("kernel", 0)
    if arm.carried == DDP and (not ddp or found["tcp"]) or arm.carried != DDP and ddp:
        raise Failed(f"{name}, {arm.title}: its connections were not: {found}, "
                     f"{report.get('fallbacks')}")
