#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Start-up in the kernel: listeners of the kernel module warp_ddp, in the lab's guest.

    module_start.py calls                       prints TAP
    module_start.py cycles N                    so many connections, ended at each moment of it
    module_start.py listens ADDR PORT CRC SIZE...   as module.py serves, but the kernel starts up
"""
import errno
import os
import select
import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import module  # noqa: E402
import rawpeer  # noqa: E402
from module import (REMOTE_READ, REMOTE_WRITE, SOL_DDP, SOL_TCP, TCP_ULP, Closing,  # noqa: E402
                    Memory, child_ends, expect, expect_errno, in_child, info, message, read, take,
                    write)
from module_ops import attempt  # noqa: E402
from rawpeer import (BY_READ, BY_SEND, BY_WRITE, C, M, P2P, R, REPLY, REQUEST, S,  # noqa: E402
                     enhanced, frame, tap)

DDP_MODE, DDP_CRC, DDP_MARKERS = 1, 2, 3
OFF, ON, AUTO = 0, 1, 2
ORDINARY = enhanced(1, 1)
DEPTH = 16


def listen(address="127.0.0.1", crc=1, markers=0, mode=ON):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family)
    listener.bind((address, 0))
    listener.listen(16)
    listener.setsockopt(SOL_TCP, TCP_ULP, b"ddp")
    listener.setsockopt(SOL_DDP, DDP_CRC, crc)
    listener.setsockopt(SOL_DDP, DDP_MARKERS, markers)
    listener.setsockopt(SOL_DDP, DDP_MODE, mode)
    return listener


def accept(listener):
    sock = listener.accept()[0]
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("qq", module.WAIT, 0))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", module.WAIT, 0))
    return sock


def client(listener):
    return rawpeer.Peer(socket.create_connection(listener.getsockname()[:2]))


def exchange(sock, peer):
    """A message each way, the peer's first."""
    peer.send(b"from the client")
    got = take(sock)[0]
    sock.send(b"from the server")
    return expect((got, b"from the client"), (peer.message(), b"from the server"))


# Request: flags, rev, private data; the Reply to it, and the octets of the RTR that is agreed
FORMS = {
    "rev 1": ((C, 1, b""), (C, 1, b""), None),
    "rev 1 without CRC": ((0, 1, b""), (C, 1, b""), None),
    "rev 2": ((S | C, 2, ORDINARY), (S | C, 2, enhanced(DEPTH, 1)), None),
    "RTR: a Write": ((S | C, 2, enhanced(P2P | 1, BY_WRITE | 1)),
                     (S | C, 2, enhanced(P2P | DEPTH, BY_WRITE | 1)), rawpeer.RTR_WRITE),
    "RTR: a Read": ((S | C, 2, enhanced(P2P | 1, BY_READ | 1)),
                    (S | C, 2, enhanced(P2P | DEPTH, BY_READ | 1)), rawpeer.RTR_READ),
    "RTR: a Send": ((S | C, 2, enhanced(P2P | BY_SEND | 1, 1)),
                    (S | C, 2, enhanced(P2P | BY_SEND | DEPTH, 1)),
                    module.head()),
}


def form(ask, answer, rtr):
    with listen() as listener:
        peer = client(listener)
        sock = accept(listener)
        with Closing([sock, peer.sock]):
            got = peer.ask(*ask)
            if rtr:
                peer.put(rtr)
                peer.msn[0] = int(rtr == module.head())
            bad = exchange(sock, peer)
            if rtr == rawpeer.RTR_READ:
                return bad + expect((got, answer))
            told = info(sock)
            return bad + expect((got, answer), (told["connected"], 1),
                                (told["provider"], b"kernel"))


def before_accept():
    """The client asks before the server accepts: the Reply comes with accept()."""
    with listen() as listener:
        peer = client(listener)
        peer.sock.sendall(frame(REQUEST, S | C, 2, ORDINARY))
        early = select.select([peer.sock], [], [], 0.2)[0]
        sock = accept(listener)
        with Closing([sock, peer.sock]):
            flags = peer.take_frame(REPLY)[0]
            peer.crc = True
            return expect((early, []), (flags, S | C)) + exchange(sock, peer)


