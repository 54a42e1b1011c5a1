#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server that may have little memory, and its clients: starved.py WARPSOCK.

    clients ==== DDP ==== server, RLIMIT_AS a few MiB above what it has

Who cannot be served yet waits, and nothing is lost: accept() says ENOMEM, and the connection stays
with the kernel until there is memory. In mode auto such connections are plain TCP; a client that
has asked for DDP already is reset, and comes again.
"""
import re
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import ECHO_SERVER, Stage  # noqa: E402

PYTHON = "/usr/bin/python3"
LIMIT = 60
NUMBER = 60
ROOM = 16 << 20  # of NUMBER connections over DDP each takes about 800 KiB

# With a word it waits for connections in poll(), else in accept(). When there is no memory for one
# more, it ends all that it has
SERVER = """
import errno, re, resource, select, socket, sys, time
listener = socket.create_server(("127.0.0.1", 0), backlog=200)
poller = select.poll()
if sys.argv[1:]:
    listener.setblocking(False)
    poller.register(listener, select.POLLIN)
print("port", listener.getsockname()[1], flush=True)
sys.stdin.readline()
size = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + %d, resource.RLIM_INFINITY))
refused, served, conns = 0, 0, []
def serve():
    global served
    for conn in conns:
        conn.settimeout(30)
        conn.sendall(conn.recv(5, socket.MSG_WAITALL))
        conn.close()
        served += 1
    conns.clear()
while served + len(conns) < %d:
    try:
        if sys.argv[1:]:
            poller.poll(30000)
        conns.append(listener.accept()[0])
    except BlockingIOError:
        continue
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        refused += 1
        serve()
        time.sleep(0.05)  # until the last ones have it
serve()
print("refused", refused, "served", served, flush=True)
""" % (ROOM, NUMBER)

CLIENTS = """
import socket, sys
conns = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
         for _ in range(%d)]
lost = 0
for i, conn in enumerate(conns):
    try:
        conn.sendall(b"%%05d" %% i)
    except OSError:
        pass
for i, conn in enumerate(conns):
    try:
        lost += conn.recv(5, socket.MSG_WAITALL) != b"%%05d" %% i
    except OSError as error:
        lost += 1
        print(error, flush=True)
print("lost", lost, flush=True)
""" % NUMBER


def problems_of(stage, name, mode, words):
    server = stage.start(name, [PYTHON, "-c", SERVER, *words], mode=mode, stdin=-1)
    port = re.search(r"port (\d+)", stage.wait_text(name)).group(1)
    server.stdin.write(b"\n")
    server.stdin.flush()
    status = stage.run(f"{name}-clients", [PYTHON, "-c", CLIENTS, port], mode=mode, limit=LIMIT)
    said = stage.text(f"{name}-clients")
    problems = [] if not status and said == "lost 0\n" else \
        [f"clients: {status}, {said}, {stage.text(name + '-clients', 'err')}"]
    status = stage.end(server, 5)
    said = re.search(r"refused (\d+) served (\d+)", stage.text(name))
    if status or not said or int(said[2]) != NUMBER:
        problems.append(f"server: {status}, {stage.text(name)}, {stage.text(name, 'err')}")
    elif mode == "on" and not int(said[1]):
        problems.append("the server had memory for all of them")
    return problems


# Connects until it has NUMBER connections, or there is no memory; then uses all of them
STARVED = """
import errno, re, resource, socket, sys
size = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + %d, resource.RLIM_INFINITY))
refused, conns = 0, []
for _ in range(%d):
    try:
        conns.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60))
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        refused += 1
for conn in conns:
    conn.sendall(b"hello")
    if conn.recv(5, socket.MSG_WAITALL) != b"hello":
        sys.exit("something else came back")
print("refused", refused, flush=True)
""" % (ROOM, NUMBER)


def client_problems(stage, mode):
    server = stage.start(f"{mode}-echo", [PYTHON, "-c", ECHO_SERVER], mode=mode)
    port = stage.wait_text(f"{mode}-echo").strip()
    name = f"{mode}-starved"
    status = stage.run(name, [PYTHON, "-c", STARVED, port], mode=mode, limit=LIMIT)
    server.terminate()
    stage.end(server)
    said = re.fullmatch(r"refused (\d+)\n", stage.text(name))
    if status or not said or (int(said[1]) > 0) != (mode == "on"):
        return [f"{status}, {stage.text(name)}, {stage.text(name, 'err')}"]
    return []


# Who accepts nothing but plain connections needs no memory for others
PLAIN = """
import re, socket
def size():
    return int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1])
listener = socket.create_server(("127.0.0.1", 0))
clients = [socket.create_connection(listener.getsockname()) for _ in range(2)]
before = size()
conns = [listener.accept()[0] for _ in range(2)]
print("grown by", size() - before, "KiB", flush=True)
"""


def plain_problems(stage, rule):
    name = f"plain-{rule.split()[0]}"
    status = stage.run(name, [PYTHON, "-c", PLAIN], rules=[rule, "auto client * *:1"], limit=LIMIT)
    said = re.fullmatch(r"grown by (\d+) KiB\n", stage.text(name))
    if status or not said or (int(said[1]) > 1000) != (rule.split()[0] != "tcp"):
        return [f"{status}, {stage.text(name)}, {stage.text(name, 'err')}"]
    return []


def main():
    writer = tap.Writer()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with Stage(sys.argv[1]) as stage:
        for mode in "on", "auto":
            for how, words in ("accept()", ()), ("poll()", ("poll",)):
                writer.case(f"nothing is lost for want of memory, mode {mode}, {how}",
                            problems_of(stage, f"{mode}{how[:4]}", mode, words))
            writer.case(f"a client without memory, mode {mode}", client_problems(stage, mode))
        for rule in "tcp server * *:*", "auto server * *:*":
            writer.case(f"memory that accept() takes by the rule '{rule}'",
                        plain_problems(stage, rule))
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
