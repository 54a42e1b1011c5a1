#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One-sided operations of the kernel module warp_ddp, over loopback, in the lab's guest; TAP.

    module_ops.py calls
    module_ops.py hold          operations and memory on connections until it is killed
    module_ops.py chance SEED SECONDS   peers that do with them what chance has made
    module_ops.py kills SEED N          so many processes with all of it, killed at any moment

Both ends are sockets that were handed over, but where the peer must do what no stack does.
"""
import ctypes
import errno
import mmap
import os
import random
import resource
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import module  # noqa: E402
import rawpeer  # noqa: E402
from module import (CRC, REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE, RESPONDER, SOL_DDP,  # noqa: E402
                    Closing, Memory, child_ends, expect, expect_errno, hand, in_child, info,
                    message, take, tcp_pair)
from rawpeer import tap  # noqa: E402

WRITE, READ, ATOMIC, COMPLETION = 2, 3, 4, 5
OK, FLUSHED, REMOTE = 0, 1, 2
ADD, SWAP = 0, 1
DDP_COMPLETIONS = 65
EVERYTHING = REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC
DONE = "<QQII"
RING = "<IIQ"
RING_HEAD, RING_ENTRIES = 64, 128
MIB = 1 << 20


def pair(depth=4, flags=CRC, mss=None):
    client, server = tcp_pair(mss=mss)
    hand(client, flags, depth=depth)
    hand(server, flags | RESPONDER, depth=depth)
    return Closing([client, server])


def post(sock, kind, octets, iov=()):
    return sock.sendmsg(iov, [(SOL_DDP, kind, octets)])


def rdma(kind, cookie, memory, at, size, to, stag):
    address = memory.address + at if memory else 0
    return kind, struct.pack("<QQQQII", cookie, address, size, to, stag, 0)


def atomic(cookie, memory, at, to, stag, op, operand, mask=0, compare=0, compare_mask=0):
    return ATOMIC, struct.pack("<QQQIIQQQQ", cookie, memory.address + at, to, stag, op, operand,
                               mask, compare, compare_mask)


def completion(sock, wait=module.WAIT):
    """(cookie, octets, kind, status) of the next one; None: there was none in this time."""
    poll = select.poll()
    poll.register(sock, 0)
    if not any(events & select.POLLERR for _, events in poll.poll(wait * 1000)):
        return None
    _, control, flags, _ = sock.recvmsg(0, 256, socket.MSG_ERRQUEUE)
    (level, kind, octets), = control
    if (level, kind) != (SOL_DDP, COMPLETION) or not flags & socket.MSG_ERRQUEUE:
        raise ValueError(f"level {level}, type {kind}, flags {flags:#x}")
    return struct.unpack(DONE, octets)


def fill(memory, octets, at=0):
    memory.map[memory.at + at:memory.at + at + len(octets)] = octets


def number(memory, at):
    return struct.unpack_from("<Q", memory.map, memory.at + at)[0]


class Aligned(Memory):
    """At an address that is a multiple of 8."""

    def __init__(self, size=70000):
        super().__init__(size, 128)


# --- what they do ---------------------------------------------------------------------------------


def each_size():
    """Writes and Reads around the sizes where something changes; in order, and in the memory."""
    with pair() as (a, b):
        ours, theirs, back = Memory(MIB), Memory(MIB, 77), Memory(MIB, 4095)
        stag = theirs.register(b, EVERYTHING)
        room = info(a)["mulpdu"] - 14
        for seed, size in enumerate([0, 1, room, room + 1, 16384, 16385, 3 * room, MIB - 3]):
            fill(ours, message(size, seed))
            post(a, *rdma(WRITE, 10 + seed, ours, 0, size, theirs.address + 3, stag))
            post(a, *rdma(READ, 100 + seed, back, 1, size, theirs.address + 3, stag))
            done = [completion(a), completion(a)]
            if done != [(10 + seed, size, WRITE, OK), (100 + seed, size, READ, OK)]:
                return [f"{size} octets: {done}"]
            if theirs.octets()[3:3 + size] != message(size, seed):
                return [f"{size} octets: not what was written"]
            if back.octets()[1:1 + size] != message(size, seed):
                return [f"{size} octets: not what was read"]
        return expect((completion(a, 0), None))


def before_a_message():
    """What was written is there when the message behind it is."""
    with pair(flags=CRC, mss=536) as (a, b):
        ours, theirs = Memory(300000), Memory(300000)
        stag = theirs.register(b, REMOTE_WRITE)
        for seed in range(5):
            fill(ours, message(300000, seed))
            post(a, *rdma(WRITE, seed, ours, 0, 300000, theirs.address, stag))
            a.send(b"look")
            got = take(b)[0]
            if got != b"look" or theirs.octets() != message(300000, seed):
                return [f"{seed}: {got!r}"]
        return expect(([completion(a)[0] for _ in range(5)], list(range(5))))


def atomics():
    with pair() as (a, b):
        ours, theirs = Aligned(), Aligned()
        stag = theirs.register(b, REMOTE_ATOMIC)
        fill(theirs, struct.pack("<QQ", 40, 0xFF00))
        post(a, *atomic(1, ours, 8, theirs.address, stag, ADD, 2))
        post(a, *atomic(2, ours, 16, theirs.address + 8, stag, SWAP, 0xAB, 0xFF, 0xFF00, 0xFF00))
        post(a, *atomic(3, ours, 24, theirs.address + 8, stag, SWAP, 1, 0xFF, 7, 0xFF))
        post(a, *atomic(4, ours, 32, theirs.address + 8, stag, ADD, 0x0101, 0x80))
        done = [completion(a) for _ in range(4)]
        return expect((done, [(cookie, 8, ATOMIC, OK) for cookie in (1, 2, 3, 4)]),
                      (number(ours, 8), 40), (number(theirs, 0), 42), (number(ours, 16), 0xFF00),
                      (number(ours, 24), 0xFFAB), (number(ours, 32), 0xFFAB),
                      (number(theirs, 8), (0xFF2B + 0x0101) & ~0x80 | 0x80 & (0xFFAB ^ 0x0101)))


def beyond_the_depth():
    """More than the peer answers at once: they wait for their turn, and so does what follows."""
    with pair(depth=1) as (a, b):
        ours, theirs = Aligned(), Aligned()
        stag = theirs.register(b, EVERYTHING)
        fill(theirs, message(40000))
        for cookie in range(40):
            post(a, *rdma(READ, cookie, ours, cookie * 1000, 1000, theirs.address + cookie * 1000,
                          stag))
        a.send(b"behind them")
        done = [completion(a) for _ in range(40)]
        return expect((done, [(cookie, 1000, READ, OK) for cookie in range(40)]),
                      (ours.octets()[:40000] == message(40000), True),
                      (take(b)[0], b"behind them"))


def many():
    """Completions that nobody takes have a limit."""
    with pair() as (a, b):
        ours, theirs = Memory(), Memory()
        stag = theirs.register(b, REMOTE_WRITE)
        write = rdma(WRITE, 7, ours, 0, 10, theirs.address, stag)
        for _ in range(256):
            post(a, *write)
        bad = expect_errno(errno.ENOBUFS, post, a, *write)
        bad += expect((completion(a), (7, 10, WRITE, OK)), (post(a, *write), 0))
        return bad + expect_errno(errno.ENOBUFS, post, a, *write)


def both_at_once():
    """Each end reads a lot from the other, and sends messages meanwhile."""
    size, count = 4 * MIB, 20
    with pair() as ends:
        memory = [(Memory(size), Memory(size)) for _ in ends]
        stags = [mine[0].register(end, REMOTE_READ) for end, mine in zip(ends, memory)]
        for mine in memory:
            fill(mine[0], message(size))
        for i, end in enumerate(ends):
            post(end, *rdma(READ, 9, memory[i][1], 0, size, memory[1 - i][0].address,
                            stags[1 - i]))
        early = 0
        for seed in range(count):
            for one, other in ends, ends[::-1]:
                one.send(message(3000, seed))
                if take(other)[0] != message(3000, seed):
                    return [f"message {seed} is another"]
            early += not any(completion(end, 0) for end in ends)
        print(f"# {early} of {count} messages each way before a Read was over")
        if not early:
            return ["no message found its way between the answers"]
        return [f"end {i} has read something else" for i in (0, 1)
                if not wait_for(lambda: memory[i][1].octets() == message(size))]


def wait_for(what, wait=module.WAIT):
    end = time.monotonic() + wait
    while not what() and time.monotonic() < end:
        time.sleep(0.01)
    return what()


# --- the ring -------------------------------------------------------------------------------------


class Ring:
    def __init__(self, sock, entries):
        sock.setsockopt(SOL_DDP, DDP_COMPLETIONS, struct.pack("<I", entries))
        self.entries = entries
        self.map = mmap.mmap(sock.fileno(), RING_ENTRIES + entries * struct.calcsize(DONE))

    def state(self):
        return struct.unpack_from(RING, self.map, 0)

    def head(self, value=None):
        if value is not None:
            struct.pack_into("<I", self.map, RING_HEAD, value)
        return struct.unpack_from("<I", self.map, RING_HEAD)[0]

    def take(self):
        """The next completion, without a system call but for the clock."""
        end = time.monotonic() + module.WAIT
        head = self.head()
        while self.state()[0] == head and time.monotonic() < end:
            pass
        if self.state()[0] == head:
            return None
        at = RING_ENTRIES + head % self.entries * struct.calcsize(DONE)
        found = struct.unpack_from(DONE, self.map, at)
        self.head(head + 1 & 0xFFFFFFFF)
        return found


def ring():
    with pair() as (a, b):
        ours, theirs = Memory(), Memory()
        stag = theirs.register(b, EVERYTHING)
        shared = Ring(a, 4)
        bad = expect_errno(errno.EBUSY, a.setsockopt, SOL_DDP, DDP_COMPLETIONS,
                           struct.pack("<I", 4))
        poll = select.poll()
        poll.register(a, 0)
        before = poll.poll(0)
        for cookie in range(40):
            kind = (WRITE, READ)[cookie % 2]
            post(a, *rdma(kind, cookie, ours, 0, 5000, theirs.address, stag))
            if cookie == 7:
                told = poll.poll(module.WAIT * 1000)
            if shared.take() != (cookie, 5000, kind, OK):
                return [f"{cookie} is another"]
        b.send(b"a message to spin on")
        bad += expect((before, []), (told, [(a.fileno(), select.POLLERR)]), (poll.poll(0), []),
                      (wait_for(lambda: shared.state()[2] == 1), True),
                      (shared.state()[:2], (40, 4)))
        for cookie in range(4):
            post(a, *rdma(WRITE, cookie, ours, 0, 10, theirs.address, stag))
        return bad + expect_errno(errno.ENOBUFS, post, a, *rdma(WRITE, 5, ours, 0, 10,
                                                                theirs.address, stag))


def ring_of_rubbish():
    """Whatever the program writes to it, the kernel and the connection are well."""
    with pair() as (a, b):
        ours, theirs = Memory(), Memory()
        stag = theirs.register(b, EVERYTHING)
        shared = Ring(a, 8)
        taken = refused = 0
        for seed in range(400):
            shared.map[:] = os.urandom(len(shared.map))
            if seed % 3:
                shared.head(taken - seed % 4 & 0xFFFFFFFF)
            try:
                post(a, *rdma((WRITE, READ)[seed % 2], seed, ours, 0, 100, theirs.address, stag))
                taken += 1
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    return [repr(error)]
                refused += 1
        a.send(b"still here")
        print(f"# {taken} operations, {refused} refused")
        return expect((take(b)[0], b"still here"), (taken > 0, True), (refused > 0, True))


# --- ends -----------------------------------------------------------------------------------------


def refused_by_the_peer():
    with pair() as (a, b):
        ours, theirs = Memory(), Memory()
        stag = theirs.register(b, REMOTE_READ)
        post(a, *rdma(READ, 1, ours, 0, 100, theirs.address, stag))
        post(a, *rdma(READ, 2, ours, 0, 100, theirs.address, stag ^ 0x100))
        done = [completion(a), completion(a)]
        return expect((done, [(1, 100, READ, OK), (2, 0, READ, REMOTE)]),
                      (info(a)["peer"], (1, 0, 1, 0))) + expect_errno(
                          errno.EPIPE, post, a, *rdma(READ, 5, ours, 0, 1, theirs.address, stag))


def silent_pair(depth=2):
    """A socket that was handed over, and a peer that answers nothing."""
    client, server = tcp_pair()
    peer = rawpeer.Peer(client)
    peer.crc = True
    return hand(server, CRC | RESPONDER, depth=depth), peer


def ended(act, first=FLUSHED):
    """Operations that wait for answers and for TCP are told of the end, in their order."""
    sock, peer = silent_pair()
    ours = Memory(8 * MIB)
    before = pins()
    with Closing([sock]):
        for cookie in 0, 1, 2:
            post(sock, *rdma(READ, cookie, ours, 0, 100000, 0, 5))
        post(sock, *rdma(WRITE, 3, ours, 0, 8 * MIB, 0, 5))
        early = completion(sock, 0.1)
        act(sock, peer)
        done = [completion(sock) for _ in range(4)]
        peer.sock.close()
        return expect((early, None), (done, [(0, 0, READ, first), (1, 0, READ, FLUSHED),
                                             (2, 0, READ, FLUSHED), (3, 0, WRITE, FLUSHED)]),
                      (wait_for(lambda: pins() == before), True))


def reset_peer(sock, peer):
    peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.sock.close()


def faulty_peer(sock, peer):
    peer.put(module.head(msn=9))


def peer_that_refuses(sock, peer):
    peer.untagged(rawpeer.TERMINATE, 2, bytes([0x12, 3, 0, 0]))


def read_behind_the_end():
    """The peer has ended its side: a Read cannot be answered, a Write still leaves."""
    sock, peer = silent_pair()
    ours = Memory()
    with Closing([sock, peer.sock]):
        post(sock, *rdma(READ, 1, ours, 0, 100, 0, 5))
        peer.sock.shutdown(socket.SHUT_WR)
        flushed = completion(sock)
        bad = expect_errno(errno.EPIPE, post, sock, *rdma(READ, 2, ours, 0, 100, 0, 5))
        post(sock, *rdma(WRITE, 3, ours, 0, 100, 0, 5))
        return bad + expect((flushed, (1, 0, READ, FLUSHED)),
                            (completion(sock), (3, 100, WRITE, OK)))


def shut():
    """Behind shutdown() an answer still comes."""
    with pair() as (a, b):
        ours, theirs = Memory(), Memory()
        stag = theirs.register(b, REMOTE_READ)
        fill(theirs, message(60000))
        post(a, *rdma(READ, 1, ours, 0, 60000, theirs.address, stag))
        a.shutdown(socket.SHUT_WR)
        return expect((completion(a), (1, 60000, READ, OK)),
                      (ours.octets()[:60000] == message(60000), True)) + expect_errno(
                          errno.EPIPE, post, a, *rdma(WRITE, 2, ours, 0, 1, 0, 0))


def shut_behind_a_long_write():
    """What is not accepted whole need not leave: neither a long Write nor an answer."""
    sock, peer = silent_pair()
    ours = Memory(8 * MIB)
    with Closing([sock, peer.sock]):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32768)
        before = pins()
        post(sock, *rdma(WRITE, 1, ours, 0, 8 * MIB, 0, 5))
        early = completion(sock, 0.1)
        sock.shutdown(socket.SHUT_WR)
        done = completion(sock)
        size = until_the_end(peer)
        return expect((early, None), (done, (1, 0, WRITE, FLUSHED)), (size < 4 * MIB, True),
                      (wait_for(lambda: pins() == before), True))


def shut_behind_an_answer():
    sock, peer = silent_pair()
    theirs = Memory(8 * MIB)
    with Closing([sock, peer.sock]):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32768)
        stag = theirs.register(sock, REMOTE_READ)
        peer.read(9, 0, 8 * MIB, stag, theirs.address)
        select.select([peer.sock], [], [], module.WAIT)
        sock.shutdown(socket.SHUT_WR)
        return expect((until_the_end(peer) < 4 * MIB, True))


def until_the_end(peer):
    """How many octets come."""
    size = 0
    while True:
        part = len(peer.sock.recv(1 << 20))
        if not part:
            return size
        size += part


def late_answers(ringed):
    """Answers wait behind messages that nobody reads, and the connection ends: they find nobody."""
    sock, peer = silent_pair()
    ours = Aligned()
    with Closing([sock]):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        shared = Ring(sock, 4) if ringed else None
        post(sock, *atomic(1, ours, 0, 0, 5, ADD, 1))
        post(sock, *rdma(READ, 2, ours, 8, 100, 0, 5))
        asked = peer.get()
        sink, to = struct.unpack_from(">IQ", peer.get(), 18)
        for _ in range(3):
            peer.send(bytes(60000))
        peer.untagged(11, 3, asked[22:26] + struct.pack(">Q", 77), 1)
        peer.tagged(rawpeer.READ_RESPONSE, sink, to, b"x" * 100)
        if not wait_for(lambda: queued(sock) > 150):
            return ["nothing waits behind the messages"]
        reset_peer(sock, peer)
        done = [shared.take() if ringed else completion(sock) for _ in range(2)]
        got = 0
        try:
            while take(sock)[1] & socket.MSG_EOR:
                got += 1
        except OSError as error:
            end = error.errno
        return expect((done, [(1, 0, ATOMIC, FLUSHED), (2, 0, READ, FLUSHED)]), (got, 3),
                      (end, errno.ECONNRESET), (ours.octets()[:108], bytes(108)))


def queued(sock):
    """Octets in TCP's own queue."""
    left = ctypes.c_int()
    ctypes.CDLL(None).ioctl(sock.fileno(), 0x541B, ctypes.byref(left))  # FIONREAD
    return left.value


