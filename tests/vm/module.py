#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Connections of the kernel module warp_ddp, over loopback, in the lab's guest.

    module.py calls             prints TAP
    module.py cycles N          so many connections, one after the other
    module.py chance SEED SECONDS   streams of changed FPDUs, until the time is over
    module.py hold              one connection until it is killed
    module.py asks ADDR PORT CRC SIZE...    over TCP to script_verbs on siw: a message of each
    module.py serves ADDR PORT CRC SIZE...  size each way, and the end; who starts sends first

An end is a socket that was handed over, or a peer made of a plain socket (rawpeer.py), which can
send what no stack sends.
"""
import ctypes
import errno
import mmap
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import rawpeer  # noqa: E402
from rawpeer import tap  # noqa: E402

SOL_TCP, TCP_ULP, TCP_REPAIR = 6, 31, 19
SOL_DDP, DDP_INFO, DDP_REG_MR, DDP_DEREG_MR, DDP_HANDOVER = 5041, 6, 7, 8, 64
REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC = 2, 4, 8
RESPONDER, CRC, TX_MARKERS, RX_MARKERS, GATED, ALIGNED = 1, 2, 4, 8, 16, 32
HANDOVER = "<IIIHH4I4IHHIQII"
INFO = "<IIII16sBBBBIIHH4B4B7Q"
SEND = ">BBIIII"
WAIT = 10


class Closing(list):
    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in self:
            one.close()


def tcp_pair(family=socket.AF_INET, mss=None):
    with socket.socket(family) as listener:
        if mss:
            listener.setsockopt(SOL_TCP, socket.TCP_MAXSEG, mss)
        listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        listener.listen(1)
        client = socket.socket(family)
        client.connect(listener.getsockname()[:2])
        server = listener.accept()[0]
    for one in client, server:  # it is the kernel that waits
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("qq", WAIT, 0))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", WAIT, 0))
    return client, server


def handover(flags, mulpdu=0, recv_max=0, depth=0, msn=1, left=b"", phase=0, reserved=0):
    buffer = ctypes.create_string_buffer(left, max(len(left), 1))
    packed = struct.pack(HANDOVER, flags, mulpdu, recv_max, depth, depth, *[msn] * 4, *[msn] * 4,
                         phase, phase, len(left), ctypes.addressof(buffer), reserved, 0)
    return packed, buffer


def hand(sock, flags, **more):
    sock.setsockopt(SOL_TCP, TCP_ULP, b"ddp")
    packed, _alive = handover(flags, **more)
    sock.setsockopt(SOL_DDP, DDP_HANDOVER, packed)
    return sock


def kernel_pair(flags, family=socket.AF_INET, mss=None):
    client, server = tcp_pair(family, mss)
    hand(client, flags)
    hand(server, flags | RESPONDER)
    return Closing([client, server])


def raw_pair(flags=CRC, **more):
    """A handed socket, a responder, and the peer that can send anything."""
    client, server = tcp_pair()
    peer = rawpeer.Peer(client)
    peer.crc = bool(flags & CRC)
    hand(server, flags | RESPONDER, **more)
    return server, peer


def info(sock):
    values = struct.unpack(INFO, sock.getsockopt(SOL_DDP, DDP_INFO, struct.calcsize(INFO)))
    return {"connected": values[1], "provider": values[4].rstrip(b"\0"), "mulpdu": values[9],
            "local": values[13:17], "peer": values[17:21], "tx_messages": values[25]}


def pattern(size, seed=1):
    return bytes((seed + i * 7 + i // 251) % 256 for i in range(min(size, 4096))) * (
        size // 4096 + 1)


def message(size, seed=1):
    return pattern(size, seed)[:size]


def take(sock, room=1 << 20, flags=0):
    octets, _, got, _ = sock.recvmsg(room, 0, flags)
    return octets, got


def expect_errno(wanted, call, *args):
    try:
        call(*args)
    except OSError as error:
        return [] if error.errno == wanted else [errno.errorcode.get(error.errno, repr(error))]
    return ["no error"]


def expect(*pairs):
    return [f"{got!r:.200}, not {wanted!r:.200}" for got, wanted in pairs if got != wanted]


def in_child(work, *words):
    """Forks; the child does this and nothing else. It ends with 0 where that finds nothing bad."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 2
    try:
        bad = work(*words)
        status = 1 if bad else 0
        if bad:
            print(f"# in the child: {bad}")
    except BaseException as error:  # also SystemExit: its caller is the parent's code
        print(f"# in the child: {error!r}")
    finally:
        sys.stdout.flush()
        os._exit(status)


