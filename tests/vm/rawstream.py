#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An rsockets peer made of a socket and struct: finds out what rsockets itself does on the wire.

    rawstream.py server ADDR PORT WHAT...   for clients of rsockets on PORT, PORT + 1 ..; prints TAP
    rawstream.py client ADDR PORT WHAT      to a server of rsockets

Each WHAT is a function below; what the program at the other end does is in cases/rsockets.sh, and
for "early", which is for Warpsock over siw, in cases/vrules.sh.
docs/stream-wire.md tells what was found.
"""
import argparse
import socket
import struct
import sys
import time

import rawpeer
import tap
from rawpeer import (READ_REQUEST, REQUEST, SEND, TERMINATE, WRITE, C, Ended, R, S, enhanced,
                     frame)

DATA, SGL, IOMAP, CTRL = 0, 4, 6, 7
DISCONNECT, SHUTDOWN = 0, 2
# Where our memory is, as the peer is told: STag and TO; nothing is there but what Stream checks.
SGL_AT, BUF_AT = (0x51, 0x1000), (0x52, 0x100000)
QUIET = 0.8  # so long nothing has come


def conn_data(version=1, flags=2, credits_=384, iomap=0, entries=2, octets=65536):
    return struct.pack(">BBH3xBQIIQII", version, flags, credits_, iomap, SGL_AT[1], SGL_AT[0],
                       entries, BUF_AT[1], BUF_AT[0], octets)


def pattern(at, size, kind):
    """What script_sockets sends from that place on: 0 the client, 100 the server."""
    return bytes((i * 7 + (i >> 8) * 5 + (i >> 16) * 3 + kind) & 255 for i in range(at, at + size))


class Wrong(Exception):
    """The peer does something else than was expected."""


def want(condition, what):
    if not condition:
        raise Wrong(what)


class Stream(rawpeer.Peer):
    """One connection to rsockets."""

    def __init__(self, sock):
        super().__init__(sock)
        self.theirs = None
        self.ready = []

    def take_conn_data(self, private):
        names = "version flags credits iomap sgl_to sgl_stag entries to stag octets".split()
        self.theirs = dict(zip(names, struct.unpack(">BBH3xBQIIQII", private[4:44])))
        self.theirs["size"] = len(private) - 4
        self.theirs["enhanced"] = struct.unpack(">HH", private[:4])

    def await_request(self, reply):
        flags, _, private = self.take_frame(REQUEST)
        self.take_conn_data(private)
        self.crc = bool(flags & C)
        self.sock.sendall(frame(rawpeer.REPLY, flags & C | S, 2, enhanced(1, 0, reply)))

    def begin(self, request):
        self.take_conn_data(self.ask(S, 2, enhanced(0, 1, request))[2])

    # --- what comes: ("write", STag, TO, octets) for each segment, ("op", value) for a message

    def next(self, wait=rawpeer.WAIT):
        """None: nothing within that time."""
        self.sock.settimeout(wait)
        try:
            ulpdu = self.get()
        except TimeoutError:
            return None
        finally:
            self.sock.settimeout(rawpeer.WAIT)
        opcode = ulpdu[1] & 15
        if opcode == WRITE:
            return ("write", *struct.unpack_from(">IQ", ulpdu, 2), ulpdu[14:])
        want(opcode == SEND, f"opcode {opcode}: {ulpdu.hex()}"
             if opcode in (TERMINATE, READ_REQUEST) else f"opcode {opcode}")
        want(len(ulpdu) == 22, f"a Send of {len(ulpdu) - 18} octets")
        return self.parse(struct.unpack("<I", ulpdu[18:])[0])

    @staticmethod
    def parse(message):
        return message >> 29, message & 0x1FFFFFFF

    def quiet(self, what, wait=QUIET):
        got = self.next(wait)
        want(got is None, f"{what}: {got}")

    def due(self, *expected):
        got = self.next()
        want(got == expected, f"{got}, not {expected}")

    # --- what goes

    def say(self, op, value):
        self.send(struct.pack("<I", op << 29 | value))

    def give(self, slot, stag, to, octets, limit):
        """A buffer in their SGL, and how many DATA they may have sent in all."""
        self.tagged(WRITE, self.theirs["sgl_stag"], self.theirs["sgl_to"] + 16 * slot,
                    struct.pack("<QII", to, stag, octets))
        self.say(SGL, limit & 0xFFFF)

    def place(self, at, octets):
        """Octets at a place in their first buffer."""
        self.tagged(WRITE, self.theirs["stag"], self.theirs["to"] + at, octets)
        self.say(DATA, len(octets))

    def first_update(self, entries=2):
        """Theirs: the second half of their ring, in entry 1 of our SGL."""
        got = self.next()
        want(got[:3] == ("write", SGL_AT[0], SGL_AT[1] + 16), f"no SGL update: {got}")
        self.due(SGL, self.theirs["credits"])
        return struct.unpack("<QII", got[3])

    def skip_to(self, op):
        """The value of the next such message, whatever comes before it."""
        for _ in range(1000):
            got = self.next()
            want(got, f"no message {op} comes")
            if got[0] == op:
                return got[1]
        raise Wrong("too much")


# --- to clients -------------------------------------------------------------------------------


def serve_silent(stream):
    """a client that only sleeps sends nothing, then its first SGL update"""
    want(stream.theirs["size"] == 40, "not 40 octets")
    want(stream.theirs["enhanced"] == (0, 1), "not IRD 0, ORD 1")
    names = "version flags credits iomap entries octets".split()
    fixed = [stream.theirs[name] for name in names]
    want(fixed == [1, 2, 384, 0, 2, 65536], f"its connection data: {fixed}")
    stream.quiet("a sleeping client", 1.2)
    to, stag, octets = stream.first_update()
    want((to, stag, octets) == (stream.theirs["to"] + 65536, stream.theirs["stag"], 65536),
         "not the second half")
    stream.place(0, pattern(0, 1, 100))
    stream.skip_to(CTRL)


class Buffers:
    """Where the peer is to write, buffer after buffer; checks each Write."""

    def __init__(self, stream, buffers):
        self.stream, self.buffers = stream, list(buffers)
        self.at, self.got, self.said = 0, b"", 0
        self.filled = 0

    def write(self, stag, to, octets):
        where = self.buffers[0]
        want((stag, to) == (where[0], where[1] + self.at), f"a Write to {stag:#x} {to:#x}")
        want(self.at + len(octets) <= where[2], "a Write beyond its buffer")
        self.at += len(octets)
        self.got += octets
        if self.at == where[2]:
            self.buffers.pop(0)
            self.at, self.filled = 0, self.filled + 1

    def take(self):
        """A Write or a message; True for DATA."""
        event = self.stream.next()
        want(event, "nothing comes")
        if event[0] == "write":
            if event[1] != SGL_AT[0]:
                self.write(*event[1:])
        elif event[0] == DATA:
            self.said += event[1]
            want(self.said == len(self.got), "DATA for other octets")
            return True
        return False


def serve_shapes(stream):
    """it follows an SGL of buffers of any size, place and STag"""
    sizes = [1, 7, 100, 4096, 3, 20000, 10000]
    shapes = [(0x60 + i, 1 << 20 + i, size) for i, size in enumerate(sizes)]
    sink = Buffers(stream, [(*BUF_AT, 10), *shapes])
    slot, number, given = 0, 0, 0
    while sink.said < 30000:
        number += sink.take()
        # A slot is theirs until its buffer is full: one ahead at any time
        while given < len(shapes) and given <= sink.filled:
            slot ^= 1
            stream.give(slot, *shapes[given][:2], sizes[given], 384 + number)
            given += 1
    want(sink.got == pattern(0, 30000, 0), "the octets are others")
    want(stream.skip_to(CTRL) == DISCONNECT, "no DISCONNECT")


def feed(stream, octets):
    """Sends them into the client's ring; which entries of our SGL it has written."""
    seen, at, places = [], 0, [(stream.theirs["to"], stream.theirs["octets"])]
    to, left = 0, 0
    while at < octets:
        while not seen or not (left or places):  # nothing before its first FPDU
            got = stream.next()
            want(got, "no update comes")
            if got[0] == "write":
                seen.append((got[2] - SGL_AT[1]) / 16)
                place = struct.unpack("<QII", got[3])
                places.append((place[0], place[2]))
        if not left:
            to, left = places.pop(0)
        size = min(left, 1000, octets - at)
        stream.tagged(WRITE, stream.theirs["stag"], to, pattern(at, size, 100))
        stream.say(DATA, size)
        at, to, left = at + size, to + size, left - size
    return seen