def early_answer():
    """An answer to a Read that has not left is a fault, and no more than that."""
    sock, peer = silent_pair(depth=1)
    ours = Memory()
    with Closing([sock, peer.sock]):
        post(sock, *rdma(READ, 1, ours, 0, 100, 0, 5))
        request = peer.get()
        post(sock, *rdma(READ, 2, ours, 200, 100, 0, 5))
        sink, to = struct.unpack_from(">IQ", request, 18)
        peer.tagged(rawpeer.READ_RESPONSE, sink, to, bytes(50), False)
        peer.tagged(rawpeer.READ_RESPONSE, sink, to + 50, bytes(51))
        done = [completion(sock), completion(sock)]
        return expect((done, [(1, 0, READ, FLUSHED), (2, 0, READ, FLUSHED)]),
                      (info(sock)["local"], (1, 1, 1, 1)))


def not_a_target():
    """The peer may not write to the sink of a Read, nor invalidate it."""
    bad = []
    for wanted, act in (((1, 1, 1, 0), lambda p, s, to: p.tagged(rawpeer.WRITE, s, to, b"xx")),
                        ((1, 0, 1, 9), lambda p, s, to: p.put(struct.pack(
                            module.SEND, 0x41, 0x44, s, 0, 1, 0)))):
        sock, peer = silent_pair()
        ours = Memory()
        with Closing([sock, peer.sock]):
            post(sock, *rdma(READ, 1, ours, 0, 100, 0, 5))
            act(peer, *struct.unpack_from(">IQ", peer.get(), 18))
            bad += expect((completion(sock), (1, 0, READ, FLUSHED)), (ours.octets()[:2], bytes(2)),
                          (info(sock)["local"], wanted))
    return bad


