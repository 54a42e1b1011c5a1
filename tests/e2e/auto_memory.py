#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a client in mode auto remembers of its peers, and for how long.

    auto_memory.py WARPSOCK

A plain peer gets one Request while what is known of it is remembered, and another one behind that;
a peer that has answered one is asked without any other reason, as long as that is remembered.
"""
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import Stage, free_port  # noqa: E402

REQUEST = b"MPA ID Req Frame"
NAMES = 4  # of a listener, preload/rules/host.c
ON_DDP, PEER_UNKNOWN, PEER_KNOWN_PLAIN, PEER_NOT_MPA = 0, 4, 5, 100
# Connects once for each line that it reads, and says what DDP_INFO gives as a reason
CLIENT = """
import socket, struct, sys
for line in sys.stdin:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as sock:
        sock.sendall(b"hello")
        if sock.recv(5, socket.MSG_WAITALL) != b"hello":
            sys.exit("something else came back")
        print(struct.unpack_from("=III", sock.getsockopt(5041, 6, 256))[2], flush=True)
"""
SERVER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("ready", flush=True)
while True:
    with listener.accept()[0] as conn:
        while data := conn.recv(100):
            conn.sendall(data)
"""


class Client:
    def __init__(self, stage, port, rule, **env):
        self.stage, self.said = stage, 0
        self.proc = stage.start("client", [sys.executable, "-c", CLIENT, port], rules=[rule],
                                stdin=subprocess.PIPE, env=env)

    def connect(self):
        """The reason of one connection more."""
        self.proc.stdin.write(b"go\n")
        self.proc.stdin.flush()
        self.said += 1
        end = time.monotonic() + 60
        while self.stage.text("client").count("\n") < self.said:
            if time.monotonic() > end or self.proc.poll() is not None:
                return self.stage.text("client", "err")
            time.sleep(0.01)
        return int(self.stage.text("client").split()[-1])


class Plain:
    """Echoes, and counts Requests."""

    def __init__(self):
        self.requests = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = str(self.listener.getsockname()[1])
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            with self.listener.accept()[0] as conn:
                try:
                    while data := conn.recv(65536):
                        self.requests += data.startswith(REQUEST)
                        conn.sendall(data)
                except ConnectionResetError:
                    pass  # behind a Request


def plain(warpsock, life, wait, wanted):
    with Stage(warpsock) as stage:
        server = Plain()
        client = Client(stage, server.port, f"auto client * 127.0.0.1:{server.port}",
                        WARPSOCK_FORGET_PLAIN=life, WARPSOCK_PROBE_TIMEOUT="30s")
        said = []
        for pause in wait:
            time.sleep(pause)
            said.append(client.connect())
        if said != wanted or server.requests != wanted.count(PEER_NOT_MPA):
            return [f"{said}, not {wanted}, and {server.requests} Requests"]
    return []


def names(port):
    """Somebody on this host who says that he serves it, so that the server itself cannot."""
    socks = []
    for number in range(NAMES):
        socks.append(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        socks[-1].bind(f"\0warpsock/listen/127.0.0.1/{port}/{number}")
    return socks


def spoken(warpsock, life, pause, wanted):
    port = str(free_port())
    with Stage(warpsock) as stage:
        reason = names(port)
        stage.start("server", [sys.executable, "-c", SERVER, port], mode="auto")
        stage.wait_text("server", "ready", 60)
        client = Client(stage, port, "auto client * *:*", WARPSOCK_FORGET_DDP=life,
                        WARPSOCK_PROBE_TIMEOUT="30s")
        said = [client.connect()]
        for sock in reason:
            sock.close()
        time.sleep(pause)
        said.append(client.connect())
    return [] if said == [ON_DDP, wanted] else [f"{said}, not {[ON_DDP, wanted]}"]


def main():
    warpsock, writer = os.path.abspath(sys.argv[1]), tap.Writer()
    writer.case("a plain peer gets one Request", plain(
        warpsock, "86400s", [0] * 20, [PEER_NOT_MPA] + [PEER_KNOWN_PLAIN] * 19))
    writer.case("and another when it is forgotten", plain(
        warpsock, "1s", [0, 3, 3], [PEER_NOT_MPA] * 3))
    writer.case("a peer that has spoken it is asked again", spoken(warpsock, "86400s", 0, ON_DDP))
    writer.case("until it is forgotten", spoken(warpsock, "1s", 3, PEER_UNKNOWN))
    writer.finish()


if __name__ == "__main__":
    main()
