# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""java: the JDK's HTTP server and client, and a selector's echo, each with threads of its own."""
import shutil
import subprocess

from play import HERE

NEEDS = ("java", "javac")
VERSION = ("java", "-version")
ASKED = {"PROBE_TIMEOUT", "PEER_NOT_MPA"}  # it answers once there is an end of line
FILES = {"empty": 0, "small": 1000, "medium": 1_000_000, "large": 10_000_000}


def java(*args):
    return ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", ".", "Http", *args]


def play(play):
    shutil.copy(HERE / "Http.java", play.dir)
    subprocess.run(["javac", "-d", play.dir, play.dir / "Http.java"], check=True, timeout=120)
    for name, size in FILES.items():
        play.blob(name, play.some(size, 0))
    (play.dir / play.marker).write_text(play.marker * 10)
    port, echo = play.port(), play.port()
    server = play.serve("server", java("serve", port, echo), port, echo)
    with play.wire("java", port):
        problems = play.client("marker", java("fetch", port, play.marker))
    play.case("a page", problems + play.says("marker", play.digest(play.marker)))
    problems = play.client("many", java("fetch", port, *FILES, *FILES))
    for name in FILES:
        problems += play.says("many", f"{name} {play.digest(name)}")
    play.case("files, all at once", problems)
    problems = play.client("echo", java("echo", echo, "large"))
    play.case("there and back by a selector", problems + play.says("echo", "the same"))
    play.stop("server", server, statuses=(143,))
