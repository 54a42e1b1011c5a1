#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Closed connections whose peers take their time: lingering.py WARPSOCK.

A server with few descriptors goes on at once, whatever its clients do behind its close(); and what
it wrote arrives, also after longer than WARPSOCK_LINGER, as long as it lives.
"""
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

DESCRIPTORS, CLIENTS = 64, 200
HELD, FILES = 46, 6  # connections that stay, and files besides; few more descriptors are left
SLOWEST = 0.1  # seconds, of a call
OCTETS = 500 << 10  # the ring takes all of it
PIECE, PAUSE = 4096, 0.03  # of the slow network

# Answers each client and closes; says how long the slowest calls were, and how many files are open
SERVER = """
import os, resource, select, socket, sys, time
limit, clients = int(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
listener = socket.create_server(("127.0.0.1", 0), backlog=clients)
print(listener.getsockname()[1], flush=True)
slowest = {"accept": 0, "close": 0}
def timed(name, call):
    begin = time.monotonic()
    result = call()
    slowest[name] = max(slowest[name], time.monotonic() - begin)
    return result
held = []
for _ in range(clients):
    select.select([listener], [], [])
    conn = timed("accept", listener.accept)[0]
    conn.recv(6)
    conn.sendall(b"+OK\\r\\n" + bytes(int(sys.argv[3])))
    timed("close", conn.close)
print("slowest", slowest["accept"], slowest["close"], len(os.listdir("/proc/self/fd")), flush=True)
time.sleep(int(sys.argv[4]))
"""

# They read nothing of what is more than their kernel takes
DEAF = """
import socket, sys, time
conns = []
for _ in range(int(sys.argv[2])):
    conn = socket.socket()
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    conn.connect(("127.0.0.1", int(sys.argv[1])))
    conn.sendall(b"QUIT\\r\\n")
    conns.append(conn)
time.sleep(60)
"""

# All of them stay
QUITTERS = """
import socket, sys, time
conns = []
for _ in range(int(sys.argv[2])):
    conn = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    conn.sendall(b"QUIT\\r\\n")
    assert conn.recv(5) == b"+OK\\r\\n"
    conns.append(conn)
print("quit", flush=True)
time.sleep(60)
"""

# Closes some connections, has as many others as leave room for a few files, and opens these
FULL = """
import resource, socket, sys
limit, closed, held, files = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
listener = socket.create_server(("127.0.0.1", 0), backlog=closed + held)
print(listener.getsockname()[1], flush=True)
conns = []
for number in range(closed + held):
    conns.append(listener.accept()[0])
    conns[-1].recv(6)
    conns[-1].sendall(b"+OK\\r\\n")
    if number < closed:
        conns.pop().close()
try:
    files = [open("/dev/null") for _ in range(files)]
    print("files", len(files), flush=True)
except OSError as error:
    print("files", error, flush=True)
sys.stdin.read()
"""

WRITER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
conn = listener.accept()[0]
conn.sendall(bytes(range(256)) * (int(sys.argv[1]) // 256))
begin = time.monotonic()
conn.close()
print("closed", time.monotonic() - begin, flush=True)
time.sleep(60)
"""

READER = """
import socket, sys, time
conn = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
data, piece = b"", b"x"
try:
    while piece:
        piece = conn.recv(16384)
        data += piece
    how = "end"
except OSError as error:
    how = error.errno
good = data == (bytes(range(256)) * (len(data) // 256 + 1))[:len(data)]
print("read", len(data), how, good, flush=True)
"""


def quitters(warpsock):
    """The clients say QUIT, read nothing more, and stay."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", SERVER, str(DESCRIPTORS),
                                        str(CLIENTS), "0", "60"])
        port = stage.wait_text("server", limit=20).split()[0]
        stage.start("clients", [sys.executable, "-c", QUITTERS, port, str(CLIENTS)])
        said = stage.wait_text("server", "slowest", 60).splitlines()[1].split()
        accepted, closed, files = float(said[1]), float(said[2]), int(said[3])
        problems = []
        if accepted > SLOWEST or closed > SLOWEST:
            problems.append(f"accept() took {accepted:.3f} s, close() {closed:.3f} s")
        if files > DESCRIPTORS // 2:
            problems.append(f"{files} files are open")
        if server.poll() is not None or "descriptor" in stage.text("server", "err"):
            problems.append(stage.text("server", "err"))
        return problems


def deaf(warpsock):
    """LINGER_CROWDED: more than half of the descriptors wait for clients that do not read."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", SERVER, str(DESCRIPTORS),
                                        str(DESCRIPTORS), "200000", "0"],
                             env={"WARPSOCK_LINGER": "1"})
        port = stage.wait_text("server", limit=20).split()[0]
        stage.start("clients", [sys.executable, "-c", DEAF, port, str(DESCRIPTORS)])
        said = stage.wait_text("server", "slowest", 60).splitlines()[1].split()
        problems = []
        if max(float(said[1]), float(said[2])) > SLOWEST:
            problems.append(f"accept() took {said[1]} s, close() {said[2]} s")
        stage.end(server)
        ends = (stage.report("server") or {}).get("fallbacks", {})
        if not ends.get("LINGER_CROWDED"):
            problems.append(f"the report says {ends}")
        return problems


