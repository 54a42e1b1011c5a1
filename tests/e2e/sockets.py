#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that wait in every way there is echo octets over DDP, and their contents are compared.

    sockets.py WARPSOCK ECHO
"""
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage, differences, report_of  # noqa: E402

MODES = ("blocking", "poll", "select", "epoll-lt", "epoll-et")
# Octets on each connection, connections: around an FPDU, half a ring and a ring
LOADS = ((1, 1), (1000, 3), (32749, 2), (65537, 2), (262144, 1), (262145, 2), (524288, 1),
         (524289, 1), (1000000, 2), (300000, 30), (8000000, 4))
DRIPS = (1, 4096, 131072, 524288, 524289, 2000000)

# Connects to itself, and accepts when WARPSOCK_START has long been over
LATE = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
client.sendall(b"early, ")
time.sleep(1)
client.sendall(b"late")
server = listener.accept()[0]
print(server.recv(11, socket.MSG_WAITALL).decode())
"""

# Signals come until it is gone; Python's own end would not leave their handler
BUSY = """
import ctypes, signal, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
client.sendall(b"a word")
server.recv(6, socket.MSG_WAITALL)
signal.signal(signal.SIGALRM, lambda number, frame: None)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
print("over", flush=True)
sys.stdin.read()
ctypes.CDLL(None).exit(0)
"""

# A thread sleeps in a call and is stopped there when the socket is closed and the program ends
HELD = """
import ctypes, os, socket, threading, time
SEIZE, INTERRUPT, SET_PTRACER, ANY, WALL = 0x4206, 0x4207, 0x59616d61, -1, 0x40000000
libc = ctypes.CDLL(None)
ask, answer = os.pipe(), os.pipe()
if not os.fork():
    os.close(ask[1])
    tid = int(os.read(ask[0], 20))
    good = not libc.ptrace(SEIZE, tid, 0, 0) and not libc.ptrace(INTERRUPT, tid, 0, 0)
    os.waitpid(tid, WALL)
    os.write(answer[1], b"stopped" if good else b"not stopped")
    os.read(ask[0], 1)
    os._exit(0)
os.close(ask[0])
libc.prctl(SET_PTRACER, ctypes.c_ulong(ANY), 0, 0, 0)
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server = listener.accept()[0]
client.sendall(b"a word")
server.recv(6, socket.MSG_WAITALL)
reader = threading.Thread(target=server.recv, args=(1,), daemon=True)
reader.start()
time.sleep(0.3)
os.write(ask[1], str(reader.native_id).encode())
print(os.read(answer[0], 20).decode(), flush=True)
client.close()
os.close(server.detach())
os._exit(0)
"""

# Its connection still has octets on their way when another thread ends the process as well
TWICE = """
import ctypes, os, socket, sys, threading, time
listener = socket.create_server(("127.0.0.1", 0))
if not os.fork():
    idle = listener.accept()[0]
    idle.sendall(idle.recv(1))
    time.sleep(1.5)
    os._exit(0)
client = socket.create_connection(listener.getsockname())
client.sendall(b"x")
client.recv(1)
client.setblocking(False)
try:
    while True:
        client.send(bytes(65536))
except BlockingIOError:
    pass
libc = ctypes.CDLL(None)
threading.Timer(0.3, libc[sys.argv[1]], (7,)).start()
libc.exit(0)
"""


# /dev/shm is full before anything is counted
FILLS = """
import os, socket, sys
try:
    with open("/dev/shm/rest", "wb", buffering=0) as rest:
        while True:
            rest.write(bytes(4096))
except OSError:
    pass
listener = socket.create_server(("127.0.0.1", 0))
if not os.fork():
    try:
        listener.accept()[0].recv(1)
    except OSError:
        pass
    os._exit(0)
try:
    socket.create_connection(listener.getsockname()).close()
except OSError:
    pass
sys.exit(0 if os.waitstatus_to_exitcode(os.wait()[1]) == 0 else 1)
"""


def filled(writer, warpsock):
    name = "nobody dies of counting when /dev/shm has become full"
    inside = f"mount -t tmpfs -o size=1m none /dev/shm && exec '{warpsock}' run --all " + \
        f"--mode on -- '{sys.executable}' -c '{FILLS}'"
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", "/dev/shm"],
                      capture_output=True, check=False).returncode:
        writer.skip(name, "no mount namespace is to be had")
        return
    done = subprocess.run([*unshare, "sh", "-c", inside], capture_output=True, text=True,
                          check=False, timeout=60)
    writer.case(name, [] if not done.returncode else [f"status {done.returncode}", done.stderr])


