# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A TCP client of frames, whose segments a test chooses one by one.

Its address is nobody's: frames to it come to the peer's end of the lab's pair, whose kernel lets
them lie, and this reads and writes them there by a packet socket.
"""
import ctypes
import select
import socket
import struct
import subprocess
import time
from pathlib import Path

ADDR, SERVER = "10.7.0.9", "10.7.0.1"
NEAR, FAR = "sw0", "up0"
NAMESPACE = "/run/netns/peer"
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
SACK_PERMITTED = b"\x02\x04\x05\xb4\x04\x02\x01\x01"
NO_SACK = b"\x02\x04\x05\xb4"
WAIT = 5


def in_namespace(path, what):
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net") as ours, open(path) as theirs:
        if libc.setns(theirs.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            return what()
        finally:
            libc.setns(ours.fileno(), 0x40000000)


def packet_socket():
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    sock.bind((FAR, 0x0800))
    sock.setblocking(False)
    return sock, sock.getsockname()[4]


def checksum(octets):
    total = sum(struct.unpack(f">{len(octets) // 2 + len(octets) % 2}H",
                              octets + bytes(len(octets) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Client:
    """One connection, from connect() on; sequence numbers count from the first octet behind SYN."""

    next_port = 30000

    def __init__(self, port, sack=True, first=0):
        self.sock, mac = in_namespace(NAMESPACE, packet_socket)
        address = ":".join(f"{octet:02x}" for octet in mac)
        subprocess.run(["ip", "neigh", "replace", ADDR, "lladdr", address, "dev", NEAR],
                       check=True)
        near = bytes.fromhex(Path(f"/sys/class/net/{NEAR}/address").read_text().replace(":", ""))
        self.ether = near + mac + b"\x08\x00"
        Client.next_port += 1
        self.ports = Client.next_port, port
        self.first = first & 0xFFFFFFFF  # sequence number of our first octet
        self.theirs = 0  # the next one of theirs
        self.acked, self.blocks = 0, []  # what they say of ours
        self.reset = self.ended = False
        self.input = b""
        self.sack = sack

    def close(self):
        self.put(RST | ACK, self.acked)
        self.sock.close()

    def put(self, flags, at, octets=b"", options=b""):
        """A segment whose first octet is our @at-th."""
        head = struct.pack(">HHIIBBHHH", *self.ports, self.first + at & 0xFFFFFFFF, self.theirs,
                           (20 + len(options)) // 4 << 4, flags, 65000, 0, 0) + options
        addresses = socket.inet_aton(ADDR) + socket.inet_aton(SERVER)
        length = len(head) + len(octets)
        tcp = checksum(addresses + struct.pack(">HH", 6, length) + head + octets)
        head = head[:16] + struct.pack(">H", tcp) + head[18:]
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + length, 0, 0x4000, 64, 6, 0) + addresses
        ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
        self.sock.send(self.ether + ip + head + octets)

    def take(self, frame):
        ip = frame[14:]
        if ip[9] != 6 or ip[16:20] != socket.inet_aton(ADDR):
            return
        tcp = ip[(ip[0] & 15) * 4:struct.unpack_from(">H", ip, 2)[0]]
        theirs, ours, seq, ack = struct.unpack_from(">HHII", tcp)
        if (ours, theirs) != self.ports:
            return
        flags, start = tcp[13], (tcp[12] >> 4) * 4
        self.reset |= bool(flags & RST)
        if flags & SYN:
            self.theirs = seq + 1 & 0xFFFFFFFF
        if flags & ACK:
            self.acked = ack - self.first & 0xFFFFFFFF
            self.blocks = list(self.blocks_of(tcp[20:start]))
        octets = tcp[start:]
        if octets and seq == self.theirs:
            self.input += octets
            self.theirs = seq + len(octets) & 0xFFFFFFFF
        if flags & FIN and seq + len(octets) & 0xFFFFFFFF == self.theirs:
            self.ended = True
            self.theirs = self.theirs + 1 & 0xFFFFFFFF
        if octets or flags & FIN:
            self.put(ACK, self.acked)

    def blocks_of(self, options):
        while options and options[0]:
            size = 1 if options[0] == 1 else options[1]
            if options[0] == 5:
                for at in range(2, size, 8):
                    yield tuple(edge - self.first & 0xFFFFFFFF
                                for edge in struct.unpack_from(">II", options, at))
            options = options[size:]

    def until(self, what, wait=WAIT):
        """Takes in what comes until @what() is true; False: it never was."""
        end = time.monotonic() + wait
        while not what() and not self.reset:
            left = end - time.monotonic()
            if left <= 0:
                break
            if select.select([self.sock], [], [], min(left, 0.02))[0]:
                self.take(self.sock.recv(65536))
        return bool(what())

    def connect(self):
        self.put(SYN, -1, options=SACK_PERMITTED if self.sack else NO_SACK)
        if not self.until(lambda: self.theirs):
            raise OSError("no answer to SYN")
        self.put(ACK, 0)

    def send(self, at, octets):
        self.put(ACK | PSH, at, octets)

    def arrived(self, at, octets):
        """Sends it, until it is acknowledged, in turn or by SACK."""
        end = at + len(octets)
        self.send(at, octets)
        return self.until(lambda: self.acked >= end or any(
            begin <= at and end <= edge for begin, edge in self.blocks))