def refusals():
    with pair() as (a, b), pair(depth=0) as (c, _):
        ours, theirs = Aligned(), Aligned()
        stag = theirs.register(b, EVERYTHING)
        to = theirs.address
        good = rdma(WRITE, 1, ours, 0, 8, to, stag)
        rows = {
            "octets beside it": (errno.EINVAL, lambda: post(a, *good, [b"x"])),
            "two of them": (errno.EINVAL, lambda: a.sendmsg([], [(SOL_DDP, *good)] * 2)),
            "a type that is none": (errno.EINVAL, lambda: post(a, 9, good[1])),
            "a completion": (errno.EINVAL, lambda: post(a, COMPLETION, bytes(24))),
            "another size": (errno.EINVAL, lambda: post(a, WRITE, good[1] + b"\0")),
            "reserved octets": (errno.EINVAL, lambda: post(a, WRITE, good[1][:-4] + b"\1\0\0\0")),
            "more than a GiB": (errno.EINVAL, lambda: post(a, *rdma(
                WRITE, 1, ours, 0, (1 << 30) + 1, to, stag))),
            "an offset that wraps": (errno.EINVAL, lambda: post(a, *rdma(
                WRITE, 1, ours, 0, 8, (1 << 64) - 7, stag))),
            "an Atomic that is not aligned there": (errno.EINVAL, lambda: post(a, *atomic(
                1, ours, 0, to + 4, stag, ADD, 1))),
            "an Atomic that is not aligned here": (errno.EINVAL, lambda: post(a, *atomic(
                1, ours, 4, to, stag, ADD, 1))),
            "an Atomic of another kind": (errno.EINVAL, lambda: post(a, *atomic(
                1, ours, 0, to, stag, 2, 1))),
            "a Read without ORD": (errno.EOPNOTSUPP, lambda: post(c, *rdma(
                READ, 1, ours, 0, 8, to, stag))),
            "memory that is none": (errno.EFAULT, lambda: post(a, WRITE, struct.pack(
                "<QQQQII", 1, 4096, 8, to, stag, 0))),
            "long memory that is none": (errno.EFAULT, lambda: post(a, WRITE, struct.pack(
                "<QQQQII", 1, 4096, 80000, to, stag, 0))),
            "a sink in the kernel": (errno.EFAULT, lambda: post(a, READ, struct.pack(
                "<QQQQII", 1, 0xFFFF888000000000, 80000, to, stag, 0))),
            "a ring of 3": (errno.EINVAL, lambda: a.setsockopt(
                SOL_DDP, DDP_COMPLETIONS, struct.pack("<I", 3))),
            "a ring of 512": (errno.EINVAL, lambda: a.setsockopt(
                SOL_DDP, DDP_COMPLETIONS, struct.pack("<I", 512))),
            "a ring that is not there": (errno.ENODEV, lambda: mmap.mmap(a.fileno(), 4096)),
            "no completion": (errno.EAGAIN, lambda: a.recvmsg(0, 256, socket.MSG_ERRQUEUE)),
        }
        bad = [f"{name}: {what}" for name, (wanted, call) in rows.items()
               for what in expect_errno(wanted, call)]
        post(a, *good)
        bad += expect_errno(errno.EAGAIN, a.recvmsg, 0, 8, socket.MSG_ERRQUEUE)
        return bad + expect((completion(a), (1, 8, WRITE, OK)))


