#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The protocol of the prototype of 2010, asked by a peer that was written from its description.

    udp.py SERVER OBJECT REFUSED-OBJECT
"""
import hashlib
import random
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
import tap  # noqa: E402

READ, WRITE, CAS, RUN, LOAD, READBYTES, WRITEBYTES = range(7)
SIZE = 1 << 16


def words(*values):
    return b"".join(struct.pack(">I", value & 0xFFFFFFFF) for value in values)


class Peer:
    """A fresh socket for each call, as the original's client has."""

    def __init__(self, port):
        self.port = port

    def ask(self, *request, limit=5):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(limit)
            sock.connect(("127.0.0.1", self.port))
            sock.send(b"".join(part if isinstance(part, bytes) else words(part)
                               for part in request))
            try:
                return sock.recv(65536)
            except socket.timeout:
                return b"nothing"

    def load(self, code):
        return self.ask(LOAD, len(code), code)

    def run(self, code, *args, limit=5):
        return self.ask(RUN, 16, hashlib.md5(code).digest(), len(args), *args, limit=limit)


def same(got, want):
    return [] if got == want else [f"got {got[:60].hex(' ', 4)}, wanted {want[:60].hex(' ', 4)}"]


def memory(writer, peer):
    writer.case("word 0 is where free memory begins",
                same(peer.ask(READ, 0, 1), words(0, 1, 4, -1)))
    writer.case("write tells the words before",
                same(peer.ask(WRITE, 64, 2, 0x01020304, 7), words(0, 2, 0, 0, -1))
                + same(peer.ask(WRITE, 64, 2, 0x11223344, 8), words(0, 2, 0x01020304, 7, -1)))
    writer.case("read", same(peer.ask(READ, 64, 2), words(0, 2, 0x11223344, 8, -1)))
    writer.case("words are little-endian in memory",
                same(peer.ask(READBYTES, 64, 4), words(0, -1, 4) + b"\x44\x33\x22\x11"))
    writer.case("compare and swap",
                same(peer.ask(CAS, 68, 8, 9), words(0, 1, 1, -1))
                + same(peer.ask(CAS, 68, 8, 10), words(0, 1, 0, -1))
                + same(peer.ask(READ, 68, 1), words(0, 1, 9, -1)))
    writer.case("bytes",
                same(peer.ask(WRITEBYTES, 101, 3, b"abc"), words(0, -1, -1))
                + same(peer.ask(READBYTES, 100, 5), words(0, -1, 5) + b"\0abc\0"))
    writer.case("nothing to read and write",
                same(peer.ask(READ, 64, 0), words(0, 0, -1))
                + same(peer.ask(READBYTES, 64, 0), words(0, -1, 0))
                + same(peer.ask(WRITE, 64, 0), words(0, 0, -1))
                + same(peer.ask(WRITEBYTES, 64, 0), words(0, -1, -1)))
    big = bytes(random.Random(1).randrange(256) for _ in range(60000))
    writer.case("the largest datagrams",
                same(peer.ask(WRITEBYTES, 1000, len(big), big), words(0, -1, -1))
                + same(peer.ask(READBYTES, 1000, len(big)), words(0, -1, len(big)) + big))


def bounds(writer, peer):
    out = words(1, -1, -1)
    writer.case("read past the end",
                same(peer.ask(READ, SIZE - 4, 2), out) + same(peer.ask(READ, SIZE, 1), out)
                + same(peer.ask(READ, 0xFFFFFFFC, 2), out)
                + same(peer.ask(READBYTES, SIZE - 2, 3), out)
                + same(peer.ask(READBYTES, 0xFFFFFFFF, 3), out))
    writer.case("more than an answer has room for",
                same(peer.ask(READ, 0, 0x7FFFFFFF), out) + same(peer.ask(READ, 0, -1), out)
                + same(peer.ask(READBYTES, 0, 65500), out) + same(peer.ask(READBYTES, 0, -1), out))
    writer.case("a write past the end is done in part",
                same(peer.ask(WRITE, SIZE - 8, 3, 5, 6, 7), out)
                + same(peer.ask(READ, SIZE - 8, 2), words(0, 2, 5, 6, -1))
                + same(peer.ask(WRITEBYTES, SIZE - 2, 4, b"wxyz"), out)
                + same(peer.ask(READBYTES, SIZE - 2, 2), words(0, -1, 2) + b"wx"))
    writer.case("compare and swap past the end",
                same(peer.ask(CAS, SIZE, 0, 1), words(1, 1, SIZE, -1))
                + same(peer.ask(CAS, SIZE - 3, 0, 1), words(1, 1, SIZE - 3, -1)))
    writer.case("compare and swap of no word",
                same(peer.ask(CAS, 65, 0, 1), words(5, 1, 65, -1)))


