#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Connections that are not decided yet: undecided.py WARPSOCK.

Servers that accept and do something else, peers that are silent or slow in their start-up, a
client whose peer is no DDP server, and what all of that leaves behind.
"""
import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage, differences  # noqa: E402

REQUEST = b"MPA ID Req Frame" + bytes([0x40, 1, 0, 4]) + b"abcd"  # a whole one
LATE = 8  # what takes a moment takes less on a busy machine, too

# Accepts so many connections before it reads the first octet of one
PATIENT = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0), backlog=2000)
print(listener.getsockname()[1], flush=True)
conns = [listener.accept()[0] for _ in range(int(sys.argv[1]))]
for conn in conns:
    conn.sendall(conn.recv(10, socket.MSG_WAITALL))
for conn in conns:
    assert conn.recv(1) == b""
"""

# Opens all of them one after another, as one who waits for each
CROWD = """
import socket, sys, time
begin, conns = time.monotonic(), []
for i in range(int(sys.argv[2])):
    conns.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
print(time.monotonic() - begin, flush=True)
for conn in conns:
    conn.sendall(b"0123456789")
for conn in conns:
    assert conn.recv(10, socket.MSG_WAITALL) == b"0123456789"
"""

# Says what becomes of each connection, one after another
WITNESS = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    conn = listener.accept()[0]
    conn.settimeout(20)
    try:
        print("got", conn.recv(100), flush=True)
        conn.sendall(b"heard")
    except OSError as error:
        print("error", error.errno, flush=True)
    conn.close()
"""


def crowd(warpsock, mode, number):
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", PATIENT, str(number)], mode=mode)
        port = stage.wait_text("server").strip()
        client = [sys.executable, "-c", CROWD, port, str(number)]
        status = [stage.run("client", client, mode=mode), stage.end(server, 30)]
        took = float(stage.text("client") or "inf")
        problems = [] if status == [0, 0] else [f"status {status}", stage.text("client", "err"),
                                                stage.text("server", "err")]
        problems += [] if took < LATE + 0.01 * number else [f"it took {took} s"]
        return problems + differences(stage.report("client"), {
            "connections": {"software": number, "kernel": 0, "verbs": 0, "tcp": 0}})


def meet(warpsock, mode, say, wanted, least=0.0, start="1s"):
    """What a server that reads sees of a peer that talks as @say does; when, and that others are
    served behind it."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", WITNESS], mode=mode,
                             env={"WARPSOCK_START": start})
        port = int(stage.wait_text("server").strip())
        begin = time.monotonic()
        with socket.create_connection(("127.0.0.1", port)) as peer:
            say(peer)
            stage.wait_text("server", "\n", 1)
            while len(stage.text("server").splitlines()) < 2:
                time.sleep(0.01)
                if time.monotonic() - begin > 2 * LATE:
                    return ["the server hears nothing"]
            took = time.monotonic() - begin
        seen = stage.text("server").splitlines()[1]
        problems = [] if seen == wanted else [f"the server says {seen}, not {wanted}"]
        problems += [] if least <= took < least + LATE else [f"after {took} s"]
        code = ("import socket; s = socket.create_connection(('127.0.0.1', %d)); "
                "s.sendall(b'hi'); print(s.recv(9))" % port)
        stage.run("other", [sys.executable, "-c", code], mode=mode)
        problems += [] if "heard" in stage.text("other") else ["another client is not served"]
        server.terminate()
        return problems


def slowly(peer):
    """An octet each 0.2 s: the last of the Request would come after 5 s."""
    try:
        for octet in REQUEST[:23]:
            peer.sendall(bytes([octet]))
            time.sleep(0.2)
    except OSError:
        pass


def in_pieces(peer):
    """A whole key, and the rest too late."""
    peer.sendall(REQUEST[:18])