def beyond_the_limit():
    """A Read counts against RLIMIT_MEMLOCK as long as it lasts, a short Write does not."""
    sock, peer = silent_pair()
    ours = Memory()
    with Closing([sock, peer.sock]):

        def by_an_ordinary_user():
            limited(16384)
            post(sock, *rdma(WRITE, 0, ours, 0, 10000, 0, 5))
            post(sock, *rdma(READ, 1, ours, 0, 10000, 0, 5))
            bad = expect_errno(errno.ENOMEM, post, sock, *rdma(READ, 2, ours, 0, 10000, 0, 5))
            return bad + expect_errno(errno.ENOMEM, post, sock, *rdma(WRITE, 3, ours, 0, 60000, 0,
                                                                      5))

        return child_ends(in_child(by_an_ordinary_user))


def limited(octets):
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (octets, octets))
    os.setuid(65534)


def told_and_uncounted():
    """Who is told of a completion has its memory's room back."""
    def by_an_ordinary_user():
        with pair() as (a, b):
            theirs, ours = Memory(40000), Memory(40000)
            stag = theirs.register(b, REMOTE_READ)
            limited(90000)
            shared = Ring(a, 4)
            for cookie in range(300):
                post(a, *rdma(READ, cookie, ours, 0, 40000, theirs.address, stag))
                if shared.take() != (cookie, 40000, READ, OK):
                    return [f"{cookie} is another"]
            return []

    return child_ends(in_child(by_an_ordinary_user))


