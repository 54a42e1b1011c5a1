# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A stage for real programs: under the launcher or not, watched on the wire, asked afterwards.

What a program is told to do with both ends under the launcher is a row of docs/programs.md: its
command line, and its report.
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
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "e2e")]

from launch import Stage, free_port  # noqa: E402
from wire import Wire, connected, listens, tail, until  # noqa: E402

LIMIT = 60
MIB = 1 << 20
DID = re.compile(r"(\d+) (cuts|joins|delays)")  # a proxy, as it says


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(MIB):
            digest.update(piece)
    return digest.hexdigest()


class Play(Stage):
    """The programs of one scenario in one way; each check is a case, each command a row."""

    def __init__(self, warpsock, resplit, writer, scenario, way):
        super().__init__(warpsock)
        self.resplit = os.path.abspath(resplit)
        self.writer = writer
        self.scenario = scenario
        self.way = way
        self.marker = f"marker-{secrets.token_hex(12)}"
        self.rows = []
        self.commands = {}
        self.roles = {}
        self.doors = {}  # by port of a server: where its clients knock
        self.rules = []  # before those of the way, where both ends are under warpsock
        self.proxies = []

    def case(self, name, problems=()):
        self.writer.case(f"{self.way.name}: {name}", problems)

    def some(self, number, least=1):
        """Of a load, all of it or a tenth."""
        return number if self.way.whole else max(number // 10, least)

    def shown(self, args):
        """The command as a reader would give it."""
        known = {f"{self.dir}/": "", str(self.dir): ".", f"{HERE}/": "", self.marker: "MARKER"}
        text = shlex.join(str(arg) for arg in args)
        for word, instead in known.items():
            text = text.replace(word, instead)
        for port in self.doors:
            text = re.sub(rf"\b{port}\b", "PORT", text)
        return re.sub("(MARKER)+", "MARKER", text)

    # --- programs ---------------------------------------------------------------------------------

    def port(self):
        port = free_port()
        self.doors[port] = free_port() if self.way.resplit else port
        return port

    def through_doors(self, arg, own):
        """An argument, in which another's port is where it is to be reached."""
        for port, door in self.doors.items():
            if port not in own:
                arg = re.sub(rf"\b{port}\b", str(door), arg)
        return arg

    def begin(self, name, args, role="client", leg="plain", own=(), **kwargs):
        """leg: what its peers are in mode auto; own: ports that it listens at."""
        self.commands[name] = self.shown(args)
        self.roles[name] = (role, leg)
        args = [self.through_doors(str(arg), own) for arg in args]
        launch = getattr(self.way, role)
        if launch:
            rules = [word for rule in self.rules for word in ("--use", rule)]
            args = [self.warpsock, "run", *rules, *launch, "--report", self.dir / f"{name}.json",
                    "--", *args]
        env = {**self.way.env(self.scenario), **kwargs.pop("env", {})}
        return self.start(name, args, mode=None, env=env, **kwargs)

    def serve(self, name, args, *ports, role="server", **kwargs):
        """Starts a server and waits until it listens."""
        proc = self.begin(name, args, role, own=ports, **kwargs)
        for port in ports:
            if not until(lambda: listens(port) or proc.poll() is not None) or not listens(port):
                raise RuntimeError(f"{name} does not listen: {self.both(name)}")
        if self.way.resplit and not listens(self.doors[ports[0]]):
            self.cut_anew(name, ports)
        return proc

    def cut_anew(self, name, ports):
        """A proxy before each of its ports."""
        seed = os.environ.get("WARPSOCK_SEED") or str(secrets.randbits(32))
        print(f"# resplit: {name}: seed {seed}", flush=True)
        pairs = [str(number) for port in ports for number in (self.doors[port], port)]
        proxy = f"{name}.resplit"
        self.proxies.append((proxy, self.start(proxy, [self.resplit, seed, *pairs], mode=None)))
        until(lambda: all(listens(self.doors[port]) for port in ports))

    def proxied(self):
        """Everything did go through the proxies: each says what it had and did."""
        did = Counter()
        for name, proc in self.proxies:
            proc.send_signal(signal.SIGTERM)
            status, said = self.end(proc, 10), self.text(name)
            print(f"# {name}: {said.strip()}", flush=True)
            did.update({what: int(count) for count, what in DID.findall(said)})
            self.case(f"{name} had connections", [] if status == 0 and re.match(
                r"[1-9]\d* connections, [1-9]", said) else [f"status {status}", *self.both(name)])
        wanted = {"cuts", "joins", "delays"} - getattr(self.scenario, "UNDONE", set())
        if self.proxies:
            self.case("streams were cut, joined and delayed",
                      [f"no {what}" for what in sorted(wanted) if not did[what]])

    def both(self, name):
        return tail(self.text(name)) + tail(self.text(name, "err"))

    def account(self, name, proc, statuses=(0,), limit=LIMIT):
        """Waits for its end: how it ended, and what its report says. Returns what is wrong."""
        status = self.end(proc, limit)
        role, leg = self.roles[name]
        report, problems = self.report(name), []
        if getattr(self.way, role):
            problems += self.way.problems(report, self.scenario, leg)
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
        self.case(f"{name} ended, its connections as they had to be",
                  self.account(name, proc, statuses))

    # --- what came of it --------------------------------------------------------------------------

    def balance(self, server, clients, unread=0):
        """Both ends have to count the same connections and octets, but for what clients leave."""
        if not self.way.on:
            return
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
        if not self.way.whole:
            yield
            return
        wire = Wire(self.dir, ports)
        wire.start()
        try:
            yield
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

    def echoed(self, name, port):
        """What socat sends of the file "sent", and what comes back."""
        with open(self.dir / "sent", "rb") as file:
            problems = self.client(name, ["socat", "-t", "20", "-", f"TCP:127.0.0.1:{port}"],
                                   stdin=file)
        (self.dir / f"{name}.back").write_bytes((self.dir / f"{name}.out").read_bytes())
        return problems + self.same("sent", f"{name}.back")

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
