#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers, and many clients that connect and say nothing, or not enough.

    auto_silent.py WARPSOCK

    500 clients that say nothing ------+
    a plain client ------- hello ------+--- a server, under warpsock
    a client on DDP ------ hello ------+

What the silent ones cost is some memory each: no thread, no descriptor but their own (and a wakeup
for each of the program's threads that sleeps), and nothing when they have gone. Nobody works
for them, also where they have said something. The others are served.
"""
import os
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import ECHO_SERVER, Stage, differences  # noqa: E402

NUMBER = 500
EACH = 32  # KiB of memory, at most, and as much for a thread of the program's
SOME = 8  # the set and the worker thread have two each, and questions from other hosts
WAKEUPS = 16  # that are kept for the next who sleeps, preload/wait/wait.c
SPARE = 1  # the name of the slab that is kept for the next connection, stream/slab.c
KEY = b"MPA ID Req Frame"
# By epoll, in one thread; with "greets" it speaks first
EPOLL = """
import select, socket, sys
listener = socket.create_server(("127.0.0.1", 0), backlog=1000)
listener.setblocking(False)
ready = select.epoll()
ready.register(listener, select.EPOLLIN)
conns = {}
print(listener.getsockname()[1], flush=True)
def accept():
    conn = listener.accept()[0]
    conn.setblocking(True)
    if sys.argv[1] == "greets":
        conn.sendall(b"welcome")
    conn.setblocking(False)
    conns[conn.fileno()] = conn
    ready.register(conn, select.EPOLLIN)
def serve(fd):
    try:
        data = conns[fd].recv(1000)
        if data:
            return conns[fd].sendall(data)
    except BlockingIOError:
        return
    except OSError:
        pass
    ready.unregister(fd)
    conns.pop(fd).close()
while True:
    for fd, _ in ready.poll():
        if fd == listener.fileno():
            accept()
        else:
            serve(fd)
"""
CLIENT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as sock:
    if sys.argv[2] == "greets":
        print(sock.recv(7, socket.MSG_WAITALL))
    sock.sendall(b"hello")
    print(sock.recv(5, socket.MSG_WAITALL))
"""


class Costs:
    """Of a process, and of the folder for states."""

    def __init__(self, pid, folder):
        status = dict(line.split(":", 1) for line in
                      Path(f"/proc/{pid}/status").read_text().splitlines())
        self.memory = int(status["VmRSS"].split()[0])
        self.threads = int(status["Threads"])
        self.fds = len(os.listdir(f"/proc/{pid}/fd"))
        self.states = sum(not name.startswith(("leases-", "promised-"))
                          for name in os.listdir(folder))
        self.seconds = sum(int(n) for n in Path(f"/proc/{pid}/stat").read_text()
                           .rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")

    def __str__(self):
        return f"{self.memory} KiB, {self.threads} threads, {self.fds} descriptors, " \
            f"{self.states} states"


def until(condition, limit=60):
    end = time.monotonic() + limit
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def connect(port, says, greets):
    socks = []
    for _ in range(NUMBER):
        socks.append(socket.create_connection(("127.0.0.1", port), timeout=60))
        socks[-1].sendall(says)
    if greets:
        for sock in socks:
            if sock.recv(7, socket.MSG_WAITALL) != b"welcome":
                raise RuntimeError("a silent one is not greeted")
    return socks


def others(stage, port, kind, mode):
    """They get through. Who is spoken to first has to be quick to be on DDP, which is not tried."""
    problems = []
    names = ["plain"] * (mode == "auto") + ["ddp"] * (kind != "greets")
    for name in names:
        status = stage.run(name, [sys.executable, "-c", CLIENT, str(port), kind],
                           mode="on" if name == "ddp" else None)
        if status != 0 or "b'hello'" not in stage.text(name):
            problems.append(f"{name}: {status}, {stage.text(name)}{stage.text(name, 'err')}")
    if "ddp" in names:
        problems += differences(stage.report("ddp"), {
            "connections": {"software": 1, "kernel": 0, "verbs": 0, "tcp": 0}})
    return problems


def turn(stage, server, folder, kind, mode, says, gone):
    """(what is wrong, the costs while they are there, and when they have gone)"""
    port = int(stage.text("server"))
    before = Costs(server.pid, folder)
    socks = connect(port, says, kind == "greets")
    until(lambda: Costs(server.pid, folder).fds >= before.fds + NUMBER)
    problems = others(stage, port, kind, mode)
    there = Costs(server.pid, folder)
    time.sleep(1)
    spun = Costs(server.pid, folder).seconds - there.seconds
    if spun > 0.5:
        problems.append(f"it worked {spun} s in one in which nothing came")
    for sock in socks:
        sock.close()
    until(lambda: gone(Costs(server.pid, folder)))
    return problems, there, Costs(server.pid, folder)


def silent(warpsock, code, kind, mode="auto", says=b""):
    folder = tempfile.mkdtemp(prefix="warpsock-silent-", dir="/dev/shm")
    threads = NUMBER if code is ECHO_SERVER else 0
    kept = SOME + (WAKEUPS if threads else 0)
    problems = []
    try:
        with Stage(warpsock) as stage:
            server = stage.start("server", [sys.executable, "-c", code, kind], mode=mode,
                                 env={"WARPSOCK_RUNTIME_DIR": folder, "WARPSOCK_LOG": "off"})
            stage.wait_text("server", limit=60)
            before = Costs(server.pid, folder)
            ends = []

            def gone(now):
                return now.fds <= before.fds + kept and now.states <= SPARE and \
                    now.threads <= before.threads + 1

            for _ in range(2):
                wrong, there, after = turn(stage, server, folder, kind, mode, says, gone)
                problems += wrong
                ends.append(after)
                if there.memory - before.memory > (NUMBER + threads) * EACH or \
                        there.threads > before.threads + threads + 1 or \
                        there.fds > before.fds + NUMBER + threads + kept or \
                        there.states > NUMBER + SOME:
                    problems.append(f"{before}; with {NUMBER} of them {there}")
                if not gone(after):
                    problems.append(f"{before}; when they have gone {after}")
            if ends[1].memory - ends[0].memory > NUMBER:
                problems.append(f"the first time it kept {ends[0]}, the second {ends[1]}")
    finally:
        shutil.rmtree(folder)
    return problems


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    for name, code, kind, mode, says in (
            ("epoll", EPOLL, "echoes", "auto", b""), ("epoll", EPOLL, "echoes", "on", b""),
            ("epoll that speaks first", EPOLL, "greets", "auto", b""),
            ("threads", ECHO_SERVER, "echoes", "auto", b"")):
        writer.case(f"{name}, mode {mode}: {NUMBER} clients say nothing",
                    silent(warpsock, code, kind, mode, says))
    writer.case(f"epoll, mode auto: {NUMBER} clients say a part of a Request",
                silent(warpsock, EPOLL, "echoes", says=KEY[:7]))
    writer.case(f"epoll, mode auto: {NUMBER} clients say a Request without its private data",
                silent(warpsock, EPOLL, "echoes", says=KEY + bytes((0x50, 2, 0, 60))))
    writer.finish()


if __name__ == "__main__":
    main()
