#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Strangers at a job's console: stranger.py COMMAND-OF-A-WORKER (what %C of CSPAWN_CMD stands for)

None of those who do not know the secret may come in, whatever connection they say they are, nor one
whose process number stands for many processes; then one that does know the secret is the job's only
rank, so what the others said was right but for that.
"""
import re
import socket
import struct
import sys
import time

MAGIC, CONTROL, COLLECTIVE, STDOUT, STDERR = 0x414D4A31, 0, 1, 2, 3
BOOT, EXIT = ord("O"), ord("E")
ANY = 0xFFFFFFFF
SILENT = 100  # connections that say nothing: more than the console keeps


def told(text):
    """Host, port and secret of the console that starts a worker by this command."""
    host, port = re.search(r"AMUDP_SLAVE_ARGS=\d,([^:]+):(\d+)", text).groups()
    with open(re.search(r"AMUDP_SLAVE_SECRET=(/[^' ]+)", text).group(1)) as file:
        return host, int(port), int(file.read(), 16)


def connect(said):
    s = socket.create_connection((host, port), timeout=10)
    s.sendall(said)
    return s


def hello(magic, channel, secret, rank=ANY, pid=1):
    return struct.pack(">IIQII", magic, channel, secret, rank, pid)


def is_refused(said):
    with connect(said) as s:
        try:
            return s.recv(1) == b""
        except ConnectionResetError:
            return True


def refusals():
    for wrong in (secret ^ 1, secret ^ 1 << 63, 0, (1 << 64) - 1):
        yield hello(MAGIC, CONTROL, wrong)
    for channel in (COLLECTIVE, STDOUT, STDERR, 77):
        yield hello(MAGIC, channel, secret ^ 1, 0)
    yield hello(MAGIC + 1, CONTROL, secret)
    # what kill() takes for all processes of the user, for a group, and for the console's own
    for pid in (0xFFFFFFFF, 0xFFFFFFFE, 0x80000000, 0):
        yield hello(MAGIC, CONTROL, secret, pid=pid)
    yield b"GET / HTTP/1.0\r\nHost: here\r\n\r\n"


def receive(s, n):
    got = b""
    while len(got) < n:
        got += s.recv(n - len(got)) or sys.exit("the console has closed the connection")
    return got


def main():
    refused = [is_refused(said) for said in refusals()]
    # they do not push out a worker that is about to say hello
    worker = connect(b"")
    silent = [connect(b"") for i in range(SILENT)]
    time.sleep(0.3)
    with worker as s:
        s.sendall(hello(MAGIC, CONTROL, secret))
        kind, value, length = struct.unpack(">III", receive(s, 12))
        receive(s, length)
        # a place that is taken already, and the same by one who does not know the secret
        refused.append(is_refused(hello(MAGIC, CONTROL, secret)))
        refused.append(is_refused(hello(MAGIC, COLLECTIVE, secret ^ 1, 0)))
        print(f"{refused.count(True)} of {len(refused)} refused, then", "a rank" * (kind == BOOT),
              flush=True)
        s.sendall(struct.pack(">III", EXIT, 0, 0))
        receive(s, 12)


if __name__ == "__main__":
    host, port, secret = told(" ".join(sys.argv))
    main()
