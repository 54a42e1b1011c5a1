#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Throws at the kernel module warp_ddp what chance has made, in the lab's guest.

    module_fuzz.py SEED SECONDS

Each try is a process with one or two threads, which both use the same sockets; some are killed.
What comes back is not judged: the kernel's log is (guest.sh), and that in the end nothing is pinned
and no socket is left.
"""
import ctypes
import fcntl
import mmap
import os
import random
import select
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import module  # noqa: E402
import module_ops  # noqa: E402
import module_start  # noqa: E402
import rawpeer  # noqa: E402
import rawtcp  # noqa: E402
from module import (CRC, RESPONDER, RX_MARKERS, SOL_DDP, SOL_TCP, TCP_ULP, TX_MARKERS,  # noqa: E402
                    in_child, tcp_pair)
from module_ooo import Stream  # noqa: E402
from module_ops import any_message, pins, references, wait_for  # noqa: E402

SIZES = [0, 1, 2, 18, 100, 1400, 1460, 16384, 60000, 65536, 65537]
FLAGS = [0, socket.MSG_DONTWAIT, socket.MSG_PEEK, socket.MSG_TRUNC, socket.MSG_ERRQUEUE,
         socket.MSG_OOB, socket.MSG_WAITALL, socket.MSG_MORE, socket.MSG_EOR, 0x4000000]
OPTIONS = [(socket.SOL_SOCKET, name) for name in (
    socket.SO_RCVBUF, socket.SO_SNDBUF, socket.SO_RCVLOWAT, socket.SO_KEEPALIVE,
    socket.SO_PEEK_OFF if hasattr(socket, "SO_PEEK_OFF") else 42, 60, 46)] + [
    (SOL_TCP, name) for name in range(1, 40)]
TIME = 0.4  # of a try, at most
KILL_AFTER = 20  # one that does not end by itself
ORPHANS = 60  # seconds that TCP may take over connections whose peers are gone


def faster_crc():
    """By Debian's libisal2, where it is there: ten times as many tries."""
    try:
        crc32_iscsi = ctypes.CDLL("libisal.so.2").crc32_iscsi
    except OSError:
        return
    rawpeer.crc32c = lambda octets: crc32_iscsi(
        bytes(octets), len(octets), 0xFFFFFFFF) & 0xFFFFFFFF ^ 0xFFFFFFFF


def mutated(dice, octets, most=4):
    octets = bytearray(octets)
    for _ in range(dice.randrange(most)):
        at = dice.randrange(len(octets) or 1)
        dice.choice([lambda: octets.__setitem__(slice(at, at + 1), bytes([dice.randrange(256)])),
                     lambda: octets.__delitem__(slice(at, at + dice.randrange(1, 9))),
                     lambda: octets.__setitem__(slice(at, at), dice.randbytes(4))])()
    return bytes(octets)


