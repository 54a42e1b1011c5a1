#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-sum and warp-top against awk and sort, which read the same records as text.

    fold.py WARP-ARFS-SERVER WARP-ARFS WARP-SUM WARP-TOP
"""
import random
import struct
import subprocess
import sys
from pathlib import Path

from world import HOST, World, enter, run, tap

SUM, TOP = sys.argv[3:]
LAYOUT = "u32 id; s64 price; text[7] name; u16 pieces"
RECORD = struct.Struct("<Iq7sH")  # 21 bytes: records lie across the store's blocks
NAMES = ("apple", "pear", "cherry")
WRONG = ((SUM, ("-a", HOST), "an expression is needed"), (SUM, ("x",), "-a is needed"),
         (SUM, ("-a", HOST, "none"), "none"), (TOP, ("-a", HOST, "-k", "101", "size"), "no count"),
         (SUM, ("-a", HOST, "-l", "u32", "x"), "u32"), (SUM, ("-a", HOST, "-k", "3", "size"), ""),
         (SUM, ("-a", HOST, "-l", "u8 x; pad[4096]", "x"), "4,096"),
         (TOP, ("-a", HOST, "a", "b", "c"), "too many words"))


def shell(command, cwd):
    """Lines of what it prints. awk's numbers are whole up to 2^53, and these sums are smaller."""
    return subprocess.run(["sh", "-c", command], cwd=cwd, capture_output=True, text=True,
                          check=True, timeout=60).stdout.splitlines()


def records(dice, count):
    return [(i, dice.randrange(-10**12, 10**12), dice.choice(NAMES), dice.randrange(1000))
            for i in range(count)]


def write(top, texts, name, rows, hole=0):
    """The file on the ARFS, and the same as text elsewhere; @hole: records of zeros before."""
    with open(top / name, "wb") as file:
        file.seek(hole * RECORD.size)
        for number, price, word, pieces in rows:
            file.write(RECORD.pack(number, price, word.encode(), pieces))
    with open(texts / name.replace("/", "_"), "w", encoding="ascii") as file:
        for place, (number, price, word, pieces) in enumerate(
                [(0, 0, "", 0)] * hole + rows):
            file.write(f"{price};{number};{word};{pieces};/{name}:{place * RECORD.size}\n")


def fill(top, texts):
    dice = random.Random(3)
    (top / "tables" / "more").mkdir(parents=True)
    write(top, texts, "tables/first", records(dice, 20000))
    write(top, texts, "tables/more/second", records(dice, 3))
    write(top, texts, "tables/more/third", records(dice, 777), hole=1500)
    scattered(top, texts, dice)
    (top / "tables" / "empty").touch()
    with open(top / "tables/first", "ab") as file:
        file.write(b"no whole record")
    (top / "other").mkdir()
    for i in range(300):
        (top / "other" / f"file {i}.{'c' if i % 3 else 'h'}").write_bytes(b"x" * (i * 37))


def scattered(top, texts, dice):
    """A file whose blocks lie between those of another one."""
    rows = records(dice, 8000)
    write(top, texts, "tables/fourth", [])
    with open(top / "tables/fourth", "wb") as file, open(top / "beside", "wb") as beside:
        for row in rows:
            file.write(RECORD.pack(row[0], row[1], row[2].encode(), row[3]))
            file.flush()
            beside.write(b"y" * 20)
            beside.flush()
    with open(texts / "tables_fourth", "w", encoding="ascii") as file:
        for i, (number, price, word, pieces) in enumerate(rows):
            file.write(f"{price};{number};{word};{pieces};/tables/fourth:{i * RECORD.size}\n")


AGGREGATE = """awk -F';' '{ if (%s) { v = %s; s += v; if (!n || v < l) l = v;
    if (!n || v > g) g = v; n++ } }
    END { if (n) printf "%%d records, sum %%.0f, least %%.0f, greatest %%.0f\\n", n, s, l, g;
    else print "0 records" }' """