def child_ends(child):
    return expect((os.waitpid(child, 0)[1], 0))


# --- messages -------------------------------------------------------------------------------------


def sizes_of(sock):
    room = info(sock)["mulpdu"] - 18
    return [0, 1, 2, 3, room - 1, room, room + 1, 3 * room, 65535, 65536]


def both_ways(flags, family=socket.AF_INET, mss=None):
    with kernel_pair(flags, family, mss) as (a, b):
        for seed, size in enumerate(sizes_of(a)):
            for one, other in (a, b), (b, a):
                wanted = message(size, seed)
                one.sendall(wanted) if size else one.sendmsg([b""])
                got, how = take(other)
                if got != wanted or not how & socket.MSG_EOR:
                    return [f"{size} octets came as {len(got)}, flags {how:#x}"]
        told = info(a)
        a.shutdown(socket.SHUT_WR)
        got, how = take(b)
        return expect((told["provider"], b"kernel"), (told["connected"], 1),
                      (told["tx_messages"], 10), ((got, how & socket.MSG_EOR), (b"", 0)))


def truncated():
    with kernel_pair(CRC) as (a, b):
        a.send(b"abcdefgh")
        a.send(b"next")
        peeked, _ = take(b, 4, socket.MSG_PEEK)
        first, how = take(b, 4)
        return expect((peeked, b"abcd"), (first, b"abcd"), (bool(how & socket.MSG_TRUNC), True),
                      (take(b)[0], b"next"))


def scattered():
    """A bad address in the middle of a message: nothing of it is sent."""
    with kernel_pair(CRC) as (a, b):
        a.sendmsg([b"ab", b"", b"cde"])
        buffers = [bytearray(2), bytearray(10)]
        n, _, _, _ = b.recvmsg_into(buffers)
        return expect((n, 5), (bytes(buffers[0] + buffers[1][:3]), b"abcde"))


def cut_anywhere():
    server, peer = raw_pair()
    wire = peer.framed(struct.pack(SEND, 0x41, 0x43, 0, 0, 1, 0) + b"hello")
    with Closing([server, peer.sock]):
        for number, cut in enumerate(range(1, len(wire)), 1):
            wire = peer.framed(struct.pack(SEND, 0x41, 0x43, 0, 0, number, 0) + b"hello")
            peer.sock.sendall(wire[:cut])
            time.sleep(0.002)
            early = select.select([server], [], [], 0)[0]
            peer.sock.sendall(wire[cut:])
            if early or take(server)[0] != b"hello":
                return [f"cut at {cut}: readable before: {bool(early)}"]
    return []


def small_segments():
    server, peer = raw_pair(0, recv_max=20000)
    wanted = message(20000)
    with Closing([server, peer.sock]):
        parts = [peer.framed(struct.pack(SEND, 0x41 if at == 19999 else 1, 0x43, 0, 0, 1, at)
                             + wanted[at:at + 1]) for at in range(20000)]
        peer.sock.sendall(b"".join(parts))
        return expect((take(server)[0] == wanted, True))


def left_over():
    client, server = tcp_pair()
    peer = rawpeer.Peer(client)
    peer.crc = True
    wire = b"".join(peer.framed(struct.pack(SEND, 0x41, 0x43, 0, 0, number, 0) + message(1000))
                    for number in (5, 6, 7))
    with Closing([client, server]):
        client.sendall(wire[1500:])
        time.sleep(0.05)
        hand(server, RESPONDER | CRC, msn=5, left=wire[:1500])
        got = [take(server)[0] for _ in range(3)]
        server.send(b"x")
        return expect((got, [message(1000)] * 3), (peer.get()[10:14], struct.pack(">I", 5)))