def serve_entries(stream):
    """an SGL of three entries is written in turn, 1, 2, 0"""
    seen = feed(stream, 300000)
    want(len(seen) > 6 and seen == [(i + 1) % 3 for i in range(len(seen))], f"entries {seen}")
    stream.skip_to(CTRL)


def serve_one_entry(stream):
    """an SGL said to have one entry is overrun"""
    seen = feed(stream, 60000)
    want(len(seen) > 1 and seen == [i + 1 for i in range(len(seen))], f"entries {seen}")


def serve_iomap(stream):
    """a mapping is a Write of 24 octets and a message, a riowrite a bare Write"""
    table = SGL_AT[1] + 16 * 2
    want(stream.theirs["iomap"] == 4, f"it offers {stream.theirs['iomap']} slots")
    for i in range(4):
        got = stream.next()
        want(got[:3] == ("write", SGL_AT[0], table + 24 * i), f"entry {i}: {got}")
        offset, _, _, octets = struct.unpack("<QQII", got[3])
        want((offset, octets) == (1000 * i, 100), f"entry {i} is {offset}, {octets}")
        stream.due(IOMAP, i)
    update_or_data = stream.next()
    if update_or_data[1] == SGL_AT[0] and update_or_data[2] == SGL_AT[1] + 16:
        stream.due(SGL, stream.theirs["credits"])
        update_or_data = stream.next()
    want(update_or_data == ("write", *BUF_AT[:1], BUF_AT[1], b"m"), f"no octet: {update_or_data}")
    stream.due(DATA, 1)
    stream.tagged(WRITE, stream.theirs["sgl_stag"], stream.theirs["sgl_to"] + 32,
                  struct.pack("<QQII", 5000, 0x7000, 0x99, 64))
    stream.say(IOMAP, 0)
    stream.place(0, b"m")
    seen = []
    while (DATA, 1) not in seen:
        got = stream.next()
        want(got, "the riowrite does not come")
        if got[:2] != ("write", SGL_AT[0]) and got[0] != SGL:
            seen.append(got)
    want(seen == [("write", 0x99, 0x7000, b"b" * 64), ("write", BUF_AT[0], BUF_AT[1] + 1, b"m"),
                  (DATA, 1)], f"{seen}")
    stream.skip_to(CTRL)


