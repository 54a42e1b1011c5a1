#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the compiler watches before it builds a release: programs as our users have them.

    train.py WARPSOCK        runs all of it, over loopback, both ends on DDP
    train.py serve NAME PORT | ask NAME PORT

Each program does a set amount and ends by itself, for what it did is written when it ends.
"""
import os
import select
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HOST = "127.0.0.1"
LIMIT = 240  # seconds for both ends of one program; a build that is watched is slow
ROUNDS, STREAM, CONNECTIONS, REQUESTS = 8000, 48 << 20, 1500, 15000
CLIENTS = 50  # of the event loops
FILE_SIZES = (1024, 65536)
ASK, HEADER = b"?" * 100, b"!" * 240


def whole(sock, size):
    """Exactly so many bytes, by as many calls as it takes."""
    left = size
    while left:
        got = len(os.read(sock.fileno(), left))
        if not got:
            raise EOFError(f"{left} bytes of {size} are missing")
        left -= got


def put(sock, data):
    view = memoryview(data)
    while view:
        view = view[os.write(sock.fileno(), view):]


# --- blocking calls: messages there and back, streams, connections --------------------------------


def pingpong_serve(listener):
    with listener.accept()[0] as sock:
        for size in (64, 1024, 16384):
            for _ in range(ROUNDS):
                whole(sock, size)
                put(sock, bytes(size))


def pingpong_ask(address):
    with socket.create_connection(address) as sock:
        for size in (64, 1024, 16384):
            for _ in range(ROUNDS):
                put(sock, bytes(size))
                whole(sock, size)


def stream_serve(listener):
    buffer = bytearray(65536)
    with listener.accept()[0] as sock:
        while sock.recv_into(buffer):
            pass


def stream_ask(address):
    with socket.create_connection(address) as sock:
        for size in (1024, 16384, 65536, 1 << 20):
            for _ in range(STREAM // max(size, 16384)):
                sock.sendall(bytes(size))


def connections_serve(listener):
    for _ in range(CONNECTIONS):
        with listener.accept()[0] as sock:
            put(sock, sock.recv(64))
            sock.recv(64)


def connections_ask(address):
    for _ in range(CONNECTIONS):
        with socket.create_connection(address) as sock:
            put(sock, ASK[:64])
            whole(sock, 64)


# --- event loops: a header and a file for each request --------------------------------------------


def answer(sock, file, size):
    sock.sendmsg([HEADER])
    at = 0
    while at < size:
        try:
            at += os.sendfile(sock.fileno(), file, at, size - at)
        except BlockingIOError:
            select.select([], [sock], [])


def events_serve(listener):
    with tempfile.TemporaryFile() as file, select.epoll() as epoll:
        file.write(bytes(max(FILE_SIZES)))
        file.flush()
        epoll.register(listener, select.EPOLLIN)
        socks, ended = {}, 0
        while ended < CLIENTS:
            for number, _ in epoll.poll():
                if number == listener.fileno():
                    sock = listener.accept()[0]
                    sock.setblocking(False)
                    socks[sock.fileno()] = sock
                    epoll.register(sock, select.EPOLLIN)
                    continue
                asked = socks[number].recv(1024)
                if asked:
                    answer(socks[number], file.fileno(), int(asked))
                    continue
                socks.pop(number).close()
                ended += 1


def events_ask(address):
    socks = [socket.create_connection(address) for _ in range(CLIENTS)]
    with select.epoll() as epoll:
        by_number = {sock.fileno(): sock for sock in socks}
        for sock in socks:
            sock.setblocking(False)
            epoll.register(sock, select.EPOLLIN)
        for size in FILE_SIZES:
            for _ in range(REQUESTS * 1024 // max(size // 8, 1024) // CLIENTS):
                left = dict.fromkeys(by_number, len(HEADER) + size)
                for sock in socks:
                    sock.send(str(size).encode())
                while left:
                    for number, _ in epoll.poll():
                        left[number] -= len(by_number[number].recv(8192))
                        if not left[number]:
                            del left[number]
    for sock in socks:
        sock.close()


# --- descriptors that are no sockets of ours: nothing may be lost there ---------------------------


def plain_serve(listener):
    listener.accept()[0].close()


def plain_ask(address):
    socket.create_connection(address).close()
    reader, writer = os.pipe()
    many = select.poll()
    for number in [os.dup(reader) for _ in range(200)]:
        many.register(number, select.POLLIN)
    one, ours = select.poll(), socket.socketpair()
    one.register(reader, select.POLLIN)
    for i in range(ROUNDS):
        os.write(writer, ASK)
        one.poll(0)
        os.read(reader, 1024)
        ours[0].send(ASK)
        ours[1].recv(1024)
        if not i % 100:
            many.poll(0)


PROGRAMS = {"pingpong": (pingpong_serve, pingpong_ask), "stream": (stream_serve, stream_ask),
            "connections": (connections_serve, connections_ask),
            "events": (events_serve, events_ask), "plain": (plain_serve, plain_ask)}


# --- both ends ------------------------------------------------------------------------------------


def serve(name, port):
    with socket.create_server((HOST, port)) as listener:
        print("ready", flush=True)
        PROGRAMS[name][0](listener)


def free_port():
    with socket.create_server((HOST, 0)) as sock:
        return sock.getsockname()[1]


def run(warpsock, name):
    """Returns what was wrong."""
    port = str(free_port())
    ours = [warpsock, "run", "--all", "--mode", "on", "--", sys.executable, __file__]
    server = subprocess.Popen([*ours, "serve", name, port], stdout=subprocess.PIPE, text=True)
    try:
        if not select.select([server.stdout], [], [], LIMIT)[0]:
            return f"{name}: no server after {LIMIT} s"
        server.stdout.readline()
        client = subprocess.run([*ours, "ask", name, port], timeout=LIMIT, check=False)
        if client.returncode or server.wait(LIMIT):
            return f"{name}: ended with {client.returncode} and {server.returncode}"
    except subprocess.TimeoutExpired:
        return f"{name}: not done after {LIMIT} s"
    finally:
        server.kill()
        server.wait()
    return None


def main():
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1:2] == ["ask"]:
        PROGRAMS[sys.argv[2]][1]((HOST, int(sys.argv[3])))
    elif len(sys.argv) == 2:
        warpsock = str(Path(sys.argv[1]).resolve())
        wrong = list(filter(None, (run(warpsock, name) for name in PROGRAMS)))
        sys.exit("\n".join(wrong) or None)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
