# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The stresses: what each sets for a server, and what it does to it while others are served.

An act is a context: inside, the stress lasts. What clients complain of is added to the arm's
problems. A stress that costs both servers the same processor time takes turns with the measurement.
"""
import contextlib
import os
import resource
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import watch


@contextlib.contextmanager
def clients(arm, kind, number):
    if arm.program.processes and number > MANY:
        number = MANY
    proc = arm.client(kind, number)
    arm.hear(proc)
    yield
    arm.problems += arm.end(proc)


@contextlib.contextmanager
def strangers(arm, kind, word):
    proc = arm.stranger(kind, word)
    arm.hear(proc)
    yield
    arm.problems += arm.end(proc)


def acting(how, kind, word):
    return lambda arm: how(arm, kind, word)


def bad(arm):
    """As many as a server can take that makes a process for each"""
    return strangers(arm, "bad", "0.03" if arm.program.processes else "0.002")


def stopping(arm):
    return strangers(arm, "stop", str(arm.cell.count(STOPPED)))


@contextlib.contextmanager
def repeated(arm, act, pause):
    """act() again and again, in a thread"""
    done = threading.Event()

    def run():
        while not done.is_set():
            try:
                act()
            except (OSError, RuntimeError) as error:
                arm.problems.append(f"{arm.name}: {error}")
                return
            done.wait(pause)

    thread = threading.Thread(target=run)
    thread.start()
    yield
    done.set()
    thread.join()


def restarts(arm):
    return repeated(arm, arm.restart, 1)


def killed(arm):
    """Each process in turn, the oldest last; who killed the server starts it again."""
    state = {"turn": 0}

    def kill():
        members = sorted(watch.family(arm.server.pid), reverse=True)
        member = members[state["turn"] % len(members)]
        state["turn"] += 1
        if member == arm.server.pid:
            arm.kill()
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)

    return repeated(arm, kill, 0.5)


def doomed(arm):
    """Clients that are killed while they read"""
    def one():
        proc = arm.client("slow", 2)
        arm.hear(proc)
        time.sleep(0.1)
        proc.kill()
        proc.wait()
        arm.stage.running.remove(proc)

    return repeated(arm, one, 0.1)


@contextlib.contextmanager
def refused(arm):
    """The server gets some memory more, and then none: connections need not be served."""
    status = Path(f"/proc/{arm.server.pid}/status").read_text()
    size = (int(status.split("VmSize:")[1].split()[0]) << 10) + ROOM
    resource.prlimit(arm.server.pid, resource.RLIMIT_AS, (size, size))
    with clients(arm, "crowd", 100):
        yield


@contextlib.contextmanager
def nothing(_arm):
    yield


@dataclass
class Stress:
    name: str
    act: object
    limits: dict = field(default_factory=dict)
    shm: str = ""  # size of a tmpfs of the server's own
    env: dict = field(default_factory=dict)
    errors: str = ""  # "pipe": standard error is one that is full
    preload: bool = False  # the interposer gets no threads
    turns: bool = False  # it lasts only while its server is measured
    new: bool = True  # the other client makes new connections, too
    patient: bool = False  # and connects again when its server goes
    floor: float = 0.03  # seconds; a p99 below does not matter
    seconds: float = 0.3  # of a measurement
    minute: bool = False  # in a long run a measurement lasts so long
    kills: bool = False  # the server is not what it was before
    leaves: tuple = ()  # sides whose names a killed process has left


MANY = 60
ROOM = 16 << 20  # half of what 100 connections over DDP would take
STOPPED = 5000
NO_CRC = {"WARPSOCK_CRC": "off"}

STRESSES = (
    Stress("no stress", nothing),
    Stress("descriptors", acting(clients, "crowd", 200), limits={"nofile": 128}, new=False,
           patient=True),  # nginx ends idle ones for others
    Stress("quitters", acting(clients, "quit", 200), limits={"nofile": 128}),
    Stress("shm 64M", acting(clients, "fill", 80), shm="64m"),
    Stress("shm 4M", acting(clients, "fill", 30), shm="4m"),
    Stress("no threads", acting(clients, "quit", 50), preload=True),
    Stress("address space", acting(clients, "fill", 50), limits={"as": 256 << 20}),
    Stress("memory refused", refused, new=False),
    Stress("log full", bad, env={"WARPSOCK_LOG_FILE": "/dev/full"}, turns=True),
    Stress("log pipe", bad, errors="pipe", turns=True),
    Stress("slow readers", acting(clients, "slow", 10), minute=True),
    Stress("flood of Writes", acting(strangers, "flood", "Writes of no octets"), env=NO_CRC,
           turns=True),
    Stress("flood of KEEPALIVE", acting(strangers, "flood", "keepalives"), env=NO_CRC, turns=True),
    Stress("flood of WINDOW", acting(strangers, "flood", "windows"), env=NO_CRC, turns=True),
    Stress("stopped", stopping),
    Stress("killed clients", doomed, turns=True, leaves=("clients",)),
    Stress("restart", restarts, turns=True, patient=True, floor=1.0, seconds=2.2, minute=True,
           kills=True),
    Stress("kill -9", killed, turns=True, patient=True, floor=1.0, seconds=2.2, minute=True,
           kills=True),
)
