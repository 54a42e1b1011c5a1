#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client in mode auto, and a listener of its own process that another one serves plainly.

    auto_own.py WARPSOCK

    client.py, under warpsock        its child, without
      listens, connects: at once
      its octets, held
      Request -------------------->  takes it for anything
      reset
      its octets ----------------->  gets those, in a connection of their own

connect() does not wait for a listener of its own process, so octets are taken before it is known
whom they go to. Each has to arrive once, whatever the program does meanwhile.
"""
import hashlib
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import Stage, differences  # noqa: E402

# A listener that a process without DDP inherits and serves
FOREIGN = """
import hashlib, signal, socket, sys
signal.alarm(60)
listener = socket.socket(fileno=int(sys.argv[1]))
print("serving", flush=True)


def serve(conn):
    got = b""
    while data := conn.recv(65536):
        if not data.startswith(b"MPA ID Req Frame"):
            got += data
            if sys.argv[2] != "counts":
                conn.sendall(data)
        elif sys.argv[3] == "closes":
            return
        elif sys.argv[3] == "garbage":
            conn.sendall(b"HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
    if got and sys.argv[2] == "counts":
        print(len(got), hashlib.sha256(got).hexdigest(), flush=True)
        sys.exit()


while True:
    with listener.accept()[0] as conn:
        try:
            serve(conn)
        except ConnectionResetError:
            pass  # behind a Request
"""
# Its parent has the listener, too, and connects to it
BEGIN = """
import os, socket, struct, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and k[:8] != "WARPSOCK"}
def serve(does, **more):
    return subprocess.Popen([sys.executable, "-c", sys.argv[1], str(listener.fileno()), does,
                             sys.argv[2]], env=env, pass_fds=[listener.fileno()], **more)
data = bytes(i * 7 & 0xff for i in range(int(sys.argv[3])))
"""
TALK = BEGIN + """
child = serve("echoes", stdout=subprocess.PIPE)
child.stdout.readline()
for _ in range(2):
    with socket.create_connection(listener.getsockname()) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        back = b""
        while part := sock.recv(65536):
            back += part
        print(len(back), back == data)
child.kill()
"""
# Writes, and LEAVE: the child tells what it got
LEAVING = BEGIN + """
child = serve("counts")
sock = socket.create_connection(listener.getsockname())
sock.sendall(data)
LEAVE
"""
LEAVES = {
    "closes": "sock.close(); child.wait()",
    "ends": "os._exit(0)",
    "returns": "",
    "closes with a time":
        "sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 20)); "
        "sock.close(); os._exit(0)",
    "leaves it to another number": "other = sock.dup(); sock.close(); other.close(); child.wait()",
    "shuts it, and waits for the server": "sock.shutdown(socket.SHUT_WR); child.wait()",
    "leaves it to a child": "if os.fork(): os._exit(0)\nsock.close()",
}


def digest(octets):
    return hashlib.sha256(bytes(i * 7 & 0xff for i in range(octets))).hexdigest()


def until(condition, limit=30):
    end = time.monotonic() + limit
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


def tcp(**fallbacks):
    return {"connections": {"software": 0, "kernel": 0, "verbs": 0, "tcp": sum(fallbacks.values())},
            "fallbacks": fallbacks, "bytes": {"tx": 0, "rx": 0}, "errors": 0}


def patience(kind):
    """Only silence is to wait for; a busy machine may be slow with an answer."""
    return {"WARPSOCK_START": "1s" if kind == "silent" else "30s"}


def talks(warpsock, kind, reason, octets):
    with Stage(warpsock) as stage:
        status = stage.run("client", [sys.executable, "-c", TALK, FOREIGN, kind, str(octets)],
                           mode="auto", limit=60, env=patience(kind))
        problems = [] if status == 0 and stage.text("client").split() == \
            [str(octets), "True"] * 2 else \
            [f"status {status}", stage.text("client"), stage.text("client", "err")]
        return problems + differences(stage.report("client"), tcp(**{
            reason: 1, "PEER_KNOWN_PLAIN": 1}))


def leaves(warpsock, how, kind, reason, octets):
    """Nothing that was taken is lost, though the program never asks again."""
    code = LEAVING.replace("LEAVE", LEAVES[how])
    with Stage(warpsock) as stage:
        status = stage.run("client", [sys.executable, "-c", code, FOREIGN, kind, str(octets)],
                           mode="auto", limit=60, env=patience(kind))
        until(lambda: f"\n{octets} " in stage.text("client"))
        said = stage.text("client")
        problems = [] if status == 0 and f"\n{octets} {digest(octets)}" in said else \
            [f"status {status}", said, stage.text("client", "err")]
        return problems + differences(stage.report("client"), tcp(**{reason: 1}))


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    kinds = (("garbage", "PEER_NOT_MPA"), ("closes", "PEER_CLOSED"), ("silent", "PROBE_TIMEOUT"))
    for kind, reason in kinds:
        for octets in (5, 60_000):
            writer.case(f"{octets} octets, and the server is {kind}",
                        talks(warpsock, kind, reason, octets))
    for how in LEAVES:
        for kind, reason in kinds if how == "closes" else kinds[:1]:
            writer.case(f"the program {how}, and the server is {kind}",
                        leaves(warpsock, how, kind, reason, 60_000))
    writer.finish()


if __name__ == "__main__":
    main()
