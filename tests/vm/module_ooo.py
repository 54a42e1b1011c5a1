#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Placement out of order by the kernel module warp_ddp, in the lab's guest; prints TAP.

    module_ooo.py calls
    module_ooo.py chance SEED SECONDS

The peer sends the segments of its stream in whatever order (rawtcp.py).
"""
import random
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import module  # noqa: E402
import rawpeer  # noqa: E402
import rawtcp  # noqa: E402
from module import (CRC, REMOTE_READ, REMOTE_WRITE, RESPONDER, RX_MARKERS, SOL_DDP,  # noqa: E402
                    Memory, expect, hand, info, message, take)
from module_ops import (OK, READ, attempt, completion, post, rdma, wait_for)  # noqa: E402
from rawpeer import tap  # noqa: E402

DDP_KERNEL_STATS = 66
SIZE = 1000  # octets of a segment's payload
WRITE_OP, RESPONSE_OP = 0x40, 0x42


def stats(sock):
    """(segments placed early, their octets, those not copied again)"""
    return struct.unpack("<QQQ", sock.getsockopt(SOL_DDP, DDP_KERNEL_STATS, 24))


def work(sock):
    """What was looked at, in octets."""
    return struct.unpack("<QQQQ", sock.getsockopt(SOL_DDP, DDP_KERNEL_STATS, 32))[3]


class Stream:
    """What the peer's stream holds, FPDU by FPDU."""

    def __init__(self, crc=True, markers=False):
        self.crc, self.markers = crc, markers
        self.octets = b""
        self.starts = []  # of each FPDU, and the end of all
        self.msn = 0

    def add(self, ulpdu, crc=None):
        """Lays it out as RFC 5044 section 4 draws it."""
        body = struct.pack(">H", len(ulpdu)) + ulpdu + bytes(-(len(ulpdu) + 2) % 4)
        self.starts.append(len(self.octets))
        at, out = len(self.octets), b""
        if self.markers and at % 512 == 0:
            out = bytes(4)
        start = len(out)
        for word in range(0, len(body) + 1, 4):
            if word and self.markers and (at + len(out)) % 512 == 0:
                out += struct.pack(">HH", 0, len(out) - start)
            out += body[word:word + 4]
        if crc is None:
            crc = rawpeer.crc32c(out) if self.crc else 0
        self.octets += out + struct.pack("<I", crc)

    def tagged(self, stag, to, octets, op=WRITE_OP, crc=None):
        for at in range(0, len(octets), SIZE):
            last = at + SIZE >= len(octets)
            self.add(struct.pack(">BBIQ", 0xC1 if last else 0x81, op, stag, to + at)
                     + octets[at:at + SIZE], crc)

    def send(self, octets):
        self.msn += 1
        self.add(struct.pack(module.SEND, 0x41, 0x43, 0, 0, self.msn, 0) + octets)

    def fpdus(self):
        """(place, octets) of each FPDU: a segment each"""
        for at, end in zip(self.starts, self.starts[1:] + [len(self.octets)]):
            yield at, self.octets[at:end]

    def cut(self, every):
        """The same without looking where FPDUs begin."""
        for at in range(0, len(self.octets), every):
            yield at, self.octets[at:at + every]


class Pair:
    def __init__(self, flags=CRC, sack=True, first=1, depth=2):
        with socket.create_server((rawtcp.SERVER, 0)) as listener:
            self.peer = rawtcp.Client(listener.getsockname()[1], sack, first)
            self.peer.connect()
            self.sock = listener.accept()[0]
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO,
                             struct.pack("qq", module.WAIT, 0))
        hand(self.sock, flags | RESPONDER, depth=depth)
        self.memory = Memory(200000)
        self.stag = self.memory.register(self.sock, REMOTE_WRITE | REMOTE_READ)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()
        self.peer.close()

    def arrive(self, segments):
        for at, octets in segments:
            if not self.peer.arrived(at, octets):
                raise OSError(f"segment at {at} is not acknowledged")

    def part(self, index):
        return self.memory.octets()[index * SIZE:(index + 1) * SIZE]


def wanted(index):
    return message(100 * SIZE)[index * SIZE:(index + 1) * SIZE]


def a_write(pair, stream, segments=3):
    stream.tagged(pair.stag, pair.memory.address, message(100 * SIZE)[:segments * SIZE])
    stream.send(b"behind it")


# --- placed ---------------------------------------------------------------------------------------


