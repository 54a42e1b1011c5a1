# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What carries the native API's bytes: system calls of TCP against io_uring.

The arms are values of WARPSOCK_CARRIER, and none of them needs the launcher.
"""
import json

from arms import BASE, Arm
from connections import descriptors, place_of
from ends import free_port
from message import named
from session import LESS, MORE, Figure

URING = Arm("uring", "io_uring", env={"WARPSOCK_CARRIER": "uring"})
KINDS = ("send", "write")
NUMBERS = {"short": (1, 8)}
SIZES = {"short": (64, 65536)}
FIGURES = [
    Figure("rate", "", "requests/s", MORE),
    Figure("server", "CPU of the server", "us a request", LESS),
    Figure("client", "CPU of the client", "us a request", LESS),
]


def one_run(session, place, kind, number, size, arm):
    port = free_port()
    server = session.ends.serve(arm, place, [session.tool("native"), "serve", kind, session.host,
                                             port, number, size], port)
    found = json.loads(session.ends.client(arm, place, [
        session.tool("native"), kind, session.host, port, number, size, session.scale.seconds,
        server.pid]).text)
    session.ends.end(server)
    done = found["requests"]
    return {"rate": done / found["seconds"],
            **{end: found[f"cpu_{end}"] / done * 1e6 for end in ("server", "client")}}


def carriers(session):
    place = place_of(session)
    session.beside = [URING]
    session.notes[session.bench] = (
        "both columns are the native API: by system calls, and by WARPSOCK_CARRIER=uring")
    for kind in KINDS:
        for number in NUMBERS.get(session.scale.name, (1, 64, 1000)):
            for size in SIZES.get(session.scale.name, (64, 65536, 1 << 20)):
                name = f"{kind} of {named(size)}, {number:,} connection{'s' * (number > 1)}"
                if descriptors(session, name, 4 * number):
                    session.compare(name, place.title, FIGURES,
                                    lambda arm, kind=kind, number=number, size=size:
                                    one_run(session, place, kind, number, size, arm),
                                    [BASE, URING])
