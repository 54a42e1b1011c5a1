#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-list with itself over loopback.

    list.py WARP-LIST
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "e2e")]
import tap  # noqa: E402
from example import Server, finish, run, start  # noqa: E402

LIST = sys.argv[1]
HOST = "127.0.0.1"


def args(server, verb, *words):
    return [LIST, verb, "-a", HOST, "-p", server.port, *words]


def values(text):
    return re.findall(r"^(one-sided|active) +value (\d+), [\d.]+ us$", text, re.M)


def command_line(writer):
    writer.case("--help", run(LIST, "--help").problems(0, None))
    writer.case("--version", run(LIST, "--version").problems())
    for words, complaint in (((), "one of serve"), (("take",), "one of serve"),
                             (("walk",), "-a is needed"), (("serve", "x"), "too many"),
                             (("serve", "-n", "1"), "no value"), (("walk", "-k", "x"), "no value")):
        writer.case(f"refused: {' '.join(words) or 'nothing'}",
                    run(LIST, *words).problems(2, "", complaint))


def walks(writer, server):
    for hops in (0, 1, 64, 99):
        done = run(*args(server, "walk", "-k", str(hops), "-r", "3"))
        found = values(done.out)
        writer.case(f"{hops} hops", done.problems() + (
            [] if found == [("one-sided", str(hops)), ("active", str(hops))] else [done.out]))
    writer.case("past the end", run(*args(server, "walk", "-k", "100")).problems(3))


def appends(writer, server):
    done = [start(*args(server, "append", "-v", "7", "-r", "50")) for _ in range(4)]
    writer.case("four append at once", [p for d in done for p in finish(d).problems()])
    done = run(*args(server, "append", "-v", "8"))
    writer.case("all of them are there", done.problems(0, "the new node is 300 hops away\n"))
    done = run(*args(server, "walk", "-k", "300", "-r", "1"))
    writer.case("and can be read in both ways", [] if values(done.out) == [
        ("one-sided", "8"), ("active", "8")] else [done.out, done.err])


def main():
    writer = tap.Writer()
    command_line(writer)
    with Server(LIST, "serve", "-a", HOST, "-p", "0", "-n", "100") as server:
        walks(writer, server)
        appends(writer, server)
        writer.case("the server ends by a signal", server.stop().problems())
    writer.finish()


if __name__ == "__main__":
    main()
