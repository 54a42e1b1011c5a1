# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Connections: how many a second, what an idle one keeps, and what processor time it takes."""
import contextlib
import json
import os
import resource
import subprocess
import time

import memory
from ends import cpu_of, free_port
from session import LESS, MORE, Figure

RATE = Figure("rate", "", "connections/s", MORE)
MOST = 20000  # of one run: ports of a client come again only after a second
KINDS = {"blocking": ("accept", "one after another, blocking"),
         "epoll": ("serve", "16 under way, epoll")}
ENDS = ("server", "client")


def place_of(session):
    return session.places.get("two") or session.places["one"]


def descriptors(session, measure, number):
    """Does the host allow so many? If not, that is told."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit >= number + 100:
        return True
    session.skip(measure, f"this host allows too few descriptors: {limit}")
    return False


def rate(session, place, kind, held, arm):
    """A server and a client for each run: a server's past would count."""
    port = free_port()
    server = session.ends.serve(arm, place, [
        session.tool("connections"), KINDS[kind][0], session.host, port,
        *([held] if kind == "blocking" else [])], port)
    most = max(int(MOST * min(session.scale.seconds, 1)), 200)
    done = session.ends.client(arm, place, [session.tool("connections"), kind, session.host, port,
                                            session.scale.seconds, most, held])
    session.ends.end(server)
    return {"rate": json.loads(done.text)["rate"]}


def connections(session):
    place = place_of(session)
    many = 100 if session.scale.short else 6000
    for held in (0, many):
        for kind, (_, title) in KINDS.items():
            name = title + (f", {held:,} open" if held else "")
            if session.wants(name) and descriptors(session, name, held):
                session.compare(name, place.title, [RATE],
                                lambda arm, kind=kind, held=held: rate(session, place, kind, held,
                                                                       arm))


# --- idle ones --------------------------------------------------------------------------------


@contextlib.contextmanager
def held(session, arm, place, server_port, number, rest, **kwargs):
    """A client with so many connections, which rests for a while."""
    args = [session.tool("connections"), "hold", session.host, server_port, number]
    with session.ends.beside(arm, place, args, stdin=subprocess.PIPE, **kwargs) as (proc, name):
        session.ends.until_said(proc, name, "ready")
        time.sleep(min(rest, session.scale.seconds * 10))
        yield proc


def open_files(proc):
    return len(os.listdir(f"/proc/{proc.pid}/fd"))


def memory_run(session, make, place, number, arm):
    """What both ends have with one connection and with many: the rest by how many more."""
    port = free_port()
    groups = [make() for _ in range(3)]
    found = {}
    try:
        server = session.ends.serve(arm, place, [session.tool("connections"), "serve", session.host,
                                                 port], port, inside=groups[0].join)
        for group, count in zip(groups[1:], (1, number + 1)):
            rest = 1 if count > 1 else 0.2
            with held(session, arm, place, port, count, rest, inside=group.join) as client:
                found[count] = [groups[0].bytes(server), group.bytes(client), open_files(server),
                                open_files(client)]
        session.ends.end(server)
    finally:
        session.ends.stop()
        for group in groups:
            group.end()
    more = [(b - a) / number for a, b in zip(found[1], found[number + 1])]
    return {"server": more[0] / 1024, "client": more[1] / 1024, "server fd": more[2],
            "client fd": more[3]}


def idle_memory(session):
    place = place_of(session)
    number = {"quick": 2000, "short": 50}.get(session.scale.name, 10000)
    make, how = memory.kind()
    session.notes[session.bench] = f"{number:,} connections, by {how}"
    figures = [Figure(end, end, "KiB", LESS, "value") for end in ENDS]
    figures += [Figure(f"{end} fd", f"{end}'s descriptors", "each", LESS, "value")
                for end in ENDS]
    if descriptors(session, "idle connection", number):
        session.compare("idle connection", place.title, figures,
                        lambda arm: memory_run(session, make, place, number, arm),
                        rounds=min(session.scale.rounds, 3))


def idle_run(session, place, number, arm):
    port = free_port()
    server = session.ends.serve(arm, place, [session.tool("connections"), "serve", session.host,
                                             port], port)
    seconds = 0.2 if session.scale.short else max(session.scale.seconds * 2, 1)
    with held(session, arm, place, port, number, 0.5) as client:
        before, begin = cpu_of(server.pid) + cpu_of(client.pid), time.monotonic()
        time.sleep(seconds)
        used = cpu_of(server.pid) + cpu_of(client.pid) - before
        seconds = time.monotonic() - begin
    session.ends.end(server)
    return {"share": used / seconds * 100}


def idle_cpu(session):
    place = place_of(session)
    number = 50 if session.scale.short else 1000
    name = f"{number:,} idle connections"
    if descriptors(session, name, number):
        session.compare(name, place.title, [Figure("share", "CPU of both ends", "% of a core", LESS,
                                                   "value")],
                        lambda arm: idle_run(session, place, number, arm))
