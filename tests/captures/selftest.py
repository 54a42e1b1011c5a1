#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks the decoder: worked examples must pass, and each planted fault must be seen.

The examples are whole FPDUs that Wireshark's dissector has called good.
"""
import struct
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import decode  # noqa: E402
import tap  # noqa: E402

A, B = (b"\x7f\0\0\x01", 40000), (b"\x7f\0\0\x01", 50000)

EXAMPLES = {
    "Send": "0017 4143 00000000 00000000 00000001 00000000 68656c6c6f 000000 b990b10c",
    "Read Request": "002e 4141 00000000 00000001 00000001 00000000 aabbccdd 0000000000001000"
                    "00000018 01020304 0000000000002000 691ad9ae",
    "Write": "000e c140 00000001 0000000000000000 ebd34c5f",
    "Send of nothing": "0012 4143 00000000 00000000 00000001 00000000 587be8c4",
    "Terminate, no headers": "0016 4147 00000000 00000002 00000001 00000000 20020000 7fe42585",
    "Terminate with the header of a Read Request":
        "0046 4147 00000000 00000002 00000001 00000000 0101e000 002e 4141 00000000 00000001"
        "00000001 00000000 aabbccdd 0000000000001000 00000018 01020304 0000000000002000 16317c8e",
}


# --- how to write what the decoder reads ----------------------------------------------------------


def frame(request=True, flags=0x40, rev=1, private=b""):
    key = decode.KEY_REQ if request else decode.KEY_REP
    return key + struct.pack(">BBH", flags, rev, len(private)) + private


def untagged(opcode, payload=b"", msn=1, queue=0, mo=0, last=True, stag=0, ddp=1, rv=0x40):
    return struct.pack(">BBIIII", ddp | (0x40 if last else 0), rv | opcode, stag, queue, msn,
                       mo) + payload


def tagged(opcode, payload=b"", stag=1, to=0, last=True):
    return struct.pack(">BBIQ", 0x81 | (0x40 if last else 0), 0x40 | opcode, stag, to) + payload


def read_request(msn=1, size=0):
    return untagged(1, struct.pack(">IQIIQ", 7, 0x1000, size, 9, 0x2000), msn, 1)


def pointer(value):
    return struct.pack(">HH", 0, value)


def fpdus(ulpdus, marked=False, spoil=None, pointers=0):
    """The octets of FPDUs; pointers is added to each marker's, spoil is the octet to change."""
    out = bytearray()
    for ulpdu in ulpdus:
        begin = len(out)
        if marked and len(out) % 512 == 0:
            out += pointer(0)
        start = len(out)
        body = struct.pack(">H", len(ulpdu)) + ulpdu + b"\0" * (-(2 + len(ulpdu)) % 4)
        for at in range(0, len(body), 4):
            if marked and at and len(out) % 512 == 0:
                out += pointer(len(out) - start + pointers)
            out += body[at:at + 4]
        if marked and len(out) % 512 == 0:
            out += pointer(len(out) - start + pointers)
        out += struct.pack("<I", decode.crc32c(out[begin:]))
    if spoil is not None:
        out[spoil] ^= 1
    return bytes(out)


def packet(sender, receiver, seq, flags, payload=b""):
    tcp = struct.pack(">HHIIBBHHH", sender[1], receiver[1], seq, 0, 0x50, flags, 0, 0, 0) + payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + sender[0] + receiver[0]
    return ip + tcp


def session(*turns, cut=0):
    """What the decoder makes of a connection in which A and B write in turn, cut in pieces."""
    seq = {A: 0xFFFFFF00, B: 1}
    packets = [packet(A, B, seq[A] - 1, 2), packet(B, A, 0, 0x12)]
    for side, octets in turns:
        other = B if side is A else A
        step = cut or len(octets) or 1
        for at in range(0, len(octets), step):
            packets.append(packet(side, other, seq[side] & 0xFFFFFFFF, 0x18,
                                  octets[at:at + step]))
            seq[side] += len(octets[at:at + step])
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x.pcap"
        path.write_bytes(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 101) + b"".join(
            struct.pack("<IIII", 0, 0, len(p), len(p)) + p for p in packets))
        return decode.sessions(path)[0]


def plain(*ulpdus, **how):
    """A session of revision 1 in which the initiator sends these ULPDUs."""
    return session((A, frame()), (B, frame(False)), (A, fpdus(ulpdus, **how)))


def marked(*ulpdus, **how):
    return session((A, frame()), (B, frame(False, 0xC0)), (A, fpdus(ulpdus, True, **how)))


def names(found, side=0):
    return [message.name for message in found.messages[side]]


