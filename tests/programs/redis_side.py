#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What redis has acknowledged, it has to have.

    redis_side.py write PORT FILE    SETs over several connections until each of them has ended;
                                     FILE is how many of each have been answered
    redis_side.py read PORT FILE     are these there, as they were written?
"""
import random
import socket
import sys
import threading
import time
from pathlib import Path

CONNECTIONS = 4
AT_ONCE = 16
OK = b"+OK\r\n"
LIMIT = 60


def value_of(connection, number):
    """From some octets to some segments of them."""
    draw = random.Random(connection << 32 | number)
    return draw.randbytes(draw.choice((1, 30, 400, 6000))) + b"%d:%d" % (connection, number)


def key_of(connection, number):
    return b"own:%d:%d" % (connection, number)


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word)
                                              for word in words)


def write_one(port, connection, answered):
    """Some at once, and more when all of them are answered."""
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as sock:
        said, begun = b"", 0
        try:
            while True:
                numbers = range(begun, begun + AT_ONCE)
                sock.sendall(b"".join(command(b"SET", key_of(connection, number),
                                              value_of(connection, number)) for number in numbers))
                begun += AT_ONCE
                while len(said) < len(OK) * begun:
                    octets = sock.recv(4096)
                    if not octets:
                        return
                    said += octets
                    answered[connection] = len(said) // len(OK)
        except ConnectionError:
            pass
        finally:
            if said[:len(said) // len(OK) * len(OK)] != OK * answered[connection]:
                answered[connection] = -1


def write(port, path):
    answered = [0] * CONNECTIONS
    threads = [threading.Thread(target=write_one, args=(port, i, answered))
               for i in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    while min(answered) <= 0 and any(thread.is_alive() for thread in threads):
        time.sleep(0.01)
    print("all write", flush=True)
    for thread in threads:
        thread.join()
    path.write_text(" ".join(map(str, answered)))
    print("answered:", *answered)
    return 0 if min(answered) > 0 else 1


def read(port, path):
    lost = []
    with socket.create_connection(("127.0.0.1", port), timeout=LIMIT) as sock:
        file = sock.makefile("rwb")
        for connection, answered in enumerate(map(int, path.read_text().split())):
            for number in range(answered):
                file.write(command(b"GET", key_of(connection, number)))
                file.flush()
                size = int(file.readline()[1:])
                got = file.read(size + 2)[:-2] if size >= 0 else None
                if got != value_of(connection, number):
                    lost.append(key_of(connection, number).decode())
    print("lost:", *lost[:9]) if lost else print("all is there")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit({"write": write, "read": read}[sys.argv[1]](int(sys.argv[2]), Path(sys.argv[3])))
