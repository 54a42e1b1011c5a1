#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ends that know nothing of DDP, and tell what became of their connections.

    ask.py serve HOST PORT...     echoes at each of these until its input ends. Lines of it:
                                  "close PORT", "listen HOST PORT"; "daemon": a child goes on, and
                                  this process ends; "exec": another program, which has none of its
                                  sockets; "filter": a seccomp filter that lets everything through.
                                  "done" is said behind each
    ask.py connect                a line "HOST PORT [HOW]" of its input is a connection: it prints
                                  the number of its DDP_INFO, how long connect() took, and how long
                                  until the first octet came back; HOW: poll, epoll, or a number
                                  of connections that begin at once; "fork HOST PORT": in a child
"""
import ctypes
import os
import select
import socket
import struct
import sys
import threading
import time

LIMIT = 30


def reason(sock):
    """DDP_INFO's; plain: this process knows nothing of it."""
    try:
        return struct.unpack_from("=III", sock.getsockopt(5041, 6, 256))[2]
    except OSError:
        return "plain"


def echo(conn):
    with conn:
        try:
            while data := conn.recv(65536):
                conn.sendall(data)
        except OSError:
            pass


listeners = {}


def accept(listener):
    try:
        while True:
            threading.Thread(target=echo, args=listener.accept()[:1], daemon=True).start()
    except OSError:
        pass


def listen(host, port):
    six = ":" in host
    listeners[port] = socket.create_server((host, int(port)), backlog=100,
                                           dualstack_ipv6=host == "::",
                                           family=socket.AF_INET6 if six else socket.AF_INET)
    threading.Thread(target=accept, args=[listeners[port]], daemon=True).start()


def close(port):
    """A close() alone would leave the thread in accept() with the kernel's listener."""
    listeners[port].shutdown(socket.SHUT_RDWR)
    listeners.pop(port).close()


def become_daemon():
    if os.fork():
        os._exit(0)
    for listener in listeners.values():
        threading.Thread(target=accept, args=[listener], daemon=True).start()


def become_another():
    os.execvp("cat", ["cat"])


def become_confined():
    """Allows every call: struct sock_filter { BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW }. No thread
    but the program's is left behind it."""
    program = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7fff0000))
    filters = struct.pack("=HxxxxxxQ", 1, ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    assert not libc.prctl(38, 1, 0, 0, 0)
    assert not libc.prctl(22, 2, filters, 0, 0), os.strerror(ctypes.get_errno())
    assert len(os.listdir("/proc/self/task")) == threading.active_count()


COMMANDS = {"listen": listen, "close": close, "daemon": become_daemon, "exec": become_another,
            "filter": become_confined}


def serve(words):
    for host, port in zip(words[::2], words[1::2]):
        listen(host, port)
    print("listens", flush=True)
    while line := sys.stdin.readline():
        command, *words = line.split()
        COMMANDS[command](*words)
        print("done", flush=True)


def connected(sock, address, how):
    if how == "blocking":
        sock.connect(address)
        return
    sock.setblocking(False)
    try:
        sock.connect(address)
    except BlockingIOError:
        pass
    if how == "poll":
        poll = select.poll()
        poll.register(sock, select.POLLOUT)
        assert poll.poll(LIMIT * 1000)
    else:
        epoll = select.epoll()
        epoll.register(sock, select.EPOLLOUT | select.EPOLLET)
        assert epoll.poll(LIMIT)
    error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    assert not error, os.strerror(error)
    sock.setblocking(True)


def talk(host, port, how, said):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        sock.settimeout(None)
        begin = time.monotonic()
        connected(sock, (host, int(port)), how)
        took = time.monotonic() - begin
        sock.sendall(b"x" * 1000)
        got = sock.recv(1, socket.MSG_WAITALL)
        first = time.monotonic() - begin
        got += sock.recv(999, socket.MSG_WAITALL)
        assert got == b"x" * 1000, got
        said.append(f"{reason(sock)} {took:.6f} {first:.6f}")


def connect():
    for line in sys.stdin:
        host, port, *how = line.split()
        if host == "fork":
            if pid := os.fork():
                os.waitpid(pid, 0)
                continue
            host, port, how = port, how[0], []
        how = how[0] if how else "blocking"
        said, many = [], int(how) if how.isdigit() else 1
        threads = [threading.Thread(target=talk, args=(
            host, port, "blocking" if how.isdigit() else how, said)) for _ in range(many)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for text in said + ["failed"] * (many - len(said)):
            print(text, flush=True)
        if line.startswith("fork"):
            os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[2:]) if sys.argv[1] == "serve" else connect()