# --- cases --------------------------------------------------------------------------------------


def check_examples(writer):
    for name, text in EXAMPLES.items():
        octets = bytes.fromhex(text)
        found = session((A, frame()), (B, frame(False)), (A, octets))
        problems = [p for p in found.problems if "answers to" not in p]
        writer.case(f"example: {name}", problems if len(found.messages[0]) == 1 else ["not read"])


GOOD = {
    "several messages": lambda: plain(untagged(3, b"a"), tagged(0, b"bcd"), untagged(3, msn=2)),
    "a message in segments": lambda: plain(untagged(3, b"ab", last=False),
                                           untagged(3, b"c", mo=2)),
    "every kind of pad": lambda: plain(*(untagged(3, b"x" * n, n + 1) for n in range(8))),
    "markers, an end on one": lambda: marked(untagged(3, b"x" * 484), untagged(3, b"y", 2)),
    "markers, one before the CRC": lambda: marked(untagged(3, b"x" * 488), untagged(3, b"y", 2)),
    "markers, several in one": lambda: marked(untagged(3, b"x" * 2000)),
    "octets in single segments": lambda: session(
        (A, frame()), (B, frame(False)), (A, fpdus([untagged(3, b"abc")])), cut=1),
    "a Read": lambda: session((A, frame()), (B, frame(False)), (A, fpdus([read_request(size=3)])),
                              (B, fpdus([tagged(2, b"abc", 7, 0x1000)]))),
    "RTR Write": lambda: session(
        (A, frame(flags=0x50, rev=2, private=bytes.fromhex("8004c008"))),
        (B, frame(False, 0x50, 2, bytes.fromhex("80048004"))), (A, fpdus([tagged(0)]))),
    "a Terminate that cuts a message off": lambda: session(
        (A, frame()), (B, frame(False)), (A, fpdus([read_request(size=3)])),
        (B, fpdus([tagged(2, b"a", 7, 0x1000, False), untagged(7, b"\0\x01\0\0", 1, 2)]))),
    "a Terminate at which the other end stops": lambda: session(
        (A, frame()), (B, frame(False)), (A, fpdus([untagged(3, b"a", last=False)])),
        (B, fpdus([untagged(7, b"\x12\x05\0\0", 1, 2)]))),
    "no CRC": lambda: session((A, frame(flags=0)), (B, frame(False, 0)),
                              (A, fpdus([untagged(3)], spoil=-1))),
}

