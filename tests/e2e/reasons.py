#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reason codes that no other test comes by: each is brought about, and asked for.

    reasons.py WARPSOCK

Each case is a program under warpsock and a peer that is this test, or a process of the same
program. What DDP_INFO says of the socket, or the report, has to be the code.
"""
import errno
import ctypes
import os
import re
import signal
import socket
import struct
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import Stage, free_port  # noqa: E402

# A client that asks, and says what became of it
ASK = """
import socket, struct, sys, time
def info(s):
    return struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2]
s = socket.socket()
try:
    s.connect(("127.0.0.1", int(sys.argv[1])))
    s.sendall(b"x")
    s.settimeout(10)
    s.recv(100)
except OSError as error:
    print("errno", error.errno)
print("reason", info(s), flush=True)
"""
# Both ends in processes of their own; how the second one leaves. If it stops first: what it gets
PAIR = """
import os, select, signal, socket, struct, sys, time
def info(s):
    return struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2]
l = socket.create_server(("127.0.0.1", 0))
pid = os.fork()
if not pid:
    s = socket.create_connection(l.getsockname())
    l.close()
    s.sendall(b"x")
    s.recv(1)
    s.sendall(b"z")
    LEAVE
    os._exit(0)
s = l.accept()[0]
s.recv(1)
s.sendall(b"y")
s.recv(1)
then = sys.argv[2:]
if then:
    os.waitpid(pid, os.WUNTRACED)
try:
    s.setblocking(False)
    try:
        while sys.argv[1]:
            s.send(b"unread" * 1000)
    except BlockingIOError:
        pass
    if then:
        os.kill(pid, getattr(signal, then[0]))
    s.setblocking(True)
    print("got", s.recv(100))
except OSError as error:
    print("errno", error.errno)
print("reason", info(s), flush=True)
os.waitpid(pid, 0)
"""
# sendmsg() is forbidden: a filter of four instructions
CONFINED = """
import ctypes, platform, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
s = socket.socket()
sendmsg = {"x86_64": 46, "aarch64": 211}[platform.machine()]
code = struct.pack("=" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, sendmsg, 0x06, 0, 0, 0x80000000,
                   0x06, 0, 0, 0x7fff0000)
buf = ctypes.create_string_buffer(code)
prog = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(buf)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, prog, 0, 0):
    sys.exit("no filter")
s.connect(("127.0.0.1", int(sys.argv[1])))
"""
# Executes a program that has both ends of a connection in one thread, behind a filter that it
# cannot read and that refuses eventfd2()
REFUSED = """
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
eventfd2 = {"x86_64": 290, "aarch64": 19}[platform.machine()]
code = struct.pack("=" + "HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, eventfd2, 0x06, 0, 0, 0x50001,
                   0x06, 0, 0, 0x7fff0000)
buf = ctypes.create_string_buffer(code)
prog = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(buf)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, prog, 0, 0):
    sys.exit("no filter")
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
BOTH = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
try:
    one = socket.create_connection(listener.getsockname())
    other = listener.accept()[0]
    one.sendall(b"a")
    print(other.recv(1).decode())
except OSError as e:
    print(e.errno)
"""
# A ring, made in one of several ways; then it connects, serves, or had done so before. INLINE is
# io_uring_setup() by a system call of the program's own
RING = """
import ctypes, errno, mmap, platform, socket, struct, sys
INLINE = {"x86_64": "b8a90100000f05c3", "aarch64": "283580d2010000d4c0035fd6"}
def info(s):
    return struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2]
