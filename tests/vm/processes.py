#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A stream that a device carries, and what other processes have of it; and its descriptors.

    processes.py serve ADDR PORT CONNECTIONS    echoes, one after the other
    processes.py early ADDR PORT                a listener in an epoll set, and a fork
    processes.py late ADDR PORT                 the same, when it has served one
    processes.py listens ADDR PORT              a listener whose process becomes another user
    processes.py WHAT ADDR PORT                 a client, see below
"""
import ctypes
import errno
import faulthandler
import os
import select
import socket
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from expect import error_of, expect  # noqa: E402

libc = ctypes.CDLL(None, use_errno=True)


def echo(sock):
    while octets := sock.recv(30000):
        sock.sendall(octets)


def serve(addr, port, connections):
    with socket.create_server((addr, port)) as listener:
        for _ in range(int(connections)):
            peer, _ = listener.accept()
            with peer:
                try:
                    echo(peer)
                except ConnectionResetError:
                    pass


def exchange(sock, octets=b"some octets" * 1000):
    sock.sendall(octets)
    assert sock.recv(len(octets), socket.MSG_WAITALL) == octets


def wait(child):
    expect(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)


def closes(sock):
    fd = sock.fileno()
    os.closerange(3, fd)
    os.closerange(fd + 1, 1 << 20)
    exchange(sock)
    for number in set(range(3, 70000)) - {fd}:
        libc.close(number)
    exchange(sock)


def executes(sock):
    os.set_inheritable(sock.fileno(), True)
    expect(error_of(os.execv, "/bin/true", ["true"]), "ENOTSUP")


def is_open_in(pass_fds, fd):
    """In a program that is started by fork or vfork and exec."""
    code = f"import os; os.fstat({fd})"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL,
                          pass_fds=pass_fds, check=False).returncode == 0


def spawns(sock):
    fd = sock.fileno()
    os.set_inheritable(fd, True)
    expect(error_of(os.posix_spawn, "/bin/true", ["true"], os.environ), "ENOTSUP")
    os.set_inheritable(fd, False)
    wait(os.posix_spawn("/bin/true", ["true"], os.environ))


def child(sock):
    expect(is_open_in((sock.fileno(),), sock.fileno()), False)


def rights(sock):
    ours, theirs = socket.socketpair()
    expect(error_of(socket.send_fds, ours, [b"x"], [sock.fileno()]), "EXDEV")
    ours.close()
    expect(theirs.recv(1), b"")


def forks(sock):
    number = os.fork()
    if not number:
        expect(error_of(sock.recv, 1), "EXDEV")
        expect(error_of(sock.send, b"x"), "EXDEV")
        sock.close()
        os._exit(0)
    wait(number)


def connects_in_child(sock):
    """The server takes one connection after the other: the parent's ends before."""
    peer = sock.getpeername()
    exchange(sock)
    sock.shutdown(socket.SHUT_RDWR)
    number = os.fork()
    if not number:
        with socket.create_connection(peer) as other:
            exchange(other)
        os._exit(0)  # exit would wait for the thread of faulthandler, which is the parent's
    wait(number)
    return True


def nowhere(sock):
    expect(libc.connect(sock.fileno(), (ctypes.c_char * 16)(), 16), -1)
    expect(errno.errorcode[ctypes.get_errno()], "ENOTSUP")
    assert sock.getpeername()


def client(what, addr, port):
    with socket.create_connection((addr, port)) as sock:
        exchange(sock)
        if not what(sock):
            exchange(sock)


def become_another():
    os.setgroups([])
    os.setuid(65534)


def another_user(sock):
    """The kernel lets nobody go on with what he has opened as another one."""
    become_another()
    expect(error_of(sock.send, b"x"), "EPIPE")
    return True


def serve_one(epoll, listener):
    epoll.poll()
    peer, _ = listener.accept()
    with peer:
        echo(peer)


def listens(addr, port):
    """Serves one as it was; of those behind it the first may be reset."""
    with socket.create_server((addr, port)) as listener, select.epoll() as epoll:
        epoll.register(listener, select.EPOLLIN)
        serve_one(epoll, listener)
        become_another()
        serve_one(epoll, listener)


def forks_with(listener, want):
    number = os.fork()
    if not number:
        listener.setblocking(False)
        expect(error_of(listener.accept), want)
        os._exit(0)
    wait(number)
    listener.setblocking(True)  # which both have


def waited_for(addr, port, late):
    with socket.create_server((addr, port)) as listener, select.epoll() as epoll:
        epoll.register(listener, select.EPOLLIN)
        if late:
            serve_one(epoll, listener)
        forks_with(listener, "EXDEV" if late else "EAGAIN")
        serve_one(epoll, listener)


def main(what, addr, port, *rest):
    if what == "serve":
        serve(addr, int(port), *rest)
    elif what in ("early", "late"):
        waited_for(addr, int(port), what == "late")
    elif what == "listens":
        listens(addr, int(port))
    else:
        client(globals()[what], addr, int(port))


faulthandler.dump_traceback_later(40, exit=True)  # where it hangs
main(*sys.argv[1:])
