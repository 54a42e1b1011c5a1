#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-store with itself over loopback: the same store by RDMA alone and by a program.

    store.py WARP-STORE
"""
import random
import sys

from ways import HOST, WAYS, Example, command_line, finish, tap, times

STORE = sys.argv[1]
REFUSED = (((), "one of serve, get, put, delete is needed"), (("get", "x"), "-a is needed"),
           (("get", "-a", HOST, ""), "a key has"), (("get", "-a", HOST, "k" * 56), "a key has"),
           (("put", "-a", HOST, "k", "v" * 8129), "a value has"),
           (("serve", "-m", "0"), "no value"))
LENGTHS = (0, 1, 7, 8, 9, 63, 64, 65, 191, 192, 193, 1000, 4000, 8127, 8128)


def sizes(writer, store):
    for put in WAYS:
        for get in WAYS:
            problems = []
            for length in LENGTHS:
                key = f"{put} {get} {length}"
                value = "".join(chr(97 + i % 26) for i in range(length))
                problems += store.ask("put", put, key, value).problems(0, "")
                problems += store.ask("get", get, key).problems(0, value + "\n")
            writer.case(f"values of all sizes, put {put}, get {get}", problems)


def random_operations(writer, store):
    """In both ways in turns: what is there is what a dict has."""
    dice, wanted, problems = random.Random(3), {}, []
    for i in range(300):
        way, key = list(WAYS)[i % 2], f"key {dice.randrange(20)}"
        if dice.random() < 0.5:
            wanted[key] = f"{i} " * dice.choice((1, 20, 200))
            problems += store.ask("put", way, key, wanted[key]).problems(0, "")
        elif dice.random() < 0.5:
            status = 0 if wanted.pop(key, None) else 1
            problems += store.ask("delete", way, key).problems(status, "")
        elif key in wanted:
            problems += store.ask("get", way, key).problems(0, wanted[key] + "\n")
        else:
            problems += store.ask("get", way, key).problems(1, "", "no such key")
    writer.case("random operations in both ways", problems[:9])


def together(writer, store):
    """Writers of one key, whose memory is used again at once: a reader sees one whole value."""
    values = [letter * length for letter, length in zip("abcdef", (5, 90, 180, 700, 3000, 8000))]
    store.ask("put", "active", "shared", values[0])
    writers = [store.start("put", list(WAYS)[i % 2], "-r", "150", "shared", value)
               for i, value in enumerate(values)]
    readers = [store.start("get", list(WAYS)[i % 2], "-r", "150", "shared") for i in range(4)]
    problems = [p for one in writers for p in finish(one).problems()]
    for one in readers:
        done = finish(one)
        problems += done.problems()
        if done.out.split("\n")[0] not in values:
            problems.append(f"not one of the values: {done.out[:60]!r}")
    writer.case("writers and readers of one key", problems)


def memory(writer):
    """All of it can be used again, and again, for blocks of this size."""
    with Example(STORE, "-m", "1") as store:
        problems, value = [], "x" * 8000
        for way in WAYS:
            problems += store.ask("put", way, "-r", "400", "one", value).problems(0)
        stored = 0
        while stored < 200 and not store.ask("put", "active", f"key {stored}", value).status:
            stored += 1
        problems += [] if 100 < stored < 128 else [f"{stored} values of 8000 bytes in 1 MiB"]
        for way in WAYS:
            problems += store.ask("put", way, "one more", value).problems(3, "", "No space")
            problems += store.ask("delete", way, f"key {len(way)}").problems(0)
            problems += store.ask("put", way, f"again {way}", value).problems(0)
            problems += store.ask("get", way, "key 1").problems(0, value + "\n")
        writer.case("a full store", problems)


def main():
    writer = tap.Writer()
    command_line(writer, STORE, REFUSED)
    with Example(STORE) as store:
        sizes(writer, store)
        random_operations(writer, store)
        together(writer, store)
        store.ask("put", "active", "timed", "value")
        times(writer, store, "get", "timed", trips={"one-sided": 3, "active": 1})
        times(writer, store, "put", "timed", "value", trips={"one-sided": 10, "active": 1})
        store.stop(writer)
    memory(writer)
    writer.finish()


if __name__ == "__main__":
    main()