def gate():
    server, peer = raw_pair(CRC | GATED)
    poll = select.poll()
    poll.register(server, select.POLLOUT | select.POLLIN)
    with Closing([server, peer.sock]):
        before = poll.poll(0)
        bad = expect_errno(errno.EAGAIN, server.send, b"x", socket.MSG_DONTWAIT)
        peer.write_retry()
        events = poll.poll(2000)
        server.send(b"first")
        return bad + expect((before, []), (events, [(server.fileno(), select.POLLOUT)]),
                            (peer.message(), b"first"))


def reads_of_nothing():
    """The ready-to-receive message as a Read is answered."""
    server, peer = raw_pair(CRC | GATED, depth=1)
    with Closing([server, peer.sock]):
        peer.put(rawpeer.RTR_READ)
        answer = peer.get()
        return expect((answer[:2], b"\xc1\x42"), (answer[2:6], struct.pack(">I", 1)))


def bounded():
    """The peer sends and nobody reads: it has to stop, and nothing is lost."""
    server, peer = raw_pair(0)
    with Closing([server, peer.sock]):
        sent, number = 0, 0
        peer.sock.settimeout(1)
        try:
            while sent < 64 << 20:
                number += 1
                wire = peer.framed(struct.pack(SEND, 0x41, 0x43, 0, 0, number, 0) + message(999))
                part = 0
                while part < len(wire):
                    part += peer.sock.send(wire[part:])
                sent += len(wire)
        except TimeoutError:
            number -= 1
        for _ in range(number):
            if take(server)[0] != message(999):
                return ["another message"]
        print(f"# {sent} octets before the peer had to wait")
        return [] if sent < 32 << 20 else [f"{sent} octets were taken"]


def crowded():
    """send() that does not wait: each message it takes arrives, those it refuses do not."""
    with kernel_pair(CRC) as (a, b):
        taken = 0
        try:
            while True:
                a.send(message(60000, taken), socket.MSG_DONTWAIT)
                taken += 1
        except BlockingIOError:
            pass
        poll = select.poll()
        poll.register(a, select.POLLOUT)
        full = poll.poll(0)
        for seed in range(taken):
            if take(b)[0] != message(60000, seed):
                return [f"message {seed} of {taken} is another"]
        print(f"# {taken} messages of 60000 octets")
        return expect((full, []), (poll.poll(5000), [(a.fileno(), select.POLLOUT)]),
                      (select.select([b], [], [], 0.1)[0], []))


# --- ends -----------------------------------------------------------------------------------------


def head(ctl=0x41, op=0x43, qn=0, msn=1, mo=0):
    return struct.pack(SEND, ctl, op, 0, qn, msn, mo)


# What the peer puts, and the Terminate that it gets
FAULTS = {
    "a wrong CRC": ((2, 0, 2), lambda p: p.put(head() + b"x", crc=1)),
    "shorter than its header": ((1, 0, 0), lambda p: p.put(head()[:10])),
    "nothing in an FPDU": ((1, 0, 0), lambda p: p.put(b"")),
    "DDP version 0, untagged": ((1, 2, 6), lambda p: p.put(head(ctl=0x40))),
    "DDP version 0, tagged": ((1, 1, 4), lambda p: p.put(struct.pack(">BBIQ", 0xC0, 0x40, 1, 0))),
    "RDMAP version 2": ((0, 2, 5), lambda p: p.put(head(op=0x83))),
    "an opcode that nobody has": ((0, 2, 6), lambda p: p.put(head(op=0x4F))),
    "a queue that nobody has": ((1, 2, 1), lambda p: p.put(head(qn=9))),
    "a Send on queue 1": ((0, 2, 6), lambda p: p.put(head(qn=1))),
    "an MSN too high": ((1, 2, 3), lambda p: p.put(head(msn=2))),
    "an MSN again": ((1, 2, 3), lambda p: [p.put(head() + b"y"), p.put(head() + b"z")]),
    "an MO in the first segment": ((1, 2, 4), lambda p: p.put(head(mo=4) + b"x")),
    "a gap of MO": ((1, 2, 4), lambda p: [p.put(head(ctl=1) + b"x"), p.put(head(mo=2) + b"x")]),
    "a message longer than recv_max": ((1, 2, 5), lambda p: p.put(head() + bytes(5001))),
    "a Write to an STag": ((1, 1, 0), lambda p: p.tagged(rawpeer.WRITE, 0x1234500, 0, b"x")),
    "a Read Request without IRD": ((1, 2, 2), lambda p: p.read(1, 0, 4, 0x1234500, 0)),
    "a Read Response that nobody waits for": (
        (0, 2, 6), lambda p: p.tagged(rawpeer.READ_RESPONSE, 1, 0, b"x")),
    "an invalidation": ((0, 1, 9), lambda p: p.put(struct.pack(SEND, 0x41, 0x44, 7, 0, 1, 0))),
}


