#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Is everything on these TCP connections MPA? A judge that shares no code with what it judges.

    fpdu_check.py CAPTURE [--port N] [--expect CONNECTIONS]

Reads a pcap file, puts both directions of each connection together, and walks them: a Request or
Reply (RFC 5044 section 7.1), then FPDUs to the last octet, each with a good CRC32c. Anything else,
also an octet that the capture misses, is an error.
"""
import argparse
import struct
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field

KEYS = {"request": b"MPA ID Req Frame", "reply": b"MPA ID Rep Frame"}
FLAG_M, FLAG_C, FLAG_R = 0x80, 0x40, 0x20
OPCODES = {0: "Write", 1: "Read Request", 2: "Read Response", 3: "Send", 7: "Terminate"}
SYN, FIN = 0x02, 0x01
# Link types of a capture: octets before the network layer
LINKS = {0: 4, 1: 14, 12: 0, 101: 0, 113: 16, 276: 20}


class Wrong(Exception):
    pass


# --- CRC32c (Castagnoli, reflected) ---------------------------------------------------------------


def crc_table():
    table = []
    for octet in range(256):
        for _ in range(8):
            octet = octet >> 1 ^ (0x82F63B78 if octet & 1 else 0)
        table.append(octet)
    return table


TABLE = crc_table()


def crc32c(octets):
    crc = 0xFFFFFFFF
    for octet in octets:
        crc = TABLE[(crc ^ octet) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


# --- the capture ----------------------------------------------------------------------------------


def packets(octets):
    """The network layer's octets of each packet."""
    order = {0xA1B2C3D4: "<", 0xA1B23C4D: "<", 0xD4C3B2A1: ">", 0x4D3CB2A1: ">"}.get(
        struct.unpack_from("<I", octets)[0])
    if not order:
        raise Wrong("no pcap file")
    link = struct.unpack_from(order + "I", octets, 20)[0] & 0xFFFF
    if link not in LINKS:
        raise Wrong(f"link type {link} is not known here")
    at = 24
    while at + 16 <= len(octets):
        have, whole = struct.unpack_from(order + "II", octets, at + 8)
        if have != whole:
            raise Wrong("a packet was captured in part")
        yield octets[at + 16 + LINKS[link]:at + 16 + have]
        at += 16 + have


def tcp_of(packet):
    """Source and destination address and the TCP segment; None: something else."""
    version = packet[0] >> 4 if packet else 0
    if version == 4 and packet[9] == 6:
        header = (packet[0] & 15) * 4
        return packet[12:16], packet[16:20], packet[header:struct.unpack_from(">H", packet, 2)[0]]
    if version == 6 and packet[6] == 6:
        return packet[8:24], packet[24:40], packet[40:40 + struct.unpack_from(">H", packet, 4)[0]]
    return None


@dataclass
class Direction:
    first: int = None  # sequence number of the first octet
    octets: bytearray = field(default_factory=bytearray)
    early: dict = field(default_factory=dict)  # segments behind a gap
    opened: bool = False  # it sent the SYN without ACK

    def segment(self, seq, payload):
        if self.first is None:
            raise Wrong("a connection whose beginning is not in the capture")
        at = seq - self.first & 0xFFFFFFFF
        if at > 1 << 31:  # a keep-alive probe lies before the first octet
            return
        self.early[at] = max(payload, self.early.get(at, b""), key=len)
        while True:
            ready = [at for at in self.early if at <= len(self.octets)]
            if not ready:
                return
            for at in ready:
                payload = self.early.pop(at)
                known = self.octets[at:at + len(payload)]
                if known != payload[:len(known)]:
                    raise Wrong("a segment was sent again with other octets")
                self.octets += payload[len(known):]


def connections(octets, port):
    """Pairs of directions, the opener's first."""
    open_now, done = {}, []
    for packet in packets(octets):
        found = tcp_of(packet)
        if not found:
            continue
        src, dst, tcp = found
        sport, dport, seq, _, offset, flags = struct.unpack_from(">HHIIBB", tcp)
        if port and port not in (sport, dport):
            continue
        here, there = (src, sport), (dst, dport)
        key = frozenset((here, there))
        if flags & SYN and not flags & 0x10 and (
                key not in open_now or open_now[key][here].first != seq + 1 & 0xFFFFFFFF):
            open_now[key] = defaultdict(Direction)
            done.append((open_now[key], here, there))
        if key not in open_now:
            raise Wrong("a connection whose beginning is not in the capture")
        side = open_now[key][here]
        if flags & SYN:
            side.first = seq + 1 & 0xFFFFFFFF
        payload = tcp[(offset >> 4) * 4:]
        if payload:
            side.segment(seq, payload)
    return [(sides[here], sides[there]) for sides, here, there in done]


