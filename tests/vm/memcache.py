#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Keeps values of many sizes in a memcached, on two connections, and compares them.

    memcache.py ADDR PORT
"""
import random
import socket
import sys

SIZES = (0, 1, 1000, 70000, 900000)


class Cache:
    def __init__(self, addr, port):
        self.sock = socket.create_connection((addr, port))
        self.left = b""

    def line(self):
        while b"\r\n" not in self.left:
            self.more()
        line, _, self.left = self.left.partition(b"\r\n")
        return line

    def more(self):
        octets = self.sock.recv(100000)
        if not octets:
            raise EOFError("memcached has ended the connection")
        self.left += octets

    def take(self, size):
        while len(self.left) < size:
            self.more()
        octets, self.left = self.left[:size], self.left[size:]
        return octets

    def put(self, key, value):
        self.sock.sendall(b"set %s 0 0 %d\r\n%s\r\n" % (key, len(value), value))
        return self.line() == b"STORED"

    def get(self, key):
        self.sock.sendall(b"get %s\r\n" % key)
        size = int(self.line().split()[3])
        value = self.take(size + 2)[:size]
        return value if self.line() == b"END" else None


def main():
    caches = [Cache(sys.argv[1], int(sys.argv[2])) for _ in range(2)]
    values = {b"key%d" % size: random.randbytes(size) for size in SIZES}
    for i, (key, value) in enumerate(values.items()):
        if not caches[i % 2].put(key, value):
            sys.exit(f"{len(value)} octets were not stored")
    for i, (key, value) in enumerate(values.items()):
        if caches[(i + 1) % 2].get(key) != value:
            sys.exit(f"{len(value)} octets are others")


if __name__ == "__main__":
    main()