# --- while nobody looks ---------------------------------------------------------------------------


def stopped():
    """The owner of the memory is stopped; Write, Read and FetchAdd of its peer complete."""
    with pair() as (a, b):
        theirs = Aligned(200000)
        stag = theirs.register(b, EVERYTHING)

        def meanwhile():
            mine, parent = Aligned(200000), os.getppid()
            fill(mine, message(100000))
            os.kill(parent, signal.SIGSTOP)
            with open(f"/proc/{parent}/stat") as stat:
                state = stat.read().split()[2]
            try:
                post(a, *rdma(WRITE, 1, mine, 0, 100000, theirs.address, stag))
                post(a, *rdma(READ, 2, mine, 100000, 100000, theirs.address, stag))
                post(a, *atomic(3, mine, 8, theirs.address + 150000, stag, ADD, 5))
                done = [completion(a) for _ in range(3)]
                good = done == [(1, 100000, WRITE, OK), (2, 100000, READ, OK), (3, 8, ATOMIC, OK)]
                good = good and mine.octets()[100000:] == message(100000) and state == "T"
            finally:
                os.kill(parent, signal.SIGCONT)
            return expect((good, True))

        return child_ends(in_child(meanwhile)) + expect(
            (number(theirs, 150000), 5), (theirs.octets()[:100000] == message(100000), True))


