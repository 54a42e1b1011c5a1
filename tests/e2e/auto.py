#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Clients in mode auto, and servers of every kind: DDP where it is spoken, and where it is not,
plain TCP with each octet exactly once.

    auto.py WARPSOCK

    client.py, under warpsock       a server
      Request ------------------>   echoes it | answers something | is silent | is under warpsock
      reset
      its octets --------------->   gets those, in a connection of their own
"""
import errno
import http.server
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import Stage, differences, free_port, in_time  # noqa: E402

SERVER, CLIENT = ([sys.executable, str(HERE / "programs" / name)]
                  for name in ("server.py", "client.py"))
WAYS = ("blocking", "poll", "select", "epoll", "epoll_et", "set", "nest", "again", "write", "dup",
        "threads")
OCTETS = 200_000
REQUEST = b"MPA ID Req Frame"
RESET = (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN)


class Plain:
    """A server that has never heard of DDP, and remembers what it got in each connection."""

    def __init__(self, kind, host="127.0.0.1"):
        self.kind, self.host = kind, host
        self.got = []
        self.listener = self.listen(0)
        self.port = str(self.listener.getsockname()[1])
        threading.Thread(target=self.accept, daemon=True).start()

    def listen(self, port):
        return socket.create_server(
            (self.host, port), family=socket.AF_INET6 if ":" in self.host else socket.AF_INET)

    def accept(self):
        while True:
            try:
                conn = self.listener.accept()[0]
            except OSError:
                return
            self.got.append(bytearray())
            if self.kind == "restarts" and len(self.got) == 1:
                self.restart(conn)
                continue
            threading.Thread(target=self.serve, args=(conn, self.got[-1]), daemon=True).start()

    def restart(self, conn):
        """As iperf3: what it cannot make out ends it, and it begins anew."""
        self.listener.close()
        with conn:
            self.got[0] += conn.recv(65536)
            conn.sendall(b"what?")
            time.sleep(0.3)
        self.listener = self.listen(int(self.port))

    def serve(self, conn, got):
        try:
            with conn:
                while data := conn.recv(65536):
                    request = not got and data.startswith(REQUEST)
                    got += data
                    self.answer(conn, data, request)
        except OSError:
            pass

    def answer(self, conn, data, request):
        if not request or self.kind == "echo":
            conn.sendall(data)
        elif self.kind == "garbage":
            conn.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        elif self.kind == "short":
            conn.sendall(b"-ERR\r\n")
        elif self.kind == "closes":
            conn.shutdown(socket.SHUT_RDWR)
        elif self.kind == "resets":
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            conn.close()
        elif self.kind == "rejects":
            conn.sendall(b"MPA ID Rep Frame" + bytes([0x60, 1, 0, 0]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


# What the server does with a Request, and what the client's report calls that
KINDS = (("echo", "PEER_NOT_MPA"), ("garbage", "PEER_NOT_MPA"), ("short", "PEER_NOT_MPA"),
         ("silent", "PROBE_TIMEOUT"), ("closes", "PEER_CLOSED"), ("resets", "PEER_CLOSED"),
         ("rejects", "REFUSED"), ("restarts", "PEER_NOT_MPA"))


# As DDP_INFO gives them
NUMBERS = {"PEER_KNOWN_PLAIN": 5, "PEER_NOT_MPA": 100, "PROBE_TIMEOUT": 101, "REFUSED": 102,
           "GRACE_EXPIRED": 103, "PEER_CLOSED": 107}


def tcp(**fallbacks):
    return {"connections": {"software": 0, "kernel": 0, "verbs": 0, "tcp": sum(fallbacks.values())},
            "fallbacks": fallbacks, "bytes": {"tx": 0, "rx": 0}, "errors": 0}


def talk(stage, way, host, port, connections, rules, octets=OCTETS, bind=(), env=None):
    status = stage.run("client", [*CLIENT, way, host, port, str(octets), str(connections), *bind],
                       rules=rules, limit=40, env=env)
    return [] if status == 0 else [f"status {status}: {stage.text('client', 'err')}"]


def fall_back(warpsock, kind, reason, way, host="127.0.0.1", bind=()):
    """Three connections. The first finds out, the others know."""
    with Stage(warpsock) as stage, Plain(kind, host) as server:
        rule = f"auto client * {f'[{host}]' if ':' in host else host}:{server.port}"
        number = 1 if bind else 3
        # Only silence is to wait for; a busy machine may be slow with an answer
        env = {} if kind == "silent" else {"WARPSOCK_PROBE_TIMEOUT": "10s"}
        problems = talk(stage, way, host, server.port, number, [rule], bind=bind, env=env)
        said = [line.split()[1] for line in stage.text("client").splitlines()
                if line.startswith("reason")]
        numbers = [str(NUMBERS[reason]), *[str(NUMBERS["PEER_KNOWN_PLAIN"])] * (number - 1)]
        # To write nothing waits for nothing, so it is not known yet then
        if said != numbers and way != "write":
            problems.append(f"DDP_INFO gives {said}, not {numbers}")
        known = {} if bind else {"PEER_KNOWN_PLAIN": 2}
        problems += differences(stage.report("client"), tcp(**{reason: 1}, **known))
        got = [bytes(octets) for octets in server.got]
        wanted = [bytes((i * 7 + n) & 0xff for i in range(OCTETS)) for n in range(number)]
        if not got or not got[0].startswith(REQUEST):
            problems.append("there was no Request")
        if got[1:] != wanted:
            problems.append(f"connections with {[len(octets) for octets in got]} octets")
    return problems


def no_reason(warpsock):
    """No rule names it, and it never answered: not an octet of ours, for a server of any kind."""
    with Stage(warpsock) as stage, Plain("echo") as server:
        problems = talk(stage, "blocking", "127.0.0.1", server.port, 2, ["auto * * *:*"])
        problems += differences(stage.report("client"), tcp(PEER_UNKNOWN=2))
        if any(REQUEST in octets for octets in server.got):
            problems.append("it got a Request")
    return problems


# More servers at one port than there are names to tell of them
MANY = """
import os, signal, socket, sys
at = ("127.0.0.1", int(sys.argv[1]))
pids = []
for _ in range(8):
    pid = os.fork()
    if not pid:
        listener = socket.create_server(at, reuse_port=True)
        print("listening", flush=True)
        while True:
            with listener.accept()[0] as conn:
                while data := conn.recv(100):
                    conn.sendall(data)
    pids.append(pid)
