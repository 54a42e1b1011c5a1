#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-btree with itself over loopback: the same tree by RDMA alone and by a program.

    btree.py WARP-BTREE
"""
import random
import sys

from ways import HOST, WAYS, Example, command_line, finish_all, tap, times

BTREE = sys.argv[1]
REFUSED = (((), "one of serve, get, put, range is needed"), (("get", "1"), "-a is needed"),
           (("range", "-a", HOST, "1"), "too few"), (("get", "-a", HOST, "x"), "are numbers"),
           (("put", "-a", HOST, "1", "x"), "are numbers"), (("serve", "-n", "x"), "no value"))


def has(tree, way, first, last, pairs):
    """What is wrong with a range, in few words."""
    done = tree.ask("range", way, str(first), str(last))
    wanted = "".join(f"{key} {value}\n" for key, value in pairs)
    return done.problems() + ([] if done.out == wanted else [
        f"{way}: {done.out.count(chr(10))} pairs that are not the {wanted.count(chr(10))} wanted"])


def filled(writer):
    """What the server made: trees of no, one and several levels, and their ends."""
    for keys in (0, 1, 24, 25, 576, 577, 20000):
        with Example(BTREE, "-n", str(keys)) as tree:
            problems = []
            for way in WAYS:
                for key in sorted({1, 24, 25, 577, keys} & set(range(1, keys + 1))):
                    problems += tree.ask("get", way, str(key)).problems(0, f"{key}\n")
                for key in (0, keys + 1, 2**64 - 1):
                    problems += tree.ask("get", way, str(key)).problems(1, "", "no such key")
                problems += has(tree, way, 0, 2**64 - 1, ((key, key) for key in range(1, keys + 1)))
            writer.case(f"a tree of {keys} keys", problems)


def puts(writer, tree):
    """In any order, in both ways in turns: what is there is what a dict has."""
    dice, wanted, problems = random.Random(5), {}, []
    for i in range(300):
        key, value = dice.choice((dice.randrange(60), dice.randrange(2**64))), dice.randrange(2**64)
        problems += tree.ask("put", list(WAYS)[i % 2], str(key), str(value)).problems(0, "")
        wanted[key] = value
    for way in WAYS:
        problems += has(tree, way, 0, 2**64 - 1, sorted(wanted.items()))
        problems += has(tree, way, 20, 30, (pair for pair in sorted(wanted.items())
                                            if 20 <= pair[0] <= 30))
        problems += has(tree, way, 30, 20, ())
        for key in list(wanted)[::29]:
            problems += tree.ask("get", way, str(key)).problems(0, f"{wanted[key]}\n")
    writer.case("random keys, put in both ways", problems[:9])


def together(writer, tree):
    """Each client's last number is there, whoever was quicker at the root."""
    first = 10**6
    problems = finish_all([tree.start("put", list(WAYS)[i % 2], "-r", "40", str(first + i), str(i))
                           for i in range(16)])
    for way in WAYS:
        problems += has(tree, way, first, first + 99, ((first + i, i) for i in range(16)))
    writer.case("many at once, in both ways", problems)


def full(writer):
    with Example(BTREE, "-n", "0", "-m", "0") as tree:
        problems = [p for way in WAYS
                    for p in tree.ask("put", way, "1", "1").problems(3, "", "No space")]
        writer.case("no memory", problems)
    with Example(BTREE, "-n", "1000", "-m", "1") as tree:
        problems = tree.ask("put", "active", "-r", "5000", "7", "9").problems(3, "", "No space")
        for way in WAYS:
            problems += tree.ask("get", way, "7").problems(0, "9\n")
            problems += tree.ask("get", way, "1000").problems(0, "1000\n")
        writer.case("memory that is used up", problems)


def main():
    writer = tap.Writer()
    command_line(writer, BTREE, REFUSED)
    filled(writer)
    with Example(BTREE, "-n", "0") as tree:
        puts(writer, tree)
        together(writer, tree)
        tree.stop(writer)
    with Example(BTREE) as tree:
        times(writer, tree, "get", "77", trips={"one-sided": 4, "active": 1})
        times(writer, tree, "range", "1", "9000", trips={"one-sided": 1126, "active": 3})
    full(writer)
    writer.finish()


if __name__ == "__main__":
    main()
