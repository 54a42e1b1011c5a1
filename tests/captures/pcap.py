# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""TCP connections out of a capture file (pcap), with the number of the packet of each octet."""
import bisect
import struct
from dataclasses import dataclass, field

ETHERNET, RAW, SLL, SLL2 = 1, 101, 113, 276
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10


class Incomplete(ValueError):
    """The file is no capture, or misses something."""


@dataclass
class Half:
    """What one side sent: octets from its SYN on, and which packet brought each of them."""
    octets: bytearray = field(default_factory=bytearray)
    starts: list = field(default_factory=list)  # offsets at which a packet's octets begin
    packets: list = field(default_factory=list)  # and the number of that packet
    first: int = None  # sequence number of octet 0
    later: list = field(default_factory=list)  # what waits for octets before it
    fin: bool = False
    rst: bool = False
    altered: bool = False  # something came twice, and not the same

    def packet_of(self, offset):
        return self.packets[bisect.bisect_right(self.starts, offset) - 1]

    def add(self, number, seq, payload):
        """Segments may come twice, in pieces and out of order."""
        at = (seq - self.first) & 0xFFFFFFFF
        if at > 1 << 31:  # a keep-alive probe lies before the first octet
            return
        self.later.append((at, number, payload))
        progress = True
        while progress:
            progress = False
            for entry in sorted(self.later):
                progress |= self.append(*entry)
            self.later = [entry for entry in self.later
                          if entry[0] + len(entry[2]) > len(self.octets)]

    def append(self, at, number, payload):
        have = len(self.octets)
        known = self.octets[at:at + len(payload)]
        self.altered |= known != payload[:len(known)]
        if not at <= have < at + len(payload):
            return False
        self.starts.append(have)
        self.packets.append(number)
        self.octets += payload[have - at:]
        return True

    def problems(self):
        """What makes it no whole stream of octets."""
        return ([] if self.first is not None else ["the beginning is not in the capture"]) + (
            ["octets are missing in the capture"] if self.later else []) + (
            ["a segment was sent again with other octets"] if self.altered else [])


@dataclass
class Connection:
    client: tuple  # address and port of the side that connected
    server: tuple
    halves: dict  # by who sent


def read_packets(path):
    """Yields link type and octets of each packet."""
    data = path.read_bytes()
    order = {b"\xd4\xc3\xb2\xa1": "<", b"\x4d\x3c\xb2\xa1": "<",
             b"\xa1\xb2\xc3\xd4": ">", b"\xa1\xb2\x3c\x4d": ">"}.get(data[:4])
    if order is None:
        raise Incomplete(f"{path}: not a pcap file")
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    at = 24
    while at + 16 <= len(data):
        _, _, kept, length = struct.unpack_from(order + "4I", data, at)
        if kept != length:
            raise Incomplete(f"{path}: a packet of {length} octets was cut to {kept}")
        yield link, data[at + 16:at + 16 + kept]
        at += 16 + kept


def network_layer(link, packet):
    """The octets from the IP header on, or nothing."""
    if link == RAW:
        return packet
    at, kind = {ETHERNET: (14, 12), SLL: (16, 14), SLL2: (20, 0)}[link]
    if struct.unpack_from(">H", packet, kind)[0] not in (0x0800, 0x86DD):
        return b""
    return packet[at:]


def transport_layer(packet):
    """Source, destination and TCP segment of an IP packet, or nothing."""
    if len(packet) >= 20 and packet[0] >> 4 == 4 and packet[9] == 6:
        total = struct.unpack_from(">H", packet, 2)[0] or len(packet)
        return packet[12:16], packet[16:20], packet[(packet[0] & 15) * 4:total]
    if len(packet) >= 40 and packet[0] >> 4 == 6 and packet[6] == 6:
        total = 40 + (struct.unpack_from(">H", packet, 4)[0] or len(packet) - 40)
        return packet[8:24], packet[24:40], packet[40:total]
    return None


def connections(path, port=None):
    """All TCP connections whose SYNs are in the file, in the order of those.

    With a port: all that it has, and one without a SYN is an error.
    """
    found, order = {}, []
    for number, (link, packet) in enumerate(read_packets(path), 1):
        layer = transport_layer(network_layer(link, packet))
        if layer is None:
            continue
        source, target, tcp = layer
        sport, dport, seq, _, offset, flags = struct.unpack_from(">HHIIBB", tcp)
        sender, receiver = (source, sport), (target, dport)
        if port and port not in (sport, dport):
            continue
        key = frozenset((sender, receiver))
        half = found[key].halves[sender] if key in found else None
        if flags & SYN and not flags & ACK and (not half or half.first != (seq + 1) & 0xFFFFFFFF):
            found[key] = Connection(sender, receiver, {sender: Half(), receiver: Half()})
            order.append(found[key])
        if key not in found:
            if port:
                raise Incomplete(f"{path}: a connection whose beginning is not there")
            continue
        half = found[key].halves[sender]
        if flags & SYN:
            half.first = (seq + 1) & 0xFFFFFFFF
        half.fin |= bool(flags & FIN)
        half.rst |= bool(flags & RST)
        payload = tcp[(offset >> 4) * 4:]
        if payload and half.first is not None:
            half.add(number, seq, payload)
    return order
