#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An iWARP peer made of a socket and struct, written from the RFCs, without code of Warpsock's.

    rawpeer.py startup ADDR PORT        start-up frames in many forms, to rping -s -P on siw
    rawpeer.py faults ADDR PORT         broken FPDUs and what siw says to them
    rawpeer.py client ADDR PORT [...]   rping's client
    rawpeer.py server ADDR PORT [...]   rping's server, for one client

It is what Warpsock is compared with: where both get the same answer from siw, the answer is siw's.
"""
import argparse
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
M, C, R, S = 0x80, 0x40, 0x20, 0x10
WRITE, READ_REQUEST, READ_RESPONSE, SEND, TERMINATE = 0, 1, 2, 3, 7
HEAD = 20  # octets of a Request or Reply before the private data
P2P, BY_SEND = 0x8000, 0x4000  # in the word of IRD
BY_WRITE, BY_READ = 0x8000, 0x4000  # in the word of ORD
WAIT = 5
# siw takes a connection that closes before it has accepted it for its listener.
SETTLE = 0.1


class Ended(Exception):
    """The peer closed or reset the connection."""


def crc_table():
    for index in range(256):
        for _ in range(8):
            index = index >> 1 ^ (0x82F63B78 if index & 1 else 0)
        yield index


TABLE = tuple(crc_table())


def crc32c(octets):
    crc = 0xFFFFFFFF
    for octet in octets:
        crc = TABLE[(crc ^ octet) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def frame(key, flags, rev, private=b"", length=None):
    length = len(private) if length is None else length
    return key + struct.pack(">BBH", flags, rev, length) + private


def enhanced(ird, ord_, private=b""):
    return struct.pack(">HH", ird, ord_) + private


class Peer:
    """One connection."""

    def __init__(self, sock):
        self.sock = sock
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(WAIT)
        self.crc = False
        self.msn = {0: 0, 1: 0, 2: 0}
        self.memory = {}  # STag: bytearray, from TO 0

    def take(self, size):
        octets = b""
        while len(octets) < size:
            try:
                got = self.sock.recv(size - len(octets))
            except ConnectionResetError:
                raise Ended("reset") from None
            if not got:
                raise Ended("FIN" if not octets else "FIN inside a frame")
            octets += got
        return octets

    def close(self):
        time.sleep(SETTLE)
        self.sock.close()

    # --- start-up

    def take_frame(self, key):
        """Returns flags, rev and private data."""
        head = self.take(20)
        if head[:16] != key:
            raise ValueError(f"not the key: {head.hex()}")
        flags, rev, length = struct.unpack(">BBH", head[16:])
        return flags, rev, self.take(length)

    def ask(self, flags, rev, private=b"", length=None):
        """Sends a Request; returns what the Reply has."""
        self.sock.sendall(frame(REQUEST, flags, rev, private, length))
        answer = self.take_frame(REPLY)
        self.crc = bool((flags | answer[0]) & C)
        return answer

    # --- FPDUs

    def framed(self, ulpdu, crc=None):
        octets = struct.pack(">H", len(ulpdu)) + ulpdu
        octets += bytes(-len(octets) % 4)
        if crc is None:
            crc = crc32c(octets) if self.crc else 0
        return octets + struct.pack("<I", crc)

    def put(self, ulpdu, crc=None):
        self.sock.sendall(self.framed(ulpdu, crc))

    def get(self):
        """The next ULPDU."""
        head = self.take(2)
        length = struct.unpack(">H", head)[0]
        rest = self.take(length + -(2 + length) % 4 + 4)
        crc = struct.unpack("<I", rest[-4:])[0]
        if self.crc and rest[1] & 15 != TERMINATE and crc32c(head + rest[:-4]) != crc:
            raise ValueError(f"CRC {crc:08x} of {(head + rest).hex()}")
        return rest[:length]

    def untagged(self, opcode, queue, payload, msn=None, mo=0, last=True):
        if msn is None:
            self.msn[queue] += 1
            msn = self.msn[queue]
        self.put(struct.pack(">BBIIII", 0x41 if last else 0x01, 0x40 | opcode, 0, queue, msn, mo)
                 + payload)

    def tagged(self, opcode, stag, to, payload=b"", last=True):
        self.put(struct.pack(">BBIQ", 0xC1 if last else 0x81, 0x40 | opcode, stag, to) + payload)

    def send(self, payload):
        self.untagged(SEND, 0, payload)

    def read(self, sink_stag, sink_to, size, stag, to):
        self.untagged(READ_REQUEST, 1, struct.pack(">IQIIQ", sink_stag, sink_to, size, stag, to))

    def write_retry(self):
        """siw may lie on what came before it was ready; any further segment wakes it."""
        time.sleep(0.03)
        self.tagged(WRITE, 1, 0)

    def serve(self, ulpdu):
        """Does what a tagged message or a Read Request asks for; anything else is returned."""
        opcode = ulpdu[1] & 15
        if opcode in (WRITE, READ_RESPONSE):
            stag, to = struct.unpack_from(">IQ", ulpdu, 2)
            if len(ulpdu) > 14:
                self.memory[stag][to:to + len(ulpdu) - 14] = ulpdu[14:]
            return opcode if opcode == READ_RESPONSE and ulpdu[0] & 0x40 else None
        if opcode == READ_REQUEST:
            sink, sink_to, size, stag, to = struct.unpack_from(">IQIIQ", ulpdu, 18)
            whole = bytes(self.memory[stag][to:to + size]) if size else b""
            at = 0
            while at < size or not at:
                part = whole[at:at + 1400]
                self.tagged(READ_RESPONSE, sink, sink_to + at, part, at + len(part) == size)
                at += len(part) or 1
            return None
        return ulpdu

    def message(self):
        """The payload of the next Send of one segment."""
        while True:
            ulpdu = self.serve(self.get())
            if isinstance(ulpdu, bytes):
                if ulpdu[1] & 15 != SEND:
                    raise ValueError(f"no Send: {ulpdu.hex()}")
                return ulpdu[18:]

    def end(self):
        """What siw says at the end: a Terminate, in its order of nibbles, or the way it left."""
        try:
            while True:
                ulpdu = self.get()
                if ulpdu[1] & 15 == TERMINATE:
                    return f"{ulpdu[18] & 15}/{ulpdu[18] >> 4}/{ulpdu[19]:02x}"
        except Ended as why:
            return str(why)


def connect(addr, port):
    return Peer(socket.create_connection((addr, port), timeout=WAIT))


# --- start-up forms -------------------------------------------------------------------------------

RTR_WRITE = struct.pack(">BBIQ", 0xC1, 0x40, 1, 0)
RTR_READ = struct.pack(">BBIIIIIQIIQ", 0x41, 0x41, 0, 1, 1, 0, 1, 0, 0, 1, 0)
ORDINARY = enhanced(1, 1)
# Request: flags, rev, private data. Reply: flags, rev, private data, None: the connection ends.
STARTUP = {
    "rev 1": ((0, 1, b""), (0, 1, b"")),
    "rev 1 with CRC": ((C, 1, b""), (C, 1, b"")),
    "rev 0": ((0, 0, b""), (0, 0, b"")),
    "rev 2": ((S, 2, ORDINARY), (S, 2, ORDINARY)),
    "rev 2 with CRC": ((S | C, 2, ORDINARY), (S | C, 2, ORDINARY)),
    "rev 2 without enhanced data": ((0, 2, b""), (0, 2, b"")),
    "rev 3": ((S, 3, ORDINARY), None),
    "markers asked for": ((S | M, 2, ORDINARY), (S | R, 2, bytes(4))),
    "RTR: offered Write": ((S, 2, enhanced(P2P | 1, BY_WRITE | 1)),
                           (S, 2, enhanced(P2P | 1, BY_WRITE | 1))),
    "RTR: offered Read": ((S, 2, enhanced(P2P | 1, BY_READ | 1)),
                          (S, 2, enhanced(P2P | 1, BY_READ | 1))),
    "RTR: offered all": ((S, 2, enhanced(P2P | BY_SEND | 1, BY_WRITE | BY_READ | 1)),
                         (S, 2, enhanced(P2P | 1, BY_WRITE | 1))),
    "RTR: offered Send": ((S, 2, enhanced(P2P | BY_SEND | 1, 1)),
                          (S, 2, enhanced(P2P | 1, BY_WRITE | 1))),
    "no RTR: forms without A": ((S, 2, enhanced(BY_SEND | 1, BY_WRITE | BY_READ | 1)),
                                (S, 2, ORDINARY)),
    "252 octets of private data": ((S, 2, enhanced(1, 1, bytes(252))), (S, 2, ORDINARY)),
    "253 octets of private data": ((S, 2, enhanced(1, 1, bytes(253))), None),
    "enhanced data of 3 octets": ((S, 2, bytes(3)), (S | R, 2, b"")),
    "a wrong key": ((S, 2, ORDINARY, REPLY), None),
}


def start_up(peer, ask):
    flags, rev, private, *key = ask
    try:
        if key:
            peer.sock.sendall(frame(key[0], flags, rev, private))
            return peer.take_frame(REPLY)
        return peer.ask(flags, rev, private)
    except Ended:
        return None


def ping_once(peer, rtr):
    """rping's first half: it works after this start-up."""
    if rtr & BY_WRITE:
        peer.put(RTR_WRITE)
    elif rtr & BY_READ:
        peer.put(RTR_READ)
        peer.msn[1] = 1
    peer.memory[7] = bytearray(64)
    peer.send(struct.pack(">QII", 0, 7, 64))
    peer.write_retry()
    return [] if len(peer.message()) == 16 else ["the go-ahead has another length"]


