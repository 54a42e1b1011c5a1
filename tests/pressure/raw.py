#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Strangers: raw.py flood|stop|bad tcp|ddp PROTOCOL PORT [WORD]

They are never under the launcher. To a server on DDP they speak frames of their own, to one on TCP
plain bytes that cost it as much. As those of client.py they say "on", and end with their input.
"""
import random
import select
import socket
import struct
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "hostile"), str(HERE.parent), str(HERE.parent / "e2e")]
import flood as floods  # noqa: E402
import peer  # noqa: E402
from protocols import PROTOCOLS  # noqa: E402
from rawpeer import C, S, enhanced, frame  # noqa: E402

REQUEST = frame(peer.REQUEST, S | C, 2, enhanced(0, 1, peer.conn_data()))


def over(seconds=0):
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def discard(sock):
    try:
        while sock.recv(1 << 16):
            pass
    except OSError:
        pass


def plain(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def closed_by_reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


# --- floods: as many messages as go, with a question now and then so that nobody ends it ---------


def flood_ddp(protocol, port, kind):
    say = floods.KINDS[kind]
    p = floods.connected(port)
    threading.Thread(target=discard, args=(p.sock,), daemon=True).start()
    blank = p.at_once(lambda q: [say(q) for _ in range(floods.ROW)])
    while not over():
        p.sock.sendall(blank)
        p.sock.sendall(p.at_once(lambda q: q.say(protocol.question()[0])))
        if say is not floods.empty:
            blank = p.at_once(lambda q: [say(q) for _ in range(floods.ROW)])


def flood_tcp(protocol, port, _kind):
    sock = plain(port)
    threading.Thread(target=discard, args=(sock,), daemon=True).start()
    while not over():
        sock.sendall(b"".join(protocol.question()[0] for _ in range(500)))


def flood(arm, protocol, port, kind):
    print("on", flush=True)
    while not over():
        try:
            (flood_ddp if arm == "ddp" else flood_tcp)(protocol, port, kind)
        except (OSError, peer.Ended):
            pass  # it was ended, and comes again


# --- connections that stop ----------------------------------------------------------------------


def opened(port):
    return peer.Stream(plain(port)).open()


def begin(octets):
    def act(_protocol, port):
        sock = plain(port)
        sock.sendall(octets)
        return sock
    return act


def answered(_protocol, port):
    p = peer.Stream(plain(port))
    p.ask(S | C, 2, enhanced(0, 1, peer.conn_data()))
    return p.sock


def after(step):
    def act(protocol, port):
        p = opened(port)
        step(p, protocol)
        return p.sock
    return act


def asked(p, protocol):
    p.say(protocol.question()[0])


def half_fpdu(p, _protocol):
    p.sock.sendall(struct.pack(">H", 100) + bytes(30))


def write_alone(p, _protocol):
    p.write(b"x")


def shut(p, _protocol):
    p.message(peer.CTRL, peer.SHUTDOWN)


def disconnect(p, _protocol):
    p.message(peer.CTRL, peer.DISCONNECT)


def fin(p, _protocol):
    p.sock.shutdown(socket.SHUT_WR)


def quit_said(p, protocol):
    p.say(protocol.QUIT)


DDP_STATES = (begin(b""), begin(REQUEST[:8]), begin(REQUEST[:30]), begin(REQUEST), answered,
              after(lambda p, _: None), after(asked), after(half_fpdu), after(write_alone),
              after(quit_said), after(shut), after(disconnect), after(fin))


def plain_half(protocol, port):
    return begin(protocol.question()[0][:5])(protocol, port)


def plain_asked(protocol, port):
    return begin(protocol.question()[0])(protocol, port)


def plain_quit(protocol, port):
    return begin(protocol.QUIT)(protocol, port)


def plain_fin(protocol, port):
    sock = plain_asked(protocol, port)
    sock.shutdown(socket.SHUT_WR)
    return sock


TCP_STATES = (begin(b""), plain_half, plain_asked, plain_quit, plain_fin)


def stop(arm, protocol, port, number):
    """So many in all, each state as often"""
    states, socks = DDP_STATES if arm == "ddp" else TCP_STATES, []
    for index in range(int(number)):
        try:
            socks.append(states[index % len(states)](protocol, port))
        except (OSError, peer.Ended, ValueError):
            pass  # the server may refuse them
    print("on", flush=True)
    over(None)
    for index, sock in enumerate(socks):
        (closed_by_reset if index % 2 else socket.socket.close)(sock)


# --- clients that send what is no protocol ------------------------------------------------------


def bad(_arm, _protocol, port, pause):
    """Each would be a line in a log; with a pause, in seconds, between two."""
    choice = random.Random(1)
    for number in range(1 << 30):
        if number == 50:
            print("on", flush=True)
        try:
            with plain(port) as sock:
                sock.sendall(b"no such thing\r\n\r\n" + choice.randbytes(number % 60))
                if number % 2:
                    closed_by_reset(sock)
        except OSError:
            pass
        if over(float(pause)):
            break


KINDS = {"flood": flood, "stop": stop, "bad": bad}


def main():
    kind, arm, protocol, port, word = (sys.argv[1:] + [""])[:5]
    KINDS[kind](arm, PROTOCOLS[protocol], int(port), word)


if __name__ == "__main__":
    main()
