# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""node: its HTTP server, and clients that keep their connections, files in both directions."""
from play import HERE

NEEDS = ("node",)
VERSION = ("node", "--version")
# libuv from 1.45 on makes rings of io_uring then, and goes on without when it gets none
RINGS = {"UV_USE_IO_URING": "1"}
FILES = {"empty": 0, "small": 1000, "medium": 1_000_000, "large": 10_000_000}


def play(play):
    script = HERE / "http.js"
    for name, size in FILES.items():
        play.blob(name, play.some(size, 0))
    (play.dir / play.marker).write_text(play.marker * 10)
    port = play.port()
    server = play.serve("server", ["node", script, "serve", port], port, env=RINGS)
    with play.wire("node", port):
        problems = play.client("marker", ["node", script, "fetch", port, play.marker])
    play.case("a page there and back", problems + play.says("marker", play.digest(play.marker)))
    problems = play.client("many", ["node", script, "fetch", port, *FILES], env=RINGS)
    for name in FILES:
        problems += play.says("many", f"{name} {play.digest(name)}")
    play.case("files there and back", problems)
    play.stop("server", server)