def kernel_time():
    """Seconds that workers of the kernel have run."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        if "(kworker" in text:
            ticks += sum(map(int, text.rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def reads_and_does_not_listen():
    """A peer that takes no answer keeps nobody busy, and gets all of it later."""
    sock, peer = silent_pair()
    theirs = Memory(4 * MIB)
    fill(theirs, message(4 * MIB))
    with Closing([sock, peer.sock]):
        stag = theirs.register(sock, REMOTE_READ)
        peer.memory[9] = bytearray(4 * MIB)
        peer.crc = False  # it is not what is looked at here, and Python is slow
        peer.put(struct.pack(">BBIIIIIQIIQ", 0x41, 0x41, 0, 1, 1, 0, 9, 0, 4 * MIB, stag,
                             theirs.address), crc=crc_of_request(peer, stag, theirs.address))
        time.sleep(0.5)
        before = kernel_time()
        time.sleep(2)
        busy = kernel_time() - before
        while peer.serve(peer.get()) != rawpeer.READ_RESPONSE:
            pass
        return expect((busy < 0.5, True), (bytes(peer.memory[9]) == message(4 * MIB), True))


def crc_of_request(peer, stag, to):
    ulpdu = struct.pack(">BBIIIIIQIIQ", 0x41, 0x41, 0, 1, 1, 0, 9, 0, 4 * MIB, stag, to)
    return rawpeer.crc32c(struct.pack(">H", len(ulpdu)) + ulpdu + bytes(-(len(ulpdu) + 2) % 4))


def pins():
    """Pages that are pinned, as the kernel counts them."""
    Path("/proc/sys/vm/stat_refresh").read_bytes()  # each processor's share
    counts = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return int(counts["nr_foll_pin_acquired"]) - int(counts["nr_foll_pin_released"])


def killed():
    """Nothing stays pinned of a process that was killed with all of this under way."""
    before = pins()
    child = in_child(hold)
    up = wait_for(lambda: pins() > before + 100)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return expect((up, True), (wait_for(lambda: pins() == before), True))


def busy(dice):
    """Connections and memory that come and go, operations and messages, until it is killed."""
    depth = dice.choice([1, 4, 16])
    while True:
        with pair(depth=depth) as (a, b):
            ours, theirs = Memory(MIB), Memory(MIB)
            stags = [theirs.register(b, EVERYTHING), theirs.register(b, REMOTE_WRITE)]
            shared = Ring(a, 16) if dice.random() < 0.5 else None
            for cookie in range(dice.randrange(40)):
                size = dice.choice([8, 5000, 100000, MIB])
                try:
                    post(a, *rdma(dice.choice([READ, WRITE]), cookie, ours, 0, size,
                                  theirs.address, stags[0]))
                    a.send(bytes(dice.choice([1, 60000])), socket.MSG_DONTWAIT)
                except OSError:
                    break
                if shared and dice.random() < 0.7:
                    shared.head(shared.state()[0])
            b.setsockopt(SOL_DDP, module.DDP_DEREG_MR, struct.pack("<I", stags[1]))


def kills(seed, times):
    """Nothing stays pinned, and no socket keeps the module."""
    dice, before = random.Random(int(seed)), pins()
    for number in range(int(times)):
        child = in_child(busy, random.Random(number))
        time.sleep(dice.choice([0.02, 0.1, 0.4]) * dice.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if not wait_for(lambda: pins() == before):
            sys.exit(f"seed {seed}, kill {number}: {pins() - before} pages are still pinned")
    if not wait_for(lambda: references() == "0"):
        sys.exit(f"{references()} sockets are left")


def references():
    return Path("/sys/module/warp_ddp/refcnt").read_text().strip()


def hold():
    sock, peer = silent_pair()
    ours = Memory(8 * MIB)
    ours.register(sock, EVERYTHING)
    Ring(sock, 64)
    for cookie in range(10):
        post(sock, *rdma(READ, cookie, ours, 0, 100000, 0, 5))
    post(sock, *rdma(WRITE, 11, ours, 0, 8 * MIB, 0, 5))
    print("held", flush=True)
    peer.sock.fileno()
    signal.pause()


# --- chance ---------------------------------------------------------------------------------------


class Guarded(Memory):
    """Part of a mapping, of which the rest is nobody's."""

    EDGE = 5000

    def __init__(self, size):
        super().__init__(size, self.EDGE)
        self.map = mmap.mmap(-1, size + 2 * self.EDGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map)) + self.at

    def intact(self):
        return self.map[:self.EDGE] == self.map[-self.EDGE:] == bytes(self.EDGE)