def silent_server(warpsock, env, code):
    """A plain server that takes the Request and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener, Stage(warpsock) as stage:
        port = listener.getsockname()[1]
        status = stage.run("client", [sys.executable, "-c", code, str(port)], env=env)
        problems = [] if status == 0 else [f"status {status}"]
        said = stage.text("client", "err")
        for wanted in (f"127.0.0.1:{port}", "PROBE_TIMEOUT", "Run the peer under warpsock"):
            problems += [] if wanted in said else [f"no {wanted!r} in the log"]
        return problems + ([said] if problems else [])


LATER = """
import errno, select, socket, sys, time
begin = time.monotonic()
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
assert time.monotonic() - begin < 0.9, "connect() has waited"
assert s.send(b"x" * 1000) == 1000
poller = select.poll()
poller.register(s, select.POLLIN)
got = poller.poll(20000)
assert got and got[0][1] & select.POLLERR, got
assert time.monotonic() - begin > 0.9
assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
assert s.recv(10) == b""
"""

UNBLOCKED = """
import errno, select, socket, sys, time
begin = time.monotonic()
s = socket.socket()
s.setblocking(False)
assert s.connect_ex(("127.0.0.1", int(sys.argv[1]))) == errno.EINPROGRESS
ep = select.epoll()
ep.register(s, select.EPOLLOUT | select.EPOLLET)
assert ep.poll(20)[0][1] == select.EPOLLOUT
assert time.monotonic() - begin < 0.9
assert s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
assert s.send(b"x" * 70000) == 65536, "the hold"
got = ep.poll(20)
assert got[0][1] & select.EPOLLERR, got
s.setblocking(True)
try:
    s.recv(1)
    raise AssertionError("no error")
except ConnectionResetError:
    pass
"""

STRICT = """
import errno, socket, sys, time
begin = time.monotonic()
s = socket.socket()
assert s.connect_ex(("127.0.0.1", int(sys.argv[1]))) == errno.ETIMEDOUT
assert time.monotonic() - begin > 0.9
"""

# The worker thread comes with an undecided connection, and goes when there is none
THREADS = """
import os, socket, time
tasks = lambda: len(os.listdir("/proc/self/task"))
listener = socket.create_server(("127.0.0.1", 0))
pid = os.fork()
if not pid:
    peer = socket.socket()
    peer.connect(listener.getsockname())
    time.sleep(1)
    os._exit(0)
listener.settimeout(20)
conn = listener.accept()[0]
os.waitpid(pid, 0)
end = time.monotonic() + 20
while tasks() > 1 and time.monotonic() < end:
    time.sleep(0.05)
assert tasks() == 1, tasks()
assert conn.recv(1) == b""
"""


# Speaks first, without waiting
SPEAKER = """
import select, socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
conn = listener.accept()[0]
conn.setblocking(False)
poller = select.poll()
poller.register(conn, select.POLLOUT)
begin = time.monotonic()
room, sent = bool(poller.poll(0)), "EAGAIN"
try:
    sent = conn.send(b"hello")
except BlockingIOError:
    pass
print("at once:", room, sent, time.monotonic() - begin < 1, "said", flush=True)
if sys.argv[1] == "auto":
    poller.poll(20000)
    conn.sendall(b"hello")
sys.stdin.read(1)
"""


def speaks_first(warpsock, mode, wanted):
    """A server that does not wait, and whose client is plain and says nothing."""
    with Stage(warpsock) as stage:
        stage.start("server", [sys.executable, "-c", SPEAKER, mode], mode=mode,
                    env={"WARPSOCK_GRACE": "3s", "WARPSOCK_START": "20s"}, stdin=subprocess.PIPE)
        port = int(stage.wait_text("server").strip())
        with socket.create_connection(("127.0.0.1", port), timeout=20) as peer:
            said = stage.wait_text("server", "said")
            problems = [] if wanted in said else [said]
            if mode == "auto":
                problems += [] if peer.recv(10) == b"hello" else ["the client hears nothing"]
        return problems


def alone(warpsock, mode):
    with Stage(warpsock) as stage:
        status = stage.run("both", [sys.executable, "-c", THREADS], mode=mode)
        return [] if status == 0 else [f"status {status}", stage.text("both", "err")]


# Ends at once, and stays until it is told to go
SHY = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
conn = listener.accept()[0]
if sys.argv[1] == "close":
    conn.close()
else:
    conn.shutdown(socket.SHUT_WR)
sys.stdin.read(1)
"""


def shy(warpsock, how):
    """A plain client that says nothing is told of its server's end."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", SHY, how], mode="auto",
                             stdin=subprocess.PIPE)
        port = int(stage.wait_text("server").strip())
        with socket.create_connection(("127.0.0.1", port), timeout=LATE) as peer:
            try:
                problems = [] if peer.recv(1) == b"" else ["it hears something"]
            except OSError as error:
                problems = [str(error)]
        server.stdin.close()
        return problems


# Both ends in one process: a client that has gone before its server accepts
ITSELF = """
import socket
for say in ([], [b"abc"]):
    for way in (lambda sock: sock.close(), lambda sock: sock.shutdown(socket.SHUT_RDWR)):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            for octets in say:
                client.send(octets)
            way(client)
            server = listener.accept()[0]
            got = [server.recv(5), server.recv(5)]
            assert got == [*say, b"", b""][:2], got