def behind_a_gap(flags=CRC, first=1):
    """Segments behind a lost one are in their place; the message behind them waits."""
    with Pair(flags, first=first) as pair:
        stream = Stream(markers=bool(flags & RX_MARKERS))
        a_write(pair, stream)
        lost, *others = stream.fpdus()
        pair.arrive(others)
        early = [pair.part(index) == wanted(index) for index in range(3)]
        before = stats(pair.sock)
        try:
            pair.sock.recv(100, socket.MSG_DONTWAIT)
            return ["the message was delivered before its turn"]
        except BlockingIOError:
            pass
        pair.arrive([lost])
        return expect((early, [False, True, True]), (before, (2, 2 * SIZE, 0)),
                      (take(pair.sock)[0], b"behind it"),
                      ([pair.part(index) == wanted(index) for index in range(3)], [True] * 3),
                      (stats(pair.sock), (2, 2 * SIZE, 2)))


def with_markers():
    return behind_a_gap(CRC | RX_MARKERS)


def where_numbers_wrap():
    return behind_a_gap(first=-1500)


def found_by_markers():
    """Segments that begin anywhere: a marker tells where the next FPDU does."""
    with Pair(CRC | RX_MARKERS) as pair:
        stream = Stream(markers=True)
        a_write(pair, stream, 40)
        segments = list(stream.cut(1111))
        pair.arrive(segments[:2] + segments[3:])
        placed = stats(pair.sock)[0]
        late = [index for index in range(40) if pair.part(index) != wanted(index)]
        pair.arrive([segments[2]])
        return expect((late, [2, 3]), (placed, 36),
                      (take(pair.sock)[0], b"behind it"),
                      (pair.memory.octets()[:40 * SIZE] == message(100 * SIZE)[:40 * SIZE], True),
                      (stats(pair.sock)[2], placed))


def begun_before():
    """An FPDU that began before a gap, which another segment ends: the one behind is found."""
    with Pair() as pair:
        stream = Stream()
        a_write(pair, stream, 6)
        (_, first), *_, (end, _) = fpdus = list(stream.fpdus())
        second, at, behind = fpdus[2][0], fpdus[3][0], fpdus[4][0]
        pair.arrive([fpdus[1], (second, stream.octets[second:at + 300])])
        half = stats(pair.sock)
        pair.arrive([(at + 300, stream.octets[at + 300:behind]), fpdus[4], fpdus[5]])
        whole = stats(pair.sock)
        pair.arrive([(end, stream.octets[end:]), (0, first)])
        return expect((half[0], 2), (whole[0], 5), (take(pair.sock)[0], b"behind it"),
                      (pair.memory.octets()[:6 * SIZE] == message(100 * SIZE)[:6 * SIZE], True),
                      (stats(pair.sock)[2], 5))


def two_gaps():
    """A gap that closes behind another one: what is between is placed, too."""
    with Pair() as pair:
        stream = Stream()
        a_write(pair, stream, 8)
        fpdus = list(stream.fpdus())
        pair.arrive([fpdus[i] for i in (2, 3, 6, 7)])
        before = stats(pair.sock)[0]
        pair.arrive([fpdus[i] for i in (5, 4, 1)])
        after = stats(pair.sock)[0]
        pair.arrive([fpdus[8], fpdus[0]])
        return expect((before, 4), (after, 7), (take(pair.sock)[0], b"behind it"),
                      (pair.memory.octets()[:8 * SIZE] == message(100 * SIZE)[:8 * SIZE], True),
                      (stats(pair.sock)[2], 7))


def an_answer():
    """Of a Read of ours, whose segments come in another order."""
    with Pair() as pair:
        ours = Memory()
        post(pair.sock, *rdma(READ, 7, ours, 0, 3 * SIZE, 0x1000, 5))
        if not pair.peer.until(lambda: len(pair.peer.input) >= 52):
            return ["no request came"]
        sink, to = struct.unpack_from(">IQ", pair.peer.input, 2 + 18)
        stream = Stream()
        stream.tagged(sink, to, message(3 * SIZE), RESPONSE_OP)
        first, second, third = stream.fpdus()
        pair.arrive([third, second])
        early = ours.octets()[SIZE:3 * SIZE] == message(3 * SIZE)[SIZE:]
        none = completion(pair.sock, 0)
        pair.arrive([first])
        return expect((early, True), (none, None), (completion(pair.sock), (7, 3 * SIZE, READ, OK)),
                      (ours.octets()[:3 * SIZE] == message(3 * SIZE), True),
                      (stats(pair.sock), (2, 2 * SIZE, 2)))


# --- not placed -----------------------------------------------------------------------------------


