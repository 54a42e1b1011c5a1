#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A hostile client writes rubbish into what others share: their calls end, the server serves on.

    rubbish.py RUBBISH BTREE HASH LIST LOCK STORE
"""
import sys

from ways import WAYS, Example, run, tap

RUBBISH, BTREE, HASH, LIST, LOCK, STORE = sys.argv[1:]
LIMIT = 25  # of one call; the server's own is 10 s
SEEDS = (1, 2, 3)

# program, region, options of the server, calls
EXAMPLES = [
    (BTREE, "btree", ["-n", "5000", "-m", "1"],
     [["get", "77"], ["get", "4999"], ["put", "77", "1"], ["range", "1", "200"]]),
    (HASH, "hash", ["-n", "500"], [["put", f"key {i}", "1"] for i in range(3)]
     + [["get", f"key {i}"] for i in range(3)]),
    (LOCK, "lock", ["-n", "16"], [["count", "-w", "300"]] * 3),
    (STORE, "store", ["-m", "1"], [["put", f"key {i}", "value " * 30 * i] for i in range(3)]
     + [["get", f"key {i}"] for i in range(3)] + [["delete", "key 1"]]),
]


def unwanted(words, way, done):
    """A call may give a wrong answer now, but it ends as the program says."""
    if done.status in (0, 1, 3):
        return []
    return [f"{way} {' '.join(words)[:40]}: {done.status}", *done.err.splitlines()[-3:]]


def call(example, way, words):
    return run(*example.args(words[0], way, *words[1:]), limit=LIMIT)


def spoil(example, region, seed):
    return run(RUBBISH, example.server.port, region, str(seed)).problems()


def both_ways(writer, program, region, options, calls):
    problems, failed = [], 0
    for seed in SEEDS:
        with Example(program, *options) as example:
            for words in calls:
                for way in WAYS:
                    call(example, way, words)
            problems += spoil(example, region, seed)
            for words in calls:
                for way in WAYS:
                    done = call(example, way, words)
                    problems += unwanted(words, way, done)
                    failed += done.status == 3
            problems += example.server.stop().problems()
    writer.case(f"rubbish in {region}", problems)
    writer.case(f"rubbish in {region} is noticed", [] if failed else ["no call failed"])


def circle(writer):
    """warp-list has no -1: a walk does it in both ways, and an append follows a circle."""
    problems = []
    with Example(LIST, "-n", "300") as example:
        problems += spoil(example, "list", 4)
        for words in (["walk", "-r", "2"], ["append"]):
            problems += unwanted(words, "active", call(example, "active", words))
        problems += example.server.stop().problems()
    writer.case("rubbish in list", problems)


def main():
    writer = tap.Writer()
    for row in EXAMPLES:
        both_ways(writer, *row)
    circle(writer)
    writer.finish()


if __name__ == "__main__":
    main()
