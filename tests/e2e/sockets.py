#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that wait in every way there is echo octets over DDP, and their contents are compared.

    sockets.py WARPSOCK ECHO
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage, differences, report_of  # noqa: E402

MODES = ("blocking", "poll", "select", "epoll-lt", "epoll-et")
# Octets on each connection, connections: around an FPDU, half a ring and a ring
LOADS = ((1, 1), (1000, 3), (32749, 2), (65537, 2), (262144, 1), (262145, 2), (524288, 1),
         (524289, 1), (1000000, 2), (300000, 30), (8000000, 4))
DRIPS = (1, 4096, 131072, 524288, 524289, 2000000)

# Connects to itself, and accepts when WARPSOCK_START has long been over
LATE = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
client.sendall(b"early, ")
time.sleep(1)
client.sendall(b"late")
server = listener.accept()[0]
print(server.recv(11, socket.MSG_WAITALL).decode())
"""


def problems_of(stage, names, statuses):
    return [f"{name} ended with {status}: {stage.text(name, 'err')}"
            for name, status in zip(names, statuses) if status]


def echo(warpsock, program, mode, octets, parallel):
    with Stage(warpsock) as stage:
        server = stage.start("serve", [program, "serve", mode, str(parallel)])
        port = stage.wait_text("serve").strip()
        client = stage.run("talk", [program, "talk", port, str(octets), str(parallel)], limit=30)
        problems = problems_of(stage, ("talk", "serve"), (client, stage.end(server, 10)))
        wanted = report_of(parallel, octets * parallel, octets * parallel)
        for name in ("talk", "serve"):
            problems += differences(stage.report(name), wanted)
    return problems


def drip(warpsock, program, octets):
    """The writer closes and exits at once; the reader takes its time and gets everything."""
    with Stage(warpsock) as stage:
        reader = stage.start("drip", [program, "drip", "1"])
        port = stage.wait_text("drip").strip()
        writer = stage.run("push", [program, "push", port, str(octets)])
        problems = problems_of(stage, ("push", "drip"), (writer, stage.end(reader)))
        said = stage.text("drip").splitlines()[-1]
        if said != f"{octets} end":
            problems.append(f"the reader got: {said}")
    return problems


def late(warpsock):
    with Stage(warpsock) as stage:
        stage.run("late", [sys.executable, "-c", LATE], env={"WARPSOCK_START": "100ms"})
        said = stage.text("late").strip()
        problems = [] if said == "early, late" else [f"{said!r}: {stage.text('late', 'err')}"]
        return problems + differences(stage.report("late"), report_of(2, 11, 11))


def main():
    warpsock, program = sys.argv[1], os.path.abspath(sys.argv[2])
    writer = tap.Writer()
    for mode in MODES:
        for octets, parallel in LOADS:
            writer.case(f"{mode}: {parallel} connections echo {octets} octets each",
                        echo(warpsock, program, mode, octets, parallel))
    for octets in DRIPS:
        writer.case(f"{octets} octets survive close and exit of their writer",
                    drip(warpsock, program, octets))
    writer.case("who connects to itself may accept when WARPSOCK_START is over", late(warpsock))
    writer.finish()


if __name__ == "__main__":
    main()
