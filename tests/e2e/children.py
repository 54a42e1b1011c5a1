#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python's ways to start processes beside a connection: children.py WARPSOCK.

Python's subprocess calls vfork and closes all descriptors in the child; multiprocessing forks. The
connection of the parent goes on through all of it, over TCP and over DDP; and each is in the
report once, however many processes have had it. And a server that does not know yet what its peer
speaks is replaced by another program.
"""
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

PYTHON = "/usr/bin/python3"
made = []  # a mark for each connection


def connect():
    made.append(1)
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname(), timeout=30)
    return client, listener.accept()[0]


def talk(client, server, times=50):
    for _ in range(times):
        client.sendall(b"ping")
        assert server.recv(4, socket.MSG_WAITALL) == b"ping"
        server.sendall(b"pong")
        assert client.recv(4, socket.MSG_WAITALL) == b"pong"


def run_many(client, server):
    for _ in range(20):
        assert subprocess.run(["true"], check=False).returncode == 0
        out = subprocess.run("echo hi", shell=True, capture_output=True, check=True).stdout
        assert out == b"hi\n"
        talk(client, server, 3)


def keep_descriptors(client, server):
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          close_fds=False) as cat:
        assert cat.communicate(b"x")[0] == b"x"


def fork_many(client, server):
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=os.getpid) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0


def beside_a_thread(client, server):
    thread = threading.Thread(target=run_many, args=connect())
    thread.start()
    talk(client, server, 500)
    thread.join()


def handed_over(client, server):
    for command in (["cat"], ["sh", "-c", "exec cat"], [PYTHON, "-c", "import os, sys\n"
                    "for line in sys.stdin: sys.stdout.write(line)"]):
        client, server = connect()
        with subprocess.Popen(command, stdin=server, stdout=server) as child:
            server.close()
            client.sendall(b"for the child\n")
            client.shutdown(socket.SHUT_WR)
            with client.makefile("rb") as answer:
                assert answer.read() == b"for the child\n"
            assert child.wait(60) == 0


def handed_over_and_kept(client, server):
    with subprocess.Popen(["cat"], stdin=server, stdout=subprocess.PIPE) as cat:
        client.sendall(b"for cat")
        client.shutdown(socket.SHUT_WR)
        assert cat.communicate(timeout=30)[0] == b"for cat"
        server.sendall(b"still here")
        assert client.recv(10, socket.MSG_WAITALL) == b"still here"
    client.close()
    server.close()


def forked_while_it_lingers(client, server):
    client, server = connect()
    talk(client, server, 1)
    client.setblocking(False)
    sent = 0
    try:
        while True:
            sent += client.send(bytes(100_000))
    except BlockingIOError:
        client.close()
    for _ in range(3):
        assert subprocess.run(["true"], check=False).returncode == 0
        pid = os.fork()
        if not pid:
            os._exit(0)  # by our code, and with a report
        assert os.waitpid(pid, 0)[1] == 0
    while piece := server.recv(1 << 20):
        sent -= len(piece)
    assert sent == 0
    server.close()


def shut_and_replaced():
    """Its own end is over before anything is decided; the next program finds that out."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    server = listener.accept()[0]
    server.shutdown(socket.SHUT_WR)
    server.set_inheritable(True)
    os.execv(PYTHON, [PYTHON, __file__, "--replaced", str(server.fileno())])


def replaced(fd):
    server = socket.socket(fileno=fd)
    print("here", flush=True)
    assert server.recv(1) == b"x"
    assert server.recv(1) == b"y"


def seen_by_plain_client(launcher):
    with subprocess.Popen([*launcher, PYTHON, __file__, "--shut"], text=True,
                          stdout=subprocess.PIPE) as server:
        try:
            client = socket.create_connection(("127.0.0.1", int(server.stdout.readline())))
            client.settimeout(60)
            assert server.stdout.readline() == "here\n"
            client.sendall(b"x")
            assert client.recv(1) == b"", "octets"
            client.sendall(b"y")
            assert server.wait(60) == 0, "the server"
        except (AssertionError, OSError, ValueError) as error:
            server.kill()
            return [repr(error)]
    return []


def inside():
    writer = tap.Writer()
    for case in (run_many, keep_descriptors, fork_many, beside_a_thread, handed_over,
                 handed_over_and_kept, forked_while_it_lingers):
        client, server = connect()
        problems = []
        try:
            case(client, server)
            if client.fileno() >= 0:
                talk(client, server)
        except (AssertionError, OSError) as error:
            problems = [repr(error)]
        writer.case(case.__name__.replace("_", " "), problems)
        client.close()
        server.close()
    print(f"# {len(made)} connections", flush=True)
    writer.finish()


# A child of a server says how many threads it has: before it waits for anything, and when it has
LISTENING = """
import os, select, socket, time
listener = socket.create_server(("0.0.0.0", 0))
def threads():
    return len(os.listdir("/proc/self/task"))
if not os.fork():
    time.sleep(0.1)
    before = threads()
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.poll(100)
    print(before, threads(), flush=True)
    os._exit(0)
os.wait()
"""


def threads_of_a_child(launcher):
    """A child that serves a connection, or executes a program, is to make no thread for nothing."""
    done = subprocess.run([*launcher, PYTHON, "-c", LISTENING], capture_output=True, text=True,
                          timeout=100, check=False)
    return [] if done.stdout == "1 2\n" else [done.stdout, done.stderr]


def counted(path, said):
    """What is wrong with the report: both ends of each connection are in it, once."""
    report = json.loads(Path(path).read_text())["connections"]
    number = int(said[0].split()[1])
    wanted = {"software": 2 * number, "kernel": 0, "verbs": 0, "tcp": 0}
    return [] if report == wanted else [f"{number} connections, {report}"]


def main():
    if sys.argv[1] == "--inside":
        inside()
    if sys.argv[1] == "--shut":
        shut_and_replaced()
    if sys.argv[1] == "--replaced":
        replaced(int(sys.argv[2]))
        return
    writer = tap.Writer()
    report = tempfile.mktemp(prefix="warpsock-children-")
    over = {"TCP": [], "DDP": [os.path.realpath(sys.argv[1]), "run", "--all", "--mode", "on",
                               "--report", report, "--"]}
    for name, launcher in over.items():
        done = subprocess.run([*launcher, PYTHON, __file__, "--inside"], capture_output=True,
                              text=True, timeout=100, check=False)
        lines = done.stdout.splitlines()
        for line in lines:
            if " - " in line:
                writer.case(f"{name}: {line.split(' - ', 1)[1]}",
                            [] if line.startswith("ok ") else [done.stdout])
        if done.returncode or len(lines) < 9:
            writer.case(f"{name}: the program came to its end", [done.stdout, done.stderr])
        elif name == "DDP":
            writer.case("DDP: each connection is in the report once", counted(
                report, [line for line in lines if line.endswith(" connections")]))
            os.unlink(report)
    auto = [os.path.realpath(sys.argv[1]), "run", "--all", "--mode", "auto", "--"]
    for name, launcher in {"TCP": [], "AUTO": auto}.items():
        writer.case(f"{name}: shut before another program goes on", seen_by_plain_client(launcher))
    writer.case("AUTO: a child has a thread for listeners when it waits", threads_of_a_child(auto))
    writer.finish()


if __name__ == "__main__":
    main()
