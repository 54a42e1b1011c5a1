# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What clients say to each program, and what they must hear: every byte of it is compared."""
import secrets
import socket

PATTERN = bytes((i * 7 + (i >> 8)) & 255 for i in range(65536))
BIG = 1 << 20  # bytes of the long answer


class Lost(Exception):
    """Bytes that came are not those that had to come."""


def pattern(size):
    return (PATTERN * (size // len(PATTERN) + 1))[:size]


def take(sock, size):
    """Exactly so many bytes."""
    got = bytearray()
    while len(got) < size:
        piece = sock.recv(min(size - len(got), 65536))
        if not piece:
            raise ConnectionResetError(f"the end behind {len(got)} of {size} bytes")
        got += piece
    return bytes(got)


def take_until(sock, end):
    """What comes up to these bytes, and nothing behind them"""
    got = b""
    while end not in got:
        piece = sock.recv(4096, socket.MSG_PEEK)
        behind = (got + piece).find(end)
        size = len(piece) if behind < 0 else behind + len(end) - len(got)
        got += take(sock, max(size, 1))
    return got


def compare(got, wanted):
    if got != wanted:
        at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), len(got))
        raise Lost(f"{got[at:at + 40]!r} at {at} of {len(wanted)}, not {wanted[at:at + 40]!r}")


class Lines:
    """server.c's"""

    QUIT = b"Q\n"
    BIG = f"B {BIG}\n".encode()

    @staticmethod
    def question():
        """A request, and the answer that has to come"""
        line = b"E " + secrets.token_hex(secrets.randbelow(200) + 1).encode() + b"\n"
        return line, line

    @staticmethod
    def take_answer(sock, wanted):
        compare(take(sock, len(wanted)), wanted)

    @staticmethod
    def big_head(sock):
        """What comes before the long answer"""


class Redis(Lines):
    QUIT = b"QUIT\r\n"
    BIG = b"GET big\r\n"

    @staticmethod
    def question():
        text = secrets.token_hex(secrets.randbelow(200) + 1).encode()
        return b"ECHO " + text + b"\r\n", b"$%d\r\n%s\r\n" % (len(text), text)

    @staticmethod
    def big_head(sock):
        compare(take_until(sock, b"\r\n"), b"$%d\r\n" % BIG)


class Http(Lines):
    QUIT = b"GET /small HTTP/1.1\r\nHost: h\r\nConnection: close\r\nRange: bytes=0-9\r\n\r\n"
    BIG = b"GET /big HTTP/1.1\r\nHost: h\r\n\r\n"

    @staticmethod
    def question():
        size = secrets.randbelow(400) + 1
        asked = b"GET /small HTTP/1.1\r\nHost: h\r\nRange: bytes=0-%d\r\n\r\n" % (size - 1)
        return asked, pattern(size)

    @staticmethod
    def head(sock, size):
        head = take_until(sock, b"\r\n\r\n")
        if b"\r\nContent-Length: %d\r\n" % size not in head:
            raise Lost(f"not of {size} bytes: {head!r}")

    @classmethod
    def take_answer(cls, sock, wanted):
        cls.head(sock, len(wanted))
        compare(take(sock, len(wanted)), wanted)

    @classmethod
    def big_head(cls, sock):
        cls.head(sock, BIG)


PROTOCOLS = {"lines": Lines, "redis": Redis, "http": Http}


def exchange(protocol, sock):
    asked, wanted = protocol.question()
    sock.sendall(asked)
    protocol.take_answer(sock, wanted)
