#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A client that knows nothing of DDP and connects many times at once.

    pool.py WAY PORT CONNECTIONS

    threads    each connects in a thread of its own, which waits for it
    poll       all are under way in one thread, which polls them
    epoll      the same, edge-triggered
    blind      the first is under way, and nobody looks at it while the second is waited for
    forks      in children of this process, by fork()
    executed   the first is under way, and a program that this one executes connects another
    killed     by fork(), when one more asks and is killed
    deaf       the first in a child that never looks at it; its parent connects the others

All say hello when all are connected. It says how long it took until then, and how many were right.
"""
import errno
import os
import select
import signal
import socket
import sys
import threading
import time

LIMIT = 60


def begin(port):
    sock = socket.socket()
    sock.setblocking(False)
    err = sock.connect_ex(("127.0.0.1", port))
    if err not in (0, errno.EINPROGRESS):
        raise OSError(err, "connect")
    return sock


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT)


def connect_threads(port, number):
    socks = []
    threads = [threading.Thread(target=lambda: socks.append(connect(port)))
               for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return socks


def connect_poll(port, number):
    waiting = {sock.fileno(): sock for sock in (begin(port) for _ in range(number))}
    socks = []
    while waiting:
        poll = select.poll()
        for fd in waiting:
            poll.register(fd, select.POLLOUT)
        for fd, _ in poll.poll(LIMIT * 1000):
            socks.append(waiting.pop(fd))
    return socks


def connect_epoll(port, number):
    waiting = {sock.fileno(): sock for sock in (begin(port) for _ in range(number))}
    socks = []
    with select.epoll() as ready:
        for fd in waiting:
            ready.register(fd, select.EPOLLOUT | select.EPOLLET)
        while waiting:
            for fd, events in ready.poll(LIMIT):
                if fd in waiting and events & select.EPOLLOUT and not events & select.EPOLLHUP:
                    socks.append(waiting.pop(fd))
    return socks


def connect_blind(port, number):
    first = begin(port)
    others = [connect(port) for _ in range(number - 1)]
    return [*others, first]


WAYS = {name[8:]: way for name, way in globals().items() if name.startswith("connect_")}


def settle(sock):
    sock.setblocking(True)
    sock.settimeout(LIMIT)
    err = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if err:
        raise OSError(err, "SO_ERROR")


def talk(socks):
    """How many got back what they said, after a welcome if there is one."""
    right = 0
    for number, sock in enumerate(socks):
        settle(sock)
        said = b"hello %d\n" % number
        sock.sendall(said)
        sock.shutdown(socket.SHUT_WR)
        got = b""
        while data := sock.recv(100):
            got += data
        right += got.removeprefix(b"welcome\n") == said
    return right


def child(port, go):
    os.read(go, 1)
    begun = time.monotonic()
    sock = connect(port)
    took = time.monotonic() - begun
    right = talk([sock])
    print(f"took {took:.3f} right {right}", flush=True)
    sock.close()
    sys.exit()


def forks(port, number):
    """They begin together, when the pipe is closed."""
    go, end = os.pipe()
    for _ in range(number):
        if not os.fork():
            os.close(end)
            child(port, go)
    os.close(end)
    for _ in range(number):
        os.wait()


def killed(port, number):
    """Its Request is out by then."""
    begun, tell = os.pipe()
    pid = os.fork()
    if not pid:
        poll = select.poll()
        poll.register(begin(port), select.POLLOUT)
        poll.poll(200)
        os.write(tell, b"x")
        signal.pause()
    os.read(begun, 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    forks(port, number)


def deaf(port, number):
    begun, tell = os.pipe()
    go, end = os.pipe()
    if not os.fork():
        os.close(end)
        sock = begin(port)
        os.write(tell, b"x")
        os.read(go, 1)
        sock.close()
        sys.exit()
    os.read(begun, 1)
    socks = connect_threads(port, number - 1)
    os.close(end)
    os.wait()
    return socks


def executed(port):
    """Its Request is out by then."""
    first, poll = begin(port), select.poll()
    poll.register(first, select.POLLOUT)
    poll.poll(200)
    first.set_inheritable(True)
    os.execv(sys.executable, [sys.executable, __file__, "goes_on", str(port), str(first.fileno())])


def goes_on(port, fd):
    first, poll = socket.socket(fileno=fd), select.poll()
    poll.register(first, select.POLLOUT)
    poll.poll(LIMIT * 1000)
    return [first, connect(port)]


def main():
    way, port, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    if way == "executed":
        executed(port)
    if way in ("forks", "killed"):
        {"forks": forks, "killed": killed}[way](port, number)
        return
    begun = time.monotonic()
    socks = (WAYS | {"deaf": deaf, "goes_on": goes_on})[way](port, number)
    took = time.monotonic() - begun
    print(f"took {took:.3f} right {talk(socks)}", flush=True)


if __name__ == "__main__":
    main()
