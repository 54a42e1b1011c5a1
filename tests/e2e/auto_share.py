#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two processes have a connection that falls back, and one of them is killed meanwhile.

    auto_share.py WARPSOCK

    parent --- connect() that does not wait, fork() ---> a plain server
    child  --- the same socket

The other one goes on: it has a plain connection, or, where the dead one had begun to change its
state, a reset. Never does it wait for ever.

Each holds an end of a pipe, by which this test knows when both have gone.
"""
import os
import select
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from auto import Plain  # noqa: E402
from launch import Stage  # noqa: E402

TIMES = 16
# What a server does with a Request, and for how many seconds the client then falls back, about
KINDS = {"stays": 0.12, "short": 0.03, "closes": 0.03}
AT_ONCE = 3
PROGRAM = """
import errno, os, select, signal, socket, sys, time
port, victim, delay = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
s = socket.socket()
s.setblocking(False)
assert s.connect_ex(("127.0.0.1", port)) == errno.EINPROGRESS
begin, me = time.monotonic(), "parent" if os.fork() else "child"
poll = select.poll()
poll.register(s, select.POLLOUT)
if me == victim:
    while time.monotonic() < begin + delay:
        poll.poll(1)
    os.kill(os.getpid(), signal.SIGKILL)
while time.monotonic() < begin + delay:
    poll.poll(1)
if not poll.poll(20000):
    print("came to nothing", flush=True)
    os._exit(0)
print("ready", flush=True)
err = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
try:
    if not err:
        s.setblocking(True)
        s.settimeout(30)
        s.sendall(b"hello")
        err = 0 if s.recv(5, socket.MSG_WAITALL) == b"hello" else "octets"
except OSError as error:
    err = error.errno or "time"
print("came to", err, flush=True)
"""


class Server(Plain):
    def answer(self, conn, data, request):
        if not request or self.kind != "stays":
            super().answer(conn, data, request)
        else:
            conn.sendall(b"-ERR\r\n")
            time.sleep(0.5)


class Gone:
    """A pipe whose writing end processes inherit: the end of them all."""

    def __enter__(self):
        self.ours, self.theirs = os.pipe()
        return self

    def wait(self):
        os.close(self.theirs)
        self.theirs = -1
        if not select.select([self.ours], [], [], 60)[0]:
            raise RuntimeError("a process has not ended")

    def __exit__(self, *_):
        for fd in (self.ours, self.theirs):
            if fd >= 0:
                os.close(fd)


def attempt(warpsock, kind, victim, delay):
    with Stage(warpsock) as stage, Server(kind) as server, Gone() as gone:
        proc = stage.start("pair", [sys.executable, "-c", PROGRAM, server.port, victim,
                                    str(delay)], rules=[f"auto client * 127.0.0.1:{server.port}"],
                           env={"WARPSOCK_PROBE_TIMEOUT": "100"}, pass_fds=[gone.theirs])
        stage.wait_text("pair", "came to", 70)
        status = stage.end(proc)
        gone.wait()
        said = stage.text("pair")
    wanted = -signal.SIGKILL if victim == "parent" else 0
    return said.split() + ([] if status == wanted else [f"status {status}"])


def meet(warpsock, pool, kind, victim):
    def one(i):
        return attempt(warpsock, kind, victim, KINDS[kind] * i / TIMES)
    came = list(pool.map(one, range(TIMES)))
    well = [said for said in came if said == ["ready", "came", "to", "0"]]
    others = [said for said in came if said not in well and
              said != ["ready", "came", "to", "104"]]
    return [str(said) for said in others] + \
        ([] if len(well) > TIMES / 2 else [f"only {len(well)} go on"])


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for kind in KINDS:
            for victim in ("parent", "child"):
                writer.case(f"{kind}, and the {victim} is killed",
                            meet(warpsock, pool, kind, victim))
    writer.finish()


if __name__ == "__main__":
    main()