for line in sys.stdin:
    for pid in pids[:5]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    del pids[:5]
    print("left", flush=True)
for pid in pids:
    os.kill(pid, signal.SIGKILL)
"""


def many_listeners(warpsock):
    """The names are taken over when those who had them have ended."""
    port = str(free_port())
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", MANY, port], mode="auto",
                             stdin=subprocess.PIPE)
        for _ in range(200):
            if stage.text("server").count("listening") == 8:
                break
            time.sleep(0.05)
        problems = talk(stage, "blocking", "127.0.0.1", port, 1, ["auto client * *:*"])
        problems += differences(stage.report("client"), {"connections": {
            "software": 1, "kernel": 0, "verbs": 0, "tcp": 0}})
        server.stdin.write(b"kill\n")
        server.stdin.flush()
        stage.wait_text("server", "left")
        # At the first connection of any of them, if none of these had a name
        for _ in range(2):
            problems += talk(stage, "blocking", "127.0.0.1", port, 1, ["auto client * *:*"])
        problems += differences(stage.report("client"), {"connections": {
            "software": 1, "kernel": 0, "verbs": 0, "tcp": 0}})
        server.stdin.close()
        stage.end(server, 10)
    return problems


def closed(warpsock, way):
    """As without Warpsock, and at once."""
    with Stage(warpsock) as stage:
        port = str(free_port())
        begin = time.monotonic()
        status = stage.run("client", [*CLIENT, way, "127.0.0.1", port, "1", "1"],
                           rules=[f"auto client * 127.0.0.1:{port}"])
        error = stage.text("client", "err")
        problems = [] if status == 1 and "[Errno 111]" in error else [f"{status}: {error}"]
        problems += [] if time.monotonic() - begin < 10 else ["it took long"]
        problems += differences(stage.report("client"), {"errors": 0})
    return problems


def ddp(warpsock, way, server_rule):
    with Stage(warpsock) as stage:
        server = stage.start("server", [*SERVER, "127.0.0.1", "3"], rules=[server_rule])
        port = stage.wait_text("server").strip()
        problems = talk(stage, way, "127.0.0.1", port, 3, [f"auto client * 127.0.0.1:{port}"],
                        env={"WARPSOCK_PROBE_TIMEOUT": "10s"})
        stage.end(server, 10)
        for name in ("client", "server"):
            problems += differences(stage.report(name), {
                "connections": {"software": 3, "kernel": 0, "verbs": 0, "tcp": 0},
                "fallbacks": {}, "bytes": {"tx": 3 * OCTETS, "rx": 3 * OCTETS}, "errors": 0})
    return problems


class Greeter:
    """A server in mode auto that speaks first, and a peer that is this test itself."""

    def __init__(self, warpsock, grace):
        self.stage = Stage(warpsock)
        self.server = self.stage.start("server", [*SERVER, "127.0.0.1", "1", "greeting", "0.1"],
                                       mode="auto", env={"WARPSOCK_GRACE": grace})
        self.port = int(self.stage.wait_text("server"))
        self.peer = socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.peer.close()
        self.stage.__exit__()

    def greeted(self):
        got = self.peer.recv(100)
        return [] if got == b"welcome\n" else [f"greeted with {got}"]

    def says(self, octets):
        """What comes back of them, to the end or the reset."""
        back = b""
        try:
            self.peer.sendall(octets)
            self.peer.shutdown(socket.SHUT_WR)
            while data := self.peer.recv(65536):
                back += data
        except OSError as error:
            return error.errno
        return back

    def counts(self, errors=0, **fallbacks):
        self.stage.end(self.server, 10)
        return differences(self.stage.report("server"), {
            "connections": {"software": 0, "kernel": 0, "verbs": 0, "tcp": 1},
            "fallbacks": fallbacks, "errors": errors})


def greeting_plain(warpsock):
    with Greeter(warpsock, "5ms") as g:
        problems = g.greeted()
        back = g.says(b"hello" * 1000)
        problems += [] if back == b"hello" * 1000 else [f"came back: {back}"]
        problems += g.counts(GRACE_EXPIRED=1)
        said = g.stage.text("server")
        return problems + ([] if f"reason {NUMBERS['GRACE_EXPIRED']}" in said else [said])


def greeting_by_itself(warpsock):
    """How long that is if nobody says it: 5 ms, and what a busy machine adds."""
    with Greeter(warpsock, "auto") as g:
        begin = time.monotonic()
        problems = g.greeted()
        took = time.monotonic() - begin
        g.says(b"hello")
        problems += g.counts(GRACE_EXPIRED=1)
    return problems, [] if took < 0.5 else [f"it took {took} s"]


def greeting_prefix(warpsock):
    """What begins like a Request and does not go on as one is the program's after the grace."""
    with Greeter(warpsock, "5ms") as g:
        g.peer.sendall(REQUEST[:9])
        wanted, got = b"welcome\n" + REQUEST[:9], b""
        while len(got) < len(wanted):
            got += g.peer.recv(100)
        problems = [] if got == wanted else [f"greeted with {got}"]
        back = g.says(b"Ack")
        problems += [] if back == b"Ack" else [f"came back: {back}"]
        return problems + g.counts(PEER_NOT_MPA=1)


