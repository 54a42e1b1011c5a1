#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Mode auto over a long way: the times that nobody has set are counted in round trips.

    auto_far.py WARPSOCK

At last the way between the two ends is cut (far.py): who sends hears of it by TCP's time, who waits
does not.
"""
import subprocess
import sys
from functools import partial

from far import SERVER, main
from launch import Stage, differences, in_time

WAY = 0.25  # seconds
TRIP = 2 * WAY
GRACE_MAX = 0.05
PORT = "7000"
UNSET = {"WARPSOCK_PROBE_TIMEOUT": "auto", "WARPSOCK_GRACE": "auto"}

# Two connections at once, and how long each took to answer
CLIENT = """
import socket, sys, threading, time
def talk():
    begin = time.monotonic()
    with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as sock:
        print("connected", time.monotonic() - begin, flush=True)
        if sys.argv[3] == "talks":
            sock.sendall(b"hello")
            assert sock.recv(5, socket.MSG_WAITALL) == b"hello"
threads = [threading.Thread(target=talk) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
ECHOES = """
import socket, sys, threading
def echo(sock):
    with sock:
        while octets := sock.recv(100):
            sock.sendall(octets)
with socket.create_server(("", int(sys.argv[1]))) as listener:
    print("listens", flush=True)
    threads = [threading.Thread(target=echo, args=listener.accept()[:1]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""
IS_SILENT = """
import socket, sys
with socket.create_server(("", int(sys.argv[1]))):
    print("listens", flush=True)
    sys.stdin.read()
"""
# The grace counts from accept() on
SPEAKS_FIRST = """
import select, socket, sys, time
with socket.create_server(("", int(sys.argv[1]))) as listener:
    print("listens", flush=True)
    select.select([listener], [], [])
    begin = time.monotonic()
    with listener.accept()[0] as sock:
        sock.sendall(b"welcome")
        print("waited", time.monotonic() - begin, flush=True)
"""
# Each end, and what it says of a network that goes away; 18 is TCP_USER_TIMEOUT
LOSES = """
import os, select, socket, struct, sys
if sys.argv[1] == "serves":
    with socket.create_server(("", int(sys.argv[3]))) as listener:
        print("listens", flush=True)
        sock = listener.accept()[0]
    assert sock.recv(1) == b"x"
    sock.sendall(b"y")
else:
    sock = socket.create_connection(("%s", int(sys.argv[3])))
    sock.sendall(b"x")
    assert sock.recv(1) == b"y"
sock.setsockopt(socket.IPPROTO_TCP, 18, 2000)
print("ready", flush=True)
sys.stdin.read()
if sys.argv[2] == "sends":
    sock.sendall(b"lost")
    poll = select.poll()
    poll.register(sock, 0)
    poll.poll(60000)
else:
    select.select([sock], [], [], 4)
print("reason", struct.unpack_from("=III", sock.getsockopt(5041, 6, 256))[2], flush=True)
os._exit(0)
""" % SERVER
# Calls nothing until the server has spoken
NAPS = """
import socket, sys, time
with socket.socket() as sock:
    sock.setblocking(False)
    sock.connect_ex((sys.argv[1], int(sys.argv[2])))
    time.sleep(1.5)
    sock.setblocking(True)
    assert sock.recv(7, socket.MSG_WAITALL) == b"welcome"
    sock.sendall(b"thanks")
    assert sock.recv(1) == b""
"""
SPEAKS_AND_HEARS = """
import socket, sys
with socket.create_server(("", int(sys.argv[1]))) as listener:
    print("listens", flush=True)
    with listener.accept()[0] as sock:
        sock.sendall(b"welcome")
        print("heard", sock.recv(6, socket.MSG_WAITALL), flush=True)
"""
LISTENS = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as sock:
    assert sock.recv(7, socket.MSG_WAITALL) == b"welcome"
"""


def meet(warpsock, far, server, client, modes, check):
    """@modes: for the launcher, None: without it."""
    with Stage(warpsock) as stage:
        serves = stage.start("server", [sys.executable, "-c", server, PORT], mode=modes[0],
                             rules=["auto server * *:*"], env=UNSET, preexec_fn=far.enter,
                             stdin=subprocess.PIPE)
        stage.wait_text("server", "listens", 60)
        status = stage.run("client", [sys.executable, "-c", client[0], SERVER, PORT, *client[1:]],
                           mode=modes[1], rules=[f"auto client * {SERVER}:*"], env=UNSET)
        serves.stdin.close()
        status = [status, stage.end(serves)]
        wrong, late = check(stage)
        if wrong or status != [0, 0]:
            wrong += [f"status {status}", stage.text("client", "err"), stage.text("server", "err")]
        return wrong, late


def took(stage, name, word, least):
    """Not less, which is wrong, nor twice as much, which is late."""
    times = [float(line.split()[1]) for line in stage.text(name).splitlines()
             if line.startswith(word)]
    said = [f"{name} {word} {times}, not after {least} s"]
    if not times or min(times) < least:
        return said, []
    return [], said if min(times) >= 2 * least else []


def on_ddp(stage):
    return differences(stage.report("client"), {
        "connections": {"software": 2, "kernel": 0, "verbs": 0, "tcp": 0}, "fallbacks": {}}), []


def on_tcp(stage):
    wrong, late = took(stage, "client", "connected", TRIP + 4 * TRIP)
    why = (stage.report("client") or {"fallbacks": {}})["fallbacks"]
    if "PROBE_TIMEOUT" not in why or sum(why.values()) != 2:
        wrong.append(f"fallbacks {why}")
    return wrong, late


def after_grace(stage):
    wrong, late = took(stage, "server", "waited", GRACE_MAX)
    return wrong + differences(stage.report("server"), {"fallbacks": {"GRACE_EXPIRED": 1}}), late


def session(stage):
    said = stage.text("server").splitlines()[1:]
    return ([] if said == ["heard b'thanks'"] else [f"the server says: {said}"]), []


# By port: what the server's end does when the network is gone, and the client's
LOST = {"7001": ("sends", "sends"), "7002": ("waits", "sends"), "7003": ("sends", "waits")}
TIMED_OUT = {"sends": "reason 308", "waits": "reason 0"}


def lose(warpsock, far):
    """TIMED_OUT, at each end that sends; the others are told nothing."""
    with Stage(warpsock) as stage:
        running, wanted = {}, {}
        for port, does in LOST.items():
            for end, what in zip(("serves", "connects"), does):
                name = f"{end}-{port}"
                running[name] = stage.start(
                    name, [sys.executable, "-c", LOSES, end, what, port], stdin=subprocess.PIPE,
                    preexec_fn=far.enter if end == "serves" else None)
                wanted[name] = TIMED_OUT[what]
                stage.wait_text(name, "listens" if end == "serves" else "ready", 60)
            stage.wait_text(f"serves-{port}", "ready", 60)
        far.end()
        for proc in running.values():
            proc.stdin.close()
        status = [stage.end(proc) for proc in running.values()]
        said = {name: stage.text(name).splitlines()[-1] for name in running}
        problems = [f"{name}: {said[name]}" for name in running if said[name] != wanted[name]]
        return problems + ([f"status {status}"] if any(status) else [])


def cases(warpsock, writer, far):
    for name, *what in (
            ("an answer is waited for by the round trip, and so is another's",
             ECHOES, (CLIENT, "talks"), ("auto", "auto"), on_ddp),
            ("silence is that for four round trips",
             IS_SILENT, (CLIENT, "looks"), (None, "auto"), on_tcp),
            ("who speaks first does not wait as long as a round trip takes",
             SPEAKS_FIRST, (LISTENS,), ("auto", None), after_grace),
            ("a client that calls nothing while its server speaks gets no Request in between",
             SPEAKS_AND_HEARS, (NAPS,), ("auto", "auto"), session)):
        writer.case(name, in_time(partial(meet, warpsock, far, *what)))
    writer.case("who sends when the network is gone hears of it, who waits does not",
                lose(warpsock, far))


main(WAY, cases)
