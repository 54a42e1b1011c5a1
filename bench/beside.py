# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What others have to bear: a third program beside two that talk, calls that are not ours, and
the instructions of calls that are."""
import json
import re
import time

from ends import Failed, free_port
from session import LESS, MORE, Figure

CALLS = ("read", "write", "recv", "poll")
SETS = ("poll of 1,000", "epoll_wait of 1,000")
THIRD = "a third program beside two that ping-pong"
FEW, MANY = 100, 1100  # calls of two runs; their difference is free of what happens once


def third_run(session, pair, everywhere, arm):
    """The third program may use both processors, and is never under the launcher."""
    port = free_port()
    # It wakes a thousand times a second: fewer have no p99 to speak of
    seconds = 0.1 if session.scale.short else max(session.scale.seconds, 1)
    server = session.ends.serve(arm, pair, [session.tool("message"), "serve", session.host, port],
                                port)
    args = [session.tool("message"), "pingpong", session.host, port, 64, seconds + 60]
    with session.ends.beside(arm, pair, args):
        time.sleep(min(seconds, 0.3))  # until it is in its stride
        done = session.ends.client(None, everywhere, [session.tool("third"), seconds])
    session.ends.end(server)
    found = json.loads(done.text)
    return {"share": found["share"] * 100, "work": found["work"] / 1000,
            "p99": dict(map(tuple, found["late"]))[0.99]}


def third(session):
    if "two" not in session.places:
        session.skip(THIRD, "this machine has one processor")
        return
    figures = [Figure("share", "its share", "% of a core", MORE),
               Figure("work", "its work", "k/s", MORE),
               Figure("p99", "p99 of how late it wakes", "us", LESS)]
    places = session.places
    session.compare(THIRD, places["two"].title, figures,
                    lambda arm: third_run(session, places["two"], places["free"], arm))


def passthrough(session):
    """Calls on descriptors that are not sockets, by a program that has no connection at all."""
    place = session.places.get("two") or session.places["one"]
    figures = [Figure(name, f"{name}()", "ns", LESS, "difference") for name in CALLS]
    figures += [Figure(name, name.replace(" of", "() of"), "ns", LESS) for name in SETS]

    def one(arm):
        seconds = max(session.scale.seconds, 0.1)
        return json.loads(session.ends.client(arm, place, [session.tool("calls"), "plain", seconds],
                                              judged=False).text)
    session.compare("plain descriptors", place.title, figures, one)


def counted(session, place, arm, kind, number):
    """Instructions of a whole run of the client."""
    port = free_port()
    server = session.ends.serve(arm, place, [session.tool("calls"), "serve", session.host, port],
                                port)
    out = session.ends.folder / "callgrind.out"
    session.ends.client(arm, place, ["valgrind", "--tool=callgrind",
                                     f"--callgrind-out-file={out}", session.tool("calls"), kind,
                                     session.host, port, number])
    session.ends.end(server)
    found = re.search(r"^summary: (\d+)", out.read_text(), re.M)
    if not found:
        raise Failed("callgrind told no sum")
    return int(found[1])


def instructions(session):
    """Nearly the same in each run: one round. Arms differ in their waits, which are not seen."""
    place = session.places.get("two") or session.places["one"]
    figures = [Figure("count", "", "instructions", LESS, "difference")]
    arms = [arm for arm in session.arms if arm.key in ("tcp", "ddp")]
    for kind in ("write",) if session.scale.short else ("write", "read"):
        def one(arm, kind=kind):
            runs = [counted(session, place, arm, kind, number) for number in (FEW, MANY)]
            return {"count": (runs[1] - runs[0]) / (MANY - FEW)}
        session.compare(f"{kind}() of 64 B", place.title, figures, one, arms, rounds=1)
