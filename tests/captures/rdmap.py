# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""DDP segments into RDMAP messages, with every check that a reader of the wire can make."""
import struct
from dataclasses import dataclass

MULPDU_MAX = 64768
UNLIMITED = 0x3FFF


@dataclass
class Row:
    name: str
    tagged: bool
    queue: int = None
    header: int = None  # octets of the RDMAP header, when the message is nothing else
    invalidates: bool = False


ROWS = {
    0x0: Row("Write", True),
    0x1: Row("Read Request", False, 1, 28),
    0x2: Row("Read Response", True),
    0x3: Row("Send", False, 0),
    0x4: Row("Send Inv", False, 0, invalidates=True),
    0x5: Row("Send SE", False, 0),
    0x6: Row("Send SE Inv", False, 0, invalidates=True),
    0x7: Row("Terminate", False, 2),
    0x8: Row("Immediate", False, 0, 8),
    0x9: Row("Immediate SE", False, 0, 8),
    0xA: Row("Atomic Request", False, 1, 52),
    0xB: Row("Atomic Response", False, 3, 12),
}

# RFC 5040 Figure 9, RFC 5041 section 8, RFC 5044 section 8, RFC 6581 section 11
FAULTS = ({(0, 0, code) for code in range(256)}
          | {(0, 1, code) for code in (0, 1, 2, 3, 4, 9, 0xFF)}
          | {(0, 2, code) for code in (5, 6, 7, 8, 9, 0xFF)}
          | {(1, 0, 0)} | {(1, 1, code) for code in range(5)}
          | {(1, 2, code) for code in range(1, 7)} | {(2, 0, code) for code in range(1, 8)})


@dataclass
class Read:
    sink_stag: int
    sink_to: int
    size: int
    source_stag: int
    source_to: int


@dataclass
class Segment:
    opcode: int
    tagged: bool
    last: bool
    stag: int  # of a tagged one; of an untagged one what is to be invalidated
    offset: int  # TO or MO
    queue: int
    msn: int
    payload: bytes
    ulpdu: bytes
    packet: int


@dataclass
class Message:
    opcode: int
    length: int
    segments: int
    stag: int
    to: int
    msn: int
    first_packet: int
    packet: int
    payload: bytes
    whole: bool = True
    read: Read = None
    fault: tuple = None

    @property
    def name(self):
        return ROWS[self.opcode].name

    def __str__(self):
        extra = "".join(f" {part}" for part in (self.read, self.fault) if part is not None)
        return f"{self.name} {self.length} octets in {self.segments}{extra}"


def segment(fpdu, problems):
    """One ULPDU's headers; None when it cannot be read."""
    def wrong(what):
        problems.append(f"FPDU at {fpdu.at}: {what}: {ulpdu[:46].hex()}")

    ulpdu = fpdu.ulpdu
    if len(ulpdu) < 14 or (not ulpdu[0] & 0x80 and len(ulpdu) < 18):
        wrong("too short for a DDP header")
        return None
    ddp, ctl = ulpdu[0], ulpdu[1]
    if ddp & 0x3F != 1:
        wrong("DDP's version is not 1, or a reserved bit is set")
    if ctl & 0xF0 != 0x40:
        wrong("RDMAP's version is not 1, or a reserved bit is set")
    if len(ulpdu) > MULPDU_MAX:
        wrong(f"{len(ulpdu)} octets are more than MULPDU can be")
    row = ROWS.get(ctl & 15)
    if row is None:
        wrong("an opcode that nobody has assigned")
        return None
    tagged, last = bool(ddp & 0x80), bool(ddp & 0x40)
    if tagged != row.tagged:
        wrong(f"T={tagged} in a {row.name}")
        return None
    if tagged:
        stag, offset = struct.unpack_from(">IQ", ulpdu, 2)
        return Segment(ctl & 15, True, last, stag, offset, None, 0, ulpdu[14:], ulpdu, fpdu.packet)
    stag, queue, msn, offset = struct.unpack_from(">IIII", ulpdu, 2)
    if queue != row.queue:
        wrong(f"queue {queue} in a {row.name}")
    if stag and not row.invalidates:
        wrong(f"an STag to invalidate in a {row.name}")
    if row.invalidates and not stag:
        wrong("nothing to invalidate")
    return Segment(ctl & 15, False, last, stag, offset, queue, msn, ulpdu[18:], ulpdu, fpdu.packet)


