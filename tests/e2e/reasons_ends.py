#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Both ends under warpsock, and no DDP: each says why, in DDP_INFO and in its report.

    reasons_ends.py WARPSOCK

    client, by one rule ---- a connection, or one behind a Request ---- server, by another
    client ---- somebody who changes an octet of the Request, or of the Reply ---- server
"""
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

INFO = """
import ctypes, socket, struct, sys, time
def info(s):
    return struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2]
"""
# Echoes hello, says welcome before if it speaks first; to a Request it says nothing
SERVER = INFO + """
listener = socket.create_server(("127.0.0.1", 0))
slow = sys.argv[2] == "slow"
print(listener.getsockname()[1], flush=True)
for _ in range(int(sys.argv[1])):
    if slow:
        sys.stdin.readline()
    conn = listener.accept()[0]
    conn.settimeout(60)
    said = "nothing"
    try:
        if sys.argv[2] == "server":
            time.sleep(0.2)  # one that has spoken is sent no Request
            conn.sendall(b"welcome")
        while data := conn.recv(100):
            if data == b"hello":
                conn.sendall(data)
            said = info(conn)
        said = info(conn) if said == "nothing" else said
    except OSError:
        said = info(conn)
    print("reason", said, flush=True)
    conn.close()
"""
CLIENT = INFO + """
s = socket.socket()
s.settimeout(60)
if sys.argv[3] == "off":
    s.setsockopt(5041, 1, 0)
if sys.argv[3] == "ring" and \
        ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(4096)) < 0:
    sys.exit("no ring here")
try:
    s.connect(("127.0.0.1", int(sys.argv[1])))
    if sys.argv[3] == "tells":
        print("reason", info(s), flush=True)
    if sys.argv[2] == "server":
        s.recv(7, socket.MSG_WAITALL)
    s.sendall(b"hello")
    s.recv(5, socket.MSG_WAITALL)
except OSError:
    pass
if sys.argv[3] == "drops":
    ctypes.CDLL(None).connect(s.fileno(), bytes(16), 16)
if sys.argv[3] != "tells":
    print("reason", info(s), flush=True)
s.close()
"""
NUMBERS = {"RULE_TCP": 2, "MODE_OFF": 3, "PEER_NOT_MPA": 100, "PROBE_TIMEOUT": 101,
           "REFUSED": 102, "GRACE_EXPIRED": 103, "PEER_PARAMETERS": 106, "PEER_CLOSED": 107,
           "IO_URING": 208, "CLOSED": 300, "PEER_RESET": 301, "ABORTED": 306}


class Case:
    """@client, @server: rules; what each is to say, and to have in its report."""

    def __init__(self, name, client, server, first, wanted, does="", connections=1, reports=None):
        self.name, self.client, self.server, self.first = name, client, server, first
        self.wanted, self.does, self.connections = wanted, does, connections
        self.reports = reports or wanted


CASES = (
    Case("a client by a rule for tcp speaks first", "tcp", "auto", "client",
         ("RULE_TCP", "PEER_NOT_MPA")),
    Case("a client by a rule for tcp is spoken to", "tcp", "auto", "server",
         ("RULE_TCP", "GRACE_EXPIRED")),
    Case("a client by a rule for tcp, and a server in mode on", "tcp", "ddp", "client",
         ("RULE_TCP", "PEER_NOT_MPA")),
    Case("a server by a rule for tcp", "auto", "tcp", "client",
         ("PROBE_TIMEOUT", "RULE_TCP"), connections=2),
    Case("a server by a rule for tcp speaks first", "auto", "tcp", "server",
         ("PEER_NOT_MPA", "RULE_TCP"), connections=2),
    Case("a server by a rule for tcp, and a client in mode on", "ddp", "tcp", "client",
         ("PROBE_TIMEOUT", "RULE_TCP")),
    Case("a client that wants none", "auto", "auto", "client", ("MODE_OFF", "PEER_NOT_MPA"),
         does="off"),
    Case("a client with an io_uring", "auto", "auto", "client", ("IO_URING", "PEER_NOT_MPA"),
         does="ring"),
    Case("a client with an io_uring, and a server in mode on", "auto", "ddp", "client",
         ("IO_URING", "PEER_NOT_MPA"), does="ring"),
    Case("a client that drops its connection", "ddp", "ddp", "client", ("ABORTED", "PEER_RESET"),
         does="drops", reports=("", "")),
)


def slow(warpsock):
    """A server in mode auto comes to a connection when its client has given up."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", SERVER, "2", "slow"],
                             rules=["auto server * *:*"], stdin=subprocess.PIPE)
        port = stage.wait_text("server", limit=60).split()[0]
        client = stage.start("client", [sys.executable, "-c", CLIENT, port, "client", "tells"],
                             rules=[f"auto client * 127.0.0.1:{port}"],
                             env={"WARPSOCK_START": "1s", "WARPSOCK_CONNECT": "strict"})
        stage.wait_text("client", "reason", 60)
        server.stdin.write(b"\n\n")
        server.stdin.close()
        said = [stage.end(client), stage.end(server)]
        for end, wanted in (("client", ["PROBE_TIMEOUT"]),
                            ("server", ["PEER_CLOSED", "PEER_NOT_MPA"])):
            said += check(stage, end, wanted, {name: 1 for name in wanted})
        return said[2:] if said[:2] == [0, 0] else said


