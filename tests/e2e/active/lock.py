#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-lock with itself over loopback: the same lock by RDMA alone and by programs.

    lock.py WARP-LOCK
"""
import sys
import time

from ways import HOST, WAYS, Example, command_line, finish, finish_all, tap, times

LOCK = sys.argv[1]
REFUSED = (((), "one of serve, count is needed"), (("count",), "-a is needed"),
           (("count", "-a", HOST, "x"), "too many"), (("count", "-w", "x"), "no value"))


def alone(writer, lock):
    for i, way in enumerate(WAYS):
        writer.case(f"one client, {way}", lock.ask("count", way).problems(0, f"{i + 1}\n"))
    times(writer, lock, "count", trips={"one-sided": 9, "active": 4})


def together(writer, lock, ways, name):
    """All of them count; what one adds while another has the lock would be lost."""
    clients, each = 8, 60
    before = int(lock.ask("count", "active").out)
    problems = finish_all([lock.start("count", ways[i % len(ways)], "-r", str(each - 1))
                           for i in range(clients)])
    problems += lock.ask("count", "one-sided").problems(0, f"{before + clients * each + 1}\n")
    writer.case(f"many at once, {name}", problems)


def tried(what, *args):
    """What is wrong; again, for on a busy machine a client may not have the lock when it should."""
    for _ in range(3):
        problems = what(*args)
        if not problems:
            break
    return problems


def impatient(lock, way, other):
    """Some give up, in the middle of the queue and at its end, and the lock goes on past them."""
    before = int(lock.ask("count", "active").out)
    owner = lock.start("count", other, "-k", "2500000")
    time.sleep(0.6)
    late = [lock.start("count", way, "-w", "200"), lock.start("count", other, "-w", "300")]
    time.sleep(0.2)
    patient = lock.start("count", way)
    time.sleep(0.2)
    late.append(lock.start("count", way, "-w", "100"))
    problems = [p for one in late for p in finish(one).problems(3, "", "timed out")]
    problems += finish(owner).problems(0, f"{before + 1}\n")
    problems += finish(patient).problems(0, f"{before + 2}\n")
    return problems + lock.ask("count", way).problems(0, f"{before + 3}\n")


def nodes(lock):
    """The one node there is has an owner."""
    owner = lock.start("count", "active", "-k", "2000000")
    time.sleep(0.6)
    problems = [p for way in WAYS for p in lock.ask("count", way).problems(3, "", "No space")]
    problems += finish(owner).problems(0)
    for way in WAYS:
        problems += lock.ask("count", way, "-r", "20").problems(0)
    return problems


def main():
    writer = tap.Writer()
    command_line(writer, LOCK, REFUSED)
    with Example(LOCK) as lock:
        alone(writer, lock)
        for name, ways in {**{way: [way] for way in WAYS}, "in both ways": list(WAYS)}.items():
            together(writer, lock, ways, name)
        for way, other in (("one-sided", "active"), ("active", "one-sided")):
            writer.case(f"clients that give up, {way}", tried(impatient, lock, way, other))
        lock.stop(writer)
    with Example(LOCK, "-n", "1") as lock:
        writer.case("more clients than there is room for", tried(nodes, lock))
    writer.finish()


if __name__ == "__main__":
    main()