def waits(flags, cut=None, sack=True):
    """Nothing is placed before its turn, and all is right in the end."""
    with Pair(flags, sack) as pair:
        stream = Stream(crc=bool(flags & CRC))
        a_write(pair, stream)
        segments = list(stream.cut(cut) if cut else stream.fpdus())
        for at, octets in segments[1:]:
            pair.peer.send(at, octets)
        time.sleep(0.1)
        early = stats(pair.sock)
        pair.arrive([segments[0]])
        return expect((early, (0, 0, 0)), (take(pair.sock)[0], b"behind it"),
                      (pair.memory.octets()[:3 * SIZE] == message(100 * SIZE)[:3 * SIZE], True))


def without_crc():
    return waits(0)


def without_sack():
    return waits(CRC, sack=False)


def fpdus_anywhere():
    return waits(CRC, cut=333)


def faulty(spoil, fault):
    """What would be a fault waits for its turn, and is one then."""
    with Pair() as pair:
        stream = Stream()
        stream.send(b"first")
        spoil(pair, stream)
        first, *others = stream.fpdus()
        pair.arrive(others)
        early = stats(pair.sock), info(pair.sock)["local"][0], pair.memory.octets()[:SIZE]
        pair.arrive([first])
        wait_for(lambda: info(pair.sock)["local"][0])
        return expect((early, ((0, 0, 0), 0, bytes(SIZE))), (take(pair.sock)[0], b"first"),
                      (info(pair.sock)["local"], (1, *fault)),
                      (pair.memory.octets()[:SIZE], bytes(SIZE)))


FAULTS = {
    "a wrong CRC": ((2, 0, 2), lambda p, s: s.tagged(p.stag, p.memory.address, b"x" * 100, crc=7)),
    "an STag that is none": ((1, 1, 0), lambda p, s: s.tagged(p.stag ^ 1, p.memory.address,
                                                              b"x" * 100)),
    "an octet behind the memory": ((1, 1, 1), lambda p, s: s.tagged(
        p.stag, p.memory.address + p.memory.size - 99, b"x" * 100)),
    "an answer that nobody waits for": ((0, 2, 6), lambda p, s: s.tagged(
        p.stag, p.memory.address, b"x" * 100, RESPONSE_OP)),
}


def deregistered():
    """Memory that is taken away between the two moments: its turn is a fault."""
    with Pair() as pair:
        stream = Stream()
        a_write(pair, stream)
        lost, *others = stream.fpdus()
        pair.arrive(others)
        placed = stats(pair.sock)[0]
        pair.sock.setsockopt(SOL_DDP, module.DDP_DEREG_MR, struct.pack("<I", pair.stag))
        pair.arrive([lost])
        wait_for(lambda: info(pair.sock)["local"][0])
        return expect((placed, 2), (info(pair.sock)["local"], (1, 1, 1, 0)))


def sent_otherwise():
    """A peer that sends other octets in the place of what was placed: they count."""
    with Pair() as pair:
        one, other = Stream(), Stream()
        one.send(b"first")
        one.tagged(pair.stag, pair.memory.address, b"1" * SIZE)
        other.send(b"first")
        other.tagged(pair.stag, pair.memory.address + 5 * SIZE, b"2" * SIZE)
        other.send(b"behind it")
        (_, lost), (at, placed) = one.fpdus()
        pair.arrive([(at, placed)])
        early = stats(pair.sock)
        pair.arrive([(at, other.octets[at:])])  # it covers the other, which TCP throws away
        pair.arrive([(0, lost)])
        return expect((early, (1, SIZE, 0)), (take(pair.sock)[0], b"first"),
                      (take(pair.sock)[0], b"behind it"), (pair.part(0), b"1" * SIZE),
                      (pair.part(5), b"2" * SIZE), (stats(pair.sock)[2], 0))


# --- order and cost -------------------------------------------------------------------------------


def over_one_another(last):
    """Writes to the same place, of which the second is placed first: it stays."""
    with Pair() as pair:
        stream = Stream()
        stream.send(b"first")
        stream.tagged(pair.stag, pair.memory.address, b"1" * SIZE)
        stream.tagged(pair.stag, pair.memory.address + 999, b"2" * SIZE)
        stream.send(b"behind them")
        fpdus = list(stream.fpdus())
        pair.arrive([fpdus[2]])
        early = pair.memory.octets()[999:999 + SIZE], stats(pair.sock)
        pair.arrive([fpdus[i] for i in last])
        pair.arrive([fpdus[3]])
        return expect((early, (b"2" * SIZE, (1, SIZE, 0))), (take(pair.sock)[0], b"first"),
                      (take(pair.sock)[0], b"behind them"),
                      (pair.memory.octets()[:1999], b"1" * 999 + b"2" * SIZE))


