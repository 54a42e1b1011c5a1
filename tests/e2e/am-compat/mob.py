#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All ranks of a job, and each does what it likes: mob.py SEED COMMAND-OF-A-WORKER

They know the secret, and the frames; they send some of these, parts of others and rubbish, connect
again, leave connections open, take nothing, or go. In the end one of them ends the job with 9, or
all go: the console ends then, and by no signal.
"""
import os
import random
import socket
import struct
import sys
import time

from stranger import COLLECTIVE, CONTROL, EXIT, MAGIC, STDERR, STDOUT, hello, told

RANKS = 2
host, port, secret = told(" ".join(sys.argv[2:]))
draw = random.Random(int(sys.argv[1]))
pid = os.getpid()
kept = []  # connections: socket, channel, rank; what is not in here is closed


def connect(channel, rank):
    s = socket.create_connection((host, port), timeout=10)
    s.settimeout(0.2)
    s.sendall(hello(MAGIC, channel, secret, rank, draw.choice((pid, os.getppid(), 1, 2**31 - 1))))
    kept.append((s, channel, rank))


# a mob that keeps to a few kinds of frames gets further than one that does not
kinds = draw.choice((b"G", b"GB", b"BGGGEOX"))
narrow = len(kinds) < 3
lengths = draw.choice(((4,), (4, 4, 4, 1000), (0, 1, 4, 1000, 100000, 1 << 28, (1 << 32) - 1)))


def frame():
    length = draw.choice(lengths)
    said = struct.pack(">III", draw.choice(kinds), draw.choice((0, 1, 9, 256, 1 << 31)), length)
    said += bytes(min(length, draw.choice((length, length, 3, 0)), 200000))
    return said if narrow else said[:draw.choice((len(said), draw.randrange(12)))]


def act():
    s, channel, rank = each = draw.choice(kept[RANKS if narrow else 0:] or kept)
    what = draw.randrange(10)
    try:
        if what < 5:
            s.sendall(frame())
        elif what == 5 and not narrow:
            s.sendall(draw.randbytes(draw.randrange(1, 9000)))
        elif what < 7:
            s.recv(draw.choice((1, 12, 100000)))
        elif what == 7:
            kept.remove(each)
            s.close()
            time.sleep(0.02)  # until the console has seen it
            connect(channel, rank)
        elif what == 8:
            connect(draw.choice((COLLECTIVE, COLLECTIVE, STDOUT, STDERR, 77)),
                    draw.randrange(-1, RANKS + 1) & 0xFFFFFFFF)
        elif not narrow:
            s.shutdown(draw.choice((socket.SHUT_RD, socket.SHUT_WR)))
    except OSError:  # the console has closed it, or does not take more
        pass


for rank in range(RANKS):
    connect(CONTROL, draw.choice((rank, 0xFFFFFFFF, 7)))
time.sleep(0.1)
for rank in range(RANKS):
    for channel in (COLLECTIVE,) if narrow else (COLLECTIVE, STDOUT, STDERR):
        if draw.random() < 0.9:
            connect(channel, rank)
for _ in range(draw.randrange(1, 40)):
    act()
if draw.random() < 0.5:
    try:
        kept[0][0].sendall(struct.pack(">III", EXIT, 9, 0))
    except OSError:
        pass
    time.sleep(0.1)
