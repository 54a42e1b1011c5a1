#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who closes a connection last cannot come to its names any more: places.py WARPSOCK COPY.

    client ==== DDP ==== server, root --- fork, becomes another ---> the last who has it

None of the names in the folder of states is left while the server lives. COPY is linked statically,
and served by a relay. A call that the kernel refuses, or that lets the process come back, takes no
name away.
"""
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

PYTHON = "/usr/bin/python3"
COPY = os.path.abspath(sys.argv[2])
LIMIT = 60

# Its child echoes, by itself or by a program that it executes
SERVER = """
import os, signal, socket, sys
act, root, program = sys.argv[1:]
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
def become():
    if root:
        os.chroot(root)
        os.chdir("/")
    if act:
        exec("os." + act)
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
while True:
    connection = listener.accept()[0]
    if os.fork():
        connection.close()
        continue
    become()
    if program:
        for number in 0, 1, 2:
            os.dup2(connection.fileno(), number)
        os.closerange(3, 256)
        os.execv(program, [program])
    while data := connection.recv(1000):
        connection.sendall(data)
    connection.close()
    os._exit(0)
"""
CLIENT = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
sock.sendall(b"hello")
print(sock.recv(5, socket.MSG_WAITALL), flush=True)
sock.shutdown(socket.SHUT_WR)
print(sock.recv(1), flush=True)
"""
WAYS = (
    ("setuid()", "setuid(65534)", ""),
    ("setreuid()", "setreuid(65534, 65534)", ""),
    ("setresuid()", "setresuid(65534, 65534, 65534)", ""),
    ("setresuid() of one who may come back", "setresuid(65534, 65534, 0)", ""),
    ("seteuid()", "seteuid(65534)", ""),
    ("setuid() to the same user", "setuid(0)", ""),
    ("chroot()", "", "root"),
    ("chroot() and setuid()", "setuid(65534)", "root"),
)


# It has a connection, and makes calls behind which it may still come to the names
STAYS = """
import ctypes, errno, os, socket, sys
folder, root, before, call = sys.argv[1:]
class Caps(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32),
                ("inheritable", ctypes.c_uint32)]
def without(*numbers):
    head, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (Caps * 2)()
    libc = ctypes.CDLL(None, use_errno=True)
    assert not libc.capget(head, data)
    for number in numbers:
        data[0].effective &= ~(1 << number)
    assert not libc.capset(head, data), os.strerror(ctypes.get_errno())
SETUID, SYS_CHROOT = 7, 18
names = lambda: sorted(name for name in os.listdir(folder) if "-" not in name)
exec(before)
with socket.create_server(("127.0.0.1", 0)) as listener:
    client = socket.create_connection(listener.getsockname())
    server = listener.accept()[0]
client.sendall(b"hello")
assert server.recv(5) == b"hello"
there = names()
said = ""
try:
    exec(call)
except OSError as error:
    said = errno.errorcode[error.errno]
print(said, bool(there), names() == there, flush=True)
"""
REFUSED = "without(SETUID, SYS_CHROOT)"
OTHERS = (
    ("setuid() that is refused", REFUSED, "os.setuid(65533)", "EPERM"),
    ("setreuid() that is refused", REFUSED, "os.setreuid(65533, 65533)", "EPERM"),
    ("setresuid() that is refused", REFUSED, "os.setresuid(65533, 65533, 65533)", "EPERM"),
    ("chroot() that is refused", REFUSED, "os.chroot(root)", "EPERM"),
    ("chroot() to no folder", "", "os.chroot('/etc/passwd')", "ENOTDIR"),
    ("setreuid(-1, -1)",
     "os.chown(folder, 65534, -1); os.seteuid(65534)",
     "os.seteuid(0); os.setresuid(65532, 65533, 65534); os.setreuid(-1, -1); "
     "os.setresuid(-1, 65534, -1)", ""),
)


def stays_problems(stage, number, before, call, error):
    folder = tempfile.mkdtemp(prefix="warpsock-places-", dir="/dev/shm")
    name = f"stays{number}"
    status = stage.run(name, [PYTHON, "-c", STAYS, folder, str(stage.dir / "root"), before, call],
                       env={"WARPSOCK_RUNTIME_DIR": folder}, limit=LIMIT)
    said = stage.text(name)
    shutil.rmtree(folder)
    return [] if not status and said == f"{error} True True\n" else \
        [f"status {status}: {said}{stage.text(name, 'err')}"]


def names(folder):
    """But for the pages that all processes of the user share."""
    return sorted(set(os.listdir(folder)) - {"leases-1", "promised-1"})


def soon(wanted, limit=LIMIT):
    end = time.monotonic() + limit
    while not wanted() and time.monotonic() < end:
        time.sleep(0.02)
    return wanted()


def problems_of(stage, name, act, root, program):
    """@program: executed by the child"""
    folder = tempfile.mkdtemp(prefix="warpsock-places-", dir="/dev/shm")
    os.chmod(folder, 0o700)
    env = {"WARPSOCK_RUNTIME_DIR": folder}
    server = stage.start(name, [PYTHON, "-c", SERVER, act, root, program], env=env)
    port = stage.wait_text(name).split()[1]
    problems = []
    for i in range(2):
        client = f"{name}-client{i}"
        status = stage.run(client, [PYTHON, "-c", CLIENT, port], limit=LIMIT)
        if status or stage.text(client) != "b'hello'\nb''\n":
            problems.append(f"status {status}: {stage.text(client)}{stage.text(client, 'err')}")
    if not soon(lambda: not names(folder)):
        problems.append(f"left: {names(folder)}")
    server.send_signal(signal.SIGTERM)
    stage.end(server)
    problems += [] if not names(folder) else [f"left at the end: {names(folder)}"]
    shutil.rmtree(folder)
    return problems


def main():
    writer = tap.Writer()
    if os.geteuid():
        writer.skip("names of connections of those who become another", "only root may")
        return writer.finish()
    with Stage(sys.argv[1]) as stage:
        os.chmod(stage.dir, 0o755)
        root = stage.dir / "root"
        root.mkdir()
        inside = shutil.copy(COPY, root / "copy")
        for number, (what, act, where) in enumerate(WAYS):
            where = where and str(root)
            for how, program in (("", ""), (", and a relay", "/copy" if where else inside)):
                name = f"way{number}{'relay' if program else ''}"
                writer.case(f"no name is left behind {what}{how}",
                            problems_of(stage, name, act, where, program))
        for number, (what, before, call, error) in enumerate(OTHERS):
            writer.case(f"names stay: {what}", stays_problems(stage, number, before, call, error))
    return writer.finish()


if __name__ == "__main__":
    sys.exit(main())