"""


def itself(warpsock, mode):
    with Stage(warpsock) as stage:
        status = stage.run("both", [sys.executable, "-c", ITSELF], mode=mode)
        return [] if status == 0 else [f"status {status}", stage.text("both", "err")]


# Accepts when its peer has gone
AFTERWARDS = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
sys.stdin.read(1)
conn = listener.accept()[0]
conn.settimeout(20)
try:
    print("got", conn.recv(100))
except ConnectionResetError:
    print("reset")
"""

KILLED = """
import os, signal, socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
assert s.send(b"accepted") == 8
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(warpsock, mode):
    """Octets that a client held when it was killed are lost, and no end of the stream hides it."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", AFTERWARDS], mode=mode,
                             stdin=subprocess.PIPE)
        port = stage.wait_text("server").strip()
        stage.run("client", [sys.executable, "-c", KILLED, port], mode=mode)
        server.stdin.write(b"x")
        server.stdin.close()
        status = stage.end(server, 30)
        said = stage.text("server").splitlines()[1:]
        return [] if said == ["reset"] else [f"status {status}: {said}",
                                             stage.text("server", "err")]


# Accepts all that comes in a thread of its own, and serves the last one
ABANDONED = """
import socket, struct, sys, time
place = "127.0.0.1", int(sys.argv[1])
first = socket.socket()
first.setblocking(False)
first.connect_ex(place)
if sys.argv[2] == "abort":
    first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
first.close()
begun = time.monotonic()
second = socket.create_connection(place)
second.sendall(b"x")
print(second.recv(1).decode(), time.monotonic() - begun < 5)
"""
# Which serves one client after the other
ONE_BY_ONE = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client = server.accept()[0]
    try:
        client.sendall(client.recv(1))
    except OSError:
        pass
    client.close()
"""


def abandoned(warpsock, how):
    """A client that gives up the connection by which it asked: the next one is not kept waiting."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", ONE_BY_ONE], mode="auto")
        port = stage.wait_text("server").split()[0]
        stage.run("client", [sys.executable, "-c", ABANDONED, port, how], mode="auto")
        server.terminate()
        said = stage.text("client").split()
    return [] if said == ["x", "True"] else [f"the client says: {said}"]


# Its listener ends, and its backlog has a connection
FORSAKES = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(0.5)
server.close()
sys.stdin.read()
"""
FORSAKEN = """
import errno, select, socket, sys, time
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"x")
poll = select.poll()
poll.register(client, 0)
events = poll.poll(8000)
try:
    client.recv(1)
except OSError as error:
    print(errno.errorcode[error.errno], events[0][1] == select.POLLERR | select.POLLHUP)
"""


def forsaken(warpsock):
    """Bytes were taken of a client, and nobody will ever accept it: that is told as over TCP."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", FORSAKES], mode="auto",
                             stdin=subprocess.PIPE)
        port = stage.wait_text("server").strip()
        stage.run("client", [sys.executable, "-c", FORSAKEN, port], mode="auto")
        server.stdin.close()
        stage.end(server)
        said = stage.text("client").split()
        return [] if said == ["ECONNRESET", "True"] else [f"the client says: {said}",
                                                          stage.text("client", "err")]


# What came before accept()
LOOKS = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(0.5)
client = server.accept()[0]
try:
    came = client.recv(3, socket.MSG_DONTWAIT)
except BlockingIOError:
    came = b""
print((came + client.recv(3, socket.MSG_WAITALL)) if len(came) < 3 else came)
client.sendall(b"x")
"""
CAME_BEFORE = """
import socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"abc")
client.recv(1)
"""
# Closes with a byte of the client's unread
CLOSES = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(0.5)
server.accept()[0].close()
sys.stdin.read()
"""
CLOSED_ON = """
import socket, sys
client = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
client.sendall(b"abc")
try:
    print("the end" if not client.recv(1) else "a byte")
except ConnectionResetError:
    print("a reset")
"""


def talk(warpsock, server, client):
    """Both in mode on: what each of them says, without the port."""
    with Stage(warpsock) as stage:
        serves = stage.start("server", [sys.executable, "-c", server], stdin=subprocess.PIPE)
        port = stage.wait_text("server").strip()
        stage.run("client", [sys.executable, "-c", client, port])
        serves.stdin.close()
        stage.end(serves)
        return stage.text("server").splitlines()[1:], stage.text("client").splitlines()


def first_look(warpsock):
    said = talk(warpsock, LOOKS, CAME_BEFORE)[0]
    return [] if said == ["b'abc'"] else [f"the server says: {said}"]


def closed_unread(warpsock):
    said = talk(warpsock, CLOSES, CLOSED_ON)[1]
    return [] if said in (["the end"], ["a reset"]) else [f"the client says: {said}"]