def greeting_late(warpsock):
    """A Request behind the greeting: the program reads a reset, and not an octet of it."""
    with Greeter(warpsock, "5ms") as g:
        problems = g.greeted()
        back = g.says(REQUEST + bytes([0x40, 1, 0, 0]))
        problems += [] if back in RESET else [f"came back: {back}"]
        problems += g.counts(errors=1, GRACE_EXPIRED=1, LATE_REQUEST=1)
        said = g.stage.text("server")
        return problems + ([] if "[Errno 104]" in said else [said])


# Asks, and says what became of it
ASKS = """
import socket, struct, sys
s = socket.socket()
try:
    s.connect(("127.0.0.1", int(sys.argv[1])))
    s.sendall(b"x")
    s.recv(100)
except OSError as error:
    print("errno", error.errno)
print("reason", struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2])
"""


def greeting_late_asked(warpsock):
    """The late Request is Warpsock's, held back on its way: its end reads no Reply."""
    with Greeter(warpsock, "5ms") as g, socket.create_server(("127.0.0.1", 0)) as way:
        client = g.stage.start("client", [sys.executable, "-c", ASKS, str(way.getsockname()[1])])
        with way.accept()[0] as conn:
            request = conn.recv(1000)
            problems = g.greeted()
            conn.sendall(b"welcome\n")
            back = g.says(request)
            g.stage.end(client)
        problems += [] if back in RESET else [f"came back: {back}"]
        problems += g.counts(errors=1, GRACE_EXPIRED=1, LATE_REQUEST=1)
        said = g.stage.text("client")
        return problems + ([] if f"reason {NUMBERS['PEER_NOT_MPA']}\n" in said else [said])