def inline(room):
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex(INLINE[platform.machine()]))
    at = ctypes.addressof(ctypes.c_char.from_buffer(code))
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)(at)(4, room)
def ring():
    ctypes.set_errno(0)
    room = ctypes.create_string_buffer(4096)
    if sys.argv[1] == "inline":
        return inline(room)
    if sys.argv[1] != "syscall":
        alone = sys.argv[1] in ("liburing", "probe")
        lib = ctypes.CDLL("liburing.so.2", ctypes.RTLD_LOCAL if alone else ctypes.RTLD_GLOBAL)
        lib.io_uring_get_probe.restype = ctypes.c_void_p
    if sys.argv[1] == "liburing":
        return lib.io_uring_queue_init(4, room, 0)
    if sys.argv[1] == "global":
        params = ctypes.create_string_buffer(200)
        return ctypes.CDLL(None).io_uring_queue_init_params(4, room, params)
    if sys.argv[1] == "setup":
        return ctypes.CDLL(None).io_uring_setup(4, room)
    if sys.argv[1] == "probe":
        return 0 if lib.io_uring_get_probe() else -1
    r = ctypes.CDLL(None, use_errno=True).syscall(425, 4, room)
    return -ctypes.get_errno() if r < 0 else r
def client():
    s = socket.socket()
    print("connect", s.connect_ex(("127.0.0.1", int(sys.argv[3]))), info(s))
def server():
    listener = socket.create_server(("127.0.0.1", 0))
    other = socket.socket()
    other.connect_ex(listener.getsockname())
    try:
        print("accepted", info(listener.accept()[0]))
    except OSError as error:
        print("accepted not", error.errno)
def before():
    listener = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(listener.getsockname())
    other = listener.accept()[0]
    one.sendall(b"x")
    other.recv(1)
    print("ring", ring())
def serving():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[3])))
    print("listens", flush=True)
    try:
        listener.accept()
    except OSError as error:
        print("accepted not", error.errno)
def given():
    print("ring", min(ring(), 0))
def pair():
    given()
    listener = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(listener.getsockname())
    other = listener.accept()[0]
    one.sendall(b"x")
    print("got", other.recv(1), info(one))
if sys.argv[2] not in ("before", "given", "pair") and ring() < 0:
    print("no ring here")
else:
    globals()[sys.argv[2]]()
"""
# A program that is told of a provider that there is not, which the launcher would not do
ANOTHER = f"""
import os, sys
os.environ["WARPSOCK_PROVIDER"] = "none"
os.execv(sys.executable, [sys.executable, "-c", {ASK!r}, sys.argv[1]])
"""
# Memory for what there is, and not for a ring of 64 MiB besides
SHORT = """
import resource
with open("/proc/self/statm") as statm:
    size = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (16 << 20), -1))
""" + ASK
# The peer takes in what its kernel has room for, which is little, and no more until this one ends
STUCK = """
import os, select, socket, struct, sys, time
def info(s):
    return struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2]
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
listener.bind(("127.0.0.1", 0))
listener.listen()
gone, here = os.pipe()
pid = os.fork()
if not pid:
    os.close(here)
    s = listener.accept()[0]
    s.sendall(b"y")
    s.recv(1)
    os.read(gone, 1)
    print("knows", info(s), flush=True)
    got = 0
    try:
        while data := s.recv(65536):
            got += len(data)
    except OSError as error:
        print("errno", error.errno)
    print("told", info(s), got, "came", flush=True)
    os._exit(0)
s = socket.create_connection(listener.getsockname())
s.sendall(b"x")
s.recv(1)
s.setblocking(False)
sent = 0
try:
    while True:
        sent += s.send(b"unread" * 1000)
except BlockingIOError:
    pass
"""
# Its kernel gives up, for nothing is taken in; its peer does not know, until it takes in what came
TIMEOUT = STUCK.replace("s.setblocking", "s.setsockopt(socket.IPPROTO_TCP, 18, 2000)\n"
                        "s.setblocking") + """
poll = select.poll()
poll.register(s, 0)
poll.poll(100000)
print("reason", info(s), flush=True)
os.close(here)
os.waitpid(pid, 0)
print("sent", sent, flush=True)
"""
EXPIRES = STUCK + """
print("sent", sent, flush=True)
"""
# A connection that its own program drops
DROPS = """
import ctypes, socket, struct
def info(s):
    return struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2]