def any_message(dice, stag, to, sink, sink_to, msn):
    """An FPDU's ULPDU as it should be, or nearly."""
    size = dice.choice([0, 1, 8, 100, 1400, 9000])
    near = to + dice.choice([0, 0, 8, 64, 65536 - size, -1, 1 << 40])
    near &= (1 << 64) - 1
    queue = struct.pack(">III", 1, msn, 0)
    return dice.choice([
        lambda: struct.pack(">BBIQ", 0xC1, 0x40, stag, near) + bytes([255]) * size,
        lambda: struct.pack(">BBIQ", 0xC1, 0x42, sink, sink_to) + bytes([254]) * size,
        lambda: struct.pack(">BBI", 0x41, 0x41, 0) + queue + struct.pack(
            ">IQIIQ", 9, 0, size, stag, near),
        lambda: struct.pack(">BBI", 0x41, 0x4A, 0) + queue + struct.pack(
            ">IIIQQQQQ", dice.choice([0, 0, 2, 3]), 7, stag, near, 1, 0, 0, 0),
        lambda: struct.pack(">BBIIIIIQ", 0x41, 0x4B, 0, 3, 1, 0, dice.choice([0, 1]), 5),
        lambda: struct.pack(">BBIIII", 0x41, dice.choice([0x43, 0x44, 0x48]),
                            dice.choice([0, stag, sink]), 0, msn, 0) + bytes(size),
        lambda: struct.pack(">BBIIII", 0x41, 0x47, 0, 2, 1, 0) + bytes(dice.choice([0, 4, 24])),
    ])()


def damaged(dice, ulpdu):
    ulpdu = bytearray(ulpdu)
    for _ in range(dice.choice([0, 0, 0, 1, 3])):
        if ulpdu:
            ulpdu[dice.randrange(min(len(ulpdu), 70))] = dice.randrange(256)
    return bytes(ulpdu[:dice.randrange(len(ulpdu) + 1)] if dice.random() < 0.1 else ulpdu)


def storm(dice):
    sock, peer = silent_pair(depth=dice.choice([0, 1, 16]))
    memory, ours = Guarded(65536), Guarded(65536)
    with Closing([sock]):
        stag, posted = memory.register(sock, dice.randrange(1, 8) * 2), 0
        if dice.random() < 0.3:
            Ring(sock, 8)
        for cookie in range(dice.randrange(6)):
            kind, at = dice.choice([WRITE, READ]), dice.randrange(60000)
            try:
                post(sock, *rdma(kind, cookie, ours, at, dice.choice([0, 1, 3000, 30000])
                                 % (65537 - at), 0, 5))
                posted += 1
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EPIPE):
                    raise
        sink = (0, 0)
        peer.sock.settimeout(0.05)
        try:  # what is asked for first may be a Read
            request = peer.get()
            if len(request) == 46:
                sink = struct.unpack_from(">IQ", request, 18)
        except (TimeoutError, rawpeer.Ended):
            pass
        wire = b"".join(peer.framed(damaged(dice, any_message(
            dice, stag, memory.address, *sink, msn))) for msn in range(1, dice.randrange(2, 8)))
        try:
            while wire:
                size = dice.randrange(1, len(wire) + 1)
                peer.sock.sendall(wire[:size])
                wire = wire[size:]
            if dice.random() < 0.5:
                peer.sock.shutdown(socket.SHUT_WR)
            else:
                reset_peer(sock, peer)
        except OSError:
            pass  # it has ended
        try:
            while take(sock)[1] & socket.MSG_EOR:
                pass
        except OSError as error:
            if error.errno not in (errno.ECONNRESET, errno.EAGAIN):
                raise
        peer.sock.close()
        return [] if memory.intact() and ours.intact() else ["octets beside the memory"]