def sums(writer, texts, to):
    for name, value, where, awk_value, awk_where in (
            ("a column", "price", None, "$1", "1"),
            ("with a condition", "price", "pieces > 500 && name ~ \"^p\"", "$1",
             "$4 > 500 && $3 == \"pear\""),
            ("an expression", "pieces * 3 - 1000", "name == \"cherry\"", "$4 * 3 - 1000",
             "$3 == \"cherry\""),
            ("of none", "price", "id > 100000", "$1", "0")):
        for place, files in (("/tables", "*"), ("tables/more", "tables_more_*"),
                             ("tables/fourth", "tables_fourth")):
            wanted = shell(AGGREGATE % (awk_where, awk_value) + files, texts)
            condition = ["-w", where] if where else []
            done = run(SUM, *to, "-l", LAYOUT, *condition, value, place)
            writer.case(f"sum of {name} in {place}", done.problems(
                int(wanted == ["0 records"]), "\n".join(wanted) + "\n"))


def tops(writer, texts, to):
    for key, value, flags in ((1, "price", "-rn"), (1, "0 - price", "-n"), (4, "pieces", "-rn")):
        for count in (1, 10, 100):
            wanted = shell(f"sort -s -t';' -k{key},{key} {flags} * | "
                           f"head -{count} | cut -d';' -f{key}", texts)
            done = run(TOP, *to, "-l", LAYOUT, "-k", str(count), value, "tables")
            got = [line.split()[0] for line in done.out.splitlines()]
            if value == "0 - price":
                got = [str(-int(number)) for number in got]
            writer.case(f"the {count} greatest {value}", done.problems(0) + (
                [] if got == wanted else [f"{got[:5]}, not {wanted[:5]}"]))
    wanted = shell("sort -t';' -k1,1 -rn * | head -3", texts)
    done = run(TOP, *to, "-l", LAYOUT, "-k", "3", "price", "/tables")
    lines = []
    for line in wanted:
        price, number, word, pieces, place = line.split(";")
        lines.append(f"{price}  {place[1:]}  id {number}  price {price}  name \"{word}\"  "
                     f"pieces {pieces}")
    writer.case("records with their places", done.problems(0) + (
        [] if done.out.splitlines()[:3] == lines else done.out.splitlines() + lines))


def files(writer, top, to):
    """Without a layout each file is a record."""
    wanted = shell("find . -mindepth 1 -name '*.c' -printf '%s;\\n' | " +
                   AGGREGATE % ("1", "$1"), top)
    done = run(SUM, *to, "-w", "name ~ \"[.]c$\"", "size")
    writer.case("sum of sizes of files", done.problems(0, "\n".join(wanted) + "\n"))
    wanted = shell("find . -type f -printf '%s  %P\\n' | sort -rn | head -20", top)
    done = run(TOP, *to, "-k", "20", "-w", "mode >> 12 == 8", "size")
    writer.case("the largest files", done.problems(0, "\n".join(wanted) + "\n"))


def main():
    writer = tap.Writer()
    enter(writer, network=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for program, words, complaint in WRONG:
        writer.case(f"refused: {' '.join(words)[:30]}", run(program, *words).problems(
            2, "", complaint))
    with World(*sys.argv[1:3], mib=128) as world:
        top = world.mount("active")
        texts = Path(world.path) / "texts"
        texts.mkdir()
        fill(top, texts)
        to = ("-a", HOST, "-p", world.port)
        sums(writer, texts, to)
        tops(writer, texts, to)
        files(writer, top, to)
        writer.case("no such file", run(SUM, *to, "-l", LAYOUT, "price", "none").problems(
            3, "", "No such file"))
        writer.case("a file is no directory", run(SUM, *to, "size", "beside").problems(
            3, "", "Not a directory"))
        writer.case("it ends, and its store is whole", world.end())
    writer.finish()


if __name__ == "__main__":
    main()