# case, what makes the fault, words of the complaint
BAD = [
    ("a flipped bit in the payload", lambda: plain(untagged(3, b"abc"), spoil=21), "CRC"),
    ("a flipped bit in the CRC", lambda: plain(untagged(3, b"abc"), spoil=-1), "CRC"),
    ("a pad that is not zero", lambda: plain(untagged(3, b"a"), spoil=-5), "pad"),
    ("a marker that points elsewhere",
     lambda: marked(untagged(3, b"x" * 600), pointers=4), "marker"),
    ("no markers where there must be",
     lambda: session((A, frame()), (B, frame(False, 0xC0)), (A, fpdus([untagged(3)]))), "marker"),
    ("markers where there must be none",
     lambda: session((A, frame()), (B, frame(False)), (A, fpdus([untagged(3)], True))), "CRC"),
    ("half an FPDU",
     lambda: session((A, frame()), (B, frame(False)), (A, fpdus([untagged(3)])[:-3])), "no whole"),
    ("an MSN that does not follow", lambda: plain(untagged(3, msn=2)), "MSN 2"),
    ("an MSN that comes twice", lambda: plain(untagged(3), untagged(3)), "MSN 1"),
    ("an MO with a gap", lambda: plain(untagged(3, b"ab", last=False), untagged(3, b"c", mo=3)),
     "offset"),
    ("a TO with a gap", lambda: plain(tagged(0, b"ab", last=False), tagged(0, b"c", to=1)),
     "offset"),
    ("two messages in one another",
     lambda: plain(untagged(3, b"ab", last=False), tagged(0, b"c")), "inside of one"),
    ("no last segment, whatever else the other end says",
     lambda: session((A, frame()), (B, frame(False)), (A, fpdus([untagged(3, b"a", last=False)])),
                     (B, fpdus([untagged(3, b"b")]))), "last segment"),
    ("no last segment", lambda: plain(untagged(3, b"ab", last=False)), "last segment"),
    ("DDP version 2", lambda: plain(untagged(3, ddp=2)), "DDP's version"),
    ("RDMAP version 0", lambda: plain(untagged(3, rv=0)), "RDMAP's version"),
    ("a reserved bit", lambda: plain(untagged(3, ddp=5)), "reserved"),
    ("opcode 12", lambda: plain(untagged(12)), "nobody has assigned"),
    ("a Send on queue 1", lambda: plain(untagged(3, queue=1)), "queue 1"),
    ("a Send that is tagged", lambda: plain(tagged(3)), "T=True"),
    ("a Send that invalidates", lambda: plain(untagged(3, stag=5)), "to invalidate"),
    ("an Immediate of 7 octets", lambda: plain(untagged(8, b"x" * 7)), "Immediate of 7"),
    ("a Read Request of 27 octets", lambda: plain(untagged(1, b"x" * 27, queue=1)), "of 27"),
    ("an atomic operation that is none",
     lambda: plain(untagged(10, struct.pack(">IIIQQQQQ", 1, 0, 1, 0, 0, 0, 0, 0), 1, 1)),
     "atomic operation 0x1"),
    ("a FetchAdd that compares",
     lambda: plain(untagged(10, struct.pack(">IIIQQQQQ", 0, 0, 1, 0, 0, 0, 0, 0), 1, 1)),
     "compares 0x0"),
    ("a Read that nobody answers", lambda: plain(read_request()), "only 0 answers"),
    ("an answer that nobody wants",
     lambda: session((A, frame()), (B, frame(False)), (A, fpdus([untagged(3)])),
                     (B, fpdus([tagged(2)]))), "1 answers to 0"),
    ("an answer with another STag",
     lambda: session((A, frame()), (B, frame(False)), (A, fpdus([read_request(size=1)])),
                     (B, fpdus([tagged(2, b"a", 8, 0x1000)]))), "answers Read"),
    ("more Reads than the depth",
     lambda: session((A, frame(flags=0x50, rev=2, private=bytes.fromhex("00010002"))),
                     (B, frame(False, 0x50, 2, bytes.fromhex("00010001"))),
                     (A, fpdus([read_request(), read_request(2)]))), "one more than the depth"),
    ("something after a Terminate",
     lambda: plain(untagged(7, b"\x20\x02\0\0", 1, 2), untagged(3)), "after a Terminate"),
    ("a Terminate with a code that is none", lambda: plain(untagged(7, b"\x12\x77\0\0", 1, 2)),
     "(1, 2, 119)"),
    ("a Terminate with swapped nibbles", lambda: plain(untagged(7, b"\x21\x05\x03\0", 1, 2)),
     "Terminate with"),
    ("a Terminate that announces more", lambda: plain(untagged(7, b"\x12\x05\xc0\0", 1, 2)),
     "announced"),
    ("a responder that begins", lambda: session((A, frame()), (B, frame(False)),
                                                (B, fpdus([untagged(3)]))), "before it may"),
    ("no Request", lambda: session((A, b"GET / HTTP/1.0\r\n\r\n    ")), "no MPA Request"),
    ("a reserved flag", lambda: session((A, frame(flags=0x41)), (B, frame(False))), "reserved"),
    ("enhanced data in revision 1",
     lambda: session((A, frame(flags=0x50, private=b"abcd")), (B, frame(False, 0x50, 1, b"abcd"))),
     "revision 1 with S"),
    ("another ORD than can be",
     lambda: session((A, frame(flags=0x50, rev=2, private=bytes.fromhex("00010001"))),
                     (B, frame(False, 0x50, 2, bytes.fromhex("00010002")))), "ORD 2"),
    ("RTR in a form that was not agreed on",
     lambda: session((A, frame(flags=0x50, rev=2, private=bytes.fromhex("8004c008"))),
                     (B, frame(False, 0x50, 2, bytes.fromhex("80048004"))),
                     (A, fpdus([untagged(3)]))), "not RTR"),
    ("FPDUs after a Reply with R",
     lambda: session((A, frame()), (B, frame(False, 0x60)), (A, fpdus([untagged(3)]))),
     "after a Reply with R"),
]


def main():
    writer = tap.Writer()
    check_examples(writer)
    for name, make in GOOD.items():
        writer.case(f"good: {name}", make().problems)
    found = plain(untagged(3, b"ab", last=False), untagged(3, b"c", mo=2), tagged(0))
    writer.case("messages are what was sent",
                [] if names(found) == ["Send", "Write"]
                and found.messages[0][0].payload == b"abc" else [str(found.messages)])
    for name, make, words in BAD:
        problems = make().problems
        writer.case(f"bad: {name}", [] if any(words in p for p in problems) else
                    [f"{words!r} is not in {problems}"])
    writer.finish()


if __name__ == "__main__":
    main()
