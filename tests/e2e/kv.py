#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-kv with itself over loopback: looking up, changing, and reading what is being changed.

    kv.py WARP-KV [ADDRESS PROVIDER]    at another address, by another provider than software's
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from example import Server, finish, run, start  # noqa: E402

KV = sys.argv[1]
HOST = sys.argv[2] if sys.argv[2:] else "127.0.0.1"
PROVIDER = ("--provider", sys.argv[3]) if sys.argv[2:] else ()


def server(*options):
    return Server(KV, "serve", "-a", HOST, "-p", "0", *PROVIDER, *options)


def args(s, verb, *words):
    return [KV, verb, "-a", HOST, "-p", s.port, *PROVIDER, *words]


def do(s, verb, *words):
    return run(*args(s, verb, *words))


def command_line(writer):
    writer.case("--help", run(KV, "--help").problems())
    writer.case("--version", run(KV, "--version").problems())
    for words, complaint in (
            ((), "one of serve"), (("take", "x"), "one of serve"), (("get", "x"), "-a is needed"),
            (("get", "-a", HOST), "too few"), (("put", "-a", HOST, "k"), "too few"),
            (("delete", "-a", HOST, "k", "l"), "too many"), (("serve", "x"), "too many"),
            (("get", "-a", HOST, ""), "a key has"), (("get", "-a", HOST, "k" * 63), "a key has"),
            (("put", "-a", HOST, "k", "v" * 177), "a value has"),
            (("serve", "-n", "0"), "no value")):
        writer.case(f"refused: {' '.join(words)[:40] or 'nothing'}",
                    run(KV, *words).problems(2, "", complaint))


def one_client(writer):
    with server() as s:
        writer.case("a key that is not there", do(s, "get", "k").problems(1, "", "no such key"))
        writer.case("put", do(s, "put", "k", "one").problems(0, ""))
        writer.case("get", do(s, "get", "k").problems(0, "one\n"))
        writer.case("put again", do(s, "put", "k", "another one").problems(0, ""))
        writer.case("get again", do(s, "get", "k").problems(0, "another one\n"))
        writer.case("several, one of them not there",
                    do(s, "get", "k", "l", "k").problems(1, "another one\n" * 2, "l: no such"))
        key, value = "k" * 62, "v" * 176
        writer.case("put the longest", do(s, "put", key, value).problems(0))
        writer.case("get the longest", do(s, "get", key).problems(0, value + "\n"))
        writer.case("an empty value", do(s, "put", "e", "").problems(0) + do(
            s, "get", "e").problems(0, "\n"))
        writer.case("delete", do(s, "delete", "k").problems(0))
        writer.case("delete what is not there", do(s, "delete", "k").problems(1))
        writer.case("get what was deleted", do(s, "get", "-q", "k").problems(1, ""))
        writer.case("the server ends by a signal", s.stop().problems())


def full(writer):
    with server("-n", "1") as s:
        problems = [p for i in range(8) for p in do(s, "put", f"k{i}", f"v{i}").problems()]
        writer.case("eight keys with the same place", problems)
        writer.case("a ninth", do(s, "put", "k8", "v").problems(3, "", "no room"))
        writer.case("the eight are there",
                    do(s, "get", *(f"k{i}" for i in range(8))).problems(
                        0, "".join(f"v{i}\n" for i in range(8))))
        writer.case("one goes, one comes", do(s, "delete", "k3").problems()
                    + do(s, "put", "k8", "v8").problems() + do(s, "get", "k8").problems(0, "v8\n"))


def torn(writer):
    """Changes that stop half-way, and readers who must never see the half."""
    with server("--tear", "20") as s:
        old, new = "a" * 176, "b" * 176
        do(s, "put", "k", old)
        writers = [start(*args(s, "put", "-r", "15", "k", value)) for value in (old, new)]
        readers = [start(*args(s, "get", "-r", "40", "k")) for _ in range(3)]
        done = [finish(reader) for reader in readers]
        problems = [p for d in done for p in d.problems()]
        values = {line for d in done for line in d.out.split()}
        writer.case("readers see whole values only",
                    problems + [v for v in values if v not in (old, new)])
        counts = [int(n) for d in done for n in re.findall(r"reads, (\d+) repeated", d.err)]
        writer.case("and have met changes", [] if sum(counts) else [f"{counts}"])
        writer.case("writers are done",
                    [p for w in writers for p in finish(w).problems()])


def many(writer):
    with server() as s:
        keys = [f"key-{i}" for i in range(20)]
        writers = [start(*args(s, "put", key, f"value of {key}")) for key in keys[:8]]
        problems = [p for w in writers for p in finish(w).problems()]
        problems += [p for key in keys[8:] for p in do(s, "put", key,
                                                       f"value of {key}").problems()]
        writer.case("twenty keys", problems)
        readers = [start(*args(s, "get", "-r", "30", *keys)) for _ in range(8)]
        want = "".join(f"value of {key}\n" for key in keys) * 30
        writer.case("eight readers at once",
                    [p for r in readers for p in finish(r).problems(0, want)])


def main():
    writer = tap.Writer()
    for cases in (command_line, one_client, full, torn, many):
        cases(writer)
    writer.finish()


if __name__ == "__main__":
    main()
