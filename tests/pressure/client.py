#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Clients of a server under pressure: client.py KIND PROTOCOL PORT [NUMBER]

They run under the launcher or not. "probe" is the other client whose latency counts: for each
line "SECONDS NEW PATIENT" it prints one of JSON. "store" is for redis. The rest are part of a
stress: they say "on" when it lasts, and end when their input does, with a line for all that was
wrong.
"""
import json
import math
import select
import socket
import sys
import time

from protocols import BIG, PROTOCOLS, Lost, compare, exchange, pattern, take

KEPT = 3
NEW_EACH = 8  # one exchange of so many is over a new connection
BIG_EACH = 8
BEGIN = 1.0  # seconds for connections of which some are not accepted
PATIENCE = 30
SLOW_PIECE, SLOW_PAUSE = 600, 0.1  # bytes of each connection, seconds: 6 kB/s


def connected(port):
    sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


# --- the other client ---------------------------------------------------------------------------


class Probe:
    def __init__(self, protocol, port):
        self.protocol, self.port = protocol, port
        self.kept = [connected(port) for _ in range(KEPT)]
        self.problems = []

    def again(self, at):
        """A kept connection whose server is gone"""
        self.kept[at].close()
        time.sleep(0.01)
        try:
            self.kept[at] = connected(self.port)
        except OSError:
            pass  # it does not listen yet: the next exchange fails, and comes here

    def over_new(self, _at):
        with connected(self.port) as sock:
            exchange(self.protocol, sock)

    def over_kept(self, at):
        exchange(self.protocol, self.kept[at])

    def timed(self, how, at, patient):
        """Seconds until there was an answer"""
        begin = time.monotonic()
        while True:
            try:
                how(at)
                break
            except OSError as error:
                if not patient or time.monotonic() - begin > PATIENCE:
                    self.problems.append(f"{how.__name__}: {type(error).__name__}: {error}")
                    break
                self.again(at)
            except Lost as error:
                self.problems.append(f"{how.__name__}: {error}")
                break
        return time.monotonic() - begin

    def round(self, seconds, new, patient):
        self.problems = []
        spent, end = [], time.monotonic() + seconds
        while time.monotonic() < end and len(self.problems) < 10:
            number = len(spent)
            how = self.over_new if new and number % NEW_EACH == 0 else self.over_kept
            spent.append(self.timed(how, number % KEPT, patient))
        spent.sort()
        return {"count": len(spent), "p99": spent[math.ceil(0.99 * len(spent)) - 1],
                "slowest": spent[-1], "problems": self.problems}


def probe(protocol, port, _number):
    prober = Probe(protocol, port)
    print(json.dumps(prober.round(0.1, False, False)), flush=True)
    for line in sys.stdin:
        seconds, new, patient = line.split()
        print(json.dumps(prober.round(float(seconds), int(new), int(patient))), flush=True)


def store(_redis, port, _number):
    """The long answer, for redis to have"""
    with connected(port) as sock:
        sock.sendall(b"*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n%s\r\n" % (BIG, pattern(BIG)))
        compare(take(sock, 5), b"+OK\r\n")


# --- stresses -----------------------------------------------------------------------------------


def hold(problems, tick=None):
    """Until the input ends"""
    print("on", flush=True)
    while not select.select([sys.stdin], [], [], SLOW_PAUSE)[0]:
        if tick:
            tick()
    return problems


def begun(port, number):
    """Connections that need not be accepted"""
    socks = []
    for _ in range(number):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", port))
        socks.append(sock)
    waiting, end = select.poll(), time.monotonic() + BEGIN
    for sock in socks:
        waiting.register(sock, select.POLLOUT)
    left = {sock.fileno() for sock in socks}
    while left and time.monotonic() < end:
        for fd, _ in waiting.poll(100):
            waiting.unregister(fd)
            left.discard(fd)
    return socks


def crowd(protocol, port, number):
    """More connections than there are descriptors for: not all can be served"""
    socks = begun(port, number)
    for sock in socks:
        try:
            sock.send(protocol.question()[0])
        except OSError:
            pass
    return hold([])


def fill(protocol, port, number):
    """Connections that are all served, some with a long answer, and then rest"""
    problems, socks = [], []
    for at in range(number):
        try:
            socks.append(connected(port))
            exchange(protocol, socks[-1])
            if at % BIG_EACH == 0:
                whole(protocol, socks[-1])
        except (OSError, Lost) as error:
            problems.append(f"connection {len(socks)}: {type(error).__name__}: {error}")
    return hold(problems)


def whole(protocol, sock):
    sock.sendall(protocol.BIG)
    protocol.big_head(sock)
    compare(take(sock, BIG), pattern(BIG))


def quitters(protocol, port, number):
    """They say QUIT and stay"""
    problems, socks = [], []
    for _ in range(number):
        try:
            socks.append(connected(port))
            exchange(protocol, socks[-1])
            socks[-1].sendall(protocol.QUIT)
        except (OSError, Lost) as error:
            problems.append(f"connection {len(socks)}: {type(error).__name__}: {error}")
    return hold(problems)


class Slow:
    def __init__(self, protocol, port):
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(("127.0.0.1", port))
        self.sock.sendall(protocol.BIG)
        protocol.big_head(self.sock)
        self.got = b""

    def tick(self):
        self.got += take(self.sock, SLOW_PIECE)

    def rest(self):
        self.got += take(self.sock, BIG - len(self.got))
        compare(self.got, pattern(BIG))


def slow(protocol, port, number):
    """They read 6 kB a second; at the end all that is left, at once"""
    problems, readers = [], [Slow(protocol, port) for _ in range(number)]

    def tick():
        for reader in list(readers):
            try:
                reader.tick()
            except OSError as error:
                problems.append(f"behind {len(reader.got)} bytes: {error}")
                readers.remove(reader)

    hold(problems, tick)
    for reader in readers:
        try:
            reader.rest()
        except (OSError, Lost) as error:
            problems.append(f"of the rest: {error}")
    return problems


KINDS = {"probe": probe, "store": store, "crowd": crowd, "fill": fill, "quit": quitters,
         "slow": slow}


def main():
    kind, protocol, port, number = *sys.argv[1:4], int((sys.argv[4:] or ["0"])[0])
    for problem in (KINDS[kind](PROTOCOLS[protocol], int(port), number) or [])[:10]:
        print(problem, flush=True)


if __name__ == "__main__":
    main()