listener = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(listener.getsockname())
other = listener.accept()[0]
one.sendall(b"x")
other.recv(1)
print(info(one), ctypes.CDLL(None).connect(one.fileno(), bytes(16), 16))
print("reason", info(one), flush=True)
"""
# A connection goes on in another program, and no state of it can be kept
HANDS_ON = """
import socket, subprocess
listener = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(listener.getsockname())
other = listener.accept()[0]
one.sendall(b"x")
other.recv(1)
with subprocess.Popen(["cat"], stdin=other, stdout=other):
    other.close()
    one.sendall(b"hello")
    one.shutdown(socket.SHUT_WR)
    print("got", one.makefile("rb").read())
"""
# A server that says what became of its client
SERVES = """
import socket, struct
def info(s):
    return struct.unpack_from("=III", s.getsockopt(5041, 6, 256))[2]
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
s = listener.accept()[0]
try:
    s.recv(1)
except OSError as error:
    print("errno", error.errno)
print("reason", info(s), flush=True)
"""
REQUEST = 20
CONN_DATA = struct.pack("!BBH3xBQIIQII", 1, 2, 384, 0, 0x10000, 7, 2, 0x100000, 8, 65536)


class Raw:
    """A peer that answers a Request with a Reply of its making, and goes on with what it likes.
    heard is what came behind the Request."""

    def __init__(self, private, then=b"", ends=False):
        private = struct.pack("!HH", 1, 0) + private  # IRD and ORD
        self.reply = b"MPA ID Rep Frame" + struct.pack("!BBH", 0x50, 2, len(private)) + private
        self.then, self.ends = then, ends
        self.heard = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = str(self.listener.getsockname()[1])
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        try:
            while True:
                conn = self.listener.accept()[0]
                threading.Thread(target=self.answer, args=(conn,), daemon=True).start()
        except OSError:
            pass

    def answer(self, conn):
        with conn:
            head = conn.recv(REQUEST, socket.MSG_WAITALL)
            if not head.startswith(b"MPA ID Req Frame"):
                conn.sendall(b"plain")
                return
            conn.recv(struct.unpack("!H", head[18:20])[0], socket.MSG_WAITALL)
            try:
                conn.sendall(self.reply)
                self.heard += conn.recv(1)
                conn.sendall(self.then)
                if self.ends:
                    conn.shutdown(socket.SHUT_WR)
                while data := conn.recv(65536):
                    self.heard += data
            except OSError:
                pass


def asked(warpsock, peer, mode):
    """What the client says of its socket, and its report."""
    with Stage(warpsock) as stage:
        rules = [f"{mode} client * 127.0.0.1:{peer.port}"]
        stage.run("client", [sys.executable, "-c", ASK, peer.port], rules=rules,
                  env={"WARPSOCK_PROBE_TIMEOUT": "10s"})
        return stage.text("client"), stage.report("client")


def says(text, number):
    return [] if f"reason {number}\n" in text else [text]


def parameters(warpsock):
    """PEER_PARAMETERS: MPA, and streams of a version that is none."""
    text, report = asked(warpsock, Raw(b"\x09" + CONN_DATA[1:]), "auto")
    problems = says(text, 106)
    if not report or report["fallbacks"] != {"PEER_PARAMETERS": 1}:
        problems.append(str(report))
    return problems


def foreign(warpsock, mode):
    """The same of a server, whose client is told that it is refused."""
    private = struct.pack("!HH", 1, 0) + b"\x09" + CONN_DATA[1:]
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", SERVES],
                             rules=[f"{mode} server * *:*"])
        port = int(stage.wait_text("server", limit=60))
        with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
            peer.sendall(b"MPA ID Req Frame" + struct.pack("!BBH", 0x50, 2, len(private)) + private)
            reply = peer.recv(REQUEST, socket.MSG_WAITALL)
            stage.end(server)
        problems = says(stage.text("server"), 106)
        if not reply.startswith(b"MPA ID Rep Frame") or not reply[16] & 0x20:
            problems.append(f"the client gets {reply}")
        return problems and problems + [stage.text("server", "err")]


def sandboxed(warpsock):
    """SANDBOXED: a client behind a filter that forbids what start-up needs."""
    with Stage(warpsock) as stage, socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        stage.run("client", [sys.executable, "-c", CONFINED, port], mode="auto")
        report, said = stage.report("client"), stage.text("client", "err")
    return [] if report and report["fallbacks"] == {"SANDBOXED": 1} else [str(report), said]


def sandboxed_outside(warpsock, mode, wanted, times):
    """SANDBOXED: a program behind a filter that stood before it began."""
    with Stage(warpsock) as stage:
        stage.run("program", [sys.executable, "-c", REFUSED, BOTH], mode=mode)
        report, said = stage.report("program"), stage.text("program").strip()
        err = stage.text("program", "err")
    good = report and report["fallbacks"] == {"SANDBOXED": times} and said == wanted
    return [] if good else [str(report), said, err]


def ring(warpsock, how, what, mode, allow, wanted, fallbacks):
    """IO_URING: connections of a program that uses io_uring; rings that are refused."""
    way = {"rules": ["tcp * * *:*", "ddp * * *:*"]} if mode == "tcp" else {"mode": mode}
    if allow:
        way["env"] = {"WARPSOCK_URING": "allow"}
    with Stage(warpsock) as stage, socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        stage.run("client", [sys.executable, "-c", RING, how, what, port], **way)
        report, said = stage.report("client"), stage.text("client").strip().replace("\n", ", ")
        if said == "no ring here":
            return None
        problems = [] if said == wanted else [f"{said}, not {wanted}", stage.text("client", "err")]
        if not report or report["fallbacks"] != fallbacks:
            problems.append(str(report))
        return problems


RINGS = (
    ("syscall", "client", "auto", True, "connect 0 208", {"IO_URING": 1}),
    ("liburing", "client", "auto", True, "connect 0 208", {"IO_URING": 1}),
    ("inline", "client", "auto", False, "connect 0 208", {"IO_URING": 1}),
    ("syscall", "client", "on", True, "connect 95 208", {"IO_URING": 1}),
    ("inline", "client", "on", False, "connect 95 208", {"IO_URING": 1}),
    ("syscall", "server", "auto", True, "accepted 208", {"IO_URING": 2}),
    ("syscall", "before", "on", True, "ring -1", {}),
    ("syscall", "pair", "on", False, "ring -1, got b'x' 0", {}),
    ("liburing", "pair", "on", False, "ring -1, got b'x' 0", {}),
    ("global", "pair", "on", False, "ring -1, got b'x' 0", {}),
    ("setup", "pair", "on", False, "ring -1, got b'x' 0", {}),
    ("probe", "pair", "on", False, "ring -1, got b'x' 0", {}),
    ("global", "given", "on", True, "ring 0", {}),
    ("setup", "given", "on", True, "ring 0", {}),
    ("syscall", "given", "auto", False, "ring -1", {}),
    ("liburing", "given", "tcp", False, "ring 0", {}),
)


def ring_serves(warpsock):
    """In mode on accept() fails, and the peer finds its connection closed."""
    port = free_port()
    with Stage(warpsock) as stage:
        server = stage.start("server", [sys.executable, "-c", RING, "syscall", "serving",
                                        str(port)], env={"WARPSOCK_URING": "allow"})
        try:
            stage.wait_text("server", limit=60)
        except RuntimeError:
            pass
        if "no ring here" in stage.text("server"):
            return None
        with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
            stage.end(server)
            problems = [] if peer.recv(1) == b"" else ["the peer is still connected"]
        if stage.text("server").split("\n")[1:2] != ["accepted not 103"]:
            problems += [stage.text("server"), stage.text("server", "err")]
        report = stage.report("server")
        return problems + ([] if report and report["fallbacks"] == {"IO_URING": 1} else
                           [str(report)])


def rings(writer, warpsock):
    problems = ring_serves(warpsock)
    if problems is None:
        writer.skip("IO_URING, a server in mode on", "the kernel gives no ring")
    else:
        writer.case("IO_URING, a server in mode on", problems)
    for how, what, mode, allow, wanted, fallbacks in RINGS:
        name = f"IO_URING, {how}, {what}, mode {mode}{', allowed' if allow else ''}"
        try:
            if how not in ("syscall", "inline"):
                ctypes.CDLL("liburing.so.2")
            problems = ring(warpsock, how, what, mode, allow, wanted, fallbacks)
        except OSError:
            writer.skip(name, "no liburing here")
            continue
        if problems is None:
            writer.skip(name, "the kernel gives no ring")
        else:
            writer.case(name, problems)


def unreachable(warpsock):
    """UNREACHABLE: nobody listens."""
    with Stage(warpsock) as stage:
        stage.run("client", [sys.executable, "-c", ASK, str(free_port())])
        return says(stage.text("client"), 108)


def plain_peer(warpsock):
    """In mode on the reason is told, too, when start-up has failed."""
    with Stage(warpsock) as stage, socket.create_server(("127.0.0.1", 0)) as listener:
        proc = stage.start("client", [sys.executable, "-c", ASK, str(listener.getsockname()[1])])
        with listener.accept()[0] as conn:
            conn.recv(1)
            conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            stage.end(proc)
        return says(stage.text("client"), 100)


def unavailable(warpsock, name, code, **env):
    """A client in mode auto that could not have a stream."""
    with Stage(warpsock) as stage, socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        threading.Thread(target=lambda: listener.accept()[0].sendall(b"hello"),
                         daemon=True).start()
        stage.run("client", [sys.executable, "-c", code, port],
                  rules=[f"auto client * 127.0.0.1:{port}"], env=env)
        report = stage.report("client")
        return [] if report and report["fallbacks"] == {name: 1} else \
            [str(report), stage.text("client"), stage.text("client", "err")]


def alone(warpsock, code, number):
    with Stage(warpsock) as stage:
        stage.run("program", [sys.executable, "-c", code], limit=110)
        problems = says(stage.text("program"), number)
        return problems and problems + [stage.text("program", "err")]


def timed_out(warpsock):
    """TIMED_OUT: the other end has the beginning of what was sent, and is told when it answers."""
    with Stage(warpsock) as stage:
        stage.run("program", [sys.executable, "-c", TIMEOUT], limit=110)
        said = stage.text("program")
        problems = says(said, 308)
        told = re.search(r"knows 0\nerrno 104\ntold 301 (\d+) came\nsent (\d+)\n", said)
        if not told or not 0 < int(told[1]) < int(told[2]):
            problems.append(said)
        return problems and problems + [stage.text("program", "err")]


def expired(warpsock):
    """LINGER_EXPIRED: a program ends, and its peer, deaf till then, has all or is told."""
    with Stage(warpsock) as stage:
        stage.run("program", [sys.executable, "-c", EXPIRES], env={"WARPSOCK_LINGER": "1"})
        said = stage.wait_text("program", "came", 60)
        report = stage.report("program")
        problems = [] if report and report["fallbacks"] == {"LINGER_EXPIRED": 1} else [str(report)]
        sent = re.search(r"sent (\d+)", said)[1]
        reason, came = re.search(r"told (\d+) (\d+)", said).groups()
        if reason not in ("301", "302") and (reason, came) != ("300", sent):
            problems.append(said)
        return problems and problems + [stage.text("program", "err")]


def folderless(warpsock):
    """RUNTIME_DIR: a relay serves a connection that another program is given."""
    with Stage(warpsock) as stage:
        stage.run("program", [sys.executable, "-c", HANDS_ON],
                  env={"WARPSOCK_RUNTIME_DIR": "/proc/none"})
        said, report = stage.text("program"), stage.report("program")
        return [] if "got b'hello'" in said and report and \
            report["fallbacks"] == {"RUNTIME_DIR": 1} else \
            [str(report), said, stage.text("program", "err")]


def fault(warpsock):
    """FAULT: what follows the Reply is an FPDU with a bad CRC."""
    text, _ = asked(warpsock, Raw(CONN_DATA, b"\x00\x04" + b"\xff" * 100), "ddp")
    return says(text, 304)


def left(warpsock, how, number, *then, flood=True):
    with Stage(warpsock) as stage:
        stage.run("pair", [sys.executable, "-c", PAIR.replace("LEAVE", how), "f" * flood,
                           *then])
        return says(stage.text("pair"), number)


def aborted(warpsock):
    """PEER_ABORTED: the peer's program closes with SO_LINGER 0."""
    return left(warpsock, 's.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, '
                'struct.pack("ii", 1, 0)); s.close()', 305)