def serve_iomap_credits(stream):
    """a mapping takes a credit"""
    for i in range(3):
        while (got := stream.next())[0] != IOMAP:
            want(got[0] in ("write", SGL), f"{got}")
        want(got == (IOMAP, i), f"{got}")
    got = stream.next(QUIET)
    while got and (got[0] == SGL or got[:2] == ("write", SGL_AT[0])):
        got = stream.next(QUIET)
    want(got is None, f"beyond its credits: {got}")
    stream.say(SGL, 100)
    want(stream.skip_to(IOMAP) == 3, "another entry")
    want(stream.skip_to(DATA) == 1, "no octet")
    stream.say(CTRL, DISCONNECT)  # a FIN alone does not wake it


def serve_byte_order(stream):
    """to a peer whose NET bit is set neither Writes nor messages come"""
    try:
        while (got := stream.next(2)):
            want(got[0] != DATA, f"a message: {got}")
            want(got[:2] != ("write", BUF_AT[0]), f"a Write: {got}")
    except Ended:
        pass


def ends(stream, expected, before=()):
    """What the client says with which of its calls: the CTRL messages that come, in order"""
    for value in before:
        stream.say(CTRL, value)
    seen, data = [], 0
    try:
        while (got := stream.next(2)):
            if got[0] == CTRL:
                seen.append(got[1])
            data += got[1] if got[0] == DATA else 0
    except Ended as why:
        seen.append(str(why))
    want(seen == expected, f"it says {seen}")
    return data


def serve_shut_wr(stream):
    """shutdown(SHUT_WR): SHUTDOWN"""
    want(ends(stream, [SHUTDOWN]) == 5, "not 5 octets")


def serve_shut_rd(stream):
    """shutdown(SHUT_RD): nothing"""
    ends(stream, [])


def serve_shut_rd_wr(stream):
    """SHUT_RD, then SHUT_WR: DISCONNECT, FIN"""
    want(ends(stream, [DISCONNECT, "FIN"]) == 6, "not 6 octets")


