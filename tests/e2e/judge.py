#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The judge of captures, judged: it passes good ones and finds each kind of fault in bad ones."""
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

import fpdu_check  # noqa: E402

CLIENT, SERVER = 40000, 7777
# Frames of RFC 5044 and 6581: flags C and S, revision 2
REQUEST = bytes.fromhex("4d504120494420526571204672616d65 50 02 0004 0000 0001")
REPLY = bytes.fromhex("4d504120494420526570204672616d65 50 02 0004 0001 0000")
# Zero-length RDMA Write and Read Request with their CRCs
WRITE = bytes.fromhex("000e c140 00000001 0000000000000000 ebd34c5f")
READ = bytes.fromhex("002e 4141 00000000 00000001 00000001 00000000 00000000 0000000000000000"
                     "00000000 00000001 0000000000000000 ba10e3c9")


def packet(sport, dport, seq, flags, payload):
    tcp = struct.pack(">HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF, 0, 0x50, flags, 1024, 0, 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp) + len(payload), 0, 0, 64, 6, 0,
                     b"\x7f\0\0\1", b"\x7f\0\0\1")
    frame = bytes(12) + b"\x08\0" + ip + tcp + payload
    return struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame


def capture(client, server):
    """Lists of (offset, octets) in the order of their capture, both directions."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    out += packet(CLIENT, SERVER, 0xFFFFFFF0, 0x02, b"")
    out += packet(SERVER, CLIENT, 99, 0x12, b"")
    for at, octets in client:
        out += packet(CLIENT, SERVER, 0xFFFFFFF1 + at, 0x18, octets)
    for at, octets in server:
        out += packet(SERVER, CLIENT, 100 + at, 0x18, octets)
    return out


def whole(client=REQUEST + WRITE + READ, server=REPLY + WRITE):
    return capture([(0, client)], [(0, server)])


def flipped(octets, at):
    return octets[:at] + bytes([octets[at] ^ 1]) + octets[at + 1:]


SPLIT = REQUEST + WRITE + READ
GOOD = {
    "whole frames": whole(),
    "start-up alone": whole(REQUEST, REPLY),
    "cut anywhere": capture([(i, SPLIT[i:i + 7]) for i in range(0, len(SPLIT), 7)], [(0, REPLY)]),
    "out of order and twice": capture([(10, SPLIT[10:]), (0, SPLIT[:30]), (20, SPLIT[20:40])],
                                      [(0, REPLY)]),
}
BAD = {
    "plain TCP": whole(b"*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
    "an octet behind the last FPDU": whole(SPLIT + b"x"),
    "a cut FPDU": whole(SPLIT[:-1]),
    "a gap": capture([(0, SPLIT[:40]), (50, SPLIT[50:])], [(0, REPLY)]),
    "sent again with other octets": capture([(0, SPLIT), (30, b"zzzz")], [(0, REPLY)]),
    "no Reply": capture([(0, SPLIT)], []),
    "CRCs that nobody asked for": whole(flipped(REQUEST, 16)[:16] + b"\x10" + REQUEST[17:],
                                        REPLY[:16] + b"\x10" + REPLY[17:]),
    "no connection": capture([], [])[:24],
    "another port": capture([(0, SPLIT)], [(0, REPLY)]).replace(b"\x1e\x61", b"\x1e\x62"),
}


def fpdu(ulpdu):
    octets = struct.pack(">H", len(ulpdu)) + ulpdu
    octets += bytes(-len(octets) % 4)
    return octets + struct.pack("<I", fpdu_check.decode.crc32c(octets))


def payload_problems():
    """A Write's payload, a Send's behind its message, and nothing of either anywhere else."""
    write = b"\xc1\x40" + bytes(12) + b"written"
    first = b"\x01\x43" + bytes(8) + b"\0\0\0\1" + bytes(4) + b"\x04\0\0\x20sent"
    more = b"\x41\x43" + bytes(8) + b"\0\0\0\1\0\0\0\x08 too"
    with tempfile.NamedTemporaryFile(prefix="warpsock-judge-") as file:
        file.write(whole(REQUEST + fpdu(write) + fpdu(first) + fpdu(more)))
        file.flush()
        side = fpdu_check.check(file.name, SERVER)[0][0]
    problems = [] if side.payload == b"writtensent too" else [f"payload: {bytes(side.payload)}"]
    return problems + [f"{word} is around as well" for word in (b"written", b"sent", b" too")
                       if word in side.around]


def problem_of(octets, port=SERVER):
    with tempfile.NamedTemporaryFile(prefix="warpsock-judge-") as file:
        file.write(octets)
        file.flush()
        try:
            fpdu_check.check(file.name, port)
        except fpdu_check.Wrong as wrong:
            return str(wrong)
    return None


def main():
    writer = tap.Writer()
    writer.case("CRC32c of the check string",
                [] if fpdu_check.decode.crc32c(b"123456789") == 0xE3069283 else ["another value"])
    for name, octets in GOOD.items():
        wrong = problem_of(octets)
        writer.case(f"passes {name}", [wrong] if wrong else [])
    for name, octets in BAD.items():
        writer.case(f"finds {name}", [] if problem_of(octets) else ["it passed"])
    writer.case("tells payload from what is around it", payload_problems())
    missed = [f"octet {at}" for at in range(len(REQUEST), len(SPLIT))
              if not problem_of(whole(flipped(SPLIT, at)))]
    writer.case("finds every flipped octet", missed)
    writer.finish()


if __name__ == "__main__":
    main()
