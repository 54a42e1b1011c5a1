#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers of Python's standard library that give their connections to other processes.

    py_pass.py fork PORT     socketserver.ForkingTCPServer, which echoes
    py_pass.py pass PORT     workers, to whom connections go by multiprocessing.reduction
    py_pass.py spawn PORT    the same with workers that were executed
    py_pass.py unread PORT   as pass, and nobody has read of them before
"""
import contextlib
import multiprocessing
import multiprocessing.connection
import multiprocessing.reduction
import os
import signal
import socket
import socketserver
import sys

HOST = os.environ.get("SERVE_AT", "127.0.0.1")
WORKERS = 2


class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while octets := self.request.recv(50000):
            self.request.sendall(octets)


class Forking(socketserver.ForkingTCPServer):
    allow_reuse_address = True


def end(*_):
    """Once only: at its end Python takes its handlers away, and a second signal would kill it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit()


def work(pipe):
    """The first line was read by who accepted the connection, and comes along."""
    signal.signal(signal.SIGTERM, end)
    while True:
        line = pipe.recv_bytes()
        with socket.socket(fileno=multiprocessing.reduction.recv_handle(pipe)) as conn:
            with contextlib.suppress(ConnectionError):
                conn.sendall(line)
                while octets := conn.recv(50000):
                    conn.sendall(octets)


def hand_out(port, context, reads=True):
    pipes, workers = [], []
    for _ in range(WORKERS):
        mine, theirs = context.Pipe()
        workers.append(context.Process(target=work, args=(theirs,), daemon=True))
        workers[-1].start()
        theirs.close()
        pipes.append(mine)
    number = 0
    with socket.create_server((HOST, port)) as listener:
        while True:
            conn = listener.accept()[0]
            line = b""
            with contextlib.suppress(ConnectionError):
                line = conn.recv(100) if reads else b""
            if line or not reads:
                pipes[number % WORKERS].send_bytes(line)
                multiprocessing.reduction.send_handle(pipes[number % WORKERS], conn.fileno(),
                                                      workers[number % WORKERS].pid)
            number += 1
            conn.close()


def main():
    verb, port = sys.argv[1], int(sys.argv[2])
    signal.signal(signal.SIGTERM, end)
    if verb == "fork":
        with Forking((HOST, port), Echo) as server:
            server.serve_forever()
    hand_out(port, multiprocessing.get_context(verb if verb == "spawn" else "fork"),
             verb != "unread")


if __name__ == "__main__":
    main()
