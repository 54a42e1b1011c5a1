#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A socket in an epoll set that connects again and again: again.py WARPSOCK.

Each try makes a stream. Those before are not kept: the process's address space stays as it was,
whether nobody listens or a connection was made, and taken away by connect() to nowhere.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

PYTHON = "/usr/bin/python3"
LIMIT = 60
MOST = 10 << 20  # bytes; a stream takes 800 KiB of address space

CLIENT = """
import ctypes, re, select, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
listener = socket.create_server(("127.0.0.1", 0))
name = listener.getsockname()
if sys.argv[1] == "refused":
    listener.close()
sock = socket.socket()
sock.setblocking(False)
poller = select.epoll()
poller.register(sock, select.EPOLLOUT | select.EPOLLET)
def size():
    return int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
def connect_once():
    sock.connect_ex(name)
    poller.poll(0.02)
    if sys.argv[1] == "refused":
        return
    peer = listener.accept()[0]
    peer.setblocking(True)
    poller.poll(0.02)
    peer.close()
    nowhere = struct.pack("=H14x", socket.AF_UNSPEC)
    if libc.connect(sock.fileno(), nowhere, len(nowhere)):
        sys.exit(f"connect() to nowhere: {ctypes.get_errno()}")
for _ in range(20):
    connect_once()
before = size()
for _ in range(200):
    connect_once()
print("grown", size() - before, flush=True)
"""


def problems_of(stage, mode, word):
    name = f"{mode}-{word}"
    status = stage.run(name, [PYTHON, "-c", CLIENT, word], mode=mode, limit=LIMIT)
    said = stage.text(name).split()
    if status or said[:1] != ["grown"] or int(said[1]) > MOST:
        return [f"{status}, {stage.text(name)}, {stage.text(name, 'err')}"]
    return []


def main():
    writer = tap.Writer()
    with Stage(sys.argv[1]) as stage:
        for mode in "on", "auto":
            for word in "refused", "made":
                writer.case(f"200 times, {word}, mode {mode}", problems_of(stage, mode, word))
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