def problems_of(stage, names, statuses):
    return [f"{name} ended with {status}: {stage.text(name, 'err')}"
            for name, status in zip(names, statuses) if status]


def echo(warpsock, program, mode, octets, parallel):
    with Stage(warpsock) as stage:
        server = stage.start("serve", [program, "serve", mode, str(parallel)])
        port = stage.wait_text("serve").strip()
        client = stage.run("talk", [program, "talk", port, str(octets), str(parallel)], limit=30)
        problems = problems_of(stage, ("talk", "serve"), (client, stage.end(server, 10)))
        wanted = report_of(parallel, octets * parallel, octets * parallel)
        for name in ("talk", "serve"):
            problems += differences(stage.report(name), wanted)
    return problems


def drip(warpsock, program, octets):
    """The writer closes and exits at once; the reader takes its time and gets everything."""
    with Stage(warpsock) as stage:
        reader = stage.start("drip", [program, "drip", "1"])
        port = stage.wait_text("drip").strip()
        writer = stage.run("push", [program, "push", port, str(octets)])
        problems = problems_of(stage, ("push", "drip"), (writer, stage.end(reader)))
        said = stage.text("drip").splitlines()[-1]
        if said != f"{octets} end":
            problems.append(f"the reader got: {said}")
    return problems


def late(warpsock):
    with Stage(warpsock) as stage:
        stage.run("late", [sys.executable, "-c", LATE], env={"WARPSOCK_START": "100ms"})
        said = stage.text("late").strip()
        problems = [] if said == "early, late" else [f"{said!r}: {stage.text('late', 'err')}"]
        return problems + differences(stage.report("late"), report_of(2, 11, 11))


def held(writer, warpsock):
    name = "what is closed while a thread is in a call is reported"
    with Stage(warpsock) as stage:
        status = stage.run("held", [sys.executable, "-c", HELD])
        said = stage.text("held").strip()
        if said == "not stopped":
            writer.skip(name, "threads cannot be traced here")
            return
        problems = [] if (status, said) == (0, "stopped") else [
            f"{status} {said!r}: {stage.text('held', 'err')}"]
        writer.case(name, problems + differences(stage.report("held"), report_of(2, 6, 6)))


def interrupted(warpsock):
    """Others have the report locked, and a signal comes while the program waits for that."""
    with Stage(warpsock) as stage:
        busy = stage.start("busy", [sys.executable, "-c", BUSY], stdin=subprocess.PIPE)
        stage.wait_text("busy", "over", 60)
        with open(stage.dir / "busy.json", "a", encoding="ascii") as report:
            fcntl.flock(report, fcntl.LOCK_EX)
            busy.stdin.close()
            time.sleep(0.5)
        status = stage.end(busy)
        if status or not (stage.dir / "busy.json").stat().st_size:
            return [f"status {status}, no report: {stage.text('busy', 'err')}"]
        return differences(stage.report("busy"), report_of(2, 6, 6))


def twice(warpsock, how):
    with Stage(warpsock) as stage:
        status = stage.run("twice", [sys.executable, "-c", TWICE, how])
        # The child ends at the same moment, and adds what it has counted
        until = time.monotonic() + 5
        while (told := stage.report("twice")["connections"]["software"]) < 2 and \
                time.monotonic() < until:
            time.sleep(0.05)
        return [] if (status, told) == (0, 2) else [f"status {status}, connections {told}"]


def main():
    warpsock, program = sys.argv[1], os.path.abspath(sys.argv[2])
    writer = tap.Writer()
    for mode in MODES:
        for octets, parallel in LOADS:
            writer.case(f"{mode}: {parallel} connections echo {octets} octets each",
                        echo(warpsock, program, mode, octets, parallel))
    for octets in DRIPS:
        writer.case(f"{octets} octets survive close and exit of their writer",
                    drip(warpsock, program, octets))
    writer.case("who connects to itself may accept when WARPSOCK_START is over", late(warpsock))
    held(writer, warpsock)
    writer.case("a signal does not end the wait for a report that is locked", interrupted(warpsock))
    filled(writer, os.path.abspath(warpsock))
    for how in ("exit", "quick_exit", "_exit"):
        writer.case(f"{how}() by a second thread does not cut the first one's exit() short",
                    twice(warpsock, how))
    writer.finish()


if __name__ == "__main__":
    main()