def octet_by_octet():
    with listen() as listener:
        peer = client(listener)
        sock = accept(listener)
        poll = select.poll()
        poll.register(sock, select.POLLIN | select.POLLOUT)
        with Closing([sock, peer.sock]):
            for octet in frame(REQUEST, C, 1):
                early = poll.poll(0)
                bad = expect_errno(errno.EAGAIN, sock.send, b"x", socket.MSG_DONTWAIT)
                bad += expect_errno(errno.EAGAIN, sock.recv, 9, socket.MSG_DONTWAIT)
                if early or bad or info(sock)["connected"]:
                    return [f"{early} {bad}"]
                peer.sock.sendall(bytes([octet]))
            peer.take_frame(REPLY)
            peer.crc = True
            gated = poll.poll(0)
            bad = exchange(sock, peer)
            return bad + expect((gated, []), (poll.poll(0), [(sock.fileno(), select.POLLOUT)]))


def at_once():
    """An FPDU that is already behind the Request is one behind the Reply."""
    with listen() as listener:
        peer = client(listener)
        peer.crc = True
        peer.sock.sendall(frame(REQUEST, C, 1) + peer.framed(module.head() + b"at once"))
        sock = accept(listener)
        with Closing([sock, peer.sock]):
            return expect((take(sock)[0], b"at once"), (peer.take_frame(REPLY), (C, 1, b"")))


def with_memory():
    """Registered before the first FPDU, and used."""
    with listen() as listener:
        peer = client(listener)
        sock = accept(listener)
        memory = Memory()
        with Closing([sock, peer.sock]):
            stag = memory.register(sock, REMOTE_WRITE | REMOTE_READ)
            peer.ask(S | C, 2, enhanced(4, 4))
            write(peer, stag, memory.address, message(5000))
            got = read(peer, stag, memory.address, 5000)
            return expect((got == message(5000), True))


def by_a_child():
    """The listener of a parent, in a program that knows nothing of the module."""
    with listen() as listener:
        def served():
            os.set_inheritable(listener.fileno(), True)
            os.execvp(sys.executable, [sys.executable, "-c", f"""
import socket
sock = socket.socket(fileno={listener.fileno()}).accept()[0]
sock.sendall(b"served: " + sock.recv(100))
"""])

        child = in_child(served)
        peer = client(listener)
        peer.ask(C, 1)
        with Closing([peer.sock]):
            peer.send(b"hello")
            got = peer.message()
        return expect((got, b"served: hello")) + child_ends(child)


def families():
    bad = []
    for address, to in ("::1", "::1"), ("::", "127.0.0.1"):
        with listen(address) as listener:
            peer = rawpeer.Peer(socket.create_connection((to, listener.getsockname()[1])))
            sock = accept(listener)
            with Closing([sock, peer.sock]):
                peer.ask(C, 1)
                bad += exchange(sock, peer)
    return bad


def without_crc():
    with listen(crc=0) as listener:
        bad = []
        for asked in 0, C:
            peer = client(listener)
            sock = accept(listener)
            with Closing([sock, peer.sock]):
                bad += expect((peer.ask(asked, 1)[0], asked)) + exchange(sock, peer)
        return bad


def with_markers():
    with listen(markers=1) as listener:
        peer = client(listener)
        sock = accept(listener)
        with Closing([sock, peer.sock]):
            got = peer.ask(C | M, 1)
            told = struct.unpack(module.INFO, sock.getsockopt(
                SOL_DDP, module.DDP_INFO, struct.calcsize(module.INFO)))
            return expect((got[0], C | M), (told[5:9], (1, 1, 1, 1)))


# --- ends -----------------------------------------------------------------------------------------


def no_request(octets, ends):
    """What is no Request, or ends before it is whole."""
    with listen() as listener:
        peer = client(listener)
        sock = accept(listener)
        with Closing([sock, peer.sock]):
            peer.sock.sendall(octets)
            if ends:
                peer.sock.shutdown(socket.SHUT_WR)
            bad = expect_errno(errno.ECONNRESET, sock.recv, 10)
            try:
                heard = peer.take(1)
            except rawpeer.Ended as why:
                heard = str(why)
            return bad + expect((heard, "FIN"), (sock.recv(10), b""), (info(sock)["connected"], 0))


def rejected():
    """Private data are of a protocol that the kernel does not speak."""
    with listen() as listener:
        peer = client(listener)
        sock = accept(listener)
        with Closing([sock, peer.sock]):
            got = peer.ask(C, 1, b"something")
            return expect((got[:2], (C | R, 1))) + expect_errno(errno.ECONNRESET, sock.recv, 10)


def silent():
    with listen() as listener:
        peer = client(listener)
        sock = accept(listener)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("qq", 60, 0))
        with Closing([sock, peer.sock]):
            begin = time.monotonic()
            bad = expect_errno(errno.ETIMEDOUT, sock.recv, 10)
            return bad + expect((time.monotonic() - begin > 9, True))


