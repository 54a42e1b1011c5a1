#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Clients that ask a port mapper where a device's listener stands: mapper.py WARPSOCK

    client ---- far.py ---- the mapper, a server of DDP, a plain one, ports where nobody is

In mode auto a client whose way to the mapped port ends nowhere goes where its program said.
"""
import sys

from far import SERVER, main
from launch import Stage

WAY = 0.01  # seconds
DDP, PLAIN, NOBODY = 7000, 7001, 7002
ON_DDP, PEER_NOT_MPA, UNREACHABLE = 0, 100, 108
REFUSED = 111  # an errno
# Each port that a client names, and what the mapper says of it
MAPPED = {7010: DDP, 7011: NOBODY, 7012: PLAIN}

# Listens at each NAME:PORT, and tells the name
NAMES = """
import selectors, socket, sys
listeners = selectors.DefaultSelector()
for word in sys.argv[1:]:
    name, port = word.split(":")
    listeners.register(socket.create_server(("", int(port))), selectors.EVENT_READ, name)
print("ready", flush=True)
while True:
    for key, _ in listeners.select():
        with key.fileobj.accept()[0] as sock:
            try:
                sock.recv(5, socket.MSG_WAITALL)
                sock.sendall(key.data.encode())
                while sock.recv(100):
                    pass
            except ConnectionError:
                pass
"""
CLIENT = """
import socket, struct, sys
sock = socket.socket()
sock.settimeout(30 if sys.argv[3] == "polls" else None)
try:
    sock.connect((sys.argv[1], int(sys.argv[2])))
    sock.sendall(b"hello")
    print(sock.recv(100).decode(), end=" ")
except OSError as error:
    print(error.errno, end=" ")
print(struct.unpack_from("=III", sock.getsockopt(5041, 6, 256))[2])
"""
MAPPER = """
import socket, struct, sys
mapped = dict(tuple(map(int, word.split(":"))) for word in sys.argv[1:])
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", 3935))
print("ready", flush=True)
while True:
    m, peer = sock.recvfrom(100)
    if len(m) < 64:
        continue
    named = struct.unpack_from(">H", m, 4)[0]
    print("asked", named, flush=True)
    sock.sendto(bytes([m[0] | 0x10, 0]) + m[2:4] + struct.pack(">H", mapped[named]) + m[6:48], peer)
"""
# name, transport, the port that the program names, what it is told: who answered or why nobody did,
# and the reason
ROWS = (
    ("a listener that stands elsewhere, mode on", "ddp", 7010, f"ddp {ON_DDP}"),
    ("a listener that stands elsewhere, mode auto", "auto", 7010, f"ddp {ON_DDP}"),
    ("nobody is there, mode on", "ddp", 7011, f"{REFUSED} {UNREACHABLE}"),
    ("nobody is there, mode auto", "auto", 7011, f"named {UNREACHABLE}"),
    ("who is there speaks TCP, mode auto", "auto", 7012, f"named {PEER_NOT_MPA}"),
)


def meet(warpsock, far, row, here, how):
    _, transport, port, wanted = row
    with Stage(warpsock) as stage:
        status = stage.run("client", [sys.executable, "-c", CLIENT, SERVER, str(port), how],
                           rules=[f"{transport} client * {SERVER}:*"],
                           env={"WARPSOCK_PORT_MAPPER": "10s", "WARPSOCK_PROBE_TIMEOUT": "10s"},
                           preexec_fn=far.enter if here else None)
        said = stage.text("client").strip()
        if said == wanted and status == 0:
            return []
        return [f"{said}, not {wanted}; status {status}", stage.text("client", "err")]


def cases(warpsock, writer, far):
    with Stage(warpsock) as stage:
        programs = {
            "mapper": (MAPPER, [f"{port}:{to}" for port, to in MAPPED.items()], None),
            "ddp": (NAMES, [f"ddp:{DDP}"], "on"),
            "plain": (NAMES, [f"wrong:{PLAIN}", "named:7011", "named:7012"], None)}
        for name, (text, words, mode) in programs.items():
            stage.start(name, [sys.executable, "-c", text, *words], mode=mode,
                        preexec_fn=far.enter)
            stage.wait_text(name, "ready", 60)
        for row in ROWS:
            for here in (False, True):
                for how in ("waits", "polls"):
                    writer.case(f"{row[0]}, {'of this host' if here else 'far'}, {how}",
                                meet(warpsock, far, row, here, how))
        asked = sorted(stage.text("mapper").split()[2::2])
        writer.case("the mapper is asked once by each program",
                    [] if asked == sorted(str(row[2]) for row in ROWS for _ in range(4))
                    else [f"asked {asked}"])


main(WAY, cases)
