#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Brief connections, one after the other, of which each has a word and its answer.

    brief.py serve ADDR PORT CONNECTIONS FIRST
    brief.py talk ADDR PORT CONNECTIONS FIRST

FIRST says which of the two speaks first. talk tells how many heard nothing for so long that the
word must have been overlooked.
"""
import socket
import sys
import time

LIMIT = 8


def exchange(sock, speaks):
    """A word each way."""
    if speaks:
        sock.sendall(b"x")
    if not sock.recv(1):
        raise ConnectionError("the end came")
    if not speaks:
        sock.sendall(b"x")


def serve(addr, port, connections, first):
    with socket.create_server((addr, port), backlog=64) as listener:
        for _ in range(connections):
            sock = listener.accept()[0]
            with sock:
                try:
                    exchange(sock, first == "serve")
                    sock.recv(1)  # the client's end
                except OSError as problem:
                    print(problem, flush=True)


def talk(addr, port, connections, first):
    lost, longest = 0, 0
    for number in range(connections):
        begin = time.monotonic()
        with socket.create_connection((addr, port)) as sock:
            sock.settimeout(LIMIT)
            try:
                exchange(sock, first == "talk")
            except TimeoutError:
                print(f"connection {number} heard nothing", flush=True)
                lost += 1
        longest = max(longest, time.monotonic() - begin)
    print(f"{lost} of {connections} heard nothing, the longest took {longest:.3f} s")
    return 1 if lost else 0


if __name__ == "__main__":
    what, where, on, count, speaker = sys.argv[1:]
    sys.exit(globals()[what](where, int(on), int(count), speaker))
