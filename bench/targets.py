# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the project aims at, and what was measured: a row for each target."""
import statistics
from dataclasses import dataclass

import table
from arms import BASE
from beside import THIRD
from session import MORE

TWO, ONE = "a core each", "one core"
SPIN = "modespin"


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
    base: str = BASE.key  # the arm that it is put in relation to; or the best of several, by spaces


def program(what, bench, measure, figure, limit, spin=True):
    """A rate; and how much of it is left of what the same waits give on plain TCP."""
    found = [Target(what, bench, measure, figure, ">=", limit)]
    if spin:
        found.append(Target(f"{what}, of --mode spin's", bench, measure, figure, ">=", 0.92,
                            base=SPIN))
    return found


def stream(what, bench, measure, limit, without_crc):
    return [Target(what, bench, measure, "bandwidth", ">=", limit),
            Target(f"{what}, no CRC", bench, measure, "bandwidth", ">=", without_crc, arm="nocrc")]


def conn(what, measure, limit):
    return Target(what, "connections", measure, "", ">=", limit)


def own(what, measure):
    return Target(what, "connections", f"{measure}, 6,000 open", "", ">=", 0.9, beside=measure)


BLOCKING, EPOLL = "one after another, blocking", "16 under way, epoll"
WAITING = [
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
WRK = "wrk, 50 clients"
BYTES = [
    Target("64 B round trip, ends on two cores", "latency", "64 B", "round trip", "<=", 0.18),
    Target("64 B round trip, ends on one core", "latency", "64 B", "round trip", "<=", 1.20, ONE),
    Target("64 B round trip, both spin, of --mode spin's", "latency", "64 B", "round trip", "<=",
           1.12, base=SPIN),
    *stream("1 KiB stream", "bandwidth", "1 KiB", 0.75, 0.80),
    *stream("64 KiB stream", "bandwidth", "64 KiB", 1.0, 1.1),
    *stream("1 MiB stream", "bandwidth", "1 MiB", 1.05, 1.2),
    *stream("64 KiB stream, 1500 octets a frame", "segments", "64 KiB", 0.85, 0.92),
    *[row for clients in (30, 50) for word in ("GET", "SET")
      for row in program(f"redis {word}, {clients} clients", "redis", f"{clients} clients, 64 B",
                         word, 1.0)],
    *[row for word in ("GET", "SET")
      for row in program(f"redis {word}, 50 clients, pipeline 16", "redis",
                         "50 clients, 64 B, pipeline 16", word, 0.95)],
    *program("nginx, 1 KiB", "nginx", f"{WRK}, 1 KiB, sendfile on", "", 1.0),
    *[row for size in ("64 KiB", "1 MiB") for sendfile, limit in (("on", 0.85), ("off", 1.0))
      for row in program(f"nginx, {size}, sendfile {sendfile}", "nginx",
                         f"{WRK}, {size}, sendfile {sendfile}", "", limit)],
    *[row for title in ("iperf3", "iperf3 -R", "iperf3 -P 4")
      for row in program(title, "iperf3", title, "", 0.95)],
    *program("memaslap, 16 clients", "memcached", "memaslap, 16 clients, 1 KiB", "", 1.0),
    *[row for name in ("1 client", "8 clients")
      for row in program(f"pgbench -S, {name}", "postgres", f"pgbench -S, {name}", "", 1.0)],
    Target("native Write of 64 B there and back, of UCX tag's", "native", "Write, 64 B",
           "round trip", "<=", 0.9, base="ucx-tag"),
    *[Target(f"native {word} of 1 MiB, of the best of UCX's", "native",
             f"rdma-{word.lower()}, 1 MiB", "", ">=", 1.0, base="ucx-tag ucx-put ucx-get ucx-am")
      for word in ("Write", "Read")],
    Target("CPU of 1 MiB stream", "bandwidth", "1 MiB", "CPU per GB", "<=", 1.20, arm="cpu"),
    Target("instructions of write(), 64 B", "instructions", "write() of 64 B", "", "<=", 450),
    Target("instructions of read(), 64 B", "instructions", "read() of 64 B", "", "<=", 450),
]
PARTS = {"Waiting and connections": WAITING, "The way of a byte": BYTES}
TARGETS = WAITING + BYTES


def wanted():
    """By benchmark and measure, the arms that are needed."""
    found = {}
    for target in TARGETS:
        for measure in filter(None, (target.measure, target.beside)):
            found.setdefault((target.bench, measure), {BASE.key}).update(
                (target.arm, *target.base.split()))
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
    if not target.beside and target.base == BASE.key:
        return table.figures(row, target.arm)
    beside = row_of(found, target, target.beside) if target.beside else row
    others = [target.arm] if target.beside else target.base.split()
    if not beside or not all(beside["runs"].get(other) for other in others):
        return None
    medians = [statistics.median(beside["runs"][other]) for other in others]
    mine = row["runs"][target.arm]
    other = max(medians) if row["better"] == MORE else min(medians)
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
    """The tables; a ratio is to plain TCP where no unit is told."""
    lines, met = [], []
    for title, targets in PARTS.items():
        results = [line(found, target) for target in targets]
        met += [result for _, result in results if result is not None]
        lines += [f"**{title}**", "", "| what | target | measured | |", "| --- | --- | --- | --- |",
                  *(text for text, _ in results), ""]
    return "\n".join(lines) + (
        f"\n{sum(met)} of {len(TARGETS)} targets are met, {len(met) - sum(met)} missed, "
        f"{len(TARGETS) - len(met)} not measured.\n")