def greeting_in_time(warpsock):
    """Within the grace it is no matter who has something to say first."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [*SERVER, "127.0.0.1", "1", "greeting", "0"], mode="auto",
                             env={"WARPSOCK_GRACE": "10s"})
        port = stage.wait_text("server").strip()
        code = ("import socket, time; s = socket.create_connection(('127.0.0.1', %s)); "
                "print(s.recv(100))" % port)
        status = stage.run("client", [sys.executable, "-c", code], mode="on", limit=20)
        stage.end(server, 10)
        said = stage.text("client")
        problems = [] if status == 0 and "welcome" in said else [f"status {status}, {said}"]
        for name in ("client", "server"):
            problems += differences(stage.report(name), {
                "connections": {"software": 1, "kernel": 0, "verbs": 0, "tcp": 0},
                "fallbacks": {}, "errors": 0})
    return problems


# A socket that does not block, and a program that relies on room for the first octets
UNBLOCKED = """
import select, socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
conn = listener.accept()[0]
conn.setblocking(False)
begin = time.monotonic()
try:
    conn.send(b"welcome")
except BlockingIOError:  # in mode auto, before the peer is known
    assert sys.argv[1] == "auto" and time.monotonic() - begin < 1
    poller = select.poll()
    poller.register(conn, select.POLLOUT)
    assert poller.poll(20000)
    conn.send(b"welcome")
conn.setblocking(True)
conn.recv(1)
"""


def greeting_unblocked(warpsock, mode):
    """No call stands still: there is room at once, or poll() tells when."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", UNBLOCKED, mode], mode=mode,
                             env={"WARPSOCK_GRACE": "10s"})
        port = stage.wait_text("server").strip()
        code = ("import socket; s = socket.create_connection(('127.0.0.1', %s)); "
                "print(s.recv(100))" % port)
        stage.run("client", [sys.executable, "-c", code], limit=40)
        status = stage.end(server, 20)
        return [] if status == 0 and "welcome" in stage.text("client") else \
            [f"status {status}", stage.text("client"), stage.text("server", "err")]


def neighbours(warpsock):
    """Nobody is named: client and server find each other because they are on one host."""
    with Stage(warpsock) as stage:
        server = stage.start("server", [*SERVER, "::", "4"], mode="auto")
        port = stage.wait_text("server").strip()
        problems = talk(stage, "poll", "127.0.0.1", port, 2, ["auto * * *:*"], octets=1000,
                        env={"WARPSOCK_PROBE_TIMEOUT": "10s"})
        problems += talk(stage, "blocking", "::1", port, 2, ["auto * * *:*"], octets=1000,
                         env={"WARPSOCK_PROBE_TIMEOUT": "10s"})
        stage.end(server, 10)
        for name, number in (("client", 2), ("server", 4)):
            problems += differences(stage.report(name), {
                "connections": {"software": number, "kernel": 0, "verbs": 0, "tcp": 0},
                "fallbacks": {}, "errors": 0})
    return problems


def unaccepted(warpsock):
    """In mode on connect() does not wait for a server that accepts late, and its octets arrive."""
    code = ("import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
            "print(s.getsockname()[1], flush=True); time.sleep(1); c = s.accept()[0]; c.recv(1)")
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", code])
        port = stage.wait_text("server").strip()
        begin = time.monotonic()
        status = stage.run("client", [sys.executable, "-c", "import socket; "
                           f"socket.create_connection(('127.0.0.1', {port})).send(b'x')"])
        took = time.monotonic() - begin
        stage.end(server, 10)
    return [] if status == 0 and took > 0.8 else [f"status {status} after {took} s"]


PROXY = """
import socket
listener = socket.create_server(("0.0.0.0", 7000))
peer = socket.create_connection(("192.0.2.2", 7000), timeout=20)
peer.sendall(b"through")
print(peer.recv(7))
"""
PLAIN = """
import socket
with socket.create_server(("192.0.2.2", 7000)) as listener:
    print("ready", flush=True)
    peer = listener.accept()[0]
    peer.sendall(peer.recv(100)[:7])
"""


