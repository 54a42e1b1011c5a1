#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stands between two ends of iWARP connections and makes faults, so that what finds one, and what
is told of it, is a whole stack on both sides.

    meddle.py ADDR PORT TO-ADDR TO-PORT WHAT...

takes one connection on PORT for the first WHAT and goes on to TO-PORT, PORT + 1 and TO-PORT + 1 for
the second, and so on. Each WHAT is

    NAME                        one FPDU goes on as FAULTS[NAME] has it, with its CRC made right,
                                or the Reply as REPLIES[NAME] has it
    WHO:FRAME:OCTETS:HOW        when WHO (initiator, responder) has sent so many octets (or all) of
                                its frame of that number, of which 0 is the Request or Reply, both
                                connections end, by HOW: FIN or RST

It says on stdout what was changed and what Terminate passed.
"""
import ctypes
import socket
import struct
import sys
import threading
import time

import rawpeer
from rawpeer import READ_REQUEST, READ_RESPONSE, SEND, TERMINATE, WRITE, Ended, Peer

LIBC = ctypes.CDLL(None)
SETTLE = 0.3  # for the octets before a cut to arrive
WHERE = 16  # octets in which script.h's swap tells where memory is


def put(octets, at, form, value):
    """A copy with one field changed."""
    size = struct.calcsize(form)
    return octets[:at] + struct.pack(form, value) + octets[at + size:]


def add(octets, at, form, value):
    mask = (1 << 8 * struct.calcsize(form)) - 1
    return put(octets, at, form, struct.unpack_from(form, octets, at)[0] + value & mask)


def bits(octets, at, keep, new):
    return put(octets, at, ">B", octets[at] & keep | new)


# --- which FPDU -----------------------------------------------------------------------------------


def is_send(ulpdu):
    return ulpdu[1] & 15 == SEND and len(ulpdu) != 18 + WHERE


def is_write(ulpdu):
    return ulpdu[1] & 15 == WRITE and len(ulpdu) > 14


def is_read(ulpdu):
    return ulpdu[1] & 15 == READ_REQUEST and struct.unpack_from(">I", ulpdu, 30)[0] > 0


def is_response(ulpdu):
    return ulpdu[1] & 15 == READ_RESPONSE and len(ulpdu) > 14


def answer_of_nobody(ulpdu):
    """A Read Response, and what was to be sent behind it."""
    return [struct.pack(">BBIQ", 0xC1, 0x42, 1, 0) + b"x", ulpdu]


def many_reads(ulpdu):
    return [put(ulpdu, 10, ">I", struct.unpack_from(">I", ulpdu, 10)[0] + i) for i in range(200)]


TO = 6  # where a field stands: of a tagged header, of an untagged one, of a Read Request
QN, MSN, MO = 6, 10, 14
SIZE, SOURCE, SOURCE_TO = 30, 34, 38
# name: whose FPDU, which, what becomes of it: one ULPDU, a list of them, or None: a wrong CRC
FAULTS = {
    "send-ddp-version": ("initiator", is_send, lambda u: bits(u, 0, 0xFC, 2)),
    "send-rdmap-version": ("initiator", is_send, lambda u: bits(u, 1, 0x3F, 0x80)),
    "send-opcode": ("initiator", is_send, lambda u: bits(u, 1, 0xF0, 12)),
    "send-queue": ("initiator", is_send, lambda u: put(u, QN, ">I", 9)),
    "send-on-reads": ("initiator", is_send, lambda u: put(u, QN, ">I", 1)),
    "send-msn-ahead": ("initiator", is_send, lambda u: add(u, MSN, ">I", 1)),
    "send-msn-again": ("initiator", is_send, lambda u: add(u, MSN, ">I", -1)),
    "send-mo": ("initiator", is_send, lambda u: put(u, MO, ">I", 4)),
    "send-tagged": ("initiator", is_send, lambda u: bits(u, 0, 0x7F, 0x80)),
    "send-short": ("initiator", is_send, lambda u: u[:12]),
    "send-crc": ("initiator", is_send, None),
    "send-inv": ("initiator", is_send, lambda u: put(bits(u, 1, 0xF0, 4), 2, ">I", 0x12345600)),
    "send-se-inv": ("initiator", is_send, lambda u: put(bits(u, 1, 0xF0, 6), 2, ">I", 0x12345600)),
    "write-ddp-version": ("initiator", is_write, lambda u: bits(u, 0, 0xFC, 2)),
    "write-rdmap-version": ("initiator", is_write, lambda u: bits(u, 1, 0x3F, 0x80)),
    "write-opcode": ("initiator", is_write, lambda u: bits(u, 1, 0xF0, 12)),
    "write-untagged": ("initiator", is_write, lambda u: bits(u, 0, 0x7F, 0)),
    "write-stag": ("initiator", is_write, lambda u: put(u, 2, ">I", 0x5A5A5A00)),
    "write-key": ("initiator", is_write, lambda u: add(u, 5, ">B", 1)),
    "write-before": ("initiator", is_write, lambda u: add(u, TO, ">Q", -1)),
    "write-beyond": ("initiator", is_write, lambda u: add(u, TO, ">Q", 1 << 20)),
    "write-wrap": ("initiator", is_write, lambda u: put(u, TO, ">Q", (1 << 64) - 4)),
    "write-short": ("initiator", is_write, lambda u: u[:9]),
    "write-crc": ("initiator", is_write, None),
    "read-stag": ("initiator", is_read, lambda u: put(u, SOURCE, ">I", 0x5A5A5A00)),
    "read-key": ("initiator", is_read, lambda u: add(u, SOURCE + 3, ">B", 1)),
    "read-before": ("initiator", is_read, lambda u: add(u, SOURCE_TO, ">Q", -1)),
    "read-beyond": ("initiator", is_read, lambda u: add(u, SOURCE_TO, ">Q", 1 << 20)),
    "read-wrap": ("initiator", is_read, lambda u: put(u, SOURCE_TO, ">Q", (1 << 64) - 4)),
    "read-msn": ("initiator", is_read, lambda u: add(u, MSN, ">I", 1)),
    "read-mo": ("initiator", is_read, lambda u: put(u, MO, ">I", 4)),
    "read-queue": ("initiator", is_read, lambda u: put(u, QN, ">I", 0)),
    "read-short": ("initiator", is_read, lambda u: u[:40]),
    "read-long": ("initiator", is_read, lambda u: u + bytes(4)),
    "reads-beyond-ird": ("initiator", is_read, many_reads),
    "response-stag": ("responder", is_response, lambda u: put(u, 2, ">I", 0x5A5A5A00)),
    "response-to": ("responder", is_response, lambda u: add(u, TO, ">Q", 4)),
    "response-ends-early": ("responder", is_response, lambda u: bits(u, 0, 0xFF, 0x40)),
    "response-too-long": ("responder", is_response, lambda u: u + bytes(4)),
    "response-unasked": ("responder", is_send, answer_of_nobody),
}


# What becomes of the Reply, of which IRD and ORD are the first octets of private data
REPLIES = {
    "reply-ord": lambda octets: add(octets, rawpeer.HEAD + 2, ">H", 8000),
    "reply-key": lambda octets: put(octets, 0, "16s", b"MPA ID Rep Fraud"),
}


# --- the two sides --------------------------------------------------------------------------------


class Side(Peer):
    """One of the two connections; frames go on to the other."""

    def __init__(self, sock, name, key):
        super().__init__(sock)
        self.sock.settimeout(None)
        self.name, self.key = name, key
        self.who = name.split()[-1]
        self.other = None
        self.frames = 0

    def frame(self):
        """The octets of the next frame as they are, and its ULPDU, if it is an FPDU."""
        if not self.frames:
            flags, rev, private = self.take_frame(self.key)
            self.crc |= bool(flags & rawpeer.C)
            return rawpeer.frame(self.key, flags, rev, private), None
        head = self.take(2)
        length = struct.unpack(">H", head)[0]
        rest = self.take(length + -(2 + length) % 4 + 4)
        return head + rest, rest[:length]

    def pump(self, change):
        try:
            while True:
                octets, ulpdu = self.frame()
                if ulpdu and len(ulpdu) > 19 and ulpdu[1] & 15 == TERMINATE:
                    self.say(f"Terminate {ulpdu[18]:02x} {ulpdu[19]:02x}")
                change(self, octets, ulpdu)
                self.frames += 1
        except (Ended, OSError, struct.error) as why:
            self.say(why)
        self.close_other()

    def say(self, what):
        print(f"{self.name}: {what}", flush=True)

    def close_other(self):
        try:
            self.other.sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it is gone already


class Fault:
    """Changes the first FPDU that fits."""

    def __init__(self, name):
        self.who, self.fits, self.change = FAULTS[name]
        self.done = False

    def __call__(self, side, octets, ulpdu):
        if self.done and self.change is many_reads and ulpdu and is_response(ulpdu):
            return  # an answer to a Read of ours would be a fault before theirs is told
        if self.done or side.who != self.who or not ulpdu or not self.fits(ulpdu):
            side.other.sock.sendall(octets)
            return
        self.done = True
        crc = side.crc or side.other.crc
        side.say(f"changed {ulpdu[:48].hex()}")
        if not self.change:
            side.other.sock.sendall(octets[:-1] + bytes([octets[-1] ^ 1]))
            return
        changed = self.change(ulpdu)
        side.other.crc = crc
        for one in changed if isinstance(changed, list) else [changed]:
            side.other.put(one)


class Reply:
    """Changes the Reply."""

    def __init__(self, name):
        self.change = REPLIES[name]

    def __call__(self, side, octets, ulpdu):
        if side.who == "responder" and not side.frames:
            octets = self.change(octets)
            side.say(f"changed into {octets.hex()}")
        side.other.sock.sendall(octets)


class Cut:
    """Ends both connections in the middle."""

    def __init__(self, what):
        self.who, frame, octets, self.how = what.split(":")
        self.frame = int(frame)
        self.octets = None if octets == "all" else int(octets)

    def __call__(self, side, octets, ulpdu):
        if side.who != self.who or side.frames != self.frame:
            side.other.sock.sendall(octets)
            return
        side.other.sock.sendall(octets[:self.octets])
        time.sleep(SETTLE)
        for one in (side, side.other):
            if self.how == "RST":  # also while a thread is in recv, when close would wait
                LIBC.connect(one.sock.fileno(), bytes(16), 16)  # AF_UNSPEC
            else:
                one.sock.shutdown(socket.SHUT_WR)
        side.say("cut")


def serve(listener, to, what):
    change = (Fault if what in FAULTS else Reply if what in REPLIES else Cut)(what)
    initiator = Side(listener.accept()[0], f"{what}: the initiator", rawpeer.REQUEST)
    responder = Side(socket.create_connection(to), f"{what}: the responder", rawpeer.REPLY)
    initiator.other, responder.other = responder, initiator
    pumps = [threading.Thread(target=side.pump, args=(change,)) for side in (initiator, responder)]
    for pump in pumps:
        pump.start()
    for pump in pumps:
        pump.join()
    time.sleep(rawpeer.SETTLE)
    initiator.sock.close()
    responder.sock.close()


def main():
    addr, port, to_addr, to_port, *whats = sys.argv[1:]
    listeners = [socket.create_server((addr, int(port) + i)) for i in range(len(whats))]
    for i, (listener, what) in enumerate(zip(listeners, whats)):
        threading.Thread(target=serve,
                         args=(listener, (to_addr, int(to_port) + i), what)).start()


if __name__ == "__main__":
    main()