class Meddler:
    """Between a client and a server; says another version of the stream protocol for one of them.

    It is the first octet of what they say privately, behind 4 of depths.
    """
    AT = 24

    def __init__(self, port, frame):
        self.port, self.frame = int(port), frame
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.own = str(self.listener.getsockname()[1])

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        try:
            while True:
                near = self.listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", self.port))
                threading.Thread(target=self.carry, args=(near, far), daemon=True).start()
        except OSError:
            pass

    def carry(self, near, far):
        """Until both have ended, or one with a reset, which is then the other's, too."""
        with near, far:
            to, first = {near: far, far: near}, {near, far}
            try:
                while to:
                    for sock in select.select(list(to), [], [])[0]:
                        octets = sock.recv(65536)
                        if sock in first and octets.startswith(self.frame):
                            octets = octets[:self.AT] + b"\x09" + octets[self.AT + 1:]
                        first.discard(sock)
                        if octets:
                            to[sock].sendall(octets)
                        else:
                            to.pop(sock).shutdown(socket.SHUT_WR)
            except OSError:
                for sock in (near, far):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


# What is changed, mode, what each end says
CHANGED = ((b"MPA ID Req Frame", "ddp", ["REFUSED"], ["PEER_PARAMETERS"]),
           (b"MPA ID Req Frame", "auto", ["REFUSED"], ["PEER_PARAMETERS", "PEER_NOT_MPA"]),
           (b"MPA ID Rep Frame", "ddp", ["PEER_PARAMETERS"], ["PEER_RESET"]),
           (b"MPA ID Rep Frame", "auto", ["PEER_PARAMETERS"], ["PEER_RESET", "PEER_NOT_MPA"]))


def meddled(warpsock, frame, mode, client, server):
    with Stage(warpsock) as stage:
        serves = stage.start("server", [sys.executable, "-c", SERVER, str(len(server)), "client"],
                             rules=[f"{mode} server * *:*"])
        with Meddler(stage.wait_text("server", limit=60).split()[0], frame) as between:
            stage.run("client", [sys.executable, "-c", CLIENT, between.own, "client", ""],
                      rules=[f"{mode} client * 127.0.0.1:{between.own}"],
                      env={"WARPSOCK_PROBE_TIMEOUT": "60s"})
            stage.end(serves)
        problems = []
        for end, wanted in (("client", client), ("server", server)):
            counted = [name for name in wanted if NUMBERS[name] < 300]
            problems += check(stage, end, wanted, {name: 1 for name in counted})
        return problems


def check(stage, end, wanted, report):
    said = [line.split()[1] for line in stage.text(end).splitlines() if line.startswith("reason")]
    problems = [] if said == [str(NUMBERS[name]) for name in wanted] else \
        [f"the {end} says {said}, not {wanted}", stage.text(end, "err")]
    counted = (stage.report(end) or {"fallbacks": None})["fallbacks"]
    if counted != report:
        problems.append(f"the {end}'s report has {counted}, not {report}")
    return problems


def run(warpsock, case):
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", SERVER, str(case.connections),
                                        case.first], rules=[f"{case.server} server * *:*"])
        port = stage.wait_text("server", limit=60).split()[0]
        stage.run("client", [sys.executable, "-c", CLIENT, port, case.first, case.does],
                  rules=[f"{case.client} client * 127.0.0.1:{port}"],
                  env={"WARPSOCK_START": "2s", "WARPSOCK_URING": "allow",
                       "WARPSOCK_PROBE_TIMEOUT": "2s" if case.first == "client" else "60s"})
        if "no ring here" in stage.text("client", "err"):
            return None
        stage.end(server)
        problems = []
        for i, (end, times) in enumerate((("client", 1), ("server", case.connections))):
            report = {case.reports[i]: times} if case.reports[i] else {}
            problems += check(stage, end, [case.wanted[i]] * times, report)
        return problems


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    for case in CASES:
        problems = run(warpsock, case)
        if problems is None:
            writer.skip(case.name, "the kernel gives no ring")
        else:
            writer.case(case.name, problems)
    writer.case("a server that is slow", slow(warpsock))
    for frame, *case in CHANGED:
        writer.case(f"{frame.decode()} of another version, mode {case[0]}",
                    meddled(warpsock, frame, *case))
    writer.finish()


if __name__ == "__main__":
    main()