def proxy(warpsock):
    """A program that listens at the port of another host's server that it connects to.

         warpsock-a-PID  192.0.2.1 --- veth --- 192.0.2.2  warpsock-b-PID
    """
    ns = [f"warpsock-{end}-{os.getpid()}" for end in "ab"]
    link = [f"wp{end}{os.getpid() % 100000}" for end in "ab"]
    inside = [["ip", "netns", "exec", name] for name in ns]
    setup = [["ip", "netns", "add", name] for name in ns]
    setup += [["ip", "link", "add", link[0], "netns", ns[0], "type", "veth", "peer", "name",
               link[1], "netns", ns[1]]]
    for i in range(2):
        setup += [[*inside[i], "ip", "address", "add", f"192.0.2.{i + 1}/24", "dev", link[i]],
                  [*inside[i], "ip", "link", "set", link[i], "up"]]
    with Stage(warpsock) as stage:
        try:
            for command in setup:
                subprocess.run(command, check=True, capture_output=True)
            server = stage.start("server", [*inside[1], sys.executable, "-c", PLAIN], mode=None)
            stage.wait_text("server")
            status = stage.run("client", [*inside[0], stage.warpsock, "run", "--all", "--report",
                                          str(stage.dir / "client.json"), "--", sys.executable,
                                          "-c", PROXY], mode=None, limit=40)
            stage.end(server, 10)
            problems = [] if status == 0 and "through" in stage.text("client") else \
                [f"status {status}", stage.text("client"), stage.text("client", "err")]
            return problems + differences(stage.report("client"), tcp(ASK_SILENT=1))
        finally:
            for name in ns:
                subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def programs(writer, warpsock):
    """Real ones, and servers without DDP."""
    body = b"0123456789abcdef" * 20000
    with Web(body) as port:
        for words in (["curl", "-s"], ["wget", "-q", "-O", "-"]):
            if not shutil.which(words[0]):
                writer.skip(f"{words[0]} and a plain server", f"no {words[0]} here")
                continue
            with Stage(warpsock) as stage:
                status = stage.run("client", [*words, f"http://127.0.0.1:{port}/"],
                                   rules=[f"auto client * 127.0.0.1:{port}"])
                problems = [] if status == 0 and stage.text("client") == body.decode() else \
                    [f"status {status}", stage.text("client", "err")]
                report = stage.report("client")
                problems += [] if report and report["connections"]["tcp"] == 1 else [str(report)]
                writer.case(f"{words[0]} and a plain server", problems)


class Web:
    def __init__(self, body):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # the reset behind a Request
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self.server.server_address[1]

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def patience(warpsock):
    """The probe's time is what the option says."""
    times = []
    for limit in ("20", "6s"):
        with Stage(warpsock) as stage, Plain("silent") as server:
            begin = time.monotonic()
            problems = talk(stage, "blocking", "127.0.0.1", server.port, 1,
                            [f"auto client * 127.0.0.1:{server.port}"], octets=10,
                            env={"WARPSOCK_PROBE_TIMEOUT": limit})
            times.append(time.monotonic() - begin)
            problems += differences(stage.report("client"), tcp(PROBE_TIMEOUT=1))
        if problems:
            return problems
    return [] if times[0] < 6 < times[1] else [f"it took {times} s"]


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    for kind, reason in KINDS:
        for way in WAYS if kind in ("echo", "silent", "restarts") else ("blocking", "epoll_et"):
            writer.case(f"{way} to a server that is {kind}",
                        fall_back(warpsock, kind, reason, way))
    writer.case("IPv6", fall_back(warpsock, "garbage", "PEER_NOT_MPA", "poll", host="::1"))
    for way in ("blocking", "poll"):
        writer.case(f"{way}, bound to a port", fall_back(
            warpsock, "silent", "PROBE_TIMEOUT", way, bind=[str(free_port())]))
        writer.case(f"{way}, bound to a port that the kernel chose", fall_back(
            warpsock, "echo", "PEER_NOT_MPA", way, bind=["0"]))
        writer.case(f"{way}, nobody listens", closed(warpsock, way))
    writer.case("more listeners than names", many_listeners(warpsock))
    writer.case("without a reason nothing is asked", no_reason(warpsock))
    writer.case("a neighbour is a reason", neighbours(warpsock))
    for way in WAYS:
        writer.case(f"{way} to a server on DDP", ddp(warpsock, way, "ddp server * *:*"))
    writer.case("to a server in mode auto", ddp(warpsock, "blocking", "auto server * *:*"))
    writer.case("a server that speaks first, and a plain peer", greeting_plain(warpsock))
    writer.case("a server that speaks first, and no time is set",
                in_time(lambda: greeting_by_itself(warpsock)))
    writer.case("a peer that begins as a Request does", greeting_prefix(warpsock))
    writer.case("a Request that comes late", greeting_late(warpsock))
    writer.case("a Request of ours that comes late", greeting_late_asked(warpsock))
    writer.case("a Request in time", greeting_in_time(warpsock))
    for mode in ("auto", "on"):
        writer.case(f"a server that speaks first and does not block, mode {mode}",
                    greeting_unblocked(warpsock, mode))
    if os.getuid():
        writer.skip("a listener of another host", "no network namespaces without root")
    else:
        writer.case("a listener of another host", proxy(warpsock))
    programs(writer, warpsock)
    writer.case("a server that takes its time", unaccepted(warpsock))
    writer.case("how long it waits", patience(warpsock))
    writer.finish()


if __name__ == "__main__":
    main()
