# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One case of kills.py: three processes and their ledger."""
import ctypes
import mmap
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

LIMIT = 60
ENDS = 16384
PR_SET_CHILD_SUBREAPER = 36
SAID = re.compile(r"^(point|killed at) (\w+) pid (\d+) locks (\d+) threads (\d+)$", re.M)
ROLES = ("connect", "listen")
PAGES = ("leases-1", "promised-1")  # of all processes of the user
u32, u64 = ctypes.c_uint32, ctypes.c_uint64


class Way(ctypes.Structure):
    _fields_ = [(name, u64) for name in ("total", "sent", "upto", "doubt_from", "doubt_to", "got",
                                         "asked", "filled")] + \
               [(name, u32) for name in ("end", "failed", "shut", "wrong", "ends", "pad")] + \
               [("end_at", u64 * ENDS)]


class Side(ctypes.Structure):
    _fields_ = [(name, u32) for name in ("opened", "pings", "after", "end", "wrong", "closed")]


class Ledger(ctypes.Structure):
    """As ledger.h has it."""
    _fields_ = [(name, u32) for name in ("port", "side_port", "killed", "over", "turn",
                                         "child")] + \
               [("idle", u32 * 2), ("done", u32 * 3), ("alone", u32),
                ("joined", u32), ("after", u32), ("asked", u32), ("fallen", u32),
                ("side", Side * 2), ("way", Way * 2)]


@dataclass
class Case:
    """What is left of a case."""
    name: str
    shape: tuple
    victim: str  # who was to be killed
    seed: int = 0
    ledger: Ledger = None
    killed: bool = False
    struck: bool = False  # a child was, at a point or behind its last word
    falling: bool = False  # what was killed, it was while its client fell back
    helper: str = ""  # the point at which a process of the library's was killed
    locks: int = None  # at a point: how many the victim held
    threads: int = None
    status: dict = field(default_factory=dict)  # None: it had to be ended
    points: Counter = field(default_factory=Counter)
    left: int = 0  # files of states
    said: str = ""
    ends: dict = field(default_factory=dict)  # by sender: where its messages may have ended


# --- when to kill: called with the ledger, the pids and how to ask whether one lives ---


def NOBODY(play):
    """Nobody from outside."""


def after(seconds):
    def kill(play):
        if play.case.victim == "child":
            sent = "m" in play.case.shape[0]
            play.wait(lambda: play.ledger.joined if sent else play.ledger.child)
        time.sleep(seconds)
        play.kill()
    return kill


def falling_back(seconds):
    def kill(play):
        play.wait(lambda: play.ledger.asked)
        time.sleep(seconds)
        play.case.falling = not play.ledger.fallen
        play.kill()
    return kill


def when_idle(play):
    play.wait(lambda: all(play.ledger.idle))
    time.sleep(0.05)
    play.kill()