def reset(warpsock):
    """PEER_RESET: the peer is killed with octets in its kernel that nobody has taken from there."""
    return left(warpsock, "os.kill(os.getpid(), signal.SIGSTOP)", 301, "SIGKILL")


def taken(warpsock):
    """The same, but the stream has taken them in: nobody can say so."""
    return left(warpsock, """os.kill(os.getpid(), signal.SIGSTOP)
    for _ in range(100):
        select.select([s], [], [], 0)
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)""", 300, "SIGCONT")


def cut(warpsock):
    """PEER_CUT: the peer's FIN comes within an FPDU."""
    text, _ = asked(warpsock, Raw(CONN_DATA, b"\x00\x40half", ends=True), "ddp")
    return says(text, 302)


def closed(warpsock):
    """CLOSED: the peer closes, having read everything."""
    return left(warpsock, "s.close()", 300, flood=False)


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    writer.case("PEER_PARAMETERS", parameters(warpsock))
    for mode in ("auto", "ddp"):
        writer.case(f"PEER_PARAMETERS, a server by a rule for {mode}", foreign(warpsock, mode))
    writer.case("SANDBOXED", sandboxed(warpsock))
    writer.case("SANDBOXED, by a filter of others, mode auto",
                sandboxed_outside(warpsock, "auto", "a", 2))
    writer.case("SANDBOXED, by a filter of others, mode on",
                sandboxed_outside(warpsock, "on", str(errno.EOPNOTSUPP), 1))
    rings(writer, warpsock)
    writer.case("UNREACHABLE", unreachable(warpsock))
    writer.case("a plain peer, in mode on", plain_peer(warpsock))
    writer.case("PROVIDER_UNAVAILABLE", unavailable(
        warpsock, "PROVIDER_UNAVAILABLE", ANOTHER))
    writer.case("NO_MEMORY", unavailable(warpsock, "NO_MEMORY", SHORT, WARPSOCK_RING="64M"))
    writer.case("ABORTED", alone(warpsock, DROPS, 306))
    writer.case("TIMED_OUT", timed_out(warpsock))
    writer.case("LINGER_EXPIRED", expired(warpsock))
    writer.case("RUNTIME_DIR", folderless(warpsock))
    writer.case("FAULT", fault(warpsock))
    writer.case("PEER_ABORTED", aborted(warpsock))
    writer.case("PEER_RESET", reset(warpsock))
    writer.case("killed with octets unread that were taken in", taken(warpsock))
    writer.case("PEER_CUT", cut(warpsock))
    writer.case("CLOSED", closed(warpsock))
    writer.finish()


if __name__ == "__main__":
    main()
