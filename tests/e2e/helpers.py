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
import tempfile
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


# Fills a connection whose reader waits, closes it, and goes on as another program
WRITER = """
import os, socket, sys
memory = bytearray(%d)
memory[::4096] = b"m" * (len(memory) // 4096)
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
sock.setblocking(False)
sent = 0
try:
    while True:
        sent += sock.send(bytes((sent + i) * 7 %% 251 for i in range(10000)))
except BlockingIOError:
    pass
print("sent", sent, flush=True)
if "closed" in sys.argv[2:]:
    sock.close()
os.execv("/bin/sh", ["sh", "-c", "echo begun; read line; exit 0"])
""" % MEMORY

# Accepts, and reads when it is told to
READER = """
import socket, sys
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
listener.bind(("127.0.0.1", 0))
listener.listen()
print("port", listener.getsockname()[1], flush=True)
sock = listener.accept()[0]
sys.stdin.readline()
got = b"".join(iter(lambda: sock.recv(50000), b""))
print("got", len(got), got == bytes(i * 7 % 251 for i in range(len(got))), flush=True)
"""


def relays_of(stage, name="warpsock-relay"):
    """Of programs of this test alone."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text() == f"{name}\n" and \
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


def lingers(stage, name, words, library=None):
    """What went wrong; the executable and the memory of the process that finishes"""
    folder = tempfile.mkdtemp(prefix="warpsock-helpers-", dir="/dev/shm")
    os.chmod(folder, 0o700)
    env = {"WARPSOCK_RUNTIME_DIR": folder}
    reader = stage.start(f"{name}-reader", [PYTHON, "-c", READER], env=env, stdin=-1)
    port = re.search(r"port (\d+)", stage.wait_text(f"{name}-reader", limit=LIMIT)).group(1)
    command = [PYTHON, "-c", WRITER, port, *words]
    if library:
        command = ["env", f"LD_PRELOAD={library}", *command]
    writer = stage.start(name, command, env=env, stdin=-1)
    sent = re.search(r"sent (\d+)", stage.wait_text(name, "begun", LIMIT)).group(1)
    end = time.monotonic() + LIMIT
    found = lone = relays_of(stage, "warpsock-linger")
    # Its name comes before its program
    while time.monotonic() < end and len(found) == 1 and not library and \
            os.readlink(f"/proc/{found[0]}/exe") != HELPER:
        time.sleep(0.02)
    memory = memory_of(lone[0]) if len(lone) == 1 else {}
    exe = os.readlink(f"/proc/{lone[0]}/exe") if len(lone) == 1 else ""
    problems = [] if len(lone) == 1 else [f"processes: {lone}"]
    reader.stdin.write(b"\n")
    reader.stdin.close()
    status = stage.end(reader)
    said = stage.text(f"{name}-reader").splitlines()[-1]
    if status or said != f"got {sent} True":
        problems.append(f"reader: {status}, {said}, not {sent}")
    while relays_of(stage, "warpsock-linger") and time.monotonic() < end:
        time.sleep(0.05)
    if relays_of(stage, "warpsock-linger"):
        problems.append("it is still there")
    left = set(os.listdir(folder)) - {"leases-1", "promised-1"}
    problems += [f"left: {left}"] if left else []
    writer.stdin.close()
    problems += [f"writer: {stage.text(name, 'err')}"] if stage.end(writer) else []
    shutil.rmtree(folder)
    return problems, exe, memory


def linger_small(writer, stage):
    for name, words in ("linger-closed", ["closed"]), ("linger-cloexec", []):
        problems, exe, memory = lingers(stage, name, words)
        if exe != HELPER or not memory or memory["Rss"] > SMALL or memory["Anonymous"] > SMALL // 2:
            problems.append(f"it is {exe} of {memory} bytes")
        writer.case(f"what finishes a connection behind exec has little memory, {name}", problems)


def linger_copy(writer, stage):
    alone = stage.dir / "alone" / "libwarpsock-preload.so"
    problems, exe, _ = lingers(stage, "linger-copy", ["closed"], library=alone)
    problems += [] if "python" in exe else [f"it is {exe}"]
    writer.case("what finishes a connection where the helper is missing", problems)


def main():
    writer = tap.Writer()
    with Stage(sys.argv[1]) as stage:
        small(writer, stage)
        missing(writer, stage)
        chroot(writer, stage)
        subreaper(writer, stage)
        linger_small(writer, stage)
        linger_copy(writer, stage)
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
