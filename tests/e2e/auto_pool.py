#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Clients in mode auto that connect many times at once to a peer that they do not know.

    auto_pool.py WARPSOCK

    pool.py, under warpsock         a plain server, or one under warpsock
      the first: Request -------->  answers, or does not
      the others: nothing, until
      that is known; then

A plain server gets one Request at most, whoever connects, and nobody waits longer than for one
answer. A server with DDP has all of them on DDP.
"""
import os
import re
import socket
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import ECHO_SERVER, Stage, differences, in_time  # noqa: E402

POOL = [sys.executable, str(HERE / "programs" / "pool.py")]
REQUEST = b"MPA ID Req Frame"
NUMBER = 50
FEW = 12  # processes
WAYS = (("threads", NUMBER), ("poll", NUMBER), ("epoll", NUMBER), ("blind", 5), ("forks", FEW))
LIMIT = 3  # of a probe that nobody answers, in seconds
PATIENCE = 30  # of the others


class Plain:
    """Echoes what is no Request; to one it says nothing, or that it does not understand."""

    def __init__(self, kind):
        self.kind, self.requests = kind, 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = str(self.listener.getsockname()[1])
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                conn = self.listener.accept()[0]
                threading.Thread(target=self.serve, args=(conn,), daemon=True).start()
        except OSError:
            pass

    def serve(self, conn):
        try:
            with conn:
                if self.kind == "greets":
                    conn.sendall(b"welcome\n")
                while data := conn.recv(65536):
                    if not data.startswith(REQUEST):
                        conn.sendall(data)
                        continue
                    with self.lock:
                        self.requests += 1
                    if self.kind == "complains":
                        conn.sendall(b"-ERR\r\n")
        except OSError:
            pass  # the reset behind a Request

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def by_itself(warpsock):
    """How long an answer is waited for if nobody says it: 50 ms, and what a busy machine adds."""
    with Stage(warpsock) as stage, Plain("is silent") as server:
        stage.run("client", [*POOL, "threads", server.port, "1"],
                  rules=[f"auto client * 127.0.0.1:{server.port}"])
        said = re.findall(r"took ([\d.]+) right 1", stage.text("client"))
        problems = differences(stage.report("client"), {"fallbacks": {"PROBE_TIMEOUT": 1}})
        if not said or float(said[0]) < 0.05:
            problems += [stage.text("client"), stage.text("client", "err")]
        return problems, [f"it took {took} s" for took in said if float(took) >= 0.5]


def pool(stage, way, number, port, rule, limit):
    """(what is wrong, the longest that it took)"""
    status = stage.run("client", [*POOL, way, port, str(number)], rules=[rule], limit=100,
                       env={"WARPSOCK_PROBE_TIMEOUT": f"{limit}s"})
    said = re.findall(r"took ([\d.]+) right (\d+)", stage.text("client"))
    right = sum(int(times) for _, times in said)
    problems = [] if status == 0 and right == number else \
        [f"status {status}, {right} right", stage.text("client"), stage.text("client", "err")]
    return problems, max((float(took) for took, _ in said), default=0)


def plain(warpsock, way, number, kind):
    with Stage(warpsock) as stage, Plain(kind) as server:
        limit = LIMIT if kind == "is silent" else PATIENCE
        problems, took = pool(stage, way, number, server.port,
                              f"auto client * 127.0.0.1:{server.port}", limit)
        # A server that greets may have done so before anybody asks
        if server.requests not in ((0, 1) if kind == "greets" else (1,)):
            problems.append(f"{server.requests} Requests")
        # Less than two time-outs; of an answer, less than one
        if took > (1.9 * limit if kind == "is silent" else 0.9 * limit):
            problems.append(f"it took {took} s")
        report = stage.report("client") or {"fallbacks": {}}
        problems += differences(report, {
            "connections": {"software": 0, "kernel": 0, "verbs": 0, "tcp": number}, "errors": 0})
        known = {"PEER_KNOWN_PLAIN", "PROBE_TIMEOUT", "PEER_NOT_MPA"}
        if not set(report["fallbacks"]) <= known or sum(report["fallbacks"].values()) != number:
            problems.append(str(report))
        if kind == "complains" and report["fallbacks"] != {
                "PEER_NOT_MPA": 1, "PEER_KNOWN_PLAIN": number - 1}:
            problems.append(str(report))
    return problems


def deaf(warpsock):
    """Who asks never says what came of it: the others wait for their own time-out."""
    with Stage(warpsock) as stage, Plain("is silent") as server:
        stage.run("client", [*POOL, "deaf", server.port, "4"],
                  rules=[f"auto client * 127.0.0.1:{server.port}"], limit=100,
                  env={"WARPSOCK_PROBE_TIMEOUT": f"{LIMIT}s"})
        said = re.findall(r"took ([\d.]+) right (\d+)", stage.text("client"))
        problems = [] if said and said[0][1] == "3" and LIMIT <= float(said[0][0]) < 1.9 * LIMIT \
            else [stage.text("client"), stage.text("client", "err")]
        if server.requests != 1:
            problems.append(f"{server.requests} Requests")
        return problems + differences(stage.report("client"), {"fallbacks": {"PROBE_TIMEOUT": 3}})


def killed(warpsock):
    """The same of who is killed as it asks: what it was about stands in memory of them all."""
    with Stage(warpsock) as stage, Plain("is silent") as server:
        problems, took = pool(stage, "killed", FEW, server.port,
                              f"auto client * 127.0.0.1:{server.port}", LIMIT)
        if not 0.9 * LIMIT <= took < 1.9 * LIMIT or server.requests != 1:
            problems.append(f"it took {took} s, with {server.requests} Requests")
        return problems + differences(stage.report("client"), {"fallbacks": {"PROBE_TIMEOUT": FEW}})


def executed(warpsock):
    """What is under way in a program that is executed tells it of the peer."""
    with Stage(warpsock) as stage, Plain("is silent") as server:
        problems, _ = pool(stage, "executed", 2, server.port,
                           f"auto client * 127.0.0.1:{server.port}", LIMIT)
        if server.requests != 1:
            problems.append(f"{server.requests} Requests")
        return problems + differences(stage.report("client"), {
            "fallbacks": {"PROBE_TIMEOUT": 1, "PEER_KNOWN_PLAIN": 1}})


def ddp(warpsock, way, number):
    with Stage(warpsock) as stage:
        stage.start("server", [sys.executable, "-c", ECHO_SERVER], mode="auto")
        port = stage.wait_text("server", limit=60).strip()
        problems, _ = pool(stage, way, number, port, f"auto client * 127.0.0.1:{port}", PATIENCE)
        return problems + differences(stage.report("client"), {
            "connections": {"software": number, "kernel": 0, "verbs": 0, "tcp": 0},
            "fallbacks": {}, "errors": 0})


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    for way, number in WAYS:
        for kind in ("is silent", "complains", "greets"):
            writer.case(f"{number} by {way}, and the server {kind}",
                        plain(warpsock, way, number, kind))
        writer.case(f"{number} by {way}, and the server has DDP", ddp(warpsock, way, number))
    writer.case("who asks is deaf", deaf(warpsock))
    writer.case("who asks is killed", killed(warpsock))
    writer.case("who asks is executed", executed(warpsock))
    writer.case("the time that nobody has set", in_time(lambda: by_itself(warpsock)))
    writer.finish()


if __name__ == "__main__":
    main()
