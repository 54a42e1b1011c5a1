#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-hash with itself over loopback: the same table by RDMA alone and by a program.

    hash.py WARP-HASH
"""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "e2e")]
import tap  # noqa: E402
from example import Server, finish, run, start  # noqa: E402

HASH = sys.argv[1]
HOST = "127.0.0.1"
WAYS = {"one-sided": ["-1"], "active": []}


def args(server, verb, way, *words):
    return [HASH, verb, "-a", HOST, "-p", server.port, *WAYS[way], *words]


def command_line(writer):
    writer.case("--help", run(HASH, "--help").problems())
    writer.case("--version", run(HASH, "--version").problems())
    for words, complaint in (((), "one of serve"), (("take", "x"), "one of serve"),
                             (("get", "x"), "-a is needed"), (("serve", "x"), "too many"),
                             (("get", "-a", HOST, ""), "a key has"),
                             (("get", "-a", HOST, "k" * 48), "a key has"),
                             (("put", "-a", HOST, "k", "x"), "a number"),
                             (("serve", "-n", "0"), "no value")):
        writer.case(f"refused: {' '.join(words)[:30] or 'nothing'}",
                    run(HASH, *words).problems(2, "", complaint))


def both_ways(writer, server):
    for put in WAYS:
        for get in WAYS:
            key = f"{put}/{get}"
            problems = run(*args(server, "get", get, key)).problems(1, "", "no such key")
            problems += run(*args(server, "put", put, key, "12345678901")).problems(0, "")
            problems += run(*args(server, "get", get, key)).problems(0, "12345678901\n")
            problems += run(*args(server, "put", put, key, "7")).problems(0, "")
            problems += run(*args(server, "get", get, key)).problems(0, "7\n")
            writer.case(f"put {put}, get {get}", problems)
    key = "k" * 47
    writer.case("the longest key", run(*args(server, "put", "active", key, "1")).problems()
                + run(*args(server, "get", "one-sided", key)).problems(0, "1\n"))
    done = run(*args(server, "get", "one-sided", "-r", "3", key))
    writer.case("times are told", [] if "one-sided, 2 round trips" in done.out else [done.out])
    done = run(*args(server, "get", "active", "-r", "3", key))
    writer.case("and of a program", [] if "active, 1 round trips" in done.out else [done.out])


def together(writer, server):
    keys = [f"key {i}" for i in range(24)]
    done = [start(*args(server, "put", list(WAYS)[i % 2], "-r", "20", key, str(i)))
            for i, key in enumerate(keys)]
    problems = [p for d in done for p in finish(d).problems()]
    for i, key in enumerate(keys):
        problems += run(*args(server, "get", list(WAYS)[i // 2 % 2], key)).problems(0, f"{i}\n")
    writer.case("many at once, in both ways", problems)


def full(writer):
    with Server(HASH, "serve", "-a", HOST, "-p", "0", "-n", "2") as server:
        problems = []
        for i, way in enumerate(WAYS):
            problems += run(*args(server, "put", way, f"key {i}", "1")).problems()
        for way in WAYS:
            problems += run(*args(server, "put", way, "one more", "1")).problems(3, "", "No space")
            problems += run(*args(server, "put", way, "key 0", "2")).problems()
        writer.case("a full table", problems)
        writer.case("the server ends by a signal", server.stop().problems())


def main():
    writer = tap.Writer()
    command_line(writer)
    with Server(HASH, "serve", "-a", HOST, "-p", "0") as server:
        both_ways(writer, server)
        together(writer, server)
    full(writer)
    writer.finish()


if __name__ == "__main__":
    main()