def show(answer):
    return answer and f"flags {answer[0]:#x} rev {answer[1]} data {answer[2].hex()}"


def startup_form(options, ask, expect):
    peer = connect(options.addr, options.port)
    try:
        answer = start_up(peer, ask)
        if answer != expect:
            return [f"siw answers {show(answer)}, not {show(expect)}"]
        if answer and answer[0] & S and not answer[0] & R:
            return ping_once(peer, struct.unpack_from(">H", answer[2], 2)[0])
        if answer and answer[1]:
            # rping takes its ORD from the enhanced data; without them it has none and cannot read.
            time.sleep(SETTLE)
            peer.send(bytes(17))
            end = peer.end()
            return [] if end in ("1/2/02", "FIN", "reset") else [f"its FPDUs end with {end}"]
        return []
    except (Ended, ValueError, TimeoutError) as why:
        return [f"after the Reply: {why}"]
    finally:
        peer.close()


def startup(options):
    writer = tap.Writer()
    for name, (ask, expect) in STARTUP.items():
        writer.case(name, startup_form(options, ask, expect))
    writer.finish()


# --- faults ---------------------------------------------------------------------------------------

SEND_HEAD = ">BBIIII"
FAULTS = {
    "Send without a buffer, in the end": ("1/2/02",
                                          lambda p: [p.send(bytes(16)) for _ in range(9)]),
    "Send longer than the buffer": ("1/2/02", lambda p: p.send(bytes(17))),
    "Send with an MSN too high": ("1/2/03", lambda p: p.untagged(SEND, 0, b"x", msn=2)),
    "Send with an MO": ("1/2/04", lambda p: p.untagged(SEND, 0, b"x", mo=4)),
    "Send on queue 3": ("1/2/01", lambda p: p.put(struct.pack(SEND_HEAD, 0x41, 0x43, 0, 3, 1, 0))),
    "DDP version 0, untagged": ("1/2/06",
                                lambda p: p.put(struct.pack(SEND_HEAD, 0x40, 0x43, 0, 0, 1, 0))),
    "RDMAP version 2": ("0/2/05", lambda p: p.put(struct.pack(SEND_HEAD, 0x41, 0x83, 0, 0, 1, 0))),
    "an opcode nobody has": ("0/2/06",
                             lambda p: p.put(struct.pack(SEND_HEAD, 0x41, 0x4C, 0, 0, 1, 0))),
    "Write to an STag nobody has": ("1/1/00", lambda p: p.tagged(WRITE, 0x12345678, 0, b"x")),
    "Read of an STag nobody has": ("0/1/00", lambda p: p.read(1, 0, 4, 0x12345678, 0)),
    "Read Response that nobody wants": ("1/0/00", lambda p: p.tagged(READ_RESPONSE, 1, 0, b"x")),
    "a wrong CRC": ("2/0/02", lambda p: p.put(struct.pack(SEND_HEAD, 0x41, 0x43, 0, 0, 1, 0),
                                              crc=1)),
}


