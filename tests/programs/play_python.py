# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""python: http.server and http.client in threads, asyncio streams, socketserver, selectors."""
import signal

from play import HERE

NEEDS = ("python3",)
VERSION = ("python3", "--version")
ASKED = {"PROBE_TIMEOUT", "PEER_NOT_MPA"}  # some wait for an end of line
SIDE = HERE / "py_side.py"
FILES = {"empty": 0, "small": 1000, "medium": 1_000_000, "large": 10_000_000}


def side(*args):
    return ["python3", SIDE, *args]


def pair(play, server, clients):
    """A server and its clients, of which the first is watched on the wire."""
    port = play.port()
    proc = play.serve(server, side(server, port), port)
    with play.wire(server, port):
        play.case(f"{clients[0][0]} with the marker", play.client(
            f"{server}-0", side(clients[0][0], port, *clients[0][1:])))
    for number, (verb, *args) in enumerate(clients[1:], 1):
        play.case(f"{verb} {number}", play.client(f"{server}-{number}", side(verb, port, *args)))
    play.stop(server, proc)
    play.balance(server, [f"{server}-{number}" for number in range(len(clients))])


def module(play):
    """The module as it stands, with curl's like of the library."""
    port = play.port()
    proc = play.serve("http.server", ["python3", "-m", "http.server", "--bind", "127.0.0.1",
                                      port], port)
    script = ("import hashlib, sys, urllib.request as u; "
              "print(hashlib.sha256(u.urlopen(sys.argv[1]).read()).hexdigest())")
    problems = play.client("urllib", ["python3", "-c", script, f"http://127.0.0.1:{port}/large"])
    play.case("python3 -m http.server and urllib", problems + play.says(
        "urllib", play.digest("large")))
    play.stop("http.server", proc, signal.SIGINT)


def play(play):
    for name, size in FILES.items():
        play.blob(name, play.some(size, 0))
    (play.dir / play.marker).write_text(play.marker)
    pair(play, "http", [("fetch", "2", play.marker, "small"), ("fetch", "8", *FILES),
                         ("get", "50", *FILES)])
    pair(play, "echo", [("talk", "2", play.marker), ("talk", "50", play.marker)])
    pair(play, "lines", [("say", play.marker), ("say", "again"), ("leave", "word")])
    module(play)