def terminate_of(peer):
    """Layer, type and code of the Terminate, then how the stream ends."""
    found = None
    try:
        while True:
            ulpdu = peer.get()
            if ulpdu[1] & 15 == rawpeer.TERMINATE:
                found = ulpdu[18] >> 4, ulpdu[18] & 15, ulpdu[19]
    except rawpeer.Ended as why:
        return found, str(why)


def fault(wanted, act):
    server, peer = raw_pair(recv_max=5000)
    with Closing([server, peer.sock]):
        act(peer)
        heard = terminate_of(peer)
        while True:
            try:
                got, how = take(server)
                bad = [] if how & socket.MSG_EOR else ["EOF, not ECONNRESET"]
                if bad:
                    return bad
            except OSError as error:
                bad = expect((error.errno, errno.ECONNRESET))
                break
        return bad + expect((heard, (wanted, "FIN")), (info(server)["local"], (1, *wanted)),
                            (take(server)[0], b"")) + expect_errno(
                                errno.EPIPE, server.send, b"x", socket.MSG_NOSIGNAL)


def told_by_peer():
    server, peer = raw_pair()
    with Closing([server, peer.sock]):
        peer.untagged(rawpeer.TERMINATE, 2, bytes([0x12, 3, 0, 0]))
        bad = expect_errno(errno.ECONNRESET, server.recv, 10)
        return bad + expect((info(server)["peer"], (1, 1, 2, 3)), (terminate_of(peer)[0], None))


def cut_off(octets, wanted):
    server, peer = raw_pair()
    with Closing([server, peer.sock]):
        peer.send(b"whole")
        peer.sock.sendall(peer.framed(head(msn=2) + b"more")[:octets])
        peer.sock.shutdown(socket.SHUT_WR)
        first = take(server)[0]
        try:
            end = take(server)
        except OSError as error:
            end = error.errno
        return expect((first, b"whole"), (end, wanted))


def reset():
    server, peer = raw_pair()
    with Closing([server]):
        peer.send(b"whole")
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.sock.close()
        time.sleep(0.05)
        return expect((take(server)[0], b"whole")) + expect_errno(
            errno.ECONNRESET, server.recv, 10)


def wakes():
    """A poll that sleeps hears of a message and of the end, and not of half an FPDU."""
    server, peer = raw_pair()
    poll = select.epoll()
    poll.register(server, select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET)
    with Closing([server, peer.sock, poll]):
        wire = peer.framed(head() + b"hello")
        peer.sock.sendall(wire[:11])
        half = poll.poll(0.2)
        peer.sock.sendall(wire[11:])
        whole = poll.poll(2)
        got = take(server)[0]
        peer.sock.shutdown(socket.SHUT_WR)
        end = poll.poll(2)
        return expect((half, []), (whole, [(server.fileno(), select.EPOLLIN)]), (got, b"hello"),
                      (end, [(server.fileno(), select.EPOLLIN | select.EPOLLRDHUP)]))


def closed_unread():
    with kernel_pair(CRC) as (a, b):
        a.send(b"nobody reads it")
        select.select([b], [], [], 2)
        b.close()
        return expect_errno(errno.ECONNRESET, a.recv, 10)


