#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Connections whose ends come without order: one of two programs of sockets ends them, the other
says what it saw.

    ends.py listen ADDR PORT WHO
    ends.py connect ADDR PORT WHO

WHO, "listen" or "connect", ends four connections by closing them with octets unread, and then four
by its death. Each of the four is at another moment:

    idle   the other one sleeps in recv()
    full   who ends has written as much as there was room for, and nothing was read
    busy   the other one sleeps in send()
    half   who ends has shut its direction, and the other one has read that end
"""
import errno
import os
import select
import signal
import socket
import sys
import threading

MOMENTS = ("idle", "full", "busy", "half")
LIMIT = 20
PATTERN = bytes(range(256)) * 1024
ENDS = (errno.ECONNRESET, errno.EPIPE)


def fill(sock):
    """As much as there is room for; how much that was."""
    sent = 0
    sock.setblocking(False)
    try:
        while sent < 1 << 24:
            sent += sock.send(PATTERN[sent % len(PATTERN):])
    except BlockingIOError:
        pass
    sock.settimeout(LIMIT)
    return sent


# --- who ends -------------------------------------------------------------------------------------


def end(socks, dies):
    fill(socks["full"])
    socks["half"].send(b"h")
    socks["half"].shutdown(socket.SHUT_WR)
    socks["idle"].recv(1)  # the other one is where it should be
    if dies:
        os.kill(os.getpid(), signal.SIGKILL)
    for sock in socks.values():
        sock.close()


# --- who stays ------------------------------------------------------------------------------------


def failed(call):
    """What @call fails with; None: it does not."""
    try:
        call()
    except TimeoutError:
        return "nothing happens"
    except OSError as problem:
        return problem.errno
    return None


def read_all(sock):
    """Octets of the pattern, and how they ended."""
    got = 0
    while True:
        try:
            octets = sock.recv(100000)
        except OSError as problem:
            return got, problem.errno
        if octets != (PATTERN + PATTERN)[got % len(PATTERN):][:len(octets)]:
            return got, "other octets"
        if not octets:
            return got, 0
        got += len(octets)


def write_all(sock):
    while True:
        sock.sendall(PATTERN)


class Sleeper(threading.Thread):
    def __init__(self, call):
        super().__init__()
        self.call, self.error = call, None
        self.start()

    def run(self):
        self.error = failed(self.call)


def stay(socks):
    """What was wrong."""
    half, idle = socks["half"], socks["idle"]
    wrong = []
    if half.recv(1) != b"h" or half.recv(1):
        wrong.append("half: not the end")
    half.send(b"unread")
    socks["full"].send(b"unread")
    busy = Sleeper(lambda: write_all(socks["busy"]))
    while busy.is_alive() and select.select([], [socks["busy"]], [], 0.05)[1]:
        pass
    idle.send(b"go")
    error = failed(lambda: idle.recv(1))
    if error != errno.ECONNRESET:
        wrong.append(f"idle: {error}")
    got, error = read_all(socks["full"])
    if error != errno.ECONNRESET:
        wrong.append(f"full: {error} after {got}")
    busy.join()
    if busy.error not in ENDS:
        wrong.append(f"busy: {busy.error}")
    error = failed(lambda: write_all(half))
    if error not in ENDS:
        wrong.append(f"half: {error}")
    for sock in socks.values():
        sock.close()
    return wrong


# --- both -----------------------------------------------------------------------------------------


def run(role, addr, port, who):
    wrong = []
    listener = role == "listen" and socket.create_server((addr, port), backlog=16)
    for how in ("unread", "dies"):
        socks = {}
        for moment in MOMENTS:
            socks[moment] = sock = listener.accept()[0] if listener else \
                socket.create_connection((addr, port))
            sock.settimeout(LIMIT)
            sock.sendall(b"w")
            sock.recv(1)
        if role == who:
            end(socks, how == "dies")
        else:
            wrong += [f"{how}, {what}" for what in stay(socks)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
