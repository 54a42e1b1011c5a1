#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A worker on another host: namesake.py COMMAND-OF-A-WORKER (what %C of CSPAWN_CMD stands for)

Its process has the number of a process of the console's own host: of the shell that the console
has started, and which ends with 3. The worker goes on, and ends the job with 5. 127.0.0.9 stands
for the other host.
"""
import os
import socket
import struct
import sys
import time

from stranger import BOOT, CONTROL, COLLECTIVE, EXIT, MAGIC, hello, receive, told

host, port, secret = told(" ".join(sys.argv))


def connect(channel, rank, pid):
    s = socket.create_connection((host, port), timeout=10, source_address=("127.0.0.9", 0))
    s.sendall(hello(MAGIC, channel, secret, rank, pid))
    return s


def has_process(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return " Z " not in file.read()
    except FileNotFoundError:
        return False


shell = os.getppid()
control = connect(CONTROL, 0, shell)
kind, value, length = struct.unpack(">III", receive(control, 12))
receive(control, length)
collective = connect(COLLECTIVE, 0, shell)
# the shell need not wait for this one
if kind != BOOT or os.fork():
    sys.exit()
while has_process(shell):
    time.sleep(0.05)
time.sleep(1)
print("goes on", flush=True)
control.sendall(struct.pack(">III", EXIT, 5, 0))
receive(control, 12)