def serve_shut_wr_rd(stream):
    """SHUT_WR, then SHUT_RD: SHUTDOWN, DISCONNECT, FIN"""
    ends(stream, [SHUTDOWN, DISCONNECT, "FIN"])


def serve_shut_both(stream):
    """SHUT_RDWR: DISCONNECT, FIN"""
    ends(stream, [DISCONNECT, "FIN"])


def serve_close(stream):
    """close, also with SO_LINGER of 0: DISCONNECT, FIN"""
    ends(stream, [DISCONNECT, "FIN"])


def serve_after_shutdown(stream):
    """SHUT_WR after our SHUTDOWN: DISCONNECT, FIN"""
    want(stream.skip_to(DATA) == 1, "no octet")
    want(ends(stream, [DISCONNECT, "FIN"], [SHUTDOWN]) == 5, "not 5 octets")


def serve_shutdown_last(stream):
    """our SHUTDOWN after its own is the end: FIN and no more messages"""
    want(stream.skip_to(CTRL) == SHUTDOWN, "no SHUTDOWN")
    ends(stream, ["FIN"], [SHUTDOWN])


def serve_disconnected(stream):
    """after our DISCONNECT: FIN and no message"""
    want(stream.skip_to(DATA) == 1, "no octet")
    ends(stream, ["FIN"], [DISCONNECT])


def serve_keepalive(stream):
    """a keepalive is a Write of no octets to STag 0, TO 0, without a message"""
    stream.skip_to(DATA)
    began, seen = time.monotonic(), 0
    while (got := stream.next(2))[0] != CTRL:
        if got[1:2] != (SGL_AT[0],) and got[0] != SGL:
            want(got == ("write", 0, 0, b""), f"{got}")
            seen += 1
    want(3 <= seen <= time.monotonic() - began + 1, f"{seen} keepalives")


def queue(stream, credits_):
    stream.skip_to(CTRL)
    want(stream.theirs["credits"] == credits_, f"it gives {stream.theirs['credits']} credits")


def serve_queue_min(stream):
    """it gives 16 credits at least"""
    queue(stream, 16)


def serve_queue_max(stream):
    """it gives no more credits than the device has"""
    queue(stream, 32768)


# --- to servers -------------------------------------------------------------------------------


def call_leak(stream):
    """rqsize 16: listen get 12 sleep 500 close: the limit forgets mappings"""
    want(stream.theirs["credits"] == 16, "not 16 credits")
    stream.give(1, 0x53, 0x200000, 65536, 384)
    for _ in range(4):
        stream.say(IOMAP, 0)
    limits = []
    for at in range(12):
        stream.place(at, pattern(at, 1, 0))
        time.sleep(0.02)
    got = stream.next()
    while got and got != (CTRL, DISCONNECT):
        limits += [got[1]] if got[0] == SGL else []
        got = stream.next()
    want(limits and 16 + 8 <= limits[-1] <= 16 + 12, f"limits {limits}")


def call_unread(stream):
    """rqsize 16: listen watch 1500 get 40: more than the credits allow, all polled, none read"""
    stream.give(1, 0x53, 0x200000, 65536, 384)
    for at in range(40):
        stream.place(at, pattern(at, 1, 0))
        time.sleep(0.03)
    time.sleep(QUIET)


def last_octets(stream, grant):
    """listen put 12000 close: the program ends with most of it in TCP's hands. How the rest ends,
    and how much of it came."""
    stream.give(1, 0x53, 0x200000, 65536, 384)
    sys.stdin.read()  # to whose end the program has ended
    if grant:  # its first FPDU is enough
        stream.tagged(WRITE, stream.theirs["sgl_stag"], stream.theirs["sgl_to"],
                      struct.pack("<QII", 0x300000, 0x54, 65536))
        time.sleep(QUIET)
    data = b""
    try:
        while (got := stream.next()) and got != (CTRL, DISCONNECT):
            data += got[3] if got[:2] == ("write", BUF_AT[0]) else b""
    except Ended as why:
        return str(why), len(data)
    want(data == pattern(0, 12000, 100), f"{len(data)} octets")
    return "whole", len(data)


def call_whole(stream):
    """without a word from us all of it comes"""
    how = last_octets(stream, False)
    want(how == ("whole", 12000), f"{how}")


