#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-column with itself over loopback: the greatest records and sums, at the server and here.

    column.py WARP-COLUMN
"""
import random
import struct
import sys
import tempfile
from pathlib import Path

from ways import HOST, WAYS, Server, command_line, run, tap

COLUMN = sys.argv[1]
LAYOUT = "u32 id; s64 price; be16 port; text[10] name; pad[2]; s16 low"
RECORD = struct.Struct("<Iq2s10s2xh")
NAMES = ("pear", "apple", "ten bytes!", "")
REFUSED = (((), "one of serve, top, sum is needed"), (("top", LAYOUT, "id"), "-a is needed"),
           (("top", "-a", HOST, "u32", "id"), "u32: "), (("sum", "-a", HOST, LAYOUT, "no"), "no: "),
           (("sum", "-a", HOST, "-w", "id +", LAYOUT, "id"), r"id \+: "),
           (("top", "-a", HOST, "-k", "1001", LAYOUT, "id"), "no value"))


def records_make(count):
    dice = random.Random(2)
    return [(i, dice.randrange(-10**6, 10**6), dice.randrange(2**16), dice.choice(NAMES),
             dice.randrange(-2**15, 2**15)) for i in range(count)]


def file_write(path, records, more=b""):
    path.write_bytes(b"".join(
        RECORD.pack(number, price, struct.pack(">H", port), name.encode(), low)
        for number, price, port, name, low in records) + more)


def line(value, record):
    number, price, port, name, low = record
    return f'{value}  id {number}  price {price}  port {port}  name "{name}"  low {low}\n'


def top_of(records, value, where, count):
    found = sorted((r for r in records if where(r)), key=lambda r: (-value(r), r[0]))
    return "".join(line(value(r), r) for r in found[:count])


def sum_of(records, value, where):
    found = [value(r) for r in records if where(r)]
    if not found:
        return "0 records\n"
    return (f"{len(found)} records, sum {sum(found)}, least {min(found)}, "
            f"greatest {max(found)}\n")


# an expression, a condition or None, and the same in Python
QUESTIONS = [
    ("price", None, lambda r: r[1], lambda r: True),
    ("-price * 2", 'name == "pear"', lambda r: -2 * r[1], lambda r: r[3] == "pear"),
    ("port", "low < 0 && price > 5000", lambda r: r[2], lambda r: r[4] < 0 and r[1] > 5000),
    ("low / 1000", 'name ~ "^a|!$"', lambda r: int(r[4] / 1000),
     lambda r: r[3] in ("apple", "ten bytes!")),
    ("id", "price == 12345678", lambda r: r[0], lambda r: False),
]


def questions(writer, server, records):
    for expression, condition, value, where in QUESTIONS:
        for way, flag in WAYS.items():
            options = [*flag, *(["-w", condition] if condition else [])]
            to = ["-a", HOST, "-p", server.port, *options]
            problems = run(COLUMN, "sum", *to, "--", LAYOUT, expression).problems(
                0, sum_of(records, value, where))
            for count in (1, 10, 200):
                done = run(COLUMN, "top", *to, "-k", str(count), "--", LAYOUT, expression)
                wanted = top_of(records, value, where, count)
                problems += done.problems() + ([] if done.out == wanted else [
                    f"top {count}: {done.out[:200]!r}", f"wanted {wanted[:200]!r}"])
            writer.case(f"{expression} where {condition}, {way}", problems)


def main():
    writer = tap.Writer()
    command_line(writer, COLUMN, REFUSED)
    with tempfile.TemporaryDirectory() as folder:
        path, records = Path(folder) / "records", records_make(5000)
        file_write(path, records, b"not a record")
        with Server(COLUMN, "serve", "-a", HOST, "-p", "0", str(path)) as server:
            questions(writer, server, records)
            done = run(COLUMN, "sum", "-a", HOST, "-p", server.port, "-r", "3", LAYOUT, "price")
            writer.case("times are told", [] if "\nactive, " in done.out else [done.out, done.err])
            writer.case("the server ends by a signal", server.stop().problems())
        writer.case("no file",
                    run(COLUMN, "serve", folder + "/none").problems(3, "", "No such file"))
        path.write_bytes(b"")
        writer.case("an empty file", run(COLUMN, "serve", str(path)).problems(3, "", "No data"))
    writer.finish()


if __name__ == "__main__":
    main()