def full(warpsock):
    """A server that needs nearly all of its descriptors itself: those that linger are let go."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", FULL, *map(str, (
            DESCRIPTORS, DESCRIPTORS // 4, HELD, FILES))], stdin=subprocess.PIPE)
        port = stage.wait_text("server", limit=20).split()[0]
        number = DESCRIPTORS // 4 + HELD
        stage.start("clients", [sys.executable, "-c", QUITTERS, port, str(number)])
        said = stage.wait_text("server", "files", 60).splitlines()[1]
        server.stdin.close()
        return [] if said == f"files {FILES}" else [said]


def copy(source, sink, pause):
    try:
        while octets := source.recv(PIECE):
            sink.sendall(octets)
            time.sleep(pause)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def network(listener, port):
    """A slow one, between a client and the server."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)
    server.connect(("127.0.0.1", port))
    client = listener.accept()[0]
    threading.Thread(target=copy, args=(client, server, 0), daemon=True).start()
    threading.Thread(target=copy, args=(server, client, PAUSE), daemon=True).start()


def slow(warpsock):
    """What was written takes longer than WARPSOCK_LINGER to arrive."""
    with Stage(warpsock) as stage, socket.create_server(("127.0.0.1", 0)) as listener:
        stage.start("writer", [sys.executable, "-c", WRITER, str(OCTETS)],
                    env={"WARPSOCK_LINGER": "1s"})
        port = int(stage.wait_text("writer", limit=20).split()[0])
        reader = stage.start("reader", [sys.executable, "-c", READER,
                                        str(listener.getsockname()[1])])
        network(listener, port)
        closed = float(stage.wait_text("writer", "closed", 40).splitlines()[1].split()[1])
        begin = time.monotonic()
        said = stage.wait_text("reader", "\n", 60)
        spent = time.monotonic() - begin
        stage.end(reader)
        problems = [] if said == f"read {OCTETS} end True\n" else [said]
        if closed > SLOWEST:
            problems.append(f"close() took {closed:.3f} s")
        if spent < 1.5:
            problems.append(f"the network was quick: {spent:.3f} s")
        return problems


def spent_by(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(warpsock):
    """Lingering connections to which nothing happens take no processor time."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", SERVER, "8192", "500", "0", "60"])
        port = stage.wait_text("server", limit=20).split()[0]
        stage.start("clients", [sys.executable, "-c", QUITTERS, port, "500"])
        stage.wait_text("clients", "quit", 60)
        time.sleep(0.5)
        before = spent_by(server.pid)
        time.sleep(3)
        spent = spent_by(server.pid) - before
        return [] if spent <= 0.03 else [f"they took {spent} s in 3 s"]


def main():
    warpsock, writer = sys.argv[1], tap.Writer()
    for name, case in (("clients that say QUIT and stay", quitters),
                       ("LINGER_CROWDED: clients that do not read", deaf),
                       ("files of a server with few descriptors left", full),
                       ("a network that takes longer than WARPSOCK_LINGER", slow),
                       ("lingering connections that rest", idle)):
        try:
            writer.case(name, case(warpsock))
        except RuntimeError as error:
            writer.case(name, [str(error)])
    writer.finish()


if __name__ == "__main__":
    main()
