# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the project aims at, and what was measured: a row for each target."""
import statistics
from dataclasses import dataclass

import table
from arms import BASE
from beside import THIRD

TWO, ONE = "a core each", "one core"


@dataclass(frozen=True)
class Target:
    """A figure of one arm, and what it has to be."""
    what: str
    bench: str
    measure: str
    figure: str
    op: str  # <= or >=
    limit: float = None  # None: what plain TCP has
    place: str = TWO
    arm: str = "ddp"
    beside: str = None  # another measure of the same arm, to which this one is put in relation


def conn(what, measure, limit):
    return Target(what, "connections", measure, "", ">=", limit)


def own(what, measure):
    return Target(what, "connections", f"{measure}, 6,000 open", "", ">=", 0.9, beside=measure)


BLOCKING, EPOLL = "one after another, blocking", "16 under way, epoll"
TARGETS = [
    Target("64 B round trip, ends on two cores", "latency", "64 B", "round trip", "<=", 0.20),
    Target("64 B round trip, ends on one core", "latency", "64 B", "round trip", "<=", 1.35, ONE),
    Target("redis GET, 1 client", "redis", "1 client, 64 B", "GET", ">=", 2.5),
    Target("redis SET, 1 client", "redis", "1 client, 64 B", "SET", ">=", 2.5),
    Target("sockperf ping-pong latency", "sockperf", "ping-pong, 64 B", "latency", "<=", 0.25),
    *[Target(f"redis {word}, {clients} clients", "redis", f"{clients} clients, 64 B", word, ">=",
             limit) for clients in (30, 50) for word, limit in (("GET", 0.76), ("SET", 0.71))],
    Target("nginx, 1 KiB", "nginx", "wrk, 50 clients, 1 KiB, sendfile on", "", ">=", 0.75),
    Target("CPU at 1,000 messages a second, one way", "steady", "one way", "CPU of both ends", "<=",
           1.5),
    Target("the same, ask and answer", "steady", "ask and answer", "CPU of both ends", "<=", 3.5),
    Target("the same, ask and answer, --profile cpu", "steady", "ask and answer",
           "CPU of both ends", "<=", 1.2, arm="cpu"),
    Target("CPU of 1,000 idle connections, % of a core", "idle", "1,000 idle connections",
           "CPU of both ends", "<=", 1),
    Target("a third busy program's share", "third", THIRD, "its share", ">=", 0.9),
    Target("a third program's wake-ups, p99", "third", THIRD, "p99 of how late it wakes", "<=",
           1.5),
    conn("connections, one after another", BLOCKING, 0.28),
    conn("connections, 16 under way by epoll", EPOLL, 0.45),
    Target("connections, ab without keep-alive", "ab", "no keep-alive, 16 clients, 1 KiB", "",
           ">=", 0.4),
    own("one after another beside 6,000, of its own rate", BLOCKING),
    own("16 under way beside 6,000, of its own rate", EPOLL),
    Target("memory of an idle connection at the server, KiB", "memory", "idle connection",
           "server", "<=", 8),
    Target("memory of an idle connection at the client, KiB", "memory", "idle connection",
           "client", "<=", 8),
    Target("descriptors of a connection at the server", "memory", "idle connection",
           "server's descriptors", "<="),
    Target("descriptors of a connection at the client", "memory", "idle connection",
           "client's descriptors", "<="),
    *[Target(f"{call}() of a plain descriptor, ns more", "passthrough", "plain descriptors",
             f"{call}()", "<=", 5) for call in ("read", "write", "recv", "poll")],
    Target("poll() of 1,000 plain descriptors", "passthrough", "plain descriptors",
           "poll() of 1,000", "<=", 1.02),
]


def wanted():
    """By benchmark and measure, the arms that are needed."""
    found = {}
    for target in TARGETS:
        for measure in filter(None, (target.measure, target.beside)):
            found.setdefault((target.bench, measure), {BASE.key}).add(target.arm)
    return found


def benches():
    return list(dict.fromkeys(target.bench for target in TARGETS))


def row_of(found, target, measure):
    return next((row for row in found["rows"] if row["bench"] == target.bench
                 and row["measure"] == measure and row["figure"] == target.figure
                 and row["place"] == target.place), None)


def measured(found, target):
    """Median, least and greatest; None: there is no such figure."""
    row = row_of(found, target, target.measure)
    if not row or not row["runs"].get(target.arm):
        return None
    if not target.beside:
        return table.figures(row, target.arm)
    beside = row_of(found, target, target.beside)
    if not beside or not beside["runs"].get(target.arm):
        return None
    mine, other = row["runs"][target.arm], statistics.median(beside["runs"][target.arm])
    return statistics.median(mine) / other, [value / other for value in mine]


def limit_of(found, target):
    """Descriptors: a program's own few are spread over all connections."""
    if target.limit is not None:
        return target.limit
    base = row_of(found, target, target.measure)["runs"][BASE.key]
    return statistics.median(base) + 0.01


def line(found, target):
    values = measured(found, target)
    if not values:
        return f"| {target.what} | {aim(target)} | not measured | - |", None
    limit = limit_of(found, target)
    met = values[0] <= limit if target.op == "<=" else values[0] >= limit
    shown = table.spread(*values)
    return f"| {target.what} | {aim(target)} | {shown} | {'met' if met else 'MISSED'} |", met


def aim(target):
    words = {"<=": "at most", ">=": "at least"}[target.op]
    return f"{words} {'TCP has' if target.limit is None else table.number(target.limit)}"


def markdown(found):
    """The table; a ratio is to plain TCP where no unit is told."""
    lines = ["| what | target | measured | |", "| --- | --- | --- | --- |"]
    results = [line(found, target) for target in TARGETS]
    met = [result for _, result in results if result is not None]
    return "\n".join(lines + [text for text, _ in results]) + (
        f"\n\n{sum(met)} of {len(TARGETS)} targets are met, {len(met) - sum(met)} missed, "
        f"{len(TARGETS) - len(met)} not measured.\n")