FLOODED = """
import socket
listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
print(listener.getsockname()[1], flush=True)
conns = []
while True:
    conns.append(listener.accept()[0])
    if len(conns) == 4200:
        print("full", flush=True)
    if len(conns) > 4200:
        conns[-1].sendall(conns[-1].recv(10))
"""


def flood(warpsock):
    """More silent peers than may be undecided: the oldest are reset, and a client is served."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 10000:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (10000, hard))
    peers = []
    try:
        with Stage(warpsock) as stage:
            server = stage.start("server", [sys.executable, "-c", FLOODED],
                                 env={"WARPSOCK_START": "60s"})
            port = int(stage.wait_text("server").strip())
            for _ in range(4200):
                peers.append(socket.create_connection(("127.0.0.1", port)))
            stage.wait_text("server", "full", 60)
            peers[0].settimeout(20)
            peers[-1].setblocking(False)
            problems = ["the first is not reset"]
            try:
                peers[0].recv(1)
            except ConnectionResetError:
                problems = []
            try:
                peers[-1].recv(1)
                problems.append("the last has ended")
            except BlockingIOError:
                pass
            code = ("import socket; s = socket.create_connection(('127.0.0.1', %d)); "
                    "s.sendall(b'hi'); print(s.recv(9))" % port)
            stage.run("client", [sys.executable, "-c", code])
            problems += [] if "hi" in stage.text("client") else ["a client is not served",
                                                                 stage.text("client", "err")]
            server.terminate()
            return problems
    finally:
        for peer in peers:
            peer.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def main():
    # Of each server's threads and descriptors none is to answer other hosts by
    os.environ["WARPSOCK_ASK"] = "0"
    warpsock = sys.argv[1]
    writer = tap.Writer()
    for mode in ("on", "auto"):
        for number in (1, 10, 1000):
            writer.case(f"a server that accepts {number} before it reads, mode {mode}",
                        crowd(warpsock, mode, number))
    reset, start = "error 104", {"WARPSOCK_START": "1s"}
    for name, say in (("is silent", lambda peer: None),
                      ("sends half a key", lambda peer: peer.sendall(REQUEST[:8])),
                      ("sends an octet now and then", slowly),
                      ("sends its Request in pieces", in_pieces)):
        writer.case(f"a peer that {name}, mode on",
                    meet(warpsock, "on", say, reset, 0.9))
    writer.case("a peer that ends and has said nothing, mode on",
                meet(warpsock, "on", lambda peer: peer.shutdown(socket.SHUT_WR), "got b''"))
    writer.case("a peer that says M, mode auto",
                meet(warpsock, "auto", lambda peer: peer.sendall(b"M"), "got b'M'"))
    writer.case("a peer that sends its Request in pieces, mode auto",
                meet(warpsock, "auto", in_pieces, reset, 0.9))
    writer.case("a server that speaks first has room at once, mode on",
                speaks_first(warpsock, "on", "at once: True 5 True"))
    writer.case("a server that speaks first and does not block goes on, mode auto",
                speaks_first(warpsock, "auto", "at once: False EAGAIN True"))
    for how in ("close", "shutdown"):
        writer.case(f"a plain peer whose server ends at once by {how}(), mode auto",
                    shy(warpsock, how))
    writer.case("a server that never answers: an error later",
                silent_server(warpsock, start, LATER))
    writer.case("the same for who does not wait", silent_server(warpsock, start, UNBLOCKED))
    writer.case("the same where connect() waits",
                silent_server(warpsock, {**start, "WARPSOCK_CONNECT": "strict"}, STRICT))
    for mode in ("on", "auto"):
        writer.case(f"no thread stays, mode {mode}", alone(warpsock, mode))
        writer.case(f"a client of one's own that goes at once, mode {mode}",
                    itself(warpsock, mode))
    for how in ("close", "abort"):
        writer.case(f"a client that gives up its first connection by {how}, mode auto",
                    abandoned(warpsock, how))
    writer.case("bytes for a listener that ends without accepting, mode auto", forsaken(warpsock))
    writer.case("a first look behind accept() may find nothing yet", first_look(warpsock))
    writer.case("a server closes with bytes unread that its client had written before",
                closed_unread(warpsock))
    writer.case("a client that is killed while it holds octets", killed(warpsock, "on"))
    problems = flood(warpsock)
    if problems is None:
        writer.skip("more silent peers than may be undecided",
                    "this host allows too few descriptors")
    else:
        writer.case("more silent peers than may be undecided", problems)
    writer.finish()


if __name__ == "__main__":
    main()
