#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers that execute a program for each connection: inetd.py WARPSOCK COPY.

    client ==== DDP ==== server --- fork, setuid, dup2, exec ---> program

COPY is linked statically, and served by a relay. Each server is run with both ends under the
launcher, in mode on and in mode auto, and in mode auto with a client that knows nothing of DDP.
"""
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage, free_port  # noqa: E402
from lingering import network  # noqa: E402

PYTHON = "/usr/bin/python3"
COPY = os.path.abspath(sys.argv[2])
SIZE = 1 << 20
SLOW = 500 << 10  # octets; the ring takes all of them
LIMIT = 60

SERVER = """
import os, signal, socket, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
while True:
    connection = listener.accept()[0]
    if not os.fork():
        if not os.getuid():
            os.setgroups([]), os.setgid(65534), os.setuid(65534)
        for number in 0, 1, 2:
            os.dup2(connection.fileno(), number)
        os.closerange(3, 256)
        os.execvp(sys.argv[1], sys.argv[1:])
    connection.close()
"""

CLIENT = """
import socket, sys, threading
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
data = bytes(i * 7 %% 251 for i in range(%d))
def send():
    sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)
thread = threading.Thread(target=send)
thread.start()
got = b"".join(iter(lambda: sock.recv(50000), b""))
thread.join()
print("whole" if got == data else f"{len(got)} octets", flush=True)
""" % SIZE

URGENT = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
sock.sendall(b"ab")
sock.send(b"u", socket.MSG_OOB)
sock.sendall(b"c")
sock.shutdown(socket.SHUT_WR)
print(b"".join(iter(lambda: sock.recv(100), b"")).decode(), flush=True)
"""

STAYS = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30)
sock.sendall(b"hello")
print("got", sock.recv(5, socket.MSG_WAITALL), flush=True)
try:
    print("end", sock.recv(1), flush=True)
except ConnectionError as error:
    print("end", error.errno, flush=True)
"""
PROGRAMS = {"cat": ["cat"], "a script": ["sh", "-c", "exec cat"], "static": [COPY],
            "python": [PYTHON, "-c", "import shutil, sys\n"
                       "shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"]}


def relays_of(session):
    """Relays that are still there; those of other tests do not count."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text() == "warpsock-relay\n" and \
                    session.encode() in (path.parent / "environ").read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def clients(stage, name, port, client_mode, times=3):
    problems = []
    for i in range(times):
        client = f"{name}-client{i}"
        status = stage.run(client, [PYTHON, "-c", CLIENT, port], mode=client_mode, limit=LIMIT)
        if status or stage.text(client) != "whole\n":
            problems.append(f"status {status}: {stage.text(client)}{stage.text(client, 'err')}")
    return problems


def relayed():
    """Why a program of these has a relay, in the report of who executes it."""
    other = {} if os.getuid() else {"cat": "OTHER_USER"}
    return {"static": "NOT_LOADED", **other}


def inetd(writer, stage, what, command, server_mode, client_mode):
    name = re.sub(r"\W", "", f"{what}{server_mode}{client_mode}")
    server = stage.start(name, [PYTHON, "-c", SERVER, *command], mode=server_mode)
    port = re.search(r"port (\d+)", stage.wait_text(name)).group(1)
    report = stage.dir / f"{name}.json"
    report.touch()
    report.chmod(0o666)  # for those who are nobody
    problems = clients(stage, name, port, client_mode)
    server.send_signal(signal.SIGTERM)
    stage.end(server)
    report = stage.report(f"{name}-client0") or {}
    if client_mode and report.get("connections", {}).get("software") != 1:
        problems.append(f"the client's report: {report}")
    if client_mode and what in relayed():
        fallbacks = (stage.report(name) or {}).get("fallbacks")
        if fallbacks != {relayed()[what]: 3}:
            problems.append(f"the server's report: {fallbacks}")
    writer.case(f"inetd, {what}, {server_mode}, client {client_mode or 'plain'}", problems)