def faults(options):
    writer = tap.Writer()
    for name, (expect, act) in FAULTS.items():
        peer = connect(options.addr, options.port)
        peer.ask(S | C, 2, ORDINARY)
        time.sleep(SETTLE)
        try:
            act(peer)
            got = peer.end()
        except (BrokenPipeError, ConnectionResetError):
            got = peer.end()
        # siw's Terminate is best effort: it may be lost in its close.
        writer.case(f"{name}: {expect}", [] if got in (expect, "FIN", "reset") else [f"got {got}"])
        print(f"# {got}")
        peer.close()
    writer.finish()


# --- rping ----------------------------------------------------------------------------------------


def text(number, size):
    """A ping as rping makes it."""
    head = f"rdma-ping-{number}: ".encode()
    body = bytes(65 + (number + i) % 58 for i in range(size - len(head) - 1))
    return (head + body + b"\0")[:size]


def client(options):
    peer = connect(options.addr, options.port)
    flags = (0 if options.rev1 else S) | (C if options.crc else 0)
    flags, _, private = peer.ask(flags, 1 if options.rev1 else 2,
                                 b"" if options.rev1 else ORDINARY)
    for number in range(options.count):
        peer.memory = {7: bytearray(text(number, options.size)), 8: bytearray(options.size)}
        peer.send(struct.pack(">QII", 0, 7, options.size))
        if not number:
            peer.write_retry()
        peer.message()
        peer.send(struct.pack(">QII", 0, 8, options.size))
        peer.message()
        if peer.memory[7] != peer.memory[8]:
            raise ValueError(f"ping {number} came back as something else")
    peer.close()


