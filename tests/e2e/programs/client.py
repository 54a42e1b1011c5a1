#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client that knows nothing of DDP and waits in one of the ways there are.

    client.py WAY HOST PORT OCTETS CONNECTIONS [BIND]

Each connection sends so many octets and the end, and what comes back is compared.
"""
import errno
import select
import socket
import struct
import sys
import threading

LIMIT = 30


def connect_blocking(sock, where):
    sock.connect(where)


def in_progress(sock, where):
    sock.setblocking(False)
    err = sock.connect_ex(where)
    if err not in (0, errno.EINPROGRESS):
        raise OSError(err, "connect")


def settled(sock):
    err = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if err:
        raise OSError(err, "SO_ERROR")
    sock.getpeername()


def connect_poll(sock, where):
    in_progress(sock, where)
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    if not poll.poll(LIMIT * 1000):
        raise TimeoutError("poll")
    settled(sock)


def connect_select(sock, where):
    in_progress(sock, where)
    if not select.select([], [sock], [], LIMIT)[1]:
        raise TimeoutError("select")
    settled(sock)


def epoll(sock, where, edge, early):
    ready = select.epoll()
    if early:
        ready.register(sock, select.EPOLLOUT | edge)
    in_progress(sock, where)
    if not early:
        ready.register(sock, select.EPOLLOUT | edge)
    # A socket that is not connected yet hangs up, for the kernel too
    for _ in range(100):
        events = ready.poll(LIMIT)
        if not events:
            raise TimeoutError("epoll")
        if events[0][1] & select.EPOLLOUT and not events[0][1] & select.EPOLLHUP:
            break
        if events[0][1] & select.EPOLLERR:
            break
    settled(sock)
    ready.modify(sock, select.EPOLLIN | edge)
    ready.close()


def connect_epoll(sock, where):
    epoll(sock, where, 0, False)


def connect_epoll_et(sock, where):
    epoll(sock, where, select.EPOLLET, True)


def connect_set(sock, where):
    """In an epoll set that poll() looks at."""
    with select.epoll() as ready:
        ready.register(sock, select.EPOLLOUT)
        in_progress(sock, where)
        poll = select.poll()
        poll.register(ready, select.POLLIN)
        while not any(events & select.EPOLLOUT for _, events in ready.poll(0)):
            if not poll.poll(LIMIT * 1000):
                raise TimeoutError("poll")
    settled(sock)


def connect_nest(sock, where):
    """In an epoll set in another one."""
    with select.epoll() as inner, select.epoll() as outer:
        outer.register(inner, select.EPOLLIN)
        in_progress(sock, where)
        inner.register(sock, select.EPOLLOUT)
        while not any(events & select.EPOLLOUT for _, events in inner.poll(0)):
            if not outer.poll(LIMIT):
                raise TimeoutError("epoll")
    settled(sock)


def connect_again(sock, where):
    """Asks until it is connected, which is what some old programs do."""
    in_progress(sock, where)
    while True:
        err = sock.connect_ex(where)
        if err in (0, errno.EISCONN):
            return
        if err not in (errno.EALREADY, errno.EINPROGRESS):
            raise OSError(err, "connect")


def connect_write(sock, where):
    """Writes until it can."""
    in_progress(sock, where)
    while True:
        try:
            return sock.send(b"")
        except BlockingIOError:
            select.select([], [], [], 0.001)


def connect_dup(sock, where):
    """By another descriptor, which both sets know, and which goes away."""
    other = sock.dup()
    ready = select.epoll()
    ready.register(sock, select.EPOLLOUT)
    in_progress(other, where)
    ready.register(other, select.EPOLLOUT)
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    if not poll.poll(LIMIT * 1000):
        raise TimeoutError("poll")
    settled(other)
    for _ in range(100):
        if {fd for fd, events in ready.poll(LIMIT) if events == select.EPOLLOUT} == \
                {sock.fileno(), other.fileno()}:
            break
    else:
        raise TimeoutError("epoll")
    other.close()
    ready.modify(sock, select.EPOLLIN)
    ready.close()


def connect_threads(sock, where):
    """While others sleep in poll() and epoll_wait() for it."""
    ready = select.epoll()
    ready.register(sock, select.EPOLLOUT | select.EPOLLET)
    in_progress(sock, where)

    def sleep_epoll():
        while not ready.poll(LIMIT)[0][1] & select.EPOLLOUT:
            pass

    def sleep_poll():
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        poll.poll(LIMIT * 1000)

    threads = [threading.Thread(target=sleep, daemon=True)
               for sleep in (sleep_epoll, sleep_poll, sleep_poll)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        if thread.is_alive():
            raise TimeoutError("a thread sleeps on")
    settled(sock)


WAYS = {name[8:]: way for name, way in globals().items() if name.startswith("connect_")}


def talk(sock, payload):
    sock.setblocking(True)
    sock.settimeout(LIMIT)
    sock.sendall(payload)
    sock.shutdown(socket.SHUT_WR)
    back = bytearray()
    while data := sock.recv(65536):
        back += data
    return bytes(back)


def reason(sock):
    """Of DDP_INFO; None: this is a plain socket of a plain process."""
    try:
        return struct.unpack_from("=III", sock.getsockopt(5041, 6, 256))[2]
    except OSError:
        return None


def main():
    way, host, port, octets, connections = sys.argv[1:6]
    for number in range(int(connections)):
        payload = bytes((i * 7 + number) & 0xff for i in range(int(octets)))
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            if len(sys.argv) > 6:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((host, int(sys.argv[6])))
                name = sock.getsockname()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            WAYS[way](sock, (host, int(port)))
            print("reason", reason(sock))
            back = talk(sock, payload)
            if back != payload:
                sys.exit(f"{len(back)} octets came back of {len(payload)}, or others")
            if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE):
                sys.exit("an option was lost")
            if sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY):
                sys.exit("an option was set that the program has not set")
            if len(sys.argv) > 6 and sock.getsockname() != name:
                sys.exit(f"bound to {name}, connected from {sock.getsockname()}")
    print("all came back")


if __name__ == "__main__":
    main()
