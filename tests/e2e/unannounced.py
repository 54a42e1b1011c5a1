#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A process that takes a connection of another one's by pidfd_getfd(), while that sleeps in recv().

    unannounced.py WARPSOCK

The sleeper is one thread, and nobody has told it: it goes on sleeping, and still gets what is its.
"""
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

PIDFD_OPEN, PIDFD_GETFD = 434, 438
LIMIT = 20
libc = ctypes.CDLL(None, use_errno=True)


def sleeper(port):
    """Says its descriptor, then what it gets."""
    with socket.create_connection(("127.0.0.1", int(port))) as s:
        print(s.fileno(), flush=True)
        while data := s.recv(100):
            print(data.decode(), flush=True)


def comer(pid, fd, killed):
    taken = libc.syscall(PIDFD_GETFD, libc.syscall(PIDFD_OPEN, int(pid), 0), int(fd), 0)
    if taken < 0:
        sys.exit(f"pidfd_getfd: {os.strerror(ctypes.get_errno())}")
    s = socket.socket(fileno=taken)
    s.setblocking(False)
    try:
        s.recv(10)
    except BlockingIOError:
        s.send(b"comer")
    if killed == "True":
        os.kill(os.getpid(), signal.SIGKILL)
    s.detach()


def ticks(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().split()
    return int(fields[13]) + int(fields[14])


def run(*args):
    return [sys.executable, os.path.abspath(__file__), *map(str, args)]


def comes(writer, connection, process, fd, killed):
    subprocess.run(run("comer", process.pid, fd, killed), timeout=LIMIT, check=not killed)
    connection.sendall(b"hello")
    problems = [f"{said!r} instead of {want!r}" for said, want in (
        (process.stdout.readline().strip(), "hello"), (connection.recv(10), b"comer"))
        if said != want]
    before = ticks(process.pid)
    time.sleep(0.5)
    if ticks(process.pid) - before > 10:
        problems.append(f"{ticks(process.pid) - before} ticks of half a second: no sleep")
    writer.case(f"one that {'is killed' if killed else 'goes again'}", problems)


def main():
    """Under the launcher, as its children are."""
    writer = tap.Writer()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = subprocess.Popen(run("sleeper", listener.getsockname()[1]),
                                   stdout=subprocess.PIPE, text=True)
        connection, _ = listener.accept()
    connection.settimeout(LIMIT)
    fd = int(process.stdout.readline())
    time.sleep(0.2)
    for killed in (False, True):
        comes(writer, connection, process, fd, killed)
    connection.close()
    writer.case("the end", [] if process.wait(LIMIT) == 0 else ["the sleeper has failed"])
    return writer.finish()


if __name__ == "__main__":
    roles = {"sleeper": sleeper, "comer": comer, "main": main}
    if sys.argv[1] in roles:
        sys.exit(roles[sys.argv[1]](*sys.argv[2:]))
    os.execv(sys.argv[1], [sys.argv[1], "run", "--all", "--mode", "on", "--", *run("main")])
