# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a peer may do to a stream that it should not.

Each case: what the victim answers (a Terminate as layer/type/code of RFC 5040, 5041, 5044; RST;
FIN; open: the connection goes on; reject: a Reply with R), what its program sees, and how to do it.
None: of no interest, because the peer is gone.
"""
import struct
import time

import peer
import rawpeer
from peer import (ABORT, ABORTS, CTRL, CUT, DATA, DISCONNECT, INLINE, INLINES, KEEPALIVE, RING_TO,
                  ROOM, SGL, SHUTDOWN, URGENT, URGENTS, WINDOW, conn_data, extension, value)
from rawpeer import C, M, R, REPLY, REQUEST, S, enhanced, frame

RESET = "ECONNRESET"
NOTHING = None
FEATURES = CUT | ABORTS | INLINES | URGENTS
RING = 32768  # of the victim
GOOD = frame(REQUEST, S | C, 2, enhanced(0, 1, conn_data()))


def raw(octets, then=None):
    def act(p):
        p.sock.sendall(octets)
        if then:
            then(p)
    return act


def finish(p):
    p.sock.shutdown(1)


def reset(p):
    time.sleep(0.05)
    p.reset()


def request(private, flags=S | C, rev=2, key=REQUEST, length=None):
    return raw(frame(key, flags, rev, private, length))


def with_data(**kwargs):
    return request(enhanced(0, 1, conn_data(**kwargs)))


def with_block(block):
    return request(enhanced(0, 1, conn_data() + block))


def again(p):
    p.ask(S | C, 2, enhanced(0, 1, conn_data()))
    p.sock.sendall(GOOD)
    finish(p)


def slow_start(p):
    p.slowly(GOOD, 0.01)
    p.crc = True
    p.taken(p.take_frame(REPLY)[2])
    p.grant()
    p.say(b"hello")


def unfinished(p):
    p.slowly(GOOD[:40], 0.02)
    reset(p)


# name: (the victim's answer, what its program sees, act); the peer asks
STARTUP = {
    "silence, then FIN": ("FIN", "0 end", finish),
    "silence, then a reset": (NOTHING, "0 " + RESET, reset),
    "half a key, then FIN": ("RST", "0 " + RESET, raw(GOOD[:8], finish)),
    "half a key, then a reset": (NOTHING, "0 " + RESET, raw(GOOD[:8], reset)),
    "a frame without its private data, then FIN": ("RST", "0 " + RESET, raw(GOOD[:20], finish)),
    "a Request octet by octet, never whole": (NOTHING, "0 " + RESET, unfinished),
    "a Request octet by octet": ("open", "5 open", slow_start),
    "HTTP": ("RST", "0 " + RESET, raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")),
    "the Reply's key": ("RST", "0 " + RESET, request(enhanced(0, 1, conn_data()), key=REPLY)),
    "revision 0": ("RST", "0 " + RESET, request(conn_data(), C, 0)),
    "revision 3": ("RST", "0 " + RESET, request(enhanced(0, 1, conn_data()), rev=3)),
    "S in revision 1, where it means nothing": ("reject", "0 " + RESET,
                                               request(enhanced(0, 1, conn_data()), rev=1)),
    "R in a Request, which is not looked at": ("open", "0 open",
                                              request(enhanced(0, 1, conn_data()), S | C | R)),
    "513 octets of private data": ("RST", "0 " + RESET, request(bytes(513))),
    "PD_Length of 65535": ("RST", "0 " + RESET, request(b"", length=65535)),
    "S without enhanced data": ("RST", "0 " + RESET, request(b"abc")),
    "no connection data": ("reject", "0 " + RESET, request(enhanced(0, 1))),
    "39 octets of it": ("reject", "0 " + RESET, request(enhanced(0, 1, conn_data()[:39]))),
    "version 2": ("reject", "0 " + RESET, with_data(version=2)),
    "librspreload 7: a host of the other octet order": ("reject", "0 " + RESET, with_data(flags=3)),
    "one slot": ("reject", "0 " + RESET, with_data(sgl=(1, 1, 1))),
    "slots that wrap": ("reject", "0 " + RESET, with_data(sgl=((1 << 64) - 8, 1, 2))),
    "an empty buffer": ("reject", "0 " + RESET, with_data(ring=(1, 1, 0))),
    "a buffer that wraps": ("reject", "0 " + RESET, with_data(ring=((1 << 64) - 8, 1, 100))),
    "an extension block that is cut": ("reject", "0 " + RESET, with_block(extension(7, length=40))),
    "an extension twice": ("reject", "0 " + RESET, with_block(
        extension(0, values=2 * value(1, bytes(4))))),
    "an extension of another length": ("reject", "0 " + RESET, with_block(
        extension(0, values=value(1, bytes(3))))),
    "an extension beyond its block": ("reject", "0 " + RESET, with_block(
        extension(0, values=struct.pack(">BB", 1, 200)))),
    "a Request, then a reset": (NOTHING, "0 " + RESET, raw(GOOD, reset)),
    "two Requests, then FIN": ("FIN", "0 " + RESET, again),
}


def untagged(head, *rest):
    def act(p):
        p.put(struct.pack(">BBIIII", *head) + b"".join(rest))
    return act


def tagged(*head):
    def act(p):
        p.put(struct.pack(">BBIQ", *head) + b"x")
    return act


def in_ring(offset, size=1):
    return lambda p: p.write(bytes(size), at=offset)


def bad_crc(p):
    p.put(struct.pack(">BBIIII", 0x41, 0x43, 0, 0, 3, 0) + bytes(4), crc=1)


def half_fpdu(then):
    def act(p):
        p.sock.sendall(struct.pack(">H", 100) + bytes(30))
        then(p)
    return act


def slow_data(p):
    p.slowly(p.at_once(lambda q: q.say(b"hello")), 0.005)


def read_request(stag):
    return lambda p: p.read(peer.RING_STAG, RING_TO, 8, stag, 0)


def terminate(p):
    p.put(struct.pack(">BBIIII", 0x41, 0x47, 0, 2, 1, 0) + struct.pack(">BBH", 0x11, 0, 0))


def read_response(p):
    p.tagged(rawpeer.READ_RESPONSE, p.theirs["ring"][1], p.theirs["ring"][0], b"x")


def ring_wrap(p):
    p.tagged(rawpeer.WRITE, p.theirs["ring"][1], (1 << 64) - 2, b"1234")


# After a good start-up, without extensions
FRAMES = {
    "a wrong CRC": ("2/0/02", "0 " + RESET, bad_crc),
    "a ULPDU of no octets": ("1/0/00", "0 " + RESET, lambda p: p.put(b"")),
    "a ULPDU of one octet": ("1/0/00", "0 " + RESET, lambda p: p.put(b"A")),
    "a header that is cut": ("1/0/00", "0 " + RESET, lambda p: p.put(b"\x41\x43" + bytes(8))),
    "a ULPDU of 65535 zeros": ("1/2/06", "0 " + RESET, lambda p: p.put(bytes(65535))),
    "half an FPDU, then FIN": ("FIN", "0 " + RESET, half_fpdu(finish)),
    "half an FPDU, then a reset": (NOTHING, "0 " + RESET, half_fpdu(reset)),
    "FPDUs octet by octet": ("open", "5 open", slow_data),
    "DDP version 0, untagged": ("1/2/06", "0 " + RESET, untagged((0x40, 0x43, 0, 0, 3, 0))),
    "DDP version 0, tagged": ("1/1/04", "0 " + RESET, tagged(0xC0, 0x40, 1, 0)),
    "an STag of nobody": ("1/1/00", "0 " + RESET, lambda p: p.write(b"x", stag=0x12345678)),
    "before the ring": ("1/1/01", "0 " + RESET, in_ring(-1)),
    "behind the ring": ("1/1/01", "0 " + RESET, in_ring(1 << 30)),
    "a TO that wraps": ("1/1/01", "0 " + RESET, ring_wrap),
    "an MSN too high": ("1/2/03", "0 " + RESET, untagged((0x41, 0x43, 0, 0, 3, 0), bytes(4))),
    "an MSN again": ("1/2/03", "0 " + RESET, untagged((0x41, 0x43, 0, 0, 1, 0), bytes(4))),
    "an MO at the beginning": ("1/2/04", "0 " + RESET,
                               untagged((0x41, 0x43, 0, 0, 2, 4), bytes(4))),
    "queue 3, of Atomic Responses": ("0/2/06", "0 " + RESET,
                                     untagged((0x41, 0x43, 0, 3, 1, 0), bytes(4))),
    "queue 0x80000000": ("1/2/01", "0 " + RESET,
                         untagged((0x41, 0x43, 0, 1 << 31, 1, 0), bytes(4))),
    "RDMAP version 2": ("0/2/05", "0 " + RESET, untagged((0x41, 0x83, 0, 0, 2, 0), bytes(4))),
    "an opcode of nobody": ("0/2/06", "0 " + RESET, untagged((0x41, 0x4C, 0, 0, 2, 0), bytes(4))),
    "an untagged Write": ("0/2/06", "0 " + RESET, untagged((0x41, 0x40, 0, 0, 2, 0), bytes(4))),
    "a tagged Send": ("0/2/06", "0 " + RESET, tagged(0xC1, 0x43, 1, 0)),
    "a Read Request, with an IRD of 0": ("1/2/02", "0 " + RESET, read_request(0x12345678)),
    "a Read Response that nobody waits for": ("0/2/06", "0 " + RESET, read_response),
    "an Atomic Request": ("1/2/02", "0 " + RESET,
                          untagged((0x41, 0x4A, 0, 1, 1, 0), bytes(52))),
    "Send with Invalidate": ("0/1/09", "0 " + RESET,
                             untagged((0x41, 0x44, 0x99, 0, 2, 0), bytes(4))),
    "Immediate Data": ("0/2/06", "0 " + RESET, untagged((0x41, 0x48, 0, 0, 2, 0), bytes(8))),
    "a Terminate": (None, "0 " + RESET, terminate),
}


def burst(*says):
    """All at once, so that no grant can come between."""
    def act(p):
        p.sock.sendall(p.at_once(lambda q: [say(q) for say in says]))
    return act


def flood(times, say):
    def act(p):
        for _ in range(times):
            say(p)
        p.say(b"hello")
    return act


def long_send(p):
    for at in range(0, 100000, 10000):
        p.untagged(rawpeer.SEND, 0, bytes(10000), msn=2, mo=at, last=at == 90000)


def message(*args):
    return lambda p: p.message(*args)


def then(*steps):
    def act(p):
        for step in steps:
            step(p)
    return act


def write(size, told):
    def act(p):
        p.write(bytes(size))
        p.message(DATA, told)
    return act


# The stream protocol as rsockets speaks it
STREAM = {
    "DATA without a Write": ("any", "0 " + RESET, message(DATA, 5)),
    "DATA of more than was written": ("any", "0 " + RESET, write(10, 11)),
    "DATA of less": ("any", "0 " + RESET, write(10, 9)),
    "DATA of nothing": ("any", "0 " + RESET, message(DATA, 0)),
    "DATA without credit": ("any", "384 " + RESET, burst(*400 * [lambda p: p.say(b"x")])),
    "a Write with a gap": ("any", "0 " + RESET, in_ring(7)),
    "a Write beyond what was granted": ("any", "0 " + RESET,
                                        burst(lambda p: p.write(bytes(RING + 1)))),
    "a Write without its DATA, then FIN": ("FIN", "0 " + RESET,
                                           then(lambda p: p.write(b"x"), finish)),
    "a Write without its DATA, then a reset": (NOTHING, "0 " + RESET,
                                               then(lambda p: p.write(b"x"), reset)),
    "an SGE in the wrong slot": ("any", "0 " + RESET, lambda p: p.sge(1)),
    "an SGE beside the slots": ("1/1/01", "0 " + RESET, lambda p: p.sge(2)),
    "half an SGE": ("any", "0 " + RESET, lambda p: p.sge(0, octets=bytes(8))),
    "an empty SGE": ("any", "0 " + RESET, then(lambda p: p.sge(0, length=0), message(SGL, 384))),
    "an SGE that wraps": ("any", "0 " + RESET,
                          then(lambda p: p.sge(0, to=(1 << 64) - 8), message(SGL, 384))),
    "SHUTDOWN, then DATA": ("any", "0 end",
                            burst(message(CTRL, SHUTDOWN), lambda p: p.say(b"x"))),
    "SHUTDOWN, then a reset": (NOTHING, "0 end", then(message(CTRL, SHUTDOWN), reset)),
    "DISCONNECT, then a reset": (NOTHING, "0 end", then(message(CTRL, DISCONNECT), reset)),
    "octets, SHUTDOWN, then a reset": (NOTHING, "5 end", then(
        lambda p: p.say(b"hello"), message(CTRL, SHUTDOWN), reset)),
    "an unknown CTRL": ("any", "0 " + RESET, message(CTRL, 9)),
    "operation 1 without INLINE": ("any", "0 " + RESET, message(INLINE, 1, b"x")),
    "librspreload 7: an operation of nobody, 2": ("any", "0 " + RESET, message(2, 0)),
    "librspreload 7: an iomap update, of which none is offered": ("any", "0 " + RESET,
                                                                 message(6, 0)),
    "a message of three octets": ("any", "0 " + RESET,
                                  lambda p: p.untagged(rawpeer.SEND, 0, b"abc")),
    "a message of no octets": ("any", "0 " + RESET, lambda p: p.untagged(rawpeer.SEND, 0, b"")),
    "a message of 100000 octets": ("1/2/05", "0 " + RESET, long_send),
    "endless grants": ("open", "5 open", flood(5000, message(SGL, 384))),
    "endless keepalives": ("open", "5 open", flood(5000, message(CTRL, KEEPALIVE))),
    "Writes of no octets": ("open", "5 open",
                            flood(5000, lambda p: p.tagged(rawpeer.WRITE, 1, 0))),
    "octets whose echo is not read": ("open", "15000 open",
                                      then(*3 * [lambda p: p.say(bytes(5000))])),
}

# The same with the extensions of Warpsock
INLINED = {
    "INLINE of more than it has": ("any", "0 " + RESET, message(INLINE, 9, b"12345678")),
    "INLINE of less": ("any", "0 " + RESET, message(INLINE, 7, b"12345678")),
    "INLINE of nothing": ("any", "0 " + RESET, message(INLINE, 0)),
    "an urgent octet of more than it has": ("any", "0 " + RESET,
                                            message(INLINE, URGENT | 9, b"12345678")),
    "an urgent octet of none": ("any", "0 " + RESET, message(INLINE, URGENT)),
    "an urgent octet": ("open", "7 open", message(INLINE, URGENT | 8, b"12345678")),
    "two urgent octets": ("open", "7 open", burst(message(INLINE, URGENT | 4, b"1234"),
                                                  message(INLINE, URGENT | 4, b"5678"))),
    "endless urgent octets": ("open", "5 open", flood(5000, message(INLINE, URGENT | 1, b"u"))),
    "urgent octets behind SHUTDOWN": ("any", "0 end", burst(message(CTRL, SHUTDOWN),
                                                            message(INLINE, URGENT | 1, b"u"))),
    "more than the window": ("any", "32000 " + RESET,
                             burst(*2 * [lambda p: p.say(bytes(32000))])),
    "a window taken back": ("any", "0 " + RESET, message(WINDOW, 0, struct.pack("<Q", 5))),
    "WINDOW without a body": ("any", "0 " + RESET, message(WINDOW, 0)),
    "DATA": ("any", "0 " + RESET, message(DATA, 1)),
    "a Write to the ring": ("any", "0 " + RESET, lambda p: p.write(b"x")),
    "ABORT": (None, "0 " + RESET, message(CTRL, ABORT)),
    "DISCONNECT, then octets": ("any", "0 end",
                                burst(message(CTRL, DISCONNECT), lambda p: p.say(b"x"))),
}


def reply(**kwargs):
    return lambda p: p.reply(**kwargs)


def no_answer(then_do):
    def act(p):
        p.take_frame(REQUEST)
        then_do(p)
    return act


def half_reply(then_do):
    def act(p):
        p.take_frame(REQUEST)
        p.sock.sendall(frame(REPLY, S | C, 2, enhanced(0, 1, conn_data()))[:30])
        then_do(p)
    return act


def plain_first(p):
    p.sock.sendall(b"220 localhost ESMTP\r\n")


# The victim asks
ASKED = {
    "a reset instead of a Reply": (NOTHING, "0 " + RESET, no_answer(reset)),
    "FIN instead of a Reply": ("RST", "0 " + RESET, no_answer(finish)),
    "half a Reply, then FIN": ("RST", "0 " + RESET, half_reply(finish)),
    "half a Reply, then a reset": (NOTHING, "0 " + RESET, half_reply(reset)),
    "a Reply with R": ("RST", "0 ECONNREFUSED", reply(flags=S | C | R)),
    "a banner instead of a Reply": ("RST", "0 EPROTO", plain_first),
    "a Request for an answer": ("RST", "0 EPROTO", reply(key=REQUEST)),
    "a Reply of revision 3": ("RST", "0 EPROTO", reply(rev=3)),
    "a Reply of 513 octets": ("RST", "0 EPROTO", reply(private=bytes(513))),
    "a Reply without S": ("RST", "0 EPROTO", reply(flags=C, private=b"")),
    "a Reply that wants an RTR, unasked": ("open", "0 open",
                                  reply(private=enhanced(0x8001, 0x8000, conn_data()))),
    "a Reply without connection data": ("RST", "0 EPROTO", reply(private=enhanced(1, 0))),
    "librspreload 7: a Reply of a host of the other octet order": (
        "RST", "0 EPROTONOSUPPORT", reply(private=enhanced(1, 0, conn_data(flags=3)))),
    "a Reply of another version": ("RST", "0 EPROTONOSUPPORT",
                                   reply(private=enhanced(1, 0, conn_data(version=9)))),
    "a broken FPDU behind the Reply": ("2/0/02", "0 " + RESET,
                                       reply(behind=struct.pack(">H", 22) + bytes(26))),
}