def closed_behind():
    """What was accepted arrives, though its sender has closed."""
    with kernel_pair(CRC) as (a, b):
        taken = 0
        try:
            while True:
                a.send(message(60000, taken), socket.MSG_DONTWAIT)
                taken += 1
        except BlockingIOError:
            a.close()
        for seed in range(taken):
            if take(b)[0] != message(60000, seed):
                return [f"message {seed} of {taken} is another"]
        return expect((take(b)[0], b""))


# --- registered memory ----------------------------------------------------------------------------


class Memory:
    """Of this process: at no page's start, over several pages."""

    def __init__(self, size=70000, at=123):
        self.map = mmap.mmap(-1, size + at)
        self.size, self.at = size, at
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map)) + at

    def register(self, sock, access, reserved=0):
        stag = ctypes.c_uint32()
        sock.setsockopt(SOL_DDP, DDP_REG_MR, struct.pack(
            "<QQQII", self.address, self.size, ctypes.addressof(stag), access, reserved))
        return stag.value

    def octets(self):
        return self.map[self.at:self.at + self.size]


def write(peer, stag, to, octets, step=1000):
    for at in range(0, len(octets), step):
        part = octets[at:at + step]
        peer.tagged(rawpeer.WRITE, stag, to + at, part, at + len(part) == len(octets))


def read(peer, stag, to, size):
    """By a Read Request of the peer's, into its own memory 9."""
    peer.memory[9] = bytearray(size)
    peer.read(9, 0, size, stag, to)
    while peer.serve(peer.get()) != rawpeer.READ_RESPONSE:
        pass
    return bytes(peer.memory[9])


