# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A stage for real programs: both ends under the launcher, watched on the wire, asked afterwards.

What a program is told to do is a row of docs/programs.md: its command line, and its report.
"""
import contextlib
import hashlib
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "e2e")]

import fpdu_check  # noqa: E402
from launch import Stage, free_port  # noqa: E402

LIMIT = 60
MIB = 1 << 20


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return digest.hexdigest()


def tail(text, lines=6):
    return text.splitlines()[-lines:]


def until(condition, limit=20):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def listens(port):
    """Looked up, not tried: a connection that says nothing would be a program's to count."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and local.endswith(wanted):
                return True
    return False


def ddp_problems(report):
    """Why this is no report of a program whose connections were all on DDP."""
    if report is None:
        return ["there is no report"]
    found = report["connections"]
    problems = [f"{found[key]} connections: {key}" for key in ("tcp", "kernel", "verbs")
                if found[key]]
    if not found["software"]:
        problems.append("no connection was on DDP")
    if report["fallbacks"]:
        problems.append(f"fallbacks: {report['fallbacks']}")
    return problems


def as_root():
    return [] if os.geteuid() == 0 else ["sudo", "-n"]


class Wire:
    """A capture of some ports on loopback."""

    def __init__(self, folder, ports):
        self.ports = ports
        self.path = folder / f"wire-{ports[0]}.pcap"
        self.log = folder / f"wire-{ports[0]}.log"
        self.dump = None
        self.why = None  # why there is no capture

    def start(self):
        """Not in immediate mode, whose ring has room for 256 packets, however small they are."""
        what = " or ".join(f"tcp port {port}" for port in self.ports)
        with open(self.log, "wb") as log:
            self.dump = subprocess.Popen(
                [*as_root(), "tcpdump", "-i", "lo", "-s", "0", "-B", "65536", "-w",
                 str(self.path), what],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        until(lambda: "listening on" in self.said() or self.dump.poll() is not None)
        if self.dump.poll() is not None:
            self.why = f"no capture here: {' '.join(tail(self.said(), 1))}"

    def said(self):
        return self.log.read_text(errors="replace")

    def stop(self):
        if self.dump and self.dump.poll() is None:
            time.sleep(1.3)  # what came last reaches tcpdump after a second
            subprocess.run([*as_root(), "kill", str(self.dump.pid)], check=True, timeout=20)
            self.dump.wait(20)

    def problems(self, marker_of):
        """Of a capture whose every octet has to be in FPDUs, and the marker in their payload.

        What tcpdump says that it dropped may be from before it had its filter: a gap in what is
        ours is found by the octets that are missing.
        """
        try:
            sides = [side for port in self.ports for walk in fpdu_check.check(self.path, port)
                     for side in walk]
        except fpdu_check.Wrong as wrong:
            return [str(wrong), *tail(self.said(), 3)]
        marker = marker_of(sides)
        if not marker or not any(marker in side.payload for side in sides):
            return ["the marker was not on the wire"]
        return ["the marker is outside of FPDU payload" for side in sides if marker in side.around]


class Play(Stage):
    """The programs of one scenario; each check is a case, each command a row."""

    def __init__(self, warpsock, writer):
        super().__init__(warpsock)
        self.writer = writer
        self.marker = f"marker-{secrets.token_hex(12)}"
        self.rows = []
        self.commands = {}
        self.ports = []

    def case(self, name, problems=()):
        self.writer.case(name, problems)

    def shown(self, args):
        """The command as a reader would give it."""
        known = {f"{self.dir}/": "", str(self.dir): ".", f"{HERE}/": "", self.marker: "MARKER"}
        text = shlex.join(str(arg) for arg in args)
        for word, instead in known.items():
            text = text.replace(word, instead)
        for port in self.ports:
            text = re.sub(rf"\b{port}\b", "PORT", text)
        return re.sub("(MARKER)+", "MARKER", text)

    def port(self):
        self.ports.append(free_port())
        return self.ports[-1]

    def begin(self, name, args, **kwargs):
        self.commands[name] = self.shown(args)
        return self.start(name, [str(arg) for arg in args], **kwargs)

    def serve(self, name, args, port, **kwargs):
        """Starts a server and waits until it listens."""
        proc = self.begin(name, args, **kwargs)
        if not until(lambda: listens(port) or proc.poll() is not None) or not listens(port):
            raise RuntimeError(f"{name} does not listen: {self.both(name)}")
        return proc

    def both(self, name):
        return tail(self.text(name)) + tail(self.text(name, "err"))

    def account(self, name, proc, statuses=(0,), limit=LIMIT):
        """Waits for its end: how it ended, and what its report says. Returns what is wrong."""
        status = self.end(proc, limit)
        report = self.report(name)
        problems = ddp_problems(report)
        if status not in statuses:
            problems.append(f"it ended with {status}")
        if problems:
            problems += self.both(name)
        self.rows.append((self.commands[name], report))
        return problems

    def client(self, name, args, statuses=(0,), limit=LIMIT, **kwargs):
        """Runs a client to its end; returns what is wrong."""
        return self.account(name, self.begin(name, args, **kwargs), statuses, limit)

    def stop(self, name, proc, number=signal.SIGTERM, statuses=(0,)):
        """Ends a server as its user would, and accounts for it."""
        proc.send_signal(number)
        self.case(f"{name}: ended, every connection on DDP", self.account(name, proc, statuses))

    def balance(self, server, clients, unread=0):
        """Both ends have to count the same connections and octets, but for what clients leave."""
        mine = self.report(server)
        theirs = [self.report(name) for name in clients]
        problems = []
        for part, key, other, less in (("connections", "software", "software", 0),
                                       ("bytes", "tx", "rx", unread), ("bytes", "rx", "tx", 0)):
            total = sum(report[part][other] for report in theirs)
            if not 0 <= mine[part][key] - total <= less:
                problems.append(f"{part}: {mine[part][key]} {key}, its clients {total}")
        self.case(f"{server} and its clients count the same", problems)

    @contextlib.contextmanager
    def wire(self, name, *ports, marker_of=None):
        """What runs inside is captured, and the marker has to be in it as payload of FPDUs.

        A program that takes no text has another marker, which is found in what was captured.
        """
        wire = Wire(self.dir, ports)
        wire.start()
        try:
            yield wire
        finally:
            wire.stop()
        title = f"{name}: on the wire only as FPDU payload"
        if wire.why:
            self.writer.skip(title, wire.why)
        else:
            self.case(title, wire.problems(marker_of or (lambda _: self.marker.encode())))

    def blob(self, name, size):
        """A file of random octets."""
        path = self.dir / name
        with open(path, "wb") as file:
            for _ in range(size // MIB):
                file.write(os.urandom(MIB))
            file.write(os.urandom(size % MIB))
        return path

    def digest(self, name):
        return sha256(self.dir / name)

    def same(self, one, other):
        """What is wrong when two files should be one in content."""
        one, other = self.dir / one, self.dir / other
        for path in (one, other):
            if not path.exists():
                return [f"there is no {path.name}"]
        if sha256(one) == sha256(other):
            return []
        return [f"SHA-256 differs: {one.name} of {one.stat().st_size}, "
                f"{other.name} of {other.stat().st_size} octets"]

    def says(self, name, wanted):
        """What is wrong when its output should have the wanted text."""
        if wanted in self.text(name):
            return []
        return [f"{name} does not say {wanted!r}:", *self.both(name)]