def code(writer, peer, program, refused):
    writer.case("code that is not known", same(peer.run(program, 1), words(5, 1, -1, -1)))
    writer.case("load, and load again",
                same(peer.load(program), words(0, 1, 1, -1))
                + same(peer.load(program), words(0, 1, 1, -1)))
    writer.case("run", same(peer.run(program, 0, 10, 20, 12), words(0, 1, 42, -1))
                + same(peer.run(program), words(0, 1, 0, -1)))
    writer.case("an array as result",
                same(peer.run(program, 1, 7, 8, 9), words(0, 3, 7, 8, 9, -1)))
    writer.case("the same memory", same(peer.run(program, 2, 200, 77), words(0, 1, 77, -1))
                + same(peer.ask(READ, 200, 1), words(0, 1, 77, -1)))
    answer = peer.run(program, 4, 0x5000)
    writer.case("an access elsewhere", same(answer[:12], words(1, 1, -1))
                + ([] if b"read of 4 bytes at 0x5000" in answer else [repr(answer)]))
    answer = peer.load(refused)
    writer.case("code that is refused", same(answer[:12], words(5, 1, 0))
                + ([] if b"refused.bpf.c:" in answer else [repr(answer)]))
    answer = peer.load(b"no code")
    writer.case("what is no code", same(answer[:12], words(5, 1, 0)))


def spin(peer, program, count, meanwhile):
    """The errors that so many endless loops end with, and what their time is filled with."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(10)
        sock.connect(("127.0.0.1", peer.port))
        for _ in range(count):
            sock.send(words(RUN, 16) + hashlib.md5(program).digest() + words(1, 3))
        found = meanwhile()
        return [struct.unpack(">I", sock.recv(65536)[:4])[0] for _ in range(count)], found


def loops(writer, peer, program):
    """Those that loop forever end by their time, and others are answered meanwhile."""
    def others():
        problems = []
        for i in range(30):
            asked = time.monotonic()
            problems += same(peer.run(program, 0, i), words(0, 1, i, -1))
            problems += same(peer.ask(READ, 0, 1), words(0, 1, 4, -1))
            took = time.monotonic() - asked
            problems += [f"{took:.2f} s"] if took > 1 else []
        return problems

    begin = time.monotonic()
    errors, problems = spin(peer, program, 10, others)
    took = time.monotonic() - begin
    writer.case("others are answered beside endless loops", problems[:3])
    writer.case("loops end by their time", [] if errors == [2] * 10 and 0.5 < took < 8 else
                [f"errors {errors}, took {took:.2f} s"])
    errors, _ = spin(peer, program, 20, lambda: None)
    writer.case("more than may be under way", [] if sorted(errors) == [2] * 16 + [5] * 4 else
                [f"errors {errors}"])


def nonsense(writer, peer):
    problems = []
    for request in (b"", b"\0", words(7), words(READ), words(READ, 0), words(WRITE, 0, 2, 1),
                    words(WRITE, 0, -1), words(WRITEBYTES, 0, 4) + b"abc",
                    words(RUN, 15) + b"x" * 15,
                    words(RUN, 16) + b"x" * 16, words(RUN, 16) + b"x" * 16 + words(-1),
                    words(LOAD, 5) + b"abcd", words(LOAD, -1), words(CAS, 0, 1)):
        problems += same(peer.ask(request), words(5, -1, -1))
    writer.case("what is no request", problems)
    rand = random.Random(2)
    for _ in range(300):
        peer.ask(words(rand.randrange(8)) + bytes(rand.randrange(256)
                                                  for _ in range(rand.randrange(60))))
    writer.case("random requests", same(peer.ask(READ, 1, 0), words(0, 0, -1)))


def main():
    server, program, refused = sys.argv[1], *(Path(path).read_bytes() for path in sys.argv[2:4])
    writer = tap.Writer()
    writer.case("what is refused", [] if not subprocess.run([server, "refusals"]).returncode else
                ["it was not"])
    with subprocess.Popen([server], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        peer = Peer(int(process.stdout.readline().split()[1]))
        memory(writer, peer)
        bounds(writer, peer)
        code(writer, peer, program, refused)
        loops(writer, peer, program)
        nonsense(writer, peer)
        process.stdin.close()
        writer.case("the server ends", [] if not process.wait(10) else ["badly"])
    writer.finish()


if __name__ == "__main__":
    main()