def pong(peer):
    """A ping of rping's client: read, written back."""
    to, stag, size = struct.unpack(">QII", peer.message())
    peer.memory[9] = bytearray(size)
    peer.read(9, 0, size, stag, to)
    while peer.serve(peer.get()) != READ_RESPONSE:
        pass
    peer.send(bytes(16))
    to, stag, size = struct.unpack(">QII", peer.message())
    for at in range(0, size, 1400):
        part = bytes(peer.memory[9][at:at + 1400])
        peer.tagged(WRITE, stag, to + at, part, at + len(part) == size)
    peer.send(bytes(16))


def server(options):
    listener = socket.create_server((options.addr, options.port), family=(
        socket.AF_INET6 if ":" in options.addr else socket.AF_INET))
    listener.settimeout(20)
    peer = Peer(listener.accept()[0])
    flags, rev, private = peer.take_frame(REQUEST)
    print(f"Request: flags {flags:#x} rev {rev} data {private.hex()}")
    crc = C if options.crc else 0
    peer.crc = bool((flags & C) | crc)
    peer.sock.sendall(frame(REPLY, S | crc, 2, ORDINARY))
    try:
        while True:
            pong(peer)
    except Ended as why:
        print(why)
    peer.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["startup", "faults", "client", "server"])
    parser.add_argument("addr")
    parser.add_argument("port", type=int)
    parser.add_argument("--crc", action="store_true")
    parser.add_argument("--rev1", action="store_true")
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--count", type=int, default=1)
    options = parser.parse_args()
    globals()[options.what](options)


if __name__ == "__main__":
    main()