def chance(seed, seconds):
    dice, end, tries = random.Random(int(seed)), time.monotonic() + int(seconds), 0
    before = pins()
    while time.monotonic() < end:
        bad = storm(dice)
        if bad:
            sys.exit(f"seed {seed}, try {tries}: {bad}")
        tries += 1
    print(f"{tries} connections")
    if not wait_for(lambda: pins() == before):
        sys.exit(f"{pins() - before} pages are still pinned")


# --- others that want the socket ------------------------------------------------------------------


def bpf(command, octets):
    buffer = ctypes.create_string_buffer(octets.ljust(128, b"\0"), 128)
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(321, command, buffer, 128)
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return result


def into_map(number_of_map, sock):
    key, value = ctypes.c_uint32(0), ctypes.c_uint32(sock.fileno())
    bpf(2, struct.pack("<IIQQQ", number_of_map, 0, ctypes.addressof(key), ctypes.addressof(value),
                       0))


def sockmaps():
    """A socket belongs to a sockmap or to the module."""
    sockmap = bpf(0, struct.pack("<IIII", 15, 4, 4, 1))
    client, server = tcp_pair()
    with Closing([client, server]):
        into_map(sockmap, client)
        bad = expect_errno(errno.EBUSY, client.setsockopt, module.SOL_TCP, module.TCP_ULP, b"ddp")
        server.setsockopt(module.SOL_TCP, module.TCP_ULP, b"ddp")
        for _ in range(2):  # attached, handed over
            try:
                into_map(sockmap, server)
                bad.append("a sockmap has taken it")
            except OSError as error:
                bad += expect((error.errno in (errno.EINVAL, errno.EBUSY), True))
            if _ == 0:
                packed, _alive = module.handover(CRC)
                server.setsockopt(SOL_DDP, module.DDP_HANDOVER, packed)
    os.close(sockmap)
    return bad


def other_family():
    """IPV6_ADDRFORM would make it another family's socket."""
    with socket.socket(socket.AF_INET6) as listener:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(("::", 0))
        listener.listen(1)
        client = socket.create_connection(("127.0.0.1", listener.getsockname()[1]))
        server = listener.accept()[0]
    with Closing([client, server]):
        server.setsockopt(module.SOL_TCP, module.TCP_ULP, b"ddp")
        form = (server.setsockopt, socket.IPPROTO_IPV6, 1, socket.AF_INET)
        bad = expect_errno(errno.EBUSY, *form)
        packed, _alive = module.handover(CRC | RESPONDER)
        server.setsockopt(SOL_DDP, module.DDP_HANDOVER, packed)
        hand(client, CRC)
        bad += expect_errno(errno.EBUSY, *form)
        client.send(b"through a mapped address")
        return bad + expect((take(server)[0], b"through a mapped address"))


def calls():
    writer = tap.Writer()
    for one in (each_size, before_a_message, atomics, beyond_the_depth, many, both_at_once, ring,
                ring_of_rubbish, refused_by_the_peer, read_behind_the_end, shut, early_answer,
                not_a_target, refusals, beyond_the_limit, told_and_uncounted,
                shut_behind_a_long_write, shut_behind_an_answer, stopped, reads_and_does_not_listen,
                killed, sockmaps, other_family):
        writer.case(one.__name__.replace("_", " "), attempt(one))
    for act, first in (reset_peer, FLUSHED), (faulty_peer, FLUSHED), (peer_that_refuses, REMOTE):
        writer.case(f"flushed: {act.__name__.replace('_', ' ')}", attempt(ended, act, first))
    for name, ringed in ("told by recvmsg()", False), ("told by the ring", True):
        writer.case(f"flushed before their answers: {name}", attempt(late_answers, ringed))
    writer.finish()


def attempt(one, *words):
    try:
        return one(*words)
    except (OSError, ValueError, rawpeer.Ended, struct.error) as error:
        return [repr(error)]


if __name__ == "__main__":
    {"calls": calls, "hold": hold, "chance": chance, "kills": kills}[sys.argv[1]](*sys.argv[2:])
