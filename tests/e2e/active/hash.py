#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-hash with itself over loopback: the same table by RDMA alone and by a program.

    hash.py WARP-HASH
"""
import sys

from ways import HOST, WAYS, Example, command_line, finish_all, tap, times

HASH = sys.argv[1]
REFUSED = (((), "one of serve, get, put is needed"), (("take", "x"), "one of serve"),
           (("get", "x"), "-a is needed"), (("serve", "x"), "too many"), (("get",), "too few"),
           (("get", "-a", HOST, ""), "a key has"), (("get", "-a", HOST, "k" * 48), "a key has"),
           (("put", "-a", HOST, "k", "x"), "a number"), (("serve", "-n", "0"), "no value"))


def both_ways(writer, hash_):
    for put in WAYS:
        for get in WAYS:
            key = f"{put}/{get}"
            problems = hash_.ask("get", get, key).problems(1, "", "no such key")
            problems += hash_.ask("put", put, key, "12345678901").problems(0, "")
            problems += hash_.ask("get", get, key).problems(0, "12345678901\n")
            problems += hash_.ask("put", put, key, "7").problems(0, "")
            problems += hash_.ask("get", get, key).problems(0, "7\n")
            writer.case(f"put {put}, get {get}", problems)
    key = "k" * 47
    writer.case("the longest key", hash_.ask("put", "active", key, "1").problems()
                + hash_.ask("get", "one-sided", key).problems(0, "1\n"))
    times(writer, hash_, "get", key, trips={"one-sided": 2, "active": 1})


def together(writer, hash_):
    keys = [f"key {i}" for i in range(24)]
    problems = finish_all([hash_.start("put", list(WAYS)[i % 2], "-r", "20", key, str(i))
                           for i, key in enumerate(keys)])
    for i, key in enumerate(keys):
        problems += hash_.ask("get", list(WAYS)[i // 2 % 2], key).problems(0, f"{i}\n")
    writer.case("many at once, in both ways", problems)


def full(writer):
    with Example(HASH, "-n", "2") as hash_:
        problems = []
        for i, way in enumerate(WAYS):
            problems += hash_.ask("put", way, f"key {i}", "1").problems()
        for way in WAYS:
            problems += hash_.ask("put", way, "one more", "1").problems(3, "", "No space")
            problems += hash_.ask("put", way, "key 0", "2").problems()
        writer.case("a full table", problems)
        hash_.stop(writer)


def main():
    writer = tap.Writer()
    command_line(writer, HASH, REFUSED)
    with Example(HASH) as hash_:
        both_ways(writer, hash_)
        together(writer, hash_)
    full(writer)
    writer.finish()


if __name__ == "__main__":
    main()
