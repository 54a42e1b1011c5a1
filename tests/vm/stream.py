#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program that knows sockets only: echoes many connections at a time and compares what returns.

    stream.py serve ADDR PORT CONNECTIONS
    stream.py talk ADDR PORT CONNECTIONS OCTETS [ABREAST]

ABREAST of them, all unless it is given, are open at a time.
"""
import hashlib
import random
import socket
import sys
import threading


class Worker(threading.Thread):
    """A thread whose exception is not lost."""

    def __init__(self, target, *args):
        super().__init__(target=target, args=args)
        self.problem = None
        self.start()

    def run(self):
        try:
            super().run()
        except Exception as problem:  # whatever it is, the program has failed
            self.problem = problem


def finish(threads):
    """Waits for them; the exit status of the program."""
    for thread in threads:
        thread.join()
    problems = [str(thread.problem) for thread in threads if thread.problem]
    print("\n".join(problems))
    return 1 if problems else 0


def echo(sock):
    """Returns to the peer what it sends, until its end. Who only asks for MPA may reset it."""
    first = b""
    with sock:
        try:
            while octets := sock.recv(random.randrange(20, 100000)):
                first = first or octets
                sock.sendall(octets)
        except (ConnectionResetError, BrokenPipeError):
            if not first.startswith(b"MPA ID Req Frame"):
                raise


def serve(addr, port, connections):
    family = socket.AF_INET6 if ":" in addr else socket.AF_INET
    with socket.create_server((addr, port), family=family, backlog=connections) as listener:
        return finish([Worker(echo, listener.accept()[0]) for _ in range(connections)])


def put(sock, octets, step):
    for at in range(0, len(octets), step):
        sock.sendall(octets[at:at + step])


def take(sock, octets):
    got = b""
    while len(got) < octets:
        part = sock.recv(200000)
        if not part:
            break
        got += part
    return got


def talk_one(addr, port, octets, number, abreast):
    rng = random.Random(number)
    sent = rng.randbytes(octets)
    with abreast, socket.create_connection((addr, port)) as sock:
        writer = Worker(put, sock, sent, rng.randrange(1, 70000))
        got = take(sock, octets)
        lost = finish([writer])
        sock.shutdown(socket.SHUT_WR)
        lost = lost or sock.recv(1)  # the server's end comes after it has closed
    if lost or hashlib.sha256(got).digest() != hashlib.sha256(sent).digest():
        raise ValueError(f"connection {number}: {len(got)} of {octets} octets came back, or others")


def talk(addr, port, connections, octets, abreast=None):
    abreast = threading.Semaphore(abreast or connections)
    return finish([Worker(talk_one, addr, port, octets, number, abreast)
                   for number in range(connections)])


if __name__ == "__main__":
    sys.exit(globals()[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:])))
