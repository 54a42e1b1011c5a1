#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Many connections with unread bytes where /dev/shm is small, as in a container.

    scarce.py WARPSOCK

None loses a byte that was accepted, all are on DDP, and another program still has half of the room.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

NUMBER = 200
# Each connection gets so many bytes, and nobody reads; then others take room; then all is read
PROGRAM = """
import os, socket, sys
number, size, room = (int(arg) for arg in sys.argv[1:])
listener = socket.create_server(("127.0.0.1", 0), backlog=number)
pairs = []
for i in range(number):
    client = socket.create_connection(listener.getsockname())
    pairs.append((client, listener.accept()[0]))
sent = []
for i, (client, _) in enumerate(pairs):
    client.setblocking(False)
    done = 0
    try:
        while done < size:
            done += client.send(bytes([i % 251]) * (size - done))
    except BlockingIOError:
        pass
    sent.append(done)
with open("/dev/shm/others", "wb") as file:
    file.write(bytes(room))
lost = 0
for i, (client, server) in enumerate(pairs):
    server.settimeout(60)
    got = 0
    while got < sent[i]:
        data = server.recv(65536)
        if not data or data.strip(bytes([i % 251])):
            break
        got += len(data)
    lost += got != sent[i]
print("lost", lost, "sent", min(sent), flush=True)
"""
INSIDE = "mount -t tmpfs -o size={size} none /dev/shm && exec \"$@\""


def unshare():
    return ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def problems_of(warpsock, folder, size, room):
    done = subprocess.run(
        [*unshare(), "sh", "-c", INSIDE.format(size=folder), "sh", warpsock, "run", "--all",
         "--mode", "on", "--report", "-", "--", sys.executable, "-c", PROGRAM, str(NUMBER),
         str(size), str(room)], capture_output=True, text=True, check=False, timeout=110)
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != 2:
        return [f"status {done.returncode}", done.stdout, done.stderr[-2000:]]
    word, lost, _, least = lines[0].split()
    report = json.loads(lines[1])
    problems = [] if (word, lost) == ("lost", "0") and int(least) > size / 2 else [lines[0]]
    if report["connections"]["software"] != 2 * NUMBER or report["errors"]:
        problems.append(lines[1])
    return problems


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    cases = (("4m", 1000, 1 << 20), ("4m", 150000, 1 << 20), ("64m", 150000, 31 << 20))
    if subprocess.run([*unshare(), "mount", "-t", "tmpfs", "none", "/dev/shm"],
                      capture_output=True, check=False).returncode:
        writer.skip("connections in a small /dev/shm", "no mount namespace is to be had")
        cases = ()
    for folder, size, room in cases:
        writer.case(f"{NUMBER} connections with {size} bytes each, /dev/shm of {folder}",
                    problems_of(warpsock, folder, size, room))
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