class Assembler:
    """Puts the segments of one direction together: in order, one message after the other."""

    def __init__(self, problems):
        self.problems = problems
        self.next_msn = {0: 1, 1: 1, 2: 1, 3: 1}
        self.open = []
        self.found = []

    def wrong(self, what, seg):
        self.problems.append(f"{what}: {seg.ulpdu[:46].hex()}")

    def check_first(self, seg):
        if seg.tagged:
            return
        if seg.msn != self.next_msn.get(seg.queue):
            self.wrong(f"MSN {seg.msn}, {self.next_msn.get(seg.queue)} wanted", seg)
        self.next_msn[seg.queue] = (seg.msn + 1) & 0xFFFFFFFF
        if seg.offset:
            self.wrong(f"MO {seg.offset} at the beginning", seg)

    def check_next(self, seg):
        first, last = self.open[0], self.open[-1]
        same = (seg.opcode == first.opcode and seg.stag == first.stag and seg.queue == first.queue
                and seg.msn == first.msn)
        if not same:
            self.wrong("another message begins inside of one", seg)
        elif seg.offset != last.offset + len(last.payload):
            self.wrong(f"offset {seg.offset:#x}, {last.offset + len(last.payload):#x} wanted", seg)
        if not last.payload:
            self.wrong("an empty segment that was not the last", seg)

    def add(self, seg):
        if self.found and self.found[-1].opcode == 7 and not self.open:
            self.wrong("something after a Terminate", seg)
        if self.open and seg.opcode == 7:  # a Terminate may cut a message off
            self.found.append(self.message(False))
            self.open = []
        (self.check_next if self.open else self.check_first)(seg)
        self.open.append(seg)
        if seg.last:
            self.found.append(self.message(True))
            self.open = []

    def message(self, whole):
        first = self.open[0]
        payload = b"".join(seg.payload for seg in self.open)
        message = Message(first.opcode, len(payload), len(self.open), first.stag, first.offset,
                          first.msn, first.packet, self.open[-1].packet, payload, whole)
        row = ROWS[first.opcode]
        if row.header is not None and (len(payload) != row.header or len(self.open) != 1):
            self.wrong(f"a {row.name} of {len(payload)} octets in {len(self.open)}", first)
        elif first.opcode == 1:
            message.read = Read(*struct.unpack(">IQIIQ", payload))
        elif first.opcode == 7:
            self.read_terminate(message, first)
        elif first.opcode == 0xA:
            self.check_atomic(first)
        return message

    def check_atomic(self, seg):
        """RFC 7306 section 5.2.1: two operations; what FetchAdd does not use has fixed values."""
        operation, _, _, _, _, _, compare, mask = struct.unpack(">IIIQQQQQ", seg.payload)
        if operation not in (0, 2):
            self.wrong(f"atomic operation {operation:#x}", seg)
        elif operation == 0 and (compare or mask != 0xFFFFFFFFFFFFFFFF):
            self.wrong(f"a FetchAdd that compares {compare:#x} under {mask:#x}", seg)

    def read_terminate(self, message, seg):
        payload = message.payload
        if len(payload) < 4 or seg.msn != 1 or not seg.last:
            self.wrong("a Terminate that is none", seg)
            return
        layer, etype, code = payload[0] >> 4, payload[0] & 15, payload[1]
        message.fault = (layer, etype, code)
        if message.fault not in FAULTS:
            self.wrong(f"a Terminate with {message.fault}", seg)
        bits = payload[2]
        if bits & 0x1F or payload[3]:
            self.wrong("reserved bits in a Terminate", seg)
        want, headers = 4, payload[6:]
        if bits & 0xC0:
            want += 2
        if bits & 0x40:
            want += 14 if headers and headers[0] & 0x80 else 18
        if bits & 0x20:
            want += 28
        if bits & 0x20 and not bits & 0x40:
            self.wrong("a Terminate with an RDMAP header and no DDP header", seg)
        if len(payload) != want:
            self.wrong(f"a Terminate of {len(payload)} octets, {want} announced", seg)
        if layer == 2 and bits:
            self.wrong("headers in a Terminate of MPA", seg)

    def finish(self, told):
        if self.open:
            if not told:
                name = ROWS[self.open[0].opcode].name
                self.problems.append(f"a {name} without its last segment")
            self.found.append(self.message(False))
        return self.found


def ends_with_terminate(fpdus):
    last = [segment(fpdu, []) for fpdu in fpdus[-1:]]
    return bool(last and last[0] and last[0].opcode == 7)


def messages(fpdus, problems, told=False):
    """told: the other end has sent a Terminate, behind which a message may stop."""
    assembler = Assembler(problems)
    for fpdu in fpdus:
        seg = segment(fpdu, problems)
        if seg is not None:
            assembler.add(seg)
    return assembler.finish(told)


# --- both directions ----------------------------------------------------------------------------


def wrong_response(request, answer):
    if request.read:
        want = (2, request.read.sink_stag, request.read.sink_to, request.read.size)
        got = (answer.opcode, answer.stag, answer.to, answer.length)
        if got != want and answer.whole:
            return f"{answer} with STag {answer.stag:#x} TO {answer.to:#x} answers {request}"
        return None
    if answer.opcode != 0xB or len(answer.payload) != 12:
        return f"{answer} answers {request}"
    if answer.payload[:4] != request.payload[4:8]:
        return "an Atomic Response with another Request Identifier"
    return None


def check_answers(asked, answered, depth, problems):
    """Answers come in the order of the requests, and never are more of those open than allowed."""
    requests = [message for message in asked if message.opcode in (0x1, 0xA)]
    answers = [message for message in answered if message.opcode in (0x2, 0xB)]
    ended = any(message.opcode == 7 for message in asked + answered)
    if len(answers) > len(requests):
        problems.append(f"{len(answers)} answers to {len(requests)} requests")
    if len(answers) < len(requests) and not ended:
        problems.append(f"only {len(answers)} answers to {len(requests)} requests")
    for request, answer in zip(requests, answers):
        wrong = wrong_response(request, answer)
        if wrong:
            problems.append(wrong)
    for number, request in enumerate(requests):
        done = sum(answer.packet <= request.first_packet and answer.whole for answer in answers)
        if depth != UNLIMITED and number + 1 - done > depth:
            problems.append(f"request {number + 1} is one more than the depth of {depth} allows")
            return