def call_cut(stream):
    """after a grant of ours it is lost"""
    how, size = last_octets(stream, True)
    want(how == "reset" and size < 12000, f"{how}, {size} octets")


SERVE = {  # the connection data, where they are not the usual ones
    "shapes": {"octets": 10}, "entries": {"entries": 3}, "one_entry": {"entries": 1},
    "iomap": {"iomap": 4}, "iomap_credits": {"iomap": 4, "credits_": 3}, "byte_order": {"flags": 3},
}


def rejected(listener):
    """after a rejection librspreload connects again, over TCP"""
    with listener.accept()[0] as sock:
        first = Stream(sock)
        first.take_frame(REQUEST)
        sock.sendall(frame(rawpeer.REPLY, S | R, 2, bytes(4)))
        time.sleep(rawpeer.SETTLE)
    with listener.accept()[0] as sock:
        sock.settimeout(rawpeer.WAIT)
        octets = sock.recv(100)
        want(octets == pattern(0, 5, 0), f"the second connection begins with {octets}")


def early(listener):
    """who speaks at once loses siw as a peer, and its program comes again by software"""
    with listener.accept()[0] as sock:
        first = Stream(sock)
        first.take_conn_data(first.take_frame(REQUEST)[2])
        said = struct.pack(">BBIQ", 0xC1, 0x40 | WRITE, *SGL_AT)
        sock.sendall(frame(rawpeer.REPLY, S, 2, enhanced(1, 0, conn_data())) + first.framed(said))
        try:
            want(False, f"siw says {first.take(1)}")
        except Ended as how:
            want(str(how) == "reset", f"the end is {how}")
    second = Stream(listener.accept()[0])
    second.await_request(conn_data())
    sink = Buffers(second, [(*BUF_AT, 65536)])
    while sink.said < 5:
        sink.take()
    want(sink.got == pattern(0, 5, 0), "the octets are others")
    want(second.skip_to(CTRL) == DISCONNECT, "no DISCONNECT")
    second.close()


def serve(listener, what):
    if what in ("rejected", "early"):
        globals()[what](listener)
        return
    stream = Stream(listener.accept()[0])
    stream.await_request(conn_data(**SERVE.get(what, {})))
    globals()[f"serve_{what}"](stream)
    stream.close()


def server(options):
    writer = tap.Writer()
    listeners = [socket.create_server((options.addr, options.port + i))
                 for i in range(len(options.what))]
    for listener, what in zip(listeners, options.what):
        listener.settimeout(25)
        try:
            serve(listener, what)
            problems = []
        except (Wrong, Ended, ValueError, OSError) as why:
            problems = [str(why)]
        listener.close()
        writer.case((globals().get(f"serve_{what}") or globals()[what]).__doc__, problems)
    writer.finish()


def forked(options):
    """listen with RDMAV_FORK_SAFE: four zero octets on TCP, then MPA on the same port"""
    with socket.create_connection((options.addr, options.port), timeout=rawpeer.WAIT) as plain:
        want(plain.recv(4, socket.MSG_WAITALL) == bytes(4), "not four zero octets")
        stream = Stream(rawpeer.connect(options.addr, options.port).sock)
        stream.begin(conn_data())
        stream.give(1, 0x53, 0x200000, 65536, 384)
        stream.place(0, pattern(0, 5, 0))
        want(stream.skip_to(CTRL) == DISCONNECT, "no DISCONNECT")
        stream.close()


def narrow(addr, port):
    """A connection with hardly a window: what is not read stays with the peer's TCP."""
    sock = socket.socket()
    sock.settimeout(rawpeer.WAIT)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4608)
    sock.connect((addr, port))
    return sock


def client(options):
    what = options.what[0]
    if what == "forked":
        forked(options)
        return
    if what in ("whole", "cut"):
        stream = Stream(narrow(options.addr, options.port))
    else:
        stream = Stream(rawpeer.connect(options.addr, options.port).sock)
    stream.begin(conn_data())
    globals()[f"call_{what}"](stream)
    stream.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["server", "client"])
    parser.add_argument("addr")
    parser.add_argument("port", type=int)
    parser.add_argument("what", nargs="+")
    options = parser.parse_args()
    globals()[options.role](options)


if __name__ == "__main__":
    main()