class Play:
    def __init__(self, theatre, name, shape, victim, seed, point):
        self.case = Case(name, shape, victim, seed)
        self.dir = Path(tempfile.mkdtemp(dir=theatre.dir))
        with open(self.dir / "ledger", "w+b") as file:
            file.truncate(ctypes.sizeof(Ledger))
            self.memory = mmap.mmap(file.fileno(), 0)
        self.ledger = Ledger.from_buffer(self.memory)
        flags, *octets, ring = shape
        if victim == "child":
            flags += "k"
        self.args = [str(seed), flags + ".", *map(str, octets)]
        self.states = Path(tempfile.mkdtemp(dir=theatre.states))
        self.env = dict(theatre.env, WARPSOCK_RUNTIME_DIR=str(self.states))
        if ring:
            self.env["WARPSOCK_RING"] = str(ring)
        if "y" in flags:
            self.env["WARPSOCK_RUNTIME_DIR"] = "/dev/null"
        self.auto = "g" in flags
        if self.auto:
            self.env.update(theatre.auto, WARPSOCK_RUNTIME_DIR=str(self.states))
        self.program, self.point, self.running = theatre.program, point, {}
        # Inherited, and closed by those whom the library makes: its end is that of all words
        self.heard, self.held = os.pipe()

    def start(self, who):
        env = dict(os.environ) if self.auto and who == "listen" else dict(self.env)
        armed = "listen" if self.case.victim == "child" else self.case.victim
        if self.point and (who == armed or (self.point == "?" and who in ROLES)):
            env["WARPSOCK_TEST_POINT"] = self.point
        if who in ROLES:
            env["WARPSOCK_TEST_NOTES"] = str(self.notes(who))
        with open(self.dir / who, "wb") as out:
            self.running[who] = subprocess.Popen(
                [self.program, str(self.dir / "ledger"), who, *self.args], env=env,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.dir,
                pass_fds=(self.held,))

    def notes(self, who):
        path = self.dir / f"{who}.notes"
        path.touch()
        return path

    def wait(self, condition, limit=LIMIT):
        end = time.monotonic() + limit
        while not condition() and time.monotonic() < end and self.lives("listen"):
            time.sleep(0.0005)

    def lives(self, who):
        if who == "child":
            return self.ledger.child and Path(f"/proc/{self.ledger.child}").exists()
        return self.running[who].poll() is None

    def kill(self):
        if self.case.victim != "child":
            self.running[self.case.victim].kill()
        elif self.ledger.child and not self.ledger.done[2]:
            try:
                os.kill(self.ledger.child, signal.SIGKILL)
                self.case.struck = True
            except ProcessLookupError:
                pass

    def end_child(self, limit):
        """Its parent's to wait for, and ours when that one is gone."""
        if self.case.victim == "child":
            self.wait(lambda: self.ledger.child)
        pid, end = self.ledger.child, time.monotonic() + limit
        while pid and time.monotonic() < end:
            try:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    return 0
            except ChildProcessError:
                if not Path(f"/proc/{pid}").exists():
                    return 0
            time.sleep(0.001)
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        return None if pid else 0

    def end(self, who, limit=LIMIT):
        if who == "child":
            self.case.status[who] = self.end_child(limit)
            return
        proc = self.running[who]
        try:
            self.case.status[who] = proc.wait(limit)
        except subprocess.TimeoutExpired:
            proc.kill()
            proc.wait()
            self.case.status[who] = None

    def end_all(self):
        """The victim first: the others wait for nobody whose end is in the ledger."""
        victim = self.case.victim
        order = sorted((*ROLES, "child"), key=lambda who: who != victim)
        for who in order:
            self.end(who)
            if who == victim:
                self.ledger.killed = 1
        self.ledger.over = 1
        self.end("side")
        self.end_others()

    def end_others(self):
        """Those of the library's may begin when their program is over."""
        silent = select.select([self.heard], [], [], LIMIT)[0]
        self.case.status["others"] = 0 if silent else None
        os.close(self.heard)

    def listen(self):
        """What they said on standard error."""
        case = self.case
        names = {self.running[who].pid: who for who in ROLES} | {self.ledger.child: "child"}
        case.ends = {who: set(map(int, self.notes(who).read_text().split())) for who in ROLES}
        for who in (*ROLES, "side"):
            text = (self.dir / who).read_text(errors="replace")
            for what, point, pid, locks, threads in SAID.findall(text):
                if what == "point":
                    case.points[names.get(int(pid), who), point] += 1
                elif int(pid) in names:
                    case.victim = names[int(pid)]  # in fork() a child may come there first
                    case.locks, case.threads, case.struck = int(locks), int(threads), True
                else:
                    case.helper = point
            case.said += "".join(f"{who}: {line}\n" for line in SAID.sub("", text).splitlines()
                                 if line.strip())

    def play(self, when):
        self.start("side")
        self.start("listen")
        self.start("connect")
        os.close(self.held)
        when(self)
        self.end_all()
        self.listen()
        case = self.case
        if case.victim in ROLES:
            case.killed = case.status[case.victim] == -signal.SIGKILL
        elif case.victim:
            case.killed = case.struck or not self.ledger.done[2]
        case.ledger = Ledger.from_buffer_copy(self.memory)
        case.left = sum(path.name not in PAGES for path in self.states.iterdir())
        return case


def environment(warpsock, *args):
    """What a program has from the launcher."""
    told = subprocess.run([warpsock, "run", *args, "--", "env", "-0"], stdout=subprocess.PIPE,
                          check=True).stdout
    return dict(os.fsdecode(word).split("=", 1) for word in told.split(b"\0") if word)


class Theatre:
    def __init__(self, warpsock, program):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.program = os.path.abspath(program)
        self.dir = Path(tempfile.mkdtemp(prefix="warpsock-kills-"))
        self.states = Path(tempfile.mkdtemp(prefix="warpsock-kills-", dir="/dev/shm"))
        self.env = environment(warpsock, "--all", "--mode", "on")
        self.auto = environment(warpsock, "--use", "auto client * 127.0.0.1:*", "--all", "--mode",
                                "auto")

    def play(self, name, shape, victim, when, seed, point=None):
        play = Play(self, name, shape, victim, seed, point)
        case = play.play(when)
        shutil.rmtree(play.dir)
        shutil.rmtree(play.states)
        return case

    def close(self):
        shutil.rmtree(self.dir)
        shutil.rmtree(self.states)
