# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A peer of the stream protocol that says what it is told to, right or wrong.

It stands on the frames of tests/vm/rawpeer.py and shares no code with the library.
"""
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "vm"))
import rawpeer  # noqa: E402
from rawpeer import C, REPLY, REQUEST, S, Ended, enhanced, frame  # noqa: E402

DATA, INLINE, WINDOW, SGL, CTRL = 0, 1, 5, 4, 7
DISCONNECT, KEEPALIVE, SHUTDOWN, ABORT = 0, 1, 2, 3
CUT, ABORTS, INLINES, URGENTS = 1, 2, 4, 32
URGENT = 1 << 28  # in the value of INLINE: the last octet is urgent
RING_TO, RING_STAG, SGL_TO, SGL_STAG = 0x100000, 77, 0x5000, 78
ROOM = 1 << 16
QUIET = 0.4


def conn_data(version=1, flags=2, credits=384, sgl=(SGL_TO, SGL_STAG, 2),
              ring=(RING_TO, RING_STAG, ROOM)):
    """The forty octets that each end says of itself."""
    return (struct.pack(">BBH3xB", version, flags, credits, 0)
            + struct.pack(">QII", *sgl) + struct.pack(">QII", *ring))


def value(kind, octets):
    return struct.pack(">BB", kind, len(octets)) + octets


def extension(features, window=ROOM, values=None, length=None, version=1):
    if values is None:
        values = value(1, struct.pack(">I", features)) + value(2, struct.pack(">Q", window))
    length = len(values) if length is None else length
    return struct.pack(">4sBxH", b"WARP", version, length) + values


class Stream(rawpeer.Peer):
    """One connection, and what the victim granted on it."""

    def __init__(self, sock):
        super().__init__(sock)
        self.at = 0  # octets of the victim's ring that we have written
        self.theirs = None
        self.inline = False
        self.got = b""

    def taken(self, private):
        """The victim's private data, behind MPA's four octets."""
        if len(private) < 44:
            raise ValueError(f"private data of {len(private)} octets")
        sgl = struct.unpack_from(">QII", private, 12)
        ring = struct.unpack_from(">QII", private, 28)
        self.theirs = {"sgl": sgl, "ring": ring}

    def open(self, private=None, features=None):
        """As initiator: start-up and the first FPDU, which opens the other direction."""
        if private is None:
            private = conn_data() + (b"" if features is None else extension(features))
        flags, _, data = self.ask(S | C, 2, enhanced(0, 1, private))
        if flags & rawpeer.R:
            raise Ended("rejected")
        self.taken(data)
        self.inline = bool(features and features & INLINES)
        if self.inline:
            self.message(WINDOW, 0, struct.pack("<Q", 1 << 40))
        else:
            self.grant()
        return self

    def reply(self, private=None, flags=S | C, key=REPLY, rev=2, length=None, behind=b""):
        """As responder: takes the Request and answers it."""
        asked, _, data = self.take_frame(REQUEST)
        self.taken(data)
        self.crc = True
        private = enhanced(1, 0, conn_data()) if private is None else private
        self.sock.sendall(frame(key, flags, rev, private, length) + behind)

    # --- messages

    def message(self, op, data, body=b"", last=True):
        self.untagged(rawpeer.SEND, 0, struct.pack("<I", op << 29 | data) + body, last=last)

    def sge(self, slot, to=RING_TO, length=ROOM, octets=None):
        at = self.theirs["sgl"]
        octets = struct.pack("<QII", to, RING_STAG, length) if octets is None else octets
        self.tagged(rawpeer.WRITE, at[1], at[0] + 16 * slot, octets)

    def grant(self, slot=1, limit=384):
        self.sge(slot)
        self.message(SGL, limit)

    def write(self, octets, at=None, stag=None):
        """Into the victim's ring, at the next place or another."""
        to, key, _ = self.theirs["ring"]
        self.tagged(rawpeer.WRITE, key if stag is None else stag,
                    to + (self.at if at is None else at), octets)
        self.at += len(octets)

    def say(self, octets):
        if self.inline:
            self.message(INLINE, len(octets), octets)
        else:
            self.write(octets)
            self.message(DATA, len(octets))

    # --- what the victim says

    def fpdu(self, quiet):
        """The next ULPDU; None: nothing came in time."""
        self.sock.settimeout(quiet)
        try:
            return self.get()
        except TimeoutError:
            return None
        finally:
            self.sock.settimeout(rawpeer.WAIT)

    def take_in(self, ulpdu):
        """Keeps octets that the victim sent back: what it writes into our ring, or inline."""
        if ulpdu[1] & 15 == rawpeer.WRITE and ulpdu[2:6] == struct.pack(">I", RING_STAG):
            self.got += ulpdu[14:]
        if self.inline and ulpdu[1] & 15 == rawpeer.SEND:
            if struct.unpack_from("<I", ulpdu, 18)[0] >> 29 == INLINE:
                self.got += ulpdu[22:]

    def collect(self, size, quiet=5):
        while len(self.got) < size:
            ulpdu = self.fpdu(quiet)
            if ulpdu is None:
                break
            self.take_in(ulpdu)
        got, self.got = self.got[:size], self.got[size:]
        return got

    def answer(self, quiet=QUIET):
        """A Terminate as layer/type/code, "FIN", "RST" or "open"."""
        try:
            while True:
                ulpdu = self.fpdu(quiet)
                if ulpdu is None:
                    return "open"
                if ulpdu[1] & 15 == rawpeer.TERMINATE:
                    return f"{ulpdu[18] >> 4}/{ulpdu[18] & 15}/{ulpdu[19]:02x}"
                self.take_in(ulpdu)
        except Ended as why:
            return {"reset": "RST"}.get(str(why), str(why))
        except ConnectionResetError:
            return "RST"

    def at_once(self, say):
        """What say() sends, in one piece."""
        sent = []
        real, self.sock = self.sock, type("Sink", (), {"sendall": staticmethod(sent.append)})()
        say(self)
        self.sock = real
        return b"".join(sent)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def slowly(self, octets, pause):
        for octet in octets:
            self.sock.sendall(bytes([octet]))
            time.sleep(pause)
