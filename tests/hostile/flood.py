#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A peer that sends messages which bring nothing, as fast as it can, and a good client beside it.

    flood.py WARPSOCK FLOODED [WORD...]

For as long as the peer says something now and then, it is served, and so is the client: in time,
however the server waits. A peer that says nothing else is ended with a reason.
"""
import os
import struct
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "e2e")]
import socket  # noqa: E402
import tap  # noqa: E402
import peer  # noqa: E402
from launch import Stage  # noqa: E402
from rawpeer import S, enhanced  # noqa: E402

WAYS = ("poll", "lt", "et", "nested", "ppoll", "recv", "handler")
SECONDS = 2.0
SERVED = 0.5  # seconds, of an answer and of a wait for 20 ms, on a busy machine
FLOODED = 311
ROW = 8000  # messages without data, fewer than are a flood


def empty(p):
    p.tagged(peer.rawpeer.WRITE, 1, 0)


def keepalive(p):
    p.message(peer.CTRL, peer.KEEPALIVE)


def window(p):
    p.message(peer.WINDOW, 0, struct.pack("<Q", 1 << 40))


KINDS = {"Writes of no octets": empty, "keepalives": keepalive, "windows": window}


def connected(port):
    """Without CRC, for it is to be fast."""
    p = peer.Stream(socket.create_connection(("127.0.0.1", port), timeout=20))
    private = peer.conn_data() + peer.extension(peer.CUT | peer.ABORTS | peer.INLINES)
    p.taken(p.ask(S, 2, enhanced(0, 1, private))[2])
    p.inline = True
    p.message(peer.WINDOW, 0, struct.pack("<Q", 1 << 40))
    return p


class Flood(threading.Thread):
    """Rows of such messages until it is told to stop, or the server has ended it."""

    def __init__(self, p, say, between):
        super().__init__()
        self.peer, self.say, self.between = p, say, between
        self.stop, self.ended, self.rows = False, False, 0
        self.sock = p.sock
        self.blank = self.row()

    def row(self):
        return self.peer.at_once(lambda p: [self.say(p) for _ in range(ROW)])

    def run(self):
        row = self.blank
        try:
            while not self.stop:
                self.sock.sendall(row)
                self.rows += 1
                if self.between:
                    self.sock.sendall(self.peer.at_once(lambda p: p.say(b"x")))
                # Writes have no number
                row = self.blank if self.say is empty else self.row()
        except OSError:
            self.ended = True


def echo(good, longest):
    begin = time.monotonic()
    good.say(b"ping")
    if good.collect(4, quiet=10) != b"ping":
        raise ValueError("the client is not served")
    return max(longest, time.monotonic() - begin)


def problems_of(stage, port, say, between):
    bad, good = connected(port), connected(port)
    flood, longest = Flood(bad, say, between), 0
    flood.start()
    limit = time.monotonic() + SECONDS
    while time.monotonic() < limit:
        longest = echo(good, longest)
        time.sleep(0.01)
    flood.stop = True
    flood.join(10)
    longest = echo(good, longest)
    good.sock.shutdown(socket.SHUT_WR)
    said = stage.wait_text("server", "longest", 20).split()
    waited = float(said[said.index("longest") + 1]) / 1000
    problems = []
    if longest > SERVED:
        problems.append(f"the client was answered after {longest:.3f} s")
    if waited > SERVED:
        problems.append(f"a wait took {waited:.3f} s")
    if flood.rows < 2:
        problems.append(f"it was no flood: {flood.rows}")
    if not between and (not flood.ended or said[2] != str(FLOODED)):
        problems.append(f"the flood was not ended: {said}")
    return problems


def case(warpsock, program, way, say, between):
    with Stage(warpsock) as stage:
        stage.start("server", [program, way], env={"WARPSOCK_CRC": "off"})
        port = int(stage.wait_text("server", limit=20).split()[0])
        try:
            return problems_of(stage, port, say, between)
        except (ValueError, OSError, RuntimeError, peer.Ended) as error:
            return [f"{type(error).__name__}: {error}", stage.text("server"),
                    stage.text("server", "err")]


def behind(warpsock, program):
    """Octets behind more than one look takes in, and silence: nothing else wakes the server."""
    with Stage(warpsock) as stage:
        stage.start("server", [program, "et"], env={"WARPSOCK_CRC": "off"})
        port = int(stage.wait_text("server", limit=20).split()[0])
        idle, good = connected(port), connected(port)
        for _ in range(20):
            row = good.at_once(lambda p: [empty(p) for _ in range(ROW)] + [p.say(b"ping")])
            good.sock.sendall(row)
            if good.collect(4, quiet=2) != b"ping":
                return ["the octets are not answered"]
        idle.sock.close()
        return []


# A client in mode auto, and how long it took to connect
CLIENT = """
import socket, sys, time
begin = time.monotonic()
conn = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
conn.sendall(b"hello")
conn.recv(1)
print(time.monotonic() - begin)
"""


SPEECH = bytes(1 << 28)


def speak(conn):
    try:
        conn.recv(20)  # a Request, or the client's first word
        while True:
            conn.sendall(SPEECH)
    except OSError:
        conn.close()


def talkative(warpsock):
    """A plain server that answers a Request, and without an end: its client soon connects anew."""
    with Stage(warpsock) as stage, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        port = listener.getsockname()[1]
        stage.start("client", [sys.executable, "-c", CLIENT, str(port)],
                    rules=[f"auto client * 127.0.0.1:{port}"])
        for _ in range(2):
            threading.Thread(target=speak, args=listener.accept()[:1], daemon=True).start()
        took = float(stage.wait_text("client", limit=10))
        return [] if took < 2 * SERVED else [f"connect() took {took:.3f} s"]


def main():
    warpsock, program = (os.path.abspath(path) for path in sys.argv[1:3])
    cases = [(f"{kind}, {way}", way, say, True) for kind, say in KINDS.items() for way in WAYS
             if say is empty or way in ("et", "recv")]
    cases += [(f"FLOODED: {kind} and nothing else", "poll", say, False)
              for kind, say in KINDS.items()]
    writer = tap.Writer()
    for name, *what in cases:
        if len(sys.argv) < 4 or any(word in name for word in sys.argv[3:]):
            writer.case(name, case(warpsock, program, *what))
    writer.case("octets behind what one look takes in", behind(warpsock, program))
    try:
        writer.case("a plain server that speaks without an end", talkative(warpsock))
    except (OSError, RuntimeError) as error:
        writer.case("a plain server that speaks without an end", [str(error)])
    writer.finish()


if __name__ == "__main__":
    main()
