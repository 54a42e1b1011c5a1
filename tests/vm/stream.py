#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program that knows sockets only: echoes many connections at a time and compares what returns.

    stream.py serve ADDR PORT CONNECTIONS
    stream.py talk ADDR PORT CONNECTIONS OCTETS
"""
import hashlib
import random
import socket
import sys
import threading


def echo(sock):
    """Returns to the peer what it sends, until its end."""
    while True:
        octets = sock.recv(random.randrange(1, 100000))
        if not octets:
            break
        sock.sendall(octets)
    sock.close()


def serve(addr, port, connections):
    family = socket.AF_INET6 if ":" in addr else socket.AF_INET
    with socket.create_server((addr, port), family=family, backlog=connections) as listener:
        threads = [threading.Thread(target=echo, args=(listener.accept()[0],))
                   for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def put(sock, octets, step):
    for at in range(0, len(octets), step):
        sock.sendall(octets[at:at + step])


def talk_one(addr, port, octets, number, problems):
    rng = random.Random(number)
    sent = rng.randbytes(octets)
    sock = socket.create_connection((addr, port))
    writer = threading.Thread(target=put, args=(sock, sent, rng.randrange(1, 70000)))
    writer.start()
    got = b""
    while len(got) < octets:
        part = sock.recv(200000)
        if not part:
            break
        got += part
    writer.join()
    sock.close()
    if hashlib.sha256(got).digest() != hashlib.sha256(sent).digest():
        problems.append(f"connection {number}: {len(got)} of {octets} octets came back, or others")


def talk(addr, port, connections, octets):
    problems = []
    threads = [threading.Thread(target=talk_one, args=(addr, port, octets, number, problems))
               for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
