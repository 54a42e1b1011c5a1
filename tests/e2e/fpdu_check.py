#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Is everything on these TCP connections MPA? A judge that shares no code with what it judges.

    fpdu_check.py CAPTURE [--port N] [--expect CONNECTIONS]

Walks both directions of each connection in a pcap file with the decoder of tests/captures: a
Request or Reply, then FPDUs to the last octet, without markers and each with a good CRC32c.
Anything else, also an octet that the capture misses, is an error.
"""
import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "captures"))
import decode  # noqa: E402
import pcap  # noqa: E402
import rdmap  # noqa: E402

WRITE, SEND = 0x0, 0x3


class Wrong(Exception):
    pass


@dataclass
class Walk:
    startup: int = 0  # octets of the start-up frame
    fpdus: int = 0
    octets: int = 0  # of FPDUs
    kinds: Counter = field(default_factory=Counter)
    payload: bytearray = field(default_factory=bytearray)  # what Writes and Sends carry
    around: bytearray = field(default_factory=bytearray)  # all that is not


def payload_of(segment):
    """A program's octets: a Send begins with the four of the stream's message."""
    if segment.opcode == WRITE:
        return segment.payload
    if segment.opcode == SEND:
        return segment.payload[0 if segment.offset else 4:]
    return b""


def walk_direction(half, frame, problems):
    walk = Walk(startup=frame.size)
    reader = decode.FpduReader(half, frame.size, False, True, problems)
    fpdus = reader.all()
    walk.around += half.octets[:frame.size]
    for fpdu in fpdus:
        segment = rdmap.segment(fpdu, problems)
        if segment is None:
            break
        payload = payload_of(segment)
        behind = fpdu.at + 2 + len(fpdu.ulpdu)
        walk.kinds[rdmap.ROWS[segment.opcode].name] += 1
        walk.payload += payload
        walk.around += reader.octets[fpdu.at:behind - len(payload)] + reader.octets[behind:fpdu.end]
        walk.fpdus += 1
        walk.octets += fpdu.end - fpdu.at
    return walk


def walk_connection(connection):
    """Both directions walked; CRCs are there when either side asked for them, and must be."""
    halves = [connection.halves[connection.client], connection.halves[connection.server]]
    problems = [what for half in halves for what in half.problems()]
    frames = [decode.read_frame(half.octets, half is halves[0], problems) for half in halves]
    if not problems:
        if any(frame.markers or frame.rejected for frame in frames):
            problems.append("a start-up frame with markers, or one that rejects")
        if not any(frame.crc for frame in frames):
            problems.append("nobody asked for CRCs")
    walks = [] if problems else [walk_direction(half, frame, problems)
                                 for half, frame in zip(halves, frames)]
    if problems:
        raise Wrong("; ".join(problems[:3]))
    return walks


def check(path, port=None, expect=None):
    """Walks of all connections in a capture; raises Wrong."""
    try:
        found = pcap.connections(Path(path), port)
    except pcap.Incomplete as wrong:
        raise Wrong(str(wrong)) from wrong
    if not found or expect not in (None, len(found)):
        raise Wrong(f"{len(found)} connections in the capture")
    return [walk_connection(connection) for connection in found]


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
