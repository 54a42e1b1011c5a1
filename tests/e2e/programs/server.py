#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An echo server that knows nothing of DDP; prints its port.

    server.py HOST CONNECTIONS [greeting SECONDS]

With a greeting it speaks first, so many seconds after it has accepted.
"""
import socket
import struct
import sys
import time

LIMIT = 30


def reason(sock):
    """Of DDP_INFO; None: this is a plain socket of a plain process."""
    try:
        return struct.unpack_from("=III", sock.getsockopt(5041, 6, 256))[2]
    except OSError:
        return None


def serve(conn, greeting):
    conn.settimeout(LIMIT)
    if greeting is not None:
        time.sleep(greeting)
        conn.sendall(b"welcome\n")
        print("reason", reason(conn), flush=True)
    while data := conn.recv(65536):
        conn.sendall(data)


def main():
    host, connections = sys.argv[1], int(sys.argv[2])
    greeting = float(sys.argv[4]) if len(sys.argv) > 3 else None
    listener = socket.create_server((host, 0),
                                    family=socket.AF_INET6 if ":" in host else socket.AF_INET,
                                    dualstack_ipv6=host == "::")
    listener.settimeout(LIMIT)
    print(listener.getsockname()[1], flush=True)
    for _ in range(connections):
        conn = listener.accept()[0]
        with conn:
            try:
                serve(conn, greeting)
            except OSError as error:
                print(error, flush=True)


if __name__ == "__main__":
    main()
