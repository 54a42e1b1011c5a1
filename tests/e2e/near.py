# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two hosts of one network, and a process between them that does with each packet what a test says.

    programs --- tun near --- a process that judges each packet --- tun far --- servers
    one network namespace                                               another one

What it does is one number in memory that the test's process and that one share, and it counts there
what it has seen.
"""
import ctypes
import heapq
import mmap
import os
import select
import signal
import struct
import subprocess
import time

import far

PORT = 5041
NEAR, THERE = (far.CLIENT, "fd09::1"), (far.SERVER, "fd09::2")
# On the open Internet, by the same way; and one that is in a subnet of both ends
INTERNET, ON_LINK = "198.51.100.2", ("203.0.113.1", "203.0.113.2")
UDP, TCP = 17, 6
PASS, DROP, DELAY, FORGE, FLOOD, LOSE_SYN = range(6)
LATE = 0.03
REQUEST = b"MPA ID Req Frame"


class Packet:
    """Of IPv4 without options, or of IPv6 without headers between."""

    def __init__(self, octets):
        self.octets, self.six = octets, octets[0] >> 4 == 6
        self.protocol = octets[6] if self.six else octets[9]
        self.at = 40 if self.six else (octets[0] & 15) * 4
        self.payload = octets[self.at + 8:] if self.protocol == UDP else b""
        self.ports = struct.unpack_from("!HH", octets, self.at)
        self.flags = octets[self.at + 13] if self.protocol == TCP else 0

    def question(self):
        return self.protocol == UDP and self.ports[1] == PORT

    def answer(self):
        return self.protocol == UDP and self.ports[0] == PORT

    def tcp_payload(self):
        return self.octets[self.at + (self.octets[self.at + 12] >> 4) * 4:] \
            if self.protocol == TCP else b""


def checksum(octets):
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def datagram(source, to, ports, payload):
    """Of IPv4, where UDP may go without a checksum."""
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0, 64, UDP, 0, source, to)
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return head + struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload


def forged(question):
    """Answers of those that nobody has asked: yes, but not with the nonce, or not from there."""
    client, host = question.octets[12:16], question.octets[16:20]
    ports = (PORT, question.ports[0])
    yes = question.payload[:5] + b"\2" + question.payload[6:]
    wrong = yes[:8] + bytes(octet ^ 1 for octet in yes[8:])
    other = host[:3] + bytes([host[3] ^ 64])
    return [datagram(host, client, ports, wrong), datagram(other, client, ports, yes),
            datagram(host, client, (PORT + 1, ports[1]), yes),
            datagram(host, client, ports, yes[:-1]), datagram(host, client, ports, yes + b"\0"),
            datagram(host, client, ports, yes[:4] + b"\2" + yes[5:]),
            datagram(host, client, ports, question.payload)]


class Between:
    """What becomes of packets, and what was seen of them."""
    NAMES = ("how", "questions", "answers", "requests", "others", "syns")

    def __init__(self):
        self.memory = mmap.mmap(-1, 8 * len(self.NAMES))
        self.seen = set()

    def __getitem__(self, name):
        return struct.unpack_from("=Q", self.memory, 8 * self.NAMES.index(name))[0]

    def __setitem__(self, name, value):
        struct.pack_into("=Q", self.memory, 8 * self.NAMES.index(name), value)

    def begin(self, how):
        for name in self.NAMES:
            self[name] = 0
        self["how"] = how

    def count(self, packet):
        self["questions"] += packet.question()
        self["answers"] += packet.answer()
        self["requests"] += packet.tcp_payload().startswith(REQUEST)
        self["others"] += packet.protocol == UDP and not packet.question() and not packet.answer()
        self["syns"] += packet.protocol == TCP and packet.flags & 0x12 == 2

    def judge(self, octets):
        """[(seconds, whether it goes back to where it came from, octets)]"""
        packet, how = Packet(octets), self["how"]
        if packet.protocol not in (UDP, TCP):
            return [(0, False, octets)]
        self.count(packet)
        if how == LOSE_SYN and (packet.question() or packet.flags & 0x12 == 2):
            # The first of each
            if packet.protocol not in self.seen:
                self.seen.add(packet.protocol)
                return []
        if how == DROP and (packet.question() or packet.answer()):
            return []
        if how == DELAY and packet.answer():
            return [(LATE, False, octets)]
        if how in (FORGE, FLOOD) and packet.question() and not packet.six:
            times = 300 if how == FLOOD else 1
            return [(0, True, answer) for answer in forged(packet) * times] + \
                ([(0, False, octets)] if how == FLOOD else [])
        return [(0, False, octets)]

    def carry(self, near, there):
        waiting, number = [], 0
        while True:
            left = max(waiting[0][0] - time.monotonic(), 0) if waiting else None
            for fd in select.select([near, there], [], [], left)[0]:
                octets = os.read(fd, 65536)
                for way, back, packet in self.judge(octets):
                    number += 1
                    to = fd if back else there if fd == near else near
                    heapq.heappush(waiting, (time.monotonic() + way, number, to, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                try:
                    os.write(*heapq.heappop(waiting)[2:])
                except BlockingIOError:
                    pass


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def addresses(name, six, more, lo=()):
    ip("addr", "add", f"{six}/64", "dev", name, "nodad")
    ip("addr", "add", f"{more}/24", "dev", name)
    for address in lo:
        ip("addr", "add", f"{address}/32", "dev", "lo")


class Near:
    """This process's namespace is one host; enter() goes to the other."""

    def __init__(self):
        self.between = Between()
        near = far.tun("near", NEAR[0])
        addresses("near", NEAR[1], ON_LINK[0])
        ip("route", "add", f"{INTERNET}/32", "dev", "near")
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        if far.libc.unshare(far.CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "unshare")
        there = far.tun("far", THERE[0])
        addresses("far", THERE[1], ON_LINK[1], [INTERNET])
        self.there = os.open("/proc/self/ns/net", os.O_RDONLY)
        far.libc.setns(here, far.CLONE_NEWNET)
        self.pid = os.fork()
        if not self.pid:
            try:
                self.between.carry(near, there)
            finally:
                os._exit(1)

    def enter(self):
        if far.libc.setns(self.there, far.CLONE_NEWNET):
            os._exit(1)

    def run_there(self, *words):
        return subprocess.run(words, preexec_fn=self.enter, check=True, text=True, timeout=60,
                              capture_output=True).stdout

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