def relay_killed(writer, stage, session):
    """Its client is told in time, its program ends, and the next connection has another relay."""
    server = stage.start("killed", [PYTHON, "-c", SERVER, COPY], mode="on")
    port = re.search(r"port (\d+)", stage.wait_text("killed")).group(1)
    client = stage.start("killed-client", [PYTHON, "-c", STAYS, port], mode="on")
    stage.wait_text("killed-client", "got", LIMIT)
    relays = relays_of(session)
    for pid in relays:
        os.kill(pid, signal.SIGKILL)
    status, said = stage.end(client), stage.text("killed-client")
    problems = [] if relays and status == 0 and "end" in said else \
        [f"relays {relays}, status {status}: {said}{stage.text('killed-client', 'err')}"]
    problems += clients(stage, "killed-next", port, "on", 1)
    server.send_signal(signal.SIGTERM)
    stage.end(server)
    writer.case("a relay is killed", problems)


def urgent(writer, stage):
    """Its program has a local socket, and the octet in its place among the others."""
    server = stage.start("urgent", [PYTHON, "-c", SERVER, COPY], mode="on")
    port = re.search(r"port (\d+)", stage.wait_text("urgent")).group(1)
    stage.run("urgent-client", [PYTHON, "-c", URGENT, port], mode="on", limit=LIMIT)
    said = stage.text("urgent-client")
    server.send_signal(signal.SIGTERM)
    stage.end(server)
    writer.case("an urgent octet for a program with a relay",
                [] if said == "abuc\n" else [said, stage.text("urgent-client", "err")])


def slow(writer, stage):
    """The program has gone, and what it wrote takes longer than WARPSOCK_LINGER to arrive."""
    server = stage.start("slow", [PYTHON, "-c", SERVER, COPY], mode="on",
                         env={"WARPSOCK_LINGER": "1s"})
    port = re.search(r"port (\d+)", stage.wait_text("slow")).group(1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = stage.start("slow-client", [PYTHON, "-c", CLIENT.replace(str(SIZE), str(SLOW)),
                                             str(listener.getsockname()[1])], mode="on")
        network(listener, int(port))
        begin = time.monotonic()
        stage.end(client, LIMIT)
        spent = time.monotonic() - begin
    said = stage.text("slow-client")
    problems = [] if said == "whole\n" else [said, stage.text("slow-client", "err")]
    problems += [] if spent > 2 else [f"the network was quick: {spent:.3f} s"]
    server.send_signal(signal.SIGTERM)
    stage.end(server)
    writer.case("a relay whose peer takes longer than WARPSOCK_LINGER", problems)


def socat(writer, stage, command):
    if not shutil.which("socat"):
        writer.skip("socat", "no socat here")
        return
    port = str(free_port())
    server = stage.start("socat", ["socat", f"TCP-LISTEN:{port},fork,reuseaddr,bind=127.0.0.1",
                                   f"EXEC:{command},nofork"])
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        with open("/proc/net/tcp") as table:
            if f":{int(port):04X} 00000000:0000 0A" in table.read():
                break
        time.sleep(0.05)
    writer.case(f"socat, fork and EXEC:{Path(command).name}",
                clients(stage, f"socat-{Path(command).name}", port, "on"))
    server.send_signal(signal.SIGTERM)
    stage.end(server)


def main():
    writer = tap.Writer()
    with Stage(sys.argv[1]) as stage:
        os.chmod(stage.dir, 0o755)
        session = str(stage.dir)  # in WARPSOCK_REPORT
        for what, command in PROGRAMS.items():
            inetd(writer, stage, what, command, "on", "on")
            inetd(writer, stage, what, command, "auto", "on")
            inetd(writer, stage, what, command, "auto", None)
        relay_killed(writer, stage, session)
        urgent(writer, stage)
        slow(writer, stage)
        socat(writer, stage, "/bin/cat")
        socat(writer, stage, COPY)
        end = time.monotonic() + LIMIT
        while relays_of(session) and time.monotonic() < end:
            time.sleep(0.1)
        writer.case("no relay is left", [str(pid) for pid in relays_of(session)])
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