def reset_before_accept():
    with listen() as listener:
        peer = client(listener)
        peer.sock.sendall(b"MPA ID")
        peer.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.sock.close()
        time.sleep(0.1)
        other = client(listener)
        with Closing([other.sock]):
            sock = accept(listener)
            with Closing([sock]):
                bad = expect_errno(errno.ECONNRESET, sock.recv, 10)
            with accept(listener) as sock:
                other.ask(C, 1)
                return bad + exchange(sock, other)


def closed_unaccepted():
    """A listener goes, and what it has not accepted with it."""
    listener = listen()
    peers = [client(listener) for _ in range(3)]
    for peer in peers:
        peer.sock.sendall(frame(REQUEST, C, 1))
    listener.close()
    ends = []
    for peer in peers:
        try:
            ends.append(peer.take(1))
        except rawpeer.Ended as why:
            ends.append(str(why))
        peer.sock.close()
    return expect((ends, ["reset"] * 3))


def shut_listener():
    listener = listen()
    listener.shutdown(socket.SHUT_RDWR)
    with listener:
        return expect_errno(errno.EINVAL, listener.accept)


def off():
    """A listener with the mode off gives TCP."""
    with listen(mode=OFF) as listener:
        with socket.create_connection(listener.getsockname()) as plain:
            with listener.accept()[0] as sock:
                plain.send(b"octets")
                return expect((sock.recv(3), b"oct"), (sock.recv(9), b"ets")) + expect_errno(
                    errno.EOPNOTSUPP, sock.getsockopt, SOL_DDP, module.DDP_INFO, 100)


def refusals():
    with listen() as listener:
        bad = expect_errno(errno.EOPNOTSUPP, listener.setsockopt, SOL_DDP, DDP_MODE, AUTO)
        bad += expect_errno(errno.EINVAL, listener.setsockopt, SOL_DDP, DDP_MODE, 3)
        bad += expect_errno(errno.EINVAL, listener.setsockopt, SOL_DDP, DDP_CRC, b"\1")
        packed, _alive = module.handover(module.CRC)
        bad += expect_errno(errno.ENOTCONN, listener.setsockopt, SOL_DDP, module.DDP_HANDOVER,
                            packed)
        bad += expect_errno(errno.ENOTCONN, Memory().register, listener, REMOTE_READ)
        listener.setblocking(False)
        bad += expect_errno(errno.EAGAIN, listener.accept)
        peer = client(listener)
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        ready = poll.poll(2000)
        listener.setblocking(True)
        sock = accept(listener)
        with Closing([sock, peer.sock]):
            bad += expect_errno(errno.EISCONN, sock.setsockopt, SOL_DDP, DDP_MODE, ON)
            bad += expect_errno(errno.EALREADY, sock.setsockopt, SOL_DDP, module.DDP_HANDOVER,
                                packed)
        return bad + expect((ready, [(listener.fileno(), select.POLLIN)]))


def calls():
    writer = tap.Writer()
    for name, (ask, answer, rtr) in FORMS.items():
        writer.case(name, attempt(form, ask, answer, rtr))
    for one in (before_accept, octet_by_octet, at_once, with_memory, by_a_child, families,
                without_crc, with_markers, rejected, silent, reset_before_accept,
                closed_unaccepted, shut_listener, off, refusals):
        writer.case(one.__name__.replace("_", " "), attempt(one))
    for name, octets, ends in (("HTTP", b"GET / HTTP/1.0\r\n\r\n", False),
                               ("a Reply", frame(REPLY, C, 1), False),
                               ("rev 9", frame(REQUEST, C, 9), False),
                               ("513 octets of private data", frame(REQUEST, C, 1, b"", 513),
                                False),
                               ("an end", b"", True), ("half of it", b"MPA ID Req", True)):
        writer.case(f"no Request: {name}", attempt(no_request, octets, ends))
    writer.finish()


def cycles(number):
    """Clients that go at any moment; some are never accepted."""
    request = frame(REQUEST, C, 1)
    for seed in range(int(number)):
        with listen() as listener:
            peer = client(listener)
            peer.sock.sendall(request[:seed % (len(request) + 1)])
            if seed % 5:
                sock = accept(listener)
                if seed % 2:
                    peer.sock.close()
                sock.close()
            peer.sock.close()


def listens(addr, port, crc, *sizes):
    listener = socket.create_server((addr, int(port)))
    listener.setsockopt(SOL_TCP, TCP_ULP, b"ddp")
    listener.setsockopt(SOL_DDP, DDP_CRC, int(crc))
    listener.setsockopt(SOL_DDP, DDP_MODE, ON)
    with listener, accept(listener) as sock:
        module.exchange(sock, [int(size) for size in sizes], False)
        module.ended(sock)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
