#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reason codes that no other test comes by: each is brought about, and asked for.

    reasons.py WARPSOCK

Each case is a program under warpsock and a peer that is this test, or a process of the same
program. What DDP_INFO says of the socket, or the report, has to be the code.
"""
import os
import socket
import struct
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

# A client that asks, and says what became of it
ASK = """
import socket, struct, sys, time
def info(s):
    return struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2]
s = socket.socket()
try:
    s.connect(("127.0.0.1", int(sys.argv[1])))
    s.sendall(b"x")
    s.settimeout(10)
    s.recv(100)
except OSError as error:
    print("errno", error.errno)
print("reason", info(s), flush=True)
"""
# Both ends in processes of their own; how the second one leaves
PAIR = """
import os, signal, socket, struct, sys, time
def info(s):
    return struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2]
l = socket.create_server(("127.0.0.1", 0))
pid = os.fork()
if not pid:
    s = socket.create_connection(l.getsockname())
    l.close()
    s.sendall(b"x")
    s.recv(1)
    s.sendall(b"z")
    LEAVE
    os._exit(0)
s = l.accept()[0]
s.recv(1)
s.sendall(b"y")
s.recv(1)
try:
    s.setblocking(False)
    try:
        while sys.argv[1]:
            s.send(b"unread" * 1000)
    except BlockingIOError:
        pass
    s.setblocking(True)
    print("got", s.recv(100))
except OSError as error:
    print("errno", error.errno)
print("reason", info(s), flush=True)
os.waitpid(pid, 0)
"""
# sendmsg() is forbidden: a filter of four instructions
CONFINED = """
import ctypes, platform, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
s = socket.socket()
sendmsg = {"x86_64": 46, "aarch64": 211}[platform.machine()]
code = struct.pack("=" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, sendmsg, 0x06, 0, 0, 0x80000000,
                   0x06, 0, 0, 0x7fff0000)
buf = ctypes.create_string_buffer(code)
prog = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(buf)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, prog, 0, 0):
    sys.exit("no filter")
s.connect(("127.0.0.1", int(sys.argv[1])))
"""
REQUEST = 20
CONN_DATA = struct.pack("!BBH3xBQIIQII", 1, 2, 384, 0, 0x10000, 7, 2, 0x100000, 8, 65536)


class Raw:
    """A peer that answers a Request with a Reply of its making, and goes on with what it likes."""

    def __init__(self, private, then=b"", ends=False):
        private = struct.pack("!HH", 1, 0) + private  # IRD and ORD
        self.reply = b"MPA ID Rep Frame" + struct.pack("!BBH", 0x50, 2, len(private)) + private
        self.then, self.ends = then, ends
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = str(self.listener.getsockname()[1])
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            while True:
                conn = self.listener.accept()[0]
                threading.Thread(target=self.answer, args=(conn,), daemon=True).start()
        except OSError:
            pass

    def answer(self, conn):
        with conn:
            head = conn.recv(REQUEST, socket.MSG_WAITALL)
            if not head.startswith(b"MPA ID Req Frame"):
                conn.sendall(b"plain")
                return
            conn.recv(struct.unpack("!H", head[18:20])[0], socket.MSG_WAITALL)
            try:
                conn.sendall(self.reply)
                conn.recv(1)
                conn.sendall(self.then)
                if self.ends:
                    conn.shutdown(socket.SHUT_WR)
                while conn.recv(65536):
                    pass
            except OSError:
                pass


def asked(warpsock, peer, mode):
    """What the client says of its socket, and its report."""
    with Stage(warpsock) as stage:
        rules = [f"{mode} client * 127.0.0.1:{peer.port}"]
        stage.run("client", [sys.executable, "-c", ASK, peer.port], rules=rules,
                  env={"WARPSOCK_PROBE_TIMEOUT": "10s"})
        return stage.text("client"), stage.report("client")


def says(text, number):
    return [] if f"reason {number}\n" in text else [text]


def parameters(warpsock):
    """PEER_PARAMETERS: MPA, and streams of a version that is none."""
    text, report = asked(warpsock, Raw(b"\x09" + CONN_DATA[1:]), "auto")
    problems = says(text, 106)
    if not report or report["fallbacks"] != {"PEER_PARAMETERS": 1}:
        problems.append(str(report))
    return problems


def sandboxed(warpsock):
    """SANDBOXED: a client behind a filter that forbids what start-up needs."""
    with Stage(warpsock) as stage, socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        stage.run("client", [sys.executable, "-c", CONFINED, port], mode="auto")
        report, said = stage.report("client"), stage.text("client", "err")
    return [] if report and report["fallbacks"] == {"SANDBOXED": 1} else [str(report), said]


def fault(warpsock):
    """FAULT: what follows the Reply is an FPDU with a bad CRC."""
    text, _ = asked(warpsock, Raw(CONN_DATA, b"\x00\x04" + b"\xff" * 100), "ddp")
    return says(text, 304)


def left(warpsock, how, number, flood=True):
    with Stage(warpsock) as stage:
        stage.run("pair", [sys.executable, "-c", PAIR.replace("LEAVE", how), "f" * flood])
        return says(stage.text("pair"), number)


def aborted(warpsock):
    """PEER_ABORTED: the peer's program closes with SO_LINGER 0."""
    return left(warpsock, 's.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, '
                'struct.pack("ii", 1, 0)); s.close()', 305)


def reset(warpsock):
    """PEER_RESET: the peer is killed with octets unread."""
    return left(warpsock, "time.sleep(3); os.kill(os.getpid(), signal.SIGKILL)", 301)


def cut(warpsock):
    """PEER_CUT: the peer's FIN comes within an FPDU."""
    text, _ = asked(warpsock, Raw(CONN_DATA, b"\x00\x40half", ends=True), "ddp")
    return says(text, 302)


def closed(warpsock):
    """CLOSED: the peer closes, having read everything."""
    return left(warpsock, "s.close()", 300, flood=False)


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    writer.case("PEER_PARAMETERS", parameters(warpsock))
    writer.case("SANDBOXED", sandboxed(warpsock))
    writer.case("FAULT", fault(warpsock))
    writer.case("PEER_ABORTED", aborted(warpsock))
    writer.case("PEER_RESET", reset(warpsock))
    writer.case("PEER_CUT", cut(warpsock))
    writer.case("CLOSED", closed(warpsock))
    writer.finish()


if __name__ == "__main__":
    main()