class Try:
    """A socket of the module's, and what is at the other end: a plain one, or another of it."""

    def __init__(self, dice):
        self.dice = dice
        self.end = time.monotonic() + TIME * dice.random()
        self.memory = [module_ops.Guarded(65536), module_ops.Aligned(200000)]
        self.stags, self.sink, self.maps = [0, 5], (0, 0), []
        self.flags = dice.choice([CRC, CRC, CRC, 0, CRC | RX_MARKERS, CRC | RX_MARKERS | TX_MARKERS,
                                  CRC | 0x20])
        self.stream, self.sent = Stream(bool(self.flags & CRC), bool(self.flags & RX_MARKERS)), 0

    # --- how it begins

    def handed(self):
        self.peer, self.sock = tcp_pair(self.dice.choice([socket.AF_INET, socket.AF_INET6]))
        self.hand(self.sock, self.flags | RESPONDER)

    def both_handed(self):
        self.handed()
        self.hand(self.peer, self.flags)

    def hand(self, sock, flags):
        dice = self.dice
        left = self.wire() if dice.random() < 0.2 else b""
        flags |= dice.choice([0, 0, 0, 16])
        packed, self.alive = module.handover(flags, depth=dice.choice([0, 1, 16]), left=left,
                                             recv_max=dice.choice([0, 1, 30000, 1 << 20]),
                                             mulpdu=dice.choice([0, 0, 128, 1000, 60000]))
        if dice.random() < 0.1:
            packed = mutated(dice, packed)
        sock.setsockopt(SOL_TCP, TCP_ULP, b"ddp")
        sock.setsockopt(SOL_DDP, module.DDP_HANDOVER, packed)

    def started(self):
        """By a listener's start-up in the kernel."""
        dice = self.dice
        with module_start.listen(dice.choice(["127.0.0.1", "::1"]), dice.randrange(2),
                                 dice.randrange(2)) as listener:
            self.peer = socket.create_connection(listener.getsockname()[:2])
            request = rawpeer.frame(rawpeer.REQUEST, dice.choice([rawpeer.C, 0x50, 0xD0, 0]),
                                    dice.choice([1, 2, 2]), dice.choice([
                                        b"", rawpeer.enhanced(1, 1), rawpeer.enhanced(
                                            0x8000 | dice.randrange(1 << 14), 0x4001)]))
            if dice.random() < 0.5:
                request = mutated(dice, request)
            at = dice.randrange(len(request) + 1)
            self.peer.sendall(request[:at])
            if dice.random() < 0.1:
                self.peer.close()
            self.sock = listener.accept()[0]
            self.peer.sendall(request[at:])

    def by_segments(self):
        """Segments in whatever order, over one another and with other octets."""
        dice = self.dice
        with socket.create_server((rawtcp.SERVER, 0)) as listener:
            rawtcp.Client.next_port = 20000 + os.getpid() % 10000
            self.peer, client = None, rawtcp.Client(listener.getsockname()[1], dice.random() < 0.9,
                                                    dice.randrange(1 << 32))
            client.connect()
            self.sock = listener.accept()[0]
        self.hand(self.sock, self.flags | RESPONDER)
        self.register()
        for _ in range(dice.randrange(2, 30)):
            self.wire()
        octets = self.stream.octets
        cut = dice.choice([100, 700, 1400])
        places = self.stream.starts if dice.random() < 0.5 else list(range(0, len(octets), cut))
        dice.shuffle(places)
        for at in places:
            part = octets[at:at + dice.choice([cut, cut, dice.randrange(1, 1401)])]
            client.send(at, mutated(dice, part, 2) if dice.random() < 0.1 else part)
            if dice.random() < 0.3:
                self.step()
            client.until(lambda: False, 0.001)
        if dice.random() < 0.5:
            client.close()

    # --- what the peer sends

    def wire(self):
        """More of the peer's stream, most of it right."""
        dice, begin = self.dice, len(self.stream.octets)
        memory = self.memory[0]
        msn = len(self.stream.starts) + 1 if dice.random() < 0.9 else dice.randrange(5)
        ulpdu = dice.choice([
            lambda: struct.pack(module.SEND, dice.choice([0x41, 1]), 0x43, 0, 0, msn, 0)
            + bytes(dice.choice(SIZES[:7])),
            lambda: any_message(dice, dice.choice(self.stags), memory.address, *self.sink, msn),
            lambda: any_message(dice, dice.choice(self.stags), memory.address, *self.sink, msn),
        ])()
        if dice.random() < 0.1:
            ulpdu = mutated(dice, ulpdu)
        self.stream.add(ulpdu[:65000], dice.choice([None] * 19 + [5]))
        return self.stream.octets[begin:]

    def peer_sends(self):
        octets = self.wire()
        if self.dice.random() < 0.05:
            octets = mutated(self.dice, octets)
        at = self.dice.randrange(len(octets) + 1)
        self.peer.send(octets[:at], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        if self.dice.random() < 0.3:
            self.step()
        self.peer.send(octets[at:], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def peer_looks(self):
        got = self.peer.recv(self.dice.choice([100, 1 << 16]), socket.MSG_DONTWAIT)
        at = got.find(struct.pack(">BB", 0x41, 0x41))  # a Read Request: where its answer goes
        if 0 <= at <= len(got) - 30:
            self.sink = struct.unpack_from(">IQ", got, at + 18)

    def peer_ends(self):
        how = self.dice.randrange(20)
        if how < 2:
            self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.peer.close()
        elif how < 4:
            self.peer.shutdown(self.dice.randrange(3))

    # --- what the program does

    def register(self):
        memory = self.dice.choice(self.memory)
        self.stags.append(memory.register(self.sock, self.dice.randrange(1, 8) * 2))

    def deregister(self):
        self.sock.setsockopt(SOL_DDP, module.DDP_DEREG_MR,
                             struct.pack("<I", self.dice.choice(self.stags)))

    def posts(self):
        dice, memory = self.dice, self.dice.choice(self.memory)
        size = dice.choice(SIZES[:9])
        kind, octets = dice.choice([
            lambda: module_ops.rdma(dice.choice([2, 3]), 7, memory, dice.randrange(5000), size,
                                    dice.choice([0, self.memory[0].address]),
                                    dice.choice(self.stags)),
            lambda: module_ops.atomic(8, self.memory[1], 8 * dice.randrange(9),
                                      self.memory[1].address, dice.choice(self.stags),
                                      dice.randrange(3), 1)])()
        if dice.random() < 0.1:
            kind, octets = dice.choice([kind, dice.randrange(8)]), mutated(dice, octets)
        level = SOL_DDP if dice.random() < 0.95 else dice.randrange(300)
        self.sock.sendmsg(dice.choice([[], [], [], [b"x"]]),
                          [(level, kind, octets)] * dice.choice([1, 1, 1, 2]), dice.choice(FLAGS))

    def sends(self):
        self.sock.send(bytes(self.dice.choice(SIZES)),
                       self.dice.choice(FLAGS) | socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def receives(self):
        self.sock.recvmsg(self.dice.choice(SIZES), self.dice.choice([0, 8, 256]),
                          self.dice.choice(FLAGS) | socket.MSG_DONTWAIT)

    def sets(self):
        dice = self.dice
        level, name = dice.choice(OPTIONS + [(SOL_DDP, name) for name in range(80)])
        if (level, name) != (SOL_TCP, module.TCP_REPAIR):
            self.sock.setsockopt(level, name, dice.choice([
                struct.pack("<i", dice.choice([0, 1, 2, 4, 64, 4096, -1])), b"tls", b"ddp",
                dice.randbytes(dice.randrange(1, 90))]))

    def gets(self):
        level, name = self.dice.choice(OPTIONS + [(SOL_DDP, name) for name in range(80)])
        self.sock.getsockopt(level, name, self.dice.choice([1, 4, 32, 200]))

    def maps_ring(self):
        dice = self.dice
        if not self.maps:
            self.sock.setsockopt(SOL_DDP, module_ops.DDP_COMPLETIONS,
                                 struct.pack("<I", 1 << dice.randrange(10)))
        ring = mmap.mmap(self.sock.fileno(), dice.choice([152, 152, 4096, 8192]))
        self.maps.append(ring)
        for _ in range(dice.randrange(4)):
            ring[dice.randrange(len(ring))] = dice.randrange(256)

    def waits(self):
        poll = select.poll()
        poll.register(self.sock, self.dice.randrange(64))
        poll.poll(self.dice.randrange(3))
        fcntl.ioctl(self.sock, self.dice.choice([0x541B, 0x5411, 0x8905]), bytearray(8))

    def others(self):
        """What is for TCP's own sockets."""
        dice, how = self.dice, self.dice.randrange(6)
        if how == 0:
            self.sock.shutdown(dice.randrange(3))
        elif how == 1:
            ctypes.CDLL(None).connect(self.sock.fileno(), bytes(16), 16)
        elif how == 2:
            self.sock.listen(1)
        elif how == 3:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack(
                "ii", 1, dice.randrange(2)))
        elif how == 4 and not os.fork():
            time.sleep(0.01)  # another process that has the descriptors
            os._exit(0)

    STEPS = [(12, peer_sends), (6, peer_looks), (1, peer_ends), (3, register), (2, deregister),
             (8, posts), (8, sends), (8, receives), (2, sets), (1, gets), (1, maps_ring),
             (3, waits)]

    def step(self):
        weights, acts = zip(*self.STEPS)
        act = self.dice.choices(acts, weights)[0] if self.dice.random() < 0.98 else Try.others
        try:
            act(self)
        except (OSError, ValueError, AttributeError, struct.error):
            pass  # refused, or closed by the other thread

    def steps(self):
        while time.monotonic() < self.end:
            self.step()


def one(seed):
    dice = random.Random(seed)
    self = Try(dice)
    begin = dice.choice([self.handed] * 4 + [self.both_handed] * 2 + [self.started] * 2
                        + [self.by_segments])
    try:
        begin()
    except (OSError, ValueError, struct.error):
        return []  # it was refused
    for sock in self.sock, self.peer:
        if sock:
            sock.settimeout(0.5)
    threads = [threading.Thread(target=self.steps) for _ in range(dice.randrange(2))]
    for thread in threads:
        thread.start()
    self.steps()
    if dice.random() < 0.5:
        self.sock.close()  # perhaps while the other thread is in a call
    for thread in threads:
        thread.join()
    return []


def ends(child, seed, dice):
    """Waits for it, or kills it."""
    if dice.random() < 0.3:
        time.sleep(dice.random() * TIME)
        os.kill(child, signal.SIGKILL)
    fd = os.pidfd_open(child)
    if not select.select([fd], [], [], KILL_AFTER)[0]:
        os.kill(child, signal.SIGKILL)
        if not select.select([fd], [], [], KILL_AFTER)[0]:
            sys.exit(f"try {seed} cannot be killed")
        print(f"# try {seed} did not end by itself", flush=True)
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def orphans_end_soon():
    """A peer of segments that was killed answers nothing, and TCP would ask it for minutes."""
    for name, value in ("tcp_orphan_retries", 1), ("tcp_fin_timeout", 5):
        Path("/proc/sys/net/ipv4", name).write_text(f"{value}\n")


def main(seed, seconds):
    faster_crc()
    orphans_end_soon()
    end, before, tries, killed, failed = time.monotonic() + int(seconds), pins(), int(seed), 0, 0
    told = time.monotonic()
    while time.monotonic() < end:
        if time.monotonic() > told + 60:
            told += 60
            print(f"# {tries - int(seed)} tries, {killed} killed, {failed} failed, "
                  f"{pins() - before} pages pinned, {references()} sockets", flush=True)
        status = ends(in_child(one, tries), tries, random.Random(-tries - 1))
        killed += status == -signal.SIGKILL
        failed += status > 0
        tries += 1
    print(f"{tries - int(seed)} tries from seed {seed}, {killed} were killed, {failed} failed")
    if not wait_for(lambda: pins() == before and references() == "0", ORPHANS):
        sys.exit(f"{pins() - before} pages are still pinned, {references()} sockets are left")
    if failed * 10 > tries - int(seed):
        sys.exit("most of the tries are no tries")


if __name__ == "__main__":
    main(*sys.argv[1:])