def the_last_first(pair, stream, parts, number):
    """Segments of @parts FPDUs each, the last one first; what looking at the first one of them,
    in front of all others, costs."""
    fpdus = list(stream.fpdus())
    lost, behind = fpdus[0], fpdus[1:-1]
    segments = [(behind[at][0], b"".join(octets for _, octets in behind[at:at + parts]))
                for at in range(0, len(behind), parts)]
    pair.arrive(reversed(segments[1:]))
    before = work(pair.sock)
    pair.arrive(segments[:1])
    cost = work(pair.sock) - before
    pair.arrive([lost, fpdus[-1]])
    return cost, len(segments) == number


def checked_once():
    """Messages, too, which are not placed."""
    with Pair() as pair:
        stream = Stream()
        for number in range(62):
            stream.send(message(SIZE, number))
        cost, good = the_last_first(pair, stream, 1, 60)
        got = [take(pair.sock)[0] for _ in range(62)]
        return expect((good, True), (SIZE < cost < 8 * SIZE, True),
                      (got == [message(SIZE, number) for number in range(62)], True))


def bounded():
    """A look at very many small FPDUs has an end."""
    with Pair() as pair:
        stream = Stream()
        stream.send(b"first")
        for number in range(2600):
            stream.tagged(pair.stag, pair.memory.address + 4 * number, struct.pack("<I", number))
        stream.send(b"behind them")
        cost, good = the_last_first(pair, stream, 50, 52)
        return expect((good, True), (1200 < cost < 140000, True), (take(pair.sock)[0], b"first"),
                      (take(pair.sock)[0], b"behind them"),
                      (pair.memory.octets()[:10400] == struct.pack("<2600I", *range(2600)), True))


# --- chance ---------------------------------------------------------------------------------------


def shuffled(dice):
    """Many messages, cut and mixed by chance, some segments twice: all as if in order."""
    flags = CRC | dice.choice([0, RX_MARKERS])
    with Pair(flags, first=dice.choice([1, -20000, 1 << 31])) as pair:
        stream = Stream(markers=bool(flags & RX_MARKERS))
        image = bytearray(len(pair.memory.octets()))
        for number in range(dice.randrange(2, 8)):
            at, size = 20000 * number, dice.randrange(1, 9000)
            image[at:at + size] = message(size, number)
            stream.tagged(pair.stag, pair.memory.address + at, message(size, number))
            stream.send(message(dice.randrange(600), number))
        cut = dice.choice([None, 1400, 700, dice.randrange(200, 1400)])
        segments = list(stream.cut(cut) if cut else stream.fpdus())
        order = segments + dice.sample(segments, len(segments) // 4)
        mixed = sorted(range(len(order)), key=lambda i: i + dice.uniform(0, dice.choice([3, 30])))
        for i in mixed:
            pair.peer.send(*order[i])
            pair.peer.until(lambda: False, 0.001)
        pair.arrive(segments)
        got = [take(pair.sock)[0] for _ in range(stream.msn)]
        early = stats(pair.sock)
        bad = expect((len(got), stream.msn), (pair.memory.octets() == bytes(image), True),
                     (early[2] <= early[0], True), (info(pair.sock)["local"][0], 0))
        return bad, early


def chance(seed, seconds):
    dice, end = random.Random(int(seed)), time.monotonic() + int(seconds)
    tries = placed = kept = 0
    while time.monotonic() < end:
        bad, early = shuffled(dice)
        if bad:
            sys.exit(f"seed {seed}, try {tries}: {bad}")
        tries, placed, kept = tries + 1, placed + early[0], kept + early[2]
    print(f"{tries} streams, {placed} segments placed early, {kept} not copied again")
    if not kept:
        sys.exit("chance has brought none")


def calls():
    writer = tap.Writer()
    for one in (behind_a_gap, with_markers, where_numbers_wrap, found_by_markers, begun_before,
                two_gaps, an_answer, without_crc, without_sack, fpdus_anywhere, deregistered,
                sent_otherwise, checked_once, bounded):
        writer.case(one.__name__.replace("_", " "), attempt(one))
    for name, last in ("out of order, too", (1, 0)), ("in its turn", (0, 1)):
        writer.case(f"an older Write comes over a newer one: {name}",
                    attempt(over_one_another, last))
    for name, (fault, spoil) in FAULTS.items():
        writer.case(f"not placed: {name}", attempt(faulty, spoil, fault))
    writer.finish()


if __name__ == "__main__":
    {"calls": calls, "chance": chance}[sys.argv[1]](*sys.argv[2:])