# --- MPA, DDP, RDMAP ------------------------------------------------------------------------------


@dataclass
class Walk:
    startup: int = 0  # octets of the start-up frame
    fpdus: int = 0
    octets: int = 0  # of FPDUs
    kinds: Counter = field(default_factory=Counter)
    payload: bytearray = field(default_factory=bytearray)  # what Writes and Sends carry
    around: bytearray = field(default_factory=bytearray)  # all that is not


def startup(octets, kind):
    """Length and flags of the frame at the beginning."""
    if octets[:16] != KEYS[kind]:
        raise Wrong(f"no MPA {kind} at the beginning: {bytes(octets[:20])!r}")
    flags, _, pd_length = struct.unpack_from(">BBH", octets, 16)
    if len(octets) < 20 + pd_length:
        raise Wrong(f"the {kind} is cut")
    if flags & (FLAG_M | FLAG_R):
        raise Wrong(f"the {kind} has flags {flags:#x}")
    return 20 + pd_length, flags


def payload_begin(ulpdu, opcode, header):
    """Where a program's octets may begin: a Send begins with the four of the stream's message."""
    if opcode == 3 and not any(ulpdu[14:18]):  # message offset 0
        return min(header + 4, len(ulpdu))
    return header if opcode in (0, 3) else len(ulpdu)


def fpdu(octets, at, crc_on, walk):
    """Checks the FPDU at an offset; returns the offset behind it."""
    if at + 2 > len(octets):
        raise Wrong(f"{len(octets) - at} octets at offset {at} are no FPDU")
    length = struct.unpack_from(">H", octets, at)[0]
    end = at + (2 + length + 3 & ~3)
    if end + 4 > len(octets):
        raise Wrong(f"the FPDU at offset {at} is cut: ULPDU of {length}")
    if any(octets[at + 2 + length:end]):
        raise Wrong(f"the FPDU at offset {at} has a pad that is not zero")
    if crc_on and crc32c(octets[at:end]) != struct.unpack_from("<I", octets, end)[0]:
        raise Wrong(f"the FPDU at offset {at} has a bad CRC")
    ulpdu = octets[at + 2:at + 2 + length]
    header = 14 if ulpdu and ulpdu[0] & 0x80 else 18
    if length < header or ulpdu[0] & 3 != 1 or ulpdu[1] >> 6 != 1:
        raise Wrong(f"the FPDU at offset {at} has no DDP or RDMAP header of version 1")
    opcode = ulpdu[1] & 15
    walk.kinds[OPCODES.get(opcode, f"opcode {opcode}")] += 1
    begin = payload_begin(ulpdu, opcode, header)
    walk.payload += ulpdu[begin:]
    walk.around += octets[at:at + 2 + begin] + octets[at + 2 + length:end + 4]
    walk.fpdus += 1
    walk.octets += end + 4 - at
    return end + 4


def walk_direction(direction, kind, crc_on):
    if direction.early:
        raise Wrong("octets are missing in the capture")
    walk = Walk(startup=startup(direction.octets, kind)[0])
    at = walk.startup
    walk.around += direction.octets[:at]
    while at < len(direction.octets):
        at = fpdu(direction.octets, at, crc_on, walk)
    return walk


def walk_connection(pair):
    """Both directions walked; CRCs are there when either side asked for them, and must be."""
    flags = [startup(side.octets, kind)[1] for side, kind in zip(pair, KEYS)]
    if not any(flag & FLAG_C for flag in flags):
        raise Wrong("nobody asked for CRCs")
    return [walk_direction(side, kind, True) for side, kind in zip(pair, KEYS)]


def check(path, port=None, expect=None):
    """Walks of all connections in a capture; raises Wrong."""
    with open(path, "rb") as file:
        pairs = connections(file.read(), port)
    if not pairs or expect not in (None, len(pairs)):
        raise Wrong(f"{len(pairs)} connections in the capture")
    return [walk_connection(pair) for pair in pairs]


def summary(walks):
    sides = [side for walk in walks for side in walk]
    kinds = sum((side.kinds for side in sides), Counter())
    named = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    octets = sum(side.octets for side in sides)
    return (f"{len(walks)} connections, {octets} octets after start-up, "
            f"{sum(side.fpdus for side in sides)} FPDUs ({named}), every CRC32c good")


def main():
    parser = argparse.ArgumentParser(prog="fpdu_check.py")
    parser.add_argument("capture")
    parser.add_argument("--port", type=int)
    parser.add_argument("--expect", type=int)
    options = parser.parse_args()
    try:
        print(summary(check(options.capture, options.port, options.expect)))
    except Wrong as wrong:
        sys.exit(f"fpdu_check: {wrong}")


if __name__ == "__main__":
    main()
