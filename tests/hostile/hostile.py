#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Peers that misbehave, one after the other, against one victim under the interposer.

    hostile.py WARPSOCK VICTIM [WORD...]

Of each: what the victim answers on the wire, what its program sees, that its memory and its
processor time stay bounded, and that a good connection which it has all the while still echoes.
Of a peer that is gone by a reset the victim keeps no socket, also where it lingers.
"""
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "e2e")]
import tap  # noqa: E402
import cases  # noqa: E402
import peer  # noqa: E402
from launch import Stage  # noqa: E402

MEMORY = 4 << 20  # more than one connection's ring may ever take
SECONDS = 2.0
GONE = 10  # seconds, well below WARPSOCK_LINGER
LIMIT = 20


class Victim:
    def __init__(self, stage, program):
        self.stage = stage
        self.proc = stage.start("victim", [program], stdin=subprocess.PIPE,
                                env={"WARPSOCK_RING": str(cases.RING)})
        self.port = int(stage.wait_text("victim", limit=LIMIT).split()[0])
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(LIMIT)

    def connect(self):
        """A peer that has connected to it."""
        self.connections += 1
        return peer.Stream(socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT))

    def connected(self):
        """A peer that it has connected to."""
        self.connections += 1
        port = self.listener.getsockname()[1]
        self.proc.stdin.write(f"connect {port}\n".encode())
        self.proc.stdin.flush()
        return peer.Stream(self.listener.accept()[0])

    def lines(self):
        number = str(self.connections - 1)
        said = [line.split(" ", 1) for line in self.stage.text("victim").splitlines()[1:]]
        return [line[1] for line in said if line[0] == number and "connected" not in line[1]]

    def sees(self, wanted):
        """What the program says of the connection at hand, when it has said something."""
        limit = time.monotonic() + (0.1 if wanted.endswith("open") else LIMIT)
        while not self.lines() and time.monotonic() < limit:
            time.sleep(0.005)
        return self.lines()[0] if self.lines() else "open"

    def memory(self):
        return int(Path(f"/proc/{self.proc.pid}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE")

    def sockets(self):
        found = set()
        for entry in Path(f"/proc/{self.proc.pid}/fd").iterdir():
            try:
                found.add(os.readlink(entry))
            except FileNotFoundError:
                pass  # closed meanwhile
        return {name for name in found if name.startswith("socket:")}

    def keeps(self, sockets):
        """Those of them that it has not closed in time."""
        limit = time.monotonic() + GONE
        while sockets & self.sockets() and time.monotonic() < limit:
            time.sleep(0.01)
        return sockets & self.sockets()

    def seconds(self):
        fields = Path(f"/proc/{self.proc.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def echo(good, octets):
    good.say(octets)
    return good.collect(len(octets)) == octets


def answer_of(stream, wanted):
    """What came back; a Reply with R is "reject"."""
    if wanted == "reject":
        flags = stream.take_frame(peer.REPLY)[0]
        return "reject" if flags & peer.rawpeer.R else f"a Reply with flags {flags:#x}"
    said = stream.answer()
    return wanted if wanted == "any" and "/" in said else said


def problems_of(victim, good, stream, case, before):
    wanted, program, act = case
    memory, seconds = victim.memory(), victim.seconds()
    problems = []
    try:
        act(stream)
    except (BrokenPipeError, ConnectionResetError):
        pass  # its answer came before we had finished
    if wanted:
        got = answer_of(stream, wanted)
        if got != wanted:
            problems.append(f"it answers {got}, not {wanted}")
    if program:
        sees = victim.sees(program)
        if sees != (program if not program.endswith("open") else "open"):
            problems.append(f"its program sees {sees}, not {program}")
    more, spent = victim.memory() - memory, victim.seconds() - seconds
    if more > MEMORY or spent > SECONDS:
        problems.append(f"it took {more} octets of memory, {spent} s of the processor")
    if program and program.endswith("open"):
        size = int(program.split()[0])
        if len(stream.collect(size, quiet=0.5)) != min(size, peer.ROOM):
            problems.append("and does not echo what it got")
    if not echo(good, b"still there?" * 100):
        problems.append("another connection of it has suffered")
    if not wanted and victim.keeps(victim.sockets() - before):
        problems.append("it keeps the socket of a peer that is gone")
    return problems


def groups(victim):
    """Each group of cases, and a peer for one of them."""
    yield "start-up", cases.STARTUP, victim.connect
    yield "frames", cases.FRAMES, lambda: victim.connect().open()
    yield "stream", cases.STREAM, lambda: victim.connect().open()
    yield "extended", cases.INLINED, lambda: victim.connect().open(features=cases.FEATURES)
    yield "client", cases.ASKED, victim.connected


def run(victim, good, writer, words):
    for group, table, make in groups(victim):
        for name, case in table.items():
            if words and not any(word in f"{group}: {name}" for word in words):
                continue
            before = victim.sockets()
            stream = make()
            try:
                problems = problems_of(victim, good, stream, case, before)
            except (peer.Ended, ValueError, OSError) as error:
                problems = [f"{type(error).__name__}: {error}",
                            f"its program says {victim.lines()}",
                            victim.stage.text("victim", "err")]
            writer.case(f"{group}: {name}", problems)
            stream.sock.close()


def main():
    warpsock, program = (os.path.abspath(path) for path in sys.argv[1:3])
    writer = tap.Writer()
    with Stage(warpsock) as stage:
        victim = Victim(stage, program)
        good = victim.connect().open(features=cases.FEATURES)
        if not echo(good, b"hello"):
            sys.exit("the victim does not echo")
        run(victim, good, writer, sys.argv[3:])
        writer.case("the victim lives", [] if victim.proc.poll() is None else
                    [f"status {victim.proc.returncode}", stage.text("victim", "err")])
    writer.finish()


if __name__ == "__main__":
    main()
