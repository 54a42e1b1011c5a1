# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For programs in Python that a test runs: what a connection of a device's answers about itself."""
import fcntl
import socket
import time

from expect import error_of, expect

SO_PEERNAME, IP_MTU, IPV6_MTU, SIOCOUTQ = 28, 14, 24, 0x5411
ESTABLISHED = 1  # of TCP_INFO
LIMIT = 20


def name_of(sock):
    """Of its peer, as the kernel writes it."""
    family = sock.family.to_bytes(2, "little")
    addr, port, *more = sock.getpeername()
    octets = socket.inet_pton(sock.family, addr)
    if not more:
        return family + port.to_bytes(2, "big") + octets + bytes(8)
    return family + port.to_bytes(2, "big") + bytes(4) + octets + bytes(4)


def answers(sock, mtu):
    """Of an open one, whose peer takes what it is sent, and whose route bears @mtu octets."""
    tcp, six = socket.IPPROTO_TCP, sock.family == socket.AF_INET6
    headers = 60 if six and not sock.getpeername()[0].startswith("::ffff:") else 40
    name = name_of(sock)
    expect(sock.getsockopt(socket.SOL_SOCKET, SO_PEERNAME, len(name)), name)
    expect(sock.getsockopt(tcp, socket.TCP_INFO, 1)[0], ESTABLISHED)
    expect(sock.getsockopt(tcp, socket.TCP_MAXSEG), mtu - headers)
    expect(sock.getsockopt(*((socket.IPPROTO_IPV6, IPV6_MTU) if six else
                             (socket.IPPROTO_IP, IP_MTU))), mtu)
    expect(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), 0)
    expect(error_of(sock.listen), "EINVAL")
    expect(error_of(sock.accept), "EINVAL")
    expect(error_of(sock.bind, sock.getsockname()), "EINVAL")
    until = time.monotonic() + LIMIT
    while any(fcntl.ioctl(sock, SIOCOUTQ, b"1234")):
        expect(time.monotonic() < until, True)
        time.sleep(0.01)