def counted_now():
    """KiB that count as pinned by this process."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmPin"))


def written_and_read():
    memory, before = Memory(), counted_now()
    server, peer = raw_pair(depth=2)
    with Closing([server, peer.sock]):
        stag = memory.register(server, REMOTE_WRITE | REMOTE_READ)
        counted = counted_now() - before
        write(peer, stag, memory.address, message(70000))
        peer.send(b"it is there")
        bad = expect((take(server)[0], b"it is there"), (memory.octets() == message(70000), True),
                     (read(peer, stag, memory.address + 5, 69000) == message(70000)[5:69005], True),
                     (counted, 72))
        server.setsockopt(SOL_DDP, DDP_DEREG_MR, struct.pack("<I", stag))
        bad += expect((counted_now(), before)) + expect_errno(
            errno.EINVAL, server.setsockopt, SOL_DDP, DDP_DEREG_MR, struct.pack("<I", stag))
        memory.register(server, REMOTE_READ)
    return bad + expect((counted_now(), before))


# What is asked of memory with the rights, at its STag, its address and its size
RIGHTS = {
    "a Write without the right": (REMOTE_READ, (1, 1, 0), lambda p, s, a, n: write(p, s, a, b"x")),
    "a Write of another key": (REMOTE_WRITE, (1, 1, 0),
                               lambda p, s, a, n: write(p, s ^ 1, a, b"x")),
    "a Write before it": (REMOTE_WRITE, (1, 1, 1), lambda p, s, a, n: write(p, s, a - 1, b"xy")),
    "a Write behind it": (REMOTE_WRITE, (1, 1, 1),
                          lambda p, s, a, n: write(p, s, a + n - 1, b"xy")),
    "a Write that wraps": (REMOTE_WRITE, (1, 1, 3),
                           lambda p, s, a, n: write(p, s, (1 << 64) - 1, b"xy")),
    "a Read without the right": (REMOTE_WRITE, (0, 1, 2), lambda p, s, a, n: p.read(9, 0, 1, s, a)),
    "a Read behind it": (REMOTE_READ, (0, 1, 1), lambda p, s, a, n: p.read(9, 0, 2, s, a + n - 1)),
    "an Atomic": (REMOTE_WRITE | REMOTE_READ, (0, 1, 2), lambda p, s, a, n: p.untagged(
        10, 1, struct.pack(">IIIQQQQQ", 0, 1, s, a + 5, 1, 0, 0, 0))),
}


def right(rights, wanted, act):
    memory = Memory()
    server, peer = raw_pair(depth=2)
    with Closing([server, peer.sock]):
        stag = memory.register(server, rights)
        act(peer, stag, memory.address, memory.size)
        return expect((terminate_of(peer), (wanted, "FIN")), (memory.octets(), bytes(70000)),
                      (info(server)["local"], (1, *wanted)))


def deregistered():
    memory = Memory()
    server, peer = raw_pair()
    with Closing([server, peer.sock]):
        stag = memory.register(server, REMOTE_WRITE)
        server.setsockopt(SOL_DDP, DDP_DEREG_MR, struct.pack("<I", stag))
        write(peer, stag, memory.address, b"late")
        return expect((terminate_of(peer), ((1, 1, 0), "FIN")), (memory.octets()[:4], bytes(4)))


def invalidated():
    memory = Memory()
    server, peer = raw_pair()
    with Closing([server, peer.sock]):
        stag = memory.register(server, REMOTE_WRITE)
        peer.put(struct.pack(SEND, 0x41, 0x44, stag, 0, 1, 0) + b"done with it")
        got = take(server)[0]
        write(peer, stag, memory.address, b"late")
        return expect((got, b"done with it"), (terminate_of(peer), ((1, 1, 0), "FIN")))


def stopped():
    """The owner is stopped, and its memory is written and read all the same."""
    memory = Memory()
    server, peer = raw_pair(depth=1)
    with Closing([server, peer.sock]):
        stag = memory.register(server, REMOTE_WRITE | REMOTE_READ)

        def meanwhile():  # the peer is the child: the owner is the process that has registered
            os.kill(os.getppid(), signal.SIGSTOP)
            try:
                write(peer, stag, memory.address, message(50000))
                good = read(peer, stag, memory.address, 50000) == message(50000)
            finally:
                with open(f"/proc/{os.getppid()}/stat") as stat:
                    state = stat.read().split()[2]
                os.kill(os.getppid(), signal.SIGCONT)
            return expect((good, True), (state, "T"))

        return child_ends(in_child(meanwhile)) + expect(
            (memory.octets()[:50000] == message(50000), True))


def beyond_the_limit():
    memory = Memory()
    server, peer = raw_pair()
    with Closing([server, peer.sock]):

        def by_an_ordinary_user():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
            os.setuid(65534)
            return expect_errno(errno.ENOMEM, memory.register, server, REMOTE_WRITE)

        return child_ends(in_child(by_an_ordinary_user))


def bad_registrations():
    memory = Memory()
    with kernel_pair(CRC) as (a, _):
        bad = expect_errno(errno.EINVAL, memory.register, a, 0)
        bad += expect_errno(errno.EINVAL, memory.register, a, 1)
        bad += expect_errno(errno.EINVAL, memory.register, a, 16)
        bad += expect_errno(errno.EINVAL, memory.register, a, REMOTE_READ, 1)
        memory.address = 4096 * 3
        bad += expect_errno(errno.EFAULT, memory.register, a, REMOTE_READ)
        memory.size = 0
        return bad + expect_errno(errno.EINVAL, memory.register, a, REMOTE_READ)


# --- refusals -------------------------------------------------------------------------------------


def refusals(writer):
    def case(name, problems):
        writer.case(f"refused: {name}", problems)

    with socket.socket() as alone:
        case("not connected", expect_errno(errno.ENOTCONN, alone.setsockopt, SOL_TCP, TCP_ULP,
                                           b"ddp"))
    client, server = tcp_pair(socket.AF_INET6)
    with Closing([client, server]):
        packed, _alive = handover(CRC)
        server.setsockopt(SOL_TCP, TCP_ULP, b"ddp")
        case("a second upper-layer protocol",
             expect_errno(errno.EEXIST, server.setsockopt, SOL_TCP, TCP_ULP, b"ddp"))
        client.send(b"plain")
        case("nothing: attached it is still TCP's", expect((server.recv(10), b"plain")))
        case("a hand-over of another size",
             expect_errno(errno.EINVAL, server.setsockopt, SOL_DDP, DDP_HANDOVER, packed[:-1]))
        wrong = {"an unknown flag": {"flags": 0x40}, "a gate of an initiator": {"flags": GATED},
                 "a MULPDU of 127": {"mulpdu": 127}, "a recv_max above a MiB":
                 {"recv_max": (1 << 20) + 1}, "a phase of 512": {"phase": 512},
                 "a phase of 2": {"phase": 2}, "a depth of 17": {"depth": 17},
                 "reserved octets": {"reserved": 1}, "131073 octets left": {"left": bytes(131073)}}
        for name, how in wrong.items():
            bad, _alive2 = handover(**{"flags": CRC, **how})
            case(name, expect_errno(errno.EINVAL, server.setsockopt, SOL_DDP, DDP_HANDOVER, bad))
        server.setsockopt(SOL_DDP, DDP_HANDOVER, packed)
        case("a second hand-over",
             expect_errno(errno.EALREADY, server.setsockopt, SOL_DDP, DDP_HANDOVER, packed))
        case("a message of 65537 octets", expect_errno(errno.EMSGSIZE, server.send, bytes(65537)))
        case("an urgent octet", expect_errno(errno.EOPNOTSUPP, server.send, b"x", socket.MSG_OOB))
        case("TCP_REPAIR", expect_errno(errno.EOPNOTSUPP, server.setsockopt, SOL_TCP, TCP_REPAIR,
                                        1))
        read, write = os.pipe()
        case("splice", expect_errno(errno.EOPNOTSUPP, os.splice, server.fileno(), write, 10))
        os.close(read)
        os.close(write)


def calls():
    writer = tap.Writer()
    case = writer.case
    forms = {"CRC": CRC, "no CRC": 0, "markers": CRC | TX_MARKERS | RX_MARKERS,
             "an FPDU in each segment": CRC | ALIGNED}
    for name, flags in forms.items():
        case(f"messages both ways: {name}", both_ways(flags))
    case("messages both ways: a small MSS", both_ways(CRC, mss=536))
    case("messages both ways: a small MSS, markers",
         both_ways(CRC | TX_MARKERS | RX_MARKERS, mss=536))
    case("messages both ways: IPv6", both_ways(CRC, socket.AF_INET6))
    for one in (truncated, scattered, cut_anywhere, small_segments, left_over, gate,
                reads_of_nothing, bounded, crowded, told_by_peer, reset, wakes, closed_unread,
                closed_behind):
        try:
            case(one.__name__.replace("_", " "), one())
        except (OSError, ValueError, rawpeer.Ended) as error:
            case(one.__name__.replace("_", " "), [repr(error)])
    for one in (written_and_read, deregistered, invalidated, stopped, beyond_the_limit,
                bad_registrations):
        case(f"memory: {one.__name__.replace('_', ' ')}", one())
    for name, (rights, wanted, act) in RIGHTS.items():
        case(f"memory: {name}", right(rights, wanted, act))
    case("a flood of Reads", flood())
    case("a FIN between two FPDUs", cut_off(0, (b"", 0)))
    for octets in 1, 2, 7, 27:
        case(f"a FIN behind {octets} octets of an FPDU", cut_off(octets, errno.ECONNRESET))
    for name, (wanted, act) in FAULTS.items():
        try:
            case(f"fault: {name}", fault(wanted, act))
        except (OSError, ValueError) as error:
            case(f"fault: {name}", [repr(error)])
    refusals(writer)
    writer.finish()


def cycles(number):
    for seed in range(int(number)):
        with kernel_pair(CRC) as (a, b):
            a.send(message(100, seed))
            if take(b)[0] != message(100, seed):
                sys.exit(f"connection {seed} has another message")
            if seed % 3 == 0:
                a.send(b"unread")


def changed(chance, peer, wire):
    """Octets of a few FPDUs, most of them right, with something changed in one."""
    ulpdu = bytearray(head(msn=chance.randrange(1, 4), mo=chance.choice([0, 0, 0, 7])) + bytes(
        chance.choice([0, 1, 100, 1500, 20000])))
    for _ in range(chance.randrange(4)):
        ulpdu[chance.randrange(min(len(ulpdu), 32))] = chance.randrange(256)
    if chance.random() < 0.3:
        del ulpdu[chance.randrange(len(ulpdu)):]
    wire += peer.framed(bytes(ulpdu), chance.choice([None, None, None, 5]))
    if chance.random() < 0.2:
        wire[chance.randrange(len(wire))] ^= 1 << chance.randrange(8)


def chance(seed, seconds):
    """Whatever comes, the connection ends or goes on, and the program is told."""
    import random
    dice, end, tries = random.Random(int(seed)), time.monotonic() + int(seconds), 0
    while time.monotonic() < end:
        flags = dice.choice([0, CRC, CRC | RX_MARKERS]) | dice.choice([0, GATED, ALIGNED])
        server, peer = raw_pair(flags, recv_max=dice.choice([0, 1, 30000]),
                                depth=dice.choice([0, 2, 16]))
        wire = bytearray()
        for _ in range(dice.randrange(1, 6)):
            changed(dice, peer, wire)
        with Closing([server, peer.sock]):
            try:
                while wire:
                    n = dice.randrange(1, len(wire) + 1)
                    peer.sock.sendall(wire[:n])
                    del wire[:n]
                peer.sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has ended
            if dice.random() < 0.8:
                try:
                    while take(server)[1] & socket.MSG_EOR:
                        pass
                except OSError as error:
                    if error.errno != errno.ECONNRESET:
                        sys.exit(f"seed {seed}, try {tries}: {error}")
        tries += 1
    print(f"{tries} streams")


def flood():
    """A peer that asks and does not listen gets no more than it was promised."""
    server, peer = raw_pair(CRC, depth=1)
    with Closing([server, peer.sock]):
        peer.sock.settimeout(2)
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        wire = b"".join(peer.framed(struct.pack(">BBIIIIIQIIQ", 0x41, 0x41, 0, 1, number, 0, 1, 0,
                                                0, 1, 0)) for number in range(1, 40000))
        try:
            peer.sock.sendall(wire)
            return ["it was never told"] if not info(server)["local"][0] else []
        except OSError:
            pass
        return expect((info(server)["local"], (1, 1, 2, 2)))


def hold():
    a, b = kernel_pair(CRC)
    print("held", flush=True)
    try:
        while True:
            a.send(message(60000), socket.MSG_DONTWAIT)
    except BlockingIOError:
        time.sleep(1000)


def siw_message(size):
    """As script_verbs makes and wants it."""
    return bytes((i * 7 + (i >> 8) + (i >> 16) + ord("s")) % 256 for i in range(size))


def exchange(sock, sizes, first):
    for size in sizes:
        for ours in first, not first:
            if ours:
                sock.sendmsg([siw_message(size)])
            elif take(sock)[0] != siw_message(size):
                sys.exit(f"a message of {size} octets is another")


def ended(sock):
    octets, how = take(sock)
    if octets or how & socket.MSG_EOR:
        sys.exit(f"{len(octets)} octets more")


def patient(sock):
    sock.settimeout(None)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("qq", WAIT, 0))
    return sock


def asks(addr, port, crc, *sizes):
    peer = rawpeer.connect(addr, int(port))
    peer.ask(rawpeer.S | (rawpeer.C if int(crc) else 0), 2, rawpeer.ORDINARY)
    time.sleep(rawpeer.SETTLE)
    sock = patient(hand(peer.sock, CRC if peer.crc else 0))
    exchange(sock, [int(size) for size in sizes], True)
    sock.shutdown(socket.SHUT_WR)
    ended(sock)


def serves(addr, port, crc, *sizes):
    with socket.create_server((addr, int(port))) as listener:
        peer = rawpeer.Peer(listener.accept()[0])
    flags, rev, _ = peer.take_frame(rawpeer.REQUEST)
    wanted = rawpeer.C if int(crc) else 0
    peer.sock.sendall(rawpeer.frame(rawpeer.REPLY, rawpeer.S | wanted, rev, rawpeer.ORDINARY))
    crc = CRC if (flags | wanted) & rawpeer.C else 0
    sock = patient(hand(peer.sock, crc | RESPONDER | GATED))
    exchange(sock, [int(size) for size in sizes], False)
    ended(sock)


def main():
    what, *words = sys.argv[1:]
    globals()[what](*words)


if __name__ == "__main__":
    main()
