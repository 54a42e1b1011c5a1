#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Clients whose connection a device carries that is made up (fake_rdma.c). device.py runs it.

    client.py WHAT
"""
import ctypes
import errno
import fcntl
import os
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
from answers import SO_PEERNAME, answers, name_of  # noqa: E402
from expect import error_of, expect  # noqa: E402

PEER = ("127.0.0.1", 7)
OWN = ("127.0.0.1", 4000)
LOOP_MTU = 65535  # of IP; the link's may be more
ESTABLISHED, SYN_SENT, CLOSE = 1, 2, 7  # of TCP_INFO
SIOCOUTQ, SIOCOUTQNSD = 0x5411, 0x894b
libc = ctypes.CDLL(None, use_errno=True)


def state(sock):
    return sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]


def carried():
    """Its descriptors are not the program's, nor is connect() to nowhere its."""
    sock = socket.create_connection(PEER)
    fd = sock.fileno()
    expect(fd, 3)
    sock.sendall(b"x" * 1000)
    os.closerange(fd + 1, 1 << 20)
    for number in range(fd + 1, 70000):
        libc.close(number)
    sock.sendall(b"x" * 1000)
    expect(libc.connect(fd, (ctypes.c_char * 16)(), 16), -1)
    expect(ctypes.get_errno(), errno.EOPNOTSUPP)
    sock.sendall(b"x" * 1000)


def asked():
    """What it says of itself, as a connected TCP socket does."""
    new = socket.socket()
    expect(state(new), CLOSE)
    expect(error_of(new.getpeername), "ENOTCONN")
    new.bind(("127.0.0.1", 0))
    sock = socket.create_connection(PEER)
    expect(sock.getsockname(), OWN)
    expect(sock.getpeername(), PEER)
    expect(state(sock), ESTABLISHED)
    for address in ("127.0.0.1", 0), ("0.0.0.0", 0), OWN:
        expect(error_of(sock.bind, address), "EINVAL")
    expect(error_of(sock.bind, ("192.0.2.1", 0)), "EADDRNOTAVAIL")
    six = (ctypes.c_char * 28)(socket.AF_INET6)
    for addr, size, want in ((six, 28, errno.EAFNOSUPPORT), (six, 4, errno.EINVAL),
                             (six, 1000, errno.EINVAL), (None, 16, errno.EFAULT)):
        expect(libc.bind(sock.fileno(), addr, size), -1)
        expect(ctypes.get_errno(), want)
    expect(error_of(sock.listen), "EINVAL")
    expect(error_of(sock.accept), "EINVAL")
    expect(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN), 0)
    sock.sendall(b"x" * 1000)
    expect(sock.getsockname(), OWN)
    answers(sock, LOOP_MTU)
    for size, said in (15, "none"), (17, "EINVAL"):
        expect(error_of(sock.getsockopt, socket.SOL_SOCKET, SO_PEERNAME, size), said)
    expect(sock.getsockopt(socket.SOL_SOCKET, SO_PEERNAME, 3), name_of(sock)[:3])
    with socket.socket(socket.AF_INET6) as dual:
        dual.connect(("::ffff:127.0.0.1", 7))
        expect(dual.getpeername()[:2], ("::ffff:127.0.0.1", 7))
        expect(dual.getsockname()[:2], ("::ffff:127.0.0.1", 4000))
        answers(dual, LOOP_MTU)
    with socket.socket() as short:
        short.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
        short.connect(PEER)
        expect(short.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG), 1000)


def queued():
    """Octets count as long as the device has not said that they have left."""
    sock = socket.create_connection(PEER)
    holding = ctypes.c_int.in_dll(ctypes.CDLL("libibverbs.so.1"), "fake_holding")
    for _ in range(2):
        holding.value = 1
        for sent in 1000, 2000:
            sock.sendall(b"x" * 1000)
            expect([fcntl.ioctl(sock, what, b"1234") for what in (SIOCOUTQ, SIOCOUTQNSD)],
                   [struct.pack("i", sent)] * 2)
        holding.value = 0
        expect(fcntl.ioctl(sock, SIOCOUTQ, b"1234"), bytes(4))


def asked_early():
    """Before the peer has answered."""
    sock = socket.socket()
    sock.setblocking(False)
    expect(sock.connect_ex(PEER), errno.EINPROGRESS)
    expect(state(sock), SYN_SENT)
    expect(sock.getsockname(), OWN)
    expect(error_of(sock.getpeername), "ENOTCONN")
    # As TCP has it, which knows by then whom it asks
    expect(sock.getsockopt(socket.SOL_SOCKET, SO_PEERNAME, 16)[2:4], (7).to_bytes(2, "big"))


def kept():
    """By SO_KEEPALIVE from before connect(), and from behind it, while it sleeps."""
    fake = ctypes.CDLL("libibverbs.so.1")
    nothings = ctypes.c_int.in_dll(fake, "fake_nothings")
    for early in True, False:
        before = nothings.value
        with socket.socket() as sock:
            for connects in early, not early:
                if connects:
                    sock.connect(PEER)
                else:
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 2, 500000))
            expect(error_of(sock.recv, 1), "EAGAIN")
            expect(nothings.value - before >= 1, True)
            ctypes.c_int.in_dll(fake, "fake_silent").value = not early
            if not early:
                expect(error_of(sock.recv, 1), "ETIMEDOUT")


def unanswered():
    """By the device, and then by TCP, where nobody listens: which call finds out is no matter."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = closed.getsockname()
        for call in (lambda sock: sock.recv(1), lambda sock: sock.send(b"x"),
                     lambda sock: sock.recv(1, socket.MSG_PEEK)):
            with socket.socket() as sock:
                sock.setblocking(False)
                expect(sock.connect_ex(nobody), errno.EINPROGRESS)
                said = "EAGAIN"
                while said == "EAGAIN":
                    time.sleep(0.01)
                    said = error_of(call, sock)
                expect(said, "ECONNREFUSED")
                expect(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)


def left():
    """The process ends while the worker thread, which has its lock, is in the device's library."""
    sock = socket.create_connection(PEER)
    sock.sendall(b"x")
    sock.close()
    calling = ctypes.c_int.in_dll(ctypes.CDLL("libibverbs.so.1"), "fake_calling")
    while not calling.value:
        time.sleep(0.01)
    os._exit(3)


def executed():
    """What the connection had to do is done before another program takes the process."""
    sock = socket.create_connection(PEER)
    sock.sendall(b"x")
    sock.close()
    os.execv("/bin/sh", ["sh", "-c", 'test -e "$FAKE_TOLD"'])


def owed():
    """The process ends with octets that the device never took."""
    sock = socket.create_connection(PEER)
    sock.setblocking(False)
    try:
        sock.sendall(b"x")
    except BlockingIOError:
        pass
    sys.exit(3)


globals()[sys.argv[1]]()
