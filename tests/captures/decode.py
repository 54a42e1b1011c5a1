#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An iWARP decoder that believes nothing, written from the RFCs alone.

    decode.py FILE.pcap

Reads MPA start-up frames (RFC 5044, 6581), FPDUs with markers and CRC, DDP segments (RFC 5041) and
RDMAP messages (RFC 5040, 7306), and says of each connection what was sent and what is wrong.
It shares no code with the library, so that both would have to make the same mistake.
"""
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pcap
import rdmap

KEY_REQ, KEY_REP = b"MPA ID Req Frame", b"MPA ID Rep Frame"
UNLIMITED = 0x3FFF
MARKER_EVERY = 512


def crc_table():
    for index in range(256):
        for _ in range(8):
            index = index >> 1 ^ (0x82F63B78 if index & 1 else 0)
        yield index


TABLE = tuple(crc_table())


def crc32c(octets):
    crc, table = 0xFFFFFFFF, TABLE
    for octet in octets:
        crc = table[(crc ^ octet) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


# --- start-up -----------------------------------------------------------------------------------


@dataclass
class Frame:
    """A Request or a Reply."""
    request: bool
    markers: bool
    crc: bool
    rejected: bool
    enhanced: bool
    rev: int
    private: bytes  # the program's
    ird: int = UNLIMITED
    ord: int = UNLIMITED
    p2p: bool = False
    rtr: frozenset = frozenset()
    size: int = 0


def read_frame(octets, request, problems):
    """The start-up frame at the head of octets, or None."""
    name = "Request" if request else "Reply"
    if len(octets) < 20 or bytes(octets[:16]) != (KEY_REQ if request else KEY_REP):
        problems.append(f"no MPA {name}: {bytes(octets[:20]).hex()}")
        return None
    flags, rev, length = struct.unpack_from(">BBH", octets, 16)
    private = bytes(octets[20:20 + length])
    frame = Frame(request, bool(flags & 0x80), bool(flags & 0x40), bool(flags & 0x20),
                  bool(flags & 0x10), rev, private, size=20 + length)
    if flags & 0x0F:
        problems.append(f"{name}: reserved flags {flags & 15:#x}")
    if rev not in (1, 2) or (frame.enhanced and rev < 2):
        problems.append(f"{name}: revision {rev} with S={frame.enhanced}")
    if length > 512 or len(private) != length:
        problems.append(f"{name}: PD_Length {length}, {len(private)} octets there")
    if request and frame.rejected:
        problems.append("Request: R is set")
    if frame.enhanced:
        read_enhanced(frame, name, problems)
    return frame


def read_enhanced(frame, name, problems):
    if len(frame.private) < 4:
        problems.append(f"{name}: S is set, but there is no enhanced data")
        return
    ird, out = struct.unpack_from(">HH", frame.private)
    frame.private = frame.private[4:]
    frame.ird, frame.ord, frame.p2p = ird & 0x3FFF, out & 0x3FFF, bool(ird & 0x8000)
    bits = (("send", ird & 0x4000), ("write", out & 0x8000), ("read", out & 0x4000))
    frame.rtr = frozenset(form for form, bit in bits if bit)
    if not frame.p2p and frame.rtr:
        problems.append(f"{name}: RTR forms without A: {sorted(frame.rtr)}")


def check_frames(request, reply, problems):
    """RFC 6581 sections 9 and 10: what a Reply may be to this Request."""
    if reply.enhanced != request.enhanced:
        problems.append(f"Reply: S={reply.enhanced} to a Request with S={request.enhanced}")
    if reply.rev > request.rev:
        problems.append(f"Reply: revision {reply.rev} to revision {request.rev}")
    if reply.rejected or not request.enhanced:
        return
    if request.p2p != reply.p2p:
        problems.append(f"Reply: A={reply.p2p} to A={request.p2p}")
    if request.p2p and not reply.rtr & request.rtr:
        problems.append(f"Reply: RTR {sorted(reply.rtr)} to {sorted(request.rtr)}")
    if UNLIMITED not in (reply.ord, request.ird) and reply.ord > request.ird:
        problems.append(f"Reply: ORD {reply.ord} is more than the Request's IRD {request.ird}")


# --- FPDUs --------------------------------------------------------------------------------------


@dataclass
class Fpdu:
    at: int  # stream offset of ULPDU_Length
    end: int
    ulpdu: bytes
    begun: int  # the packet that brought its first octet
    packet: int  # and its last
    markers: int


class FpduReader:
    """Takes FPDUs off one direction; pos counts from the end of the start-up frame."""

    def __init__(self, half, skip, marked, crc, problems):
        self.half, self.skip, self.marked, self.crc = half, skip, marked, crc
        self.octets = bytes(half.octets[skip:])
        self.problems = problems
        self.pos = 0

    def marker(self, start, covered):
        """Removes the marker at pos when there has to be one; start is None between FPDUs."""
        if not self.marked or self.pos % MARKER_EVERY:
            return 0
        marker = self.octets[self.pos:self.pos + 4]
        if len(marker) < 4:
            raise EOFError
        want = 0 if start is None else self.pos - start
        reserved, pointer = struct.unpack(">HH", marker)
        if reserved or pointer != want:
            self.problems.append(f"marker at {self.pos}: {marker.hex()}, pointer {want:#x} wanted")
        covered += marker
        self.pos += 4
        return 1

    def take(self, count, start, covered):
        """The next count octets of the FPDU without markers, and how many of these there were."""
        out, markers = bytearray(), 0
        while len(out) < count:
            if self.pos != start:
                markers += self.marker(start, covered)
            room = MARKER_EVERY - self.pos % MARKER_EVERY if self.marked else count
            piece = self.octets[self.pos:self.pos + min(room, count - len(out))]
            if not piece:
                raise EOFError
            out += piece
            covered += piece
            self.pos += len(piece)
        return bytes(out), markers

    def one(self):
        covered = bytearray()
        markers = self.marker(None, covered)
        start = self.pos
        head, more = self.take(2, start, covered)
        length = struct.unpack(">H", head)[0]
        pad = -(2 + length) % 4
        body, more = self.take(length + pad, start, covered)
        markers += more + self.marker(start, covered)
        crc, _ = self.take_crc()
        self.check(start, length, body, crc, covered)
        begun = self.half.packet_of(self.skip + start)
        last = self.half.packet_of(self.skip + self.pos - 1)
        return Fpdu(start, self.pos, body[:length], begun, last, markers)

    def take_crc(self):
        crc = self.octets[self.pos:self.pos + 4]
        if len(crc) < 4:
            raise EOFError
        self.pos += 4
        return struct.unpack("<I", crc)[0], 4

    def check(self, start, length, body, crc, covered):
        if any(body[length:]):
            self.problems.append(f"FPDU at {start}: pad {body[length:].hex()}")
        if self.crc and crc != crc32c(covered):
            self.problems.append(f"FPDU at {start}: CRC {crc:08x}, {crc32c(covered):08x} wanted")

    def all(self):
        found = []
        try:
            while self.pos < len(self.octets):
                begin = self.pos
                found.append(self.one())
        except EOFError:
            self.problems.append(f"{len(self.octets) - begin} octets at {begin} are no whole FPDU")
        return found


# --- connections --------------------------------------------------------------------------------


@dataclass
class Session:
    """One connection: index 0 is the initiator's direction, 1 the responder's."""
    initiator: tuple
    responder: tuple
    client: tuple = None  # who connected TCP
    frames: list = field(default_factory=lambda: [None, None])
    crc: bool = True
    marked: tuple = (False, False)
    fpdus: list = field(default_factory=lambda: [[], []])
    messages: list = field(default_factory=lambda: [[], []])
    problems: list = field(default_factory=list)
    ends: list = field(default_factory=list)  # per direction: "FIN", "RST" or ""


def who_asks(connection):
    """The initiator is who sends the Request, whoever connected TCP."""
    for side, other in ((connection.client, connection.server),
                        (connection.server, connection.client)):
        if connection.halves[side].octets[:16] == KEY_REQ:
            return side, other
    return connection.client, connection.server


def check_gate(session, halves):
    """RFC 5044 section 7.1.2: a responder sends nothing before the first FPDU has come."""
    sent = len(halves[1].octets) - session.frames[1].size
    if sent <= 0:
        return
    begins = halves[1].packet_of(session.frames[1].size)
    if not session.fpdus[0] or session.fpdus[0][0].packet > begins:
        session.problems.append(f"the responder sends in packet {begins}, before it may")


def check_rtr(session):
    request, reply = session.frames
    if not request.p2p or reply.rejected or not session.messages[0]:
        return
    first = session.messages[0][0]
    form = {"Write": "write", "Read Request": "read", "Send": "send"}.get(first.name)
    length = first.read.size if first.read else first.length
    if form not in reply.rtr or length:
        session.problems.append(f"the first message is {first}, not RTR {sorted(reply.rtr)}")


def decode(connection):
    initiator, responder = who_asks(connection)
    session = Session(initiator, responder, connection.client)
    halves = [connection.halves[initiator], connection.halves[responder]]
    session.ends = ["RST" if half.rst else "FIN" if half.fin else "" for half in halves]
    session.frames = [read_frame(half.octets, half is halves[0], session.problems)
                      for half in halves]
    if None in session.frames:
        return session
    request, reply = session.frames
    check_frames(request, reply, session.problems)
    session.crc = request.crc or reply.crc
    session.marked = (reply.markers, request.markers)
    for side, half in enumerate(halves):
        reader = FpduReader(half, session.frames[side].size, session.marked[side], session.crc,
                            session.problems)
        session.fpdus[side] = reader.all()
    for side in (0, 1):
        told = rdmap.ends_with_terminate(session.fpdus[1 - side])
        session.messages[side] = rdmap.messages(session.fpdus[side], session.problems, told)
    if reply.rejected:
        if session.fpdus[0] or session.fpdus[1]:
            session.problems.append("FPDUs after a Reply with R")
        return session
    check_gate(session, halves)
    check_rtr(session)
    depths = (reply.ird, request.ird)
    for side in (0, 1):
        rdmap.check_answers(session.messages[side], session.messages[1 - side], depths[side],
                            session.problems)
    return session


def sessions(path):
    return [decode(connection) for connection in pcap.connections(path)]


def main():
    worst = 0
    for session in sessions(Path(sys.argv[1])):
        print(f"port {session.initiator[1]} -> {session.responder[1]} crc={session.crc} "
              f"markers={session.marked} ends={session.ends}")
        for side, arrow in ((0, "->"), (1, "<-")):
            print(f"  {arrow} {session.frames[side]}")
            for message in session.messages[side]:
                print(f"  {arrow} {message}")
        for problem in session.problems:
            print(f"  WRONG {problem}")
            worst = 1
    sys.exit(worst)


if __name__ == "__main__":
    main()
