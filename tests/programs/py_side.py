#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers and clients of Python's standard library, unaware of where their octets go.

    py_side.py http PORT                    http.server with threads, of this folder, and PUT
    py_side.py fetch PORT TASKS NAME..      urllib in threads
    py_side.py get PORT CLIENTS NAME..      asyncio clients of it, all at once
    py_side.py echo PORT                    an asyncio server
    py_side.py talk PORT CLIENTS TEXT       asyncio clients, all at once
    py_side.py lines PORT / say PORT TEXT   socketserver, socket.makefile and selectors
    py_side.py leave PORT TEXT              ends while a thread of its is in recv()

What a client got is compared by SHA-256 or as text; servers end by SIGTERM. They are at SERVE_AT of
the environment, or at 127.0.0.1.
"""
import asyncio
import hashlib
import http.client
import http.server
import os
import selectors
import signal
import socket
import socketserver
import struct
import sys
import threading
import time

HOST = os.environ.get("SERVE_AT", "127.0.0.1")
SIZES = (1, 1000, 65537, 1 << 20, 3_000_000)


def serve_until_told(server):
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    with server:
        server.serve_forever()


# --- http ---------------------------------------------------------------------------------------


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self):
        octets = self.rfile.read(int(self.headers["Content-Length"]))
        answer = hashlib.sha256(octets).hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64  # so that none of many who ask at once has to ask again


def http_server(port):
    serve_until_told(Server((HOST, int(port)), Handler))


def fetch_all(port, names):
    """Over one connection: GET each, and PUT it back."""
    link = http.client.HTTPConnection(HOST, int(port), timeout=30)
    for name in names:
        with open(name, "rb") as file:
            octets = file.read()
        link.request("GET", f"/{name}")
        if link.getresponse().read() != octets:
            raise SystemExit(f"GET {name}: other octets")
        link.request("PUT", f"/{name}", octets)
        if link.getresponse().read().decode() != hashlib.sha256(octets).hexdigest():
            raise SystemExit(f"PUT {name}: other octets")
    link.close()


def fetch(port, tasks, *names):
    failed = []

    def task():
        try:
            fetch_all(port, names)
        except BaseException as error:  # noqa: a thread's error is this program's
            failed.append(repr(error))

    threads = [threading.Thread(target=task) for _ in range(int(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit("\n".join(failed) or 0)


# --- asyncio ------------------------------------------------------------------------------------


async def echo_one(reader, writer):
    while octets := await reader.read(50000):
        writer.write(octets)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def echo_until_told(port):
    server = await asyncio.start_server(echo_one, HOST, int(port))
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    async with server:
        await told.wait()


def echo(port):
    asyncio.run(echo_until_told(port))


async def send(writer, octets):
    writer.write(octets)
    await writer.drain()
    writer.write_eof()


async def talk_one(port, number, text):
    octets = text.encode() + os.urandom(SIZES[number % len(SIZES)])
    reader, writer = await asyncio.open_connection(HOST, int(port))
    sending = asyncio.create_task(send(writer, octets))
    got = await reader.read(-1)
    await sending
    writer.close()
    await writer.wait_closed()
    if hashlib.sha256(got).digest() != hashlib.sha256(octets).digest():
        raise SystemExit(f"client {number}: {len(got)} octets of {len(octets)}, or others")


async def talk_all(port, clients, text):
    await asyncio.wait_for(asyncio.gather(*(talk_one(port, number, text)
                                            for number in range(int(clients)))), 50)


def talk(port, clients, text):
    asyncio.run(talk_all(port, clients, text))


async def get_one(port, name):
    """To the end of the connection, which the server closes."""
    reader, writer = await asyncio.open_connection(HOST, int(port))
    writer.write(f"GET /{name} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
    head, _, octets = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    with open(name, "rb") as file:
        wanted = hashlib.sha256(file.read()).digest()
    if not head.startswith(b"HTTP/1.1 200 ") or hashlib.sha256(octets).digest() != wanted:
        raise SystemExit(f"GET {name}: {len(octets)} octets, or others; {head[:30]}")


async def get_all(port, clients, names):
    await asyncio.wait_for(asyncio.gather(*(get_one(port, names[number % len(names)])
                                            for number in range(int(clients)))), 50)


def get(port, clients, *names):
    asyncio.run(get_all(port, clients, names))


# --- sockets as files, and selectors ------------------------------------------------------------


class Lines(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(line[::-1].lstrip(b"\n") + b"\n")


class LinesServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = False


def lines(port):
    serve_until_told(LinesServer((HOST, int(port)), Lines))


def say(port, text):
    with selectors.DefaultSelector() as selector, \
            socket.create_connection((HOST, int(port)), 30) as sock:
        file = sock.makefile("rw")
        selector.register(sock, selectors.EVENT_READ)
        for number in range(1000):
            line = f"{text} {number}"
            print(line, file=file, flush=True)
            if not selector.select(30):
                raise SystemExit(f"line {number}: no answer")
            if file.readline() != line[::-1] + "\n":
                raise SystemExit(f"line {number} comes back as another")
        file.close()


def leave(port, text):
    sock = socket.create_connection((HOST, int(port)), 30)
    sock.sendall(f"{text}\n".encode())
    sock.recv(1000)
    sock.settimeout(None)
    threading.Thread(target=sock.recv, args=(1,), daemon=True).start()
    time.sleep(0.2)  # the thread has nobody to tell that it sleeps


# --- a server that dies behind its first answer -------------------------------------------------


def reset(port):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with socket.create_server((HOST, int(port))) as server:
        while True:
            sock, _ = server.accept()
            sock.recv(1000)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(b"+OK\r\n")
            sock.close()


if __name__ == "__main__":
    {"http": http_server, "fetch": fetch, "get": get, "echo": echo, "talk": talk,
     "lines": lines, "say": say, "leave": leave, "reset": reset}[sys.argv[1]](*sys.argv[2:])
