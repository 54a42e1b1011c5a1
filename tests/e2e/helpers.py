#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The interposer's own processes: helpers.py WARPSOCK COPY LIBRARY.

    client ==== DDP ==== server --- fork, dup2, exec ---> COPY, linked statically
                           \\--- relay: a small program, and nobody's child

The server has much memory, and waits for any child.
"""
import os
import re
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

PYTHON = "/usr/bin/python3"
COPY = os.path.abspath(sys.argv[2])
LIBRARY = os.path.abspath(sys.argv[3])
HELPER = os.path.join(os.path.dirname(LIBRARY), "warpsock-helper")
LIMIT = 60
MEMORY = 500 << 20
# A program of a few MiB, which Python with its memory is not
SMALL = 32 << 20

# Says its port, the process that it made, and each that it waited for
SERVER = """
import ctypes, os, socket, sys
if "subreaper" in sys.argv[2:]:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
memory = bytearray(%d)
memory[::4096] = b"m" * (len(memory) // 4096)
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
connection = listener.accept()[0]
child = os.fork()
if not child:
    for number in 0, 1:
        os.dup2(connection.fileno(), number)
    os.closerange(3, 256)
    if sys.argv[2:3] == ["chroot"]:
        os.chroot(sys.argv[3])
        os.execv("/copy", ["copy"])
    os.execv(sys.argv[1], sys.argv[1:2])
connection.close()
print("made", child, flush=True)
while True:
    try:
        print("waited for", os.wait()[0], flush=True)
    except ChildProcessError:
        break
print("no child is left", flush=True)
sys.stdin.read()
""" % MEMORY

# One echo, then the same once more for each word of standard input's
CLIENT = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
def echo():
    data = bytes(i * 7 % 251 for i in range(300000))
    got = b""
    for at in range(0, len(data), 10000):
        sock.sendall(data[at:at + 10000])
        while len(got) < at + 10000:
            got += sock.recv(10000)
    print("whole" if got == data else "other octets", flush=True)
echo()
sys.stdin.readline()
echo()
sock.shutdown(socket.SHUT_WR)
print("end", sock.recv(1), flush=True)
"""


def relays_of(stage):
    """Of programs of this test alone."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text() == "warpsock-relay\n" and \
                    str(stage.dir).encode() in (path.parent / "environ").read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def memory_of(pid):
    """Bytes that are resident, and not another's as well."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return {what: int(re.search(rf"{what}:\s+(\d+)", text)[1]) << 10
            for what in ("Rss", "Private_Dirty", "Anonymous")}


class Served:
    """A server, its client, and the relay of the program that the server executed."""

    def __init__(self, stage, name, *words, env=None, library=None):
        self.stage, self.name = stage, name
        server = [PYTHON, "-c", SERVER, COPY, *words]
        if library:
            server = ["env", f"LD_PRELOAD={library}", *server]
        self.server = stage.start(name, server, env=env, stdin=-1)
        port = re.search(r"port (\d+)", stage.wait_text(name, limit=LIMIT)).group(1)
        self.client = stage.start(f"{name}-client", [PYTHON, "-c", CLIENT, port], stdin=-1)
        stage.wait_text(f"{name}-client", "\n", LIMIT)
        stage.wait_text(name, "made", LIMIT)
        self.child = re.search(r"made (\d+)", stage.text(name)).group(1)
        self.relays = relays_of(stage)

    def exe(self):
        return os.readlink(f"/proc/{self.relays[0]}/exe")

    def end(self, waited=()):
        """What went wrong until the end; @waited: whom the server waits for besides its child."""
        self.client.stdin.write(b"\n")
        self.client.stdin.flush()
        status = self.stage.end(self.client)
        said = self.stage.text(f"{self.name}-client")
        problems = [] if (status, said) == (0, "whole\nwhole\nend b''\n") else \
            [f"client: {status}, {said}, {self.stage.text(self.name + '-client', 'err')}"]
        end = time.monotonic() + LIMIT
        while relays_of(self.stage) and time.monotonic() < end:
            time.sleep(0.05)
        if relays_of(self.stage):
            problems.append("the relay is still there")
        self.stage.wait_text(self.name, "no child is left", LIMIT)
        self.server.stdin.close()
        status = self.stage.end(self.server)
        said = re.findall(r"waited for (\d+)", self.stage.text(self.name))
        if status or sorted(said) != sorted([self.child, *map(str, waited)]):
            problems.append(f"server: {status}, made {self.child}, waited for {said}")
        return problems


def small(writer, stage):
    served = Served(stage, "small")
    problems = [] if len(served.relays) == 1 else [f"relays: {served.relays}"]
    if not problems:
        memory = memory_of(served.relays[0])
        if served.exe() != HELPER:
            problems.append(f"it is {served.exe()}")
        if memory["Rss"] > SMALL or memory["Anonymous"] > SMALL // 2:
            problems.append(f"{memory} bytes")
        with open(f"/proc/{served.relays[0]}/cmdline") as line:
            if "python" in line.read():
                problems.append("its command line is its maker's")
    problems += served.end()
    if (stage.report("small") or {}).get("connections", {}).get("software") != 1:
        problems.append(f"the server's report: {stage.report('small')}")
    writer.case("a relay has little memory, and no wait() sees it", problems)


def missing(writer, stage):
    """The library is loaded from a folder where it is alone: a relay is a copy."""
    folder = stage.dir / "alone"
    folder.mkdir()
    alone = shutil.copy(LIBRARY, folder / "libwarpsock-preload.so")
    served = Served(stage, "missing", library=alone)
    problems = [] if len(served.relays) == 1 else [f"relays: {served.relays}"]
    if not problems and "python" not in served.exe():
        problems.append(f"it is {served.exe()}")
    problems += served.end()
    writer.case("a relay where the helper is missing", problems)


def chroot(writer, stage):
    """The path of the helper is nothing, or another file, there."""
    what = "a relay behind chroot"
    if os.getuid():
        writer.skip(what, "only root may")
        return
    root = stage.dir / "root"
    for path in (HELPER, LIBRARY):
        there = Path(f"{root}{path}")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(COPY, there)
    shutil.copy(COPY, root / "copy")
    served = Served(stage, "chroot", "chroot", str(root))
    problems = [] if len(served.relays) == 1 else [f"relays: {served.relays}"]
    if not problems and "python" not in served.exe():
        problems.append(f"it is {served.exe()}")
    problems += served.end()
    writer.case(what, problems)


def subreaper(writer, stage):
    """As it is given all that its descendants leave behind."""
    served = Served(stage, "subreaper", "subreaper")
    problems = [] if len(served.relays) == 1 else [f"relays: {served.relays}"]
    writer.case("a subreaper is given the relay", problems + served.end(served.relays))


def main():
    writer = tap.Writer()
    with Stage(sys.argv[1]) as stage:
        small(writer, stage)
        missing(writer, stage)
        chroot(writer, stage)
        subreaper(writer, stage)
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
