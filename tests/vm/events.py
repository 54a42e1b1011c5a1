#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of one thread that the lab needs besides stream.py.

    events.py serve ADDR PORT CONNECTIONS     echoes, by epoll
    events.py talk ADDR PORT CONNECTIONS PROVIDER
        all at once, by epoll; the octets that come back are compared, and the provider and the
        peer's name are what they should be
    events.py fork ADDR PORT                  a child serves one connection
    events.py bound ADDR PORT FROM            a client that has bound a port before
    events.py chosen                          listens where the kernel says, and connects there
    events.py asks ADDR PORT MTU              a client that asks what its connection is like
"""
import asyncio
import os
import random
import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from answers import answers  # noqa: E402

SOL_DDP, DDP_INFO = 5041, 6
OCTETS = 150000
ESTABLISHED = 1  # of TCP_INFO


async def echo(reader, writer):
    while octets := await reader.read(30000):
        writer.write(octets)
        await writer.drain()
    writer.close()
    await writer.wait_closed()


async def serve(addr, port, connections):
    done = []

    async def one(reader, writer):
        await echo(reader, writer)
        done.append(writer)
        if len(done) == connections:
            server.close()

    server = await asyncio.start_server(one, addr, port)
    async with server:
        while len(done) < connections:
            await asyncio.sleep(0.1)


async def talk_one(addr, port, number, provider):
    sent = random.Random(number).randbytes(OCTETS)
    reader, writer = await asyncio.open_connection(addr, port)
    sock = writer.get_extra_info("socket")
    info = sock.getsockopt(SOL_DDP, DDP_INFO, 512)
    assert provider.encode() + b"\0" in info, info
    assert sock.getpeername()[:2] == (addr, port), sock.getpeername()
    assert sock.getsockname()[0], sock.getsockname()
    state = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    assert state == ESTABLISHED, state
    writer.write(sent)
    got = await reader.readexactly(OCTETS)
    writer.write_eof()
    assert got == sent and not await reader.read(1)
    writer.close()
    await writer.wait_closed()


async def talk(addr, port, connections, provider):
    await asyncio.gather(*(talk_one(addr, port, i, provider) for i in range(connections)))


def fork(addr, port):
    with socket.create_server((addr, port)) as listener:
        child = os.fork()
        if not child:
            peer, _ = listener.accept()
            with peer:
                while octets := peer.recv(10000):
                    peer.sendall(octets)
            sys.exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def exchange(sock):
    sock.sendall(b"octets")
    assert sock.recv(6, socket.MSG_WAITALL) == b"octets"


def bound(addr, port, own):
    with socket.create_connection((addr, port), source_address=(own, port)) as sock:
        exchange(sock)
        assert sock.getsockname()[1] == port
    return 0


def chosen():
    with socket.socket() as listener:
        listener.listen()
        with socket.create_connection(("127.0.0.1", listener.getsockname()[1])) as sock:
            peer, _ = listener.accept()
            with peer:
                sock.sendall(b"x")
                return 0 if peer.recv(1) == b"x" else 1


def asks(addr, port, mtu):
    with socket.create_connection((addr, port)) as sock:
        answers(sock, mtu)
        exchange(sock)
        answers(sock, mtu)
    return 0


def main(what, addr="", port=0, *rest):
    if what == "chosen":
        return chosen()
    if what == "bound":
        return bound(addr, int(port), rest[0])
    if what == "asks":
        return asks(addr, int(port), int(rest[0]))
    if what == "fork":
        return fork(addr, int(port))
    if what == "serve":
        asyncio.run(serve(addr, int(port), int(rest[0])))
    else:
        asyncio.run(talk(addr, int(port), int(rest[0]), rest[1]))
    return 0


sys.exit(main(*sys.argv[1:]))
