#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-grep and warp-find against grep and find on a mount of the same ARFS, and their packets.

    search.py WARP-ARFS-SERVER WARP-ARFS WARP-GREP WARP-FIND
"""
import random
import subprocess
import sys
from pathlib import Path

from world import HOST, World, enter, run, tap

GREP, FIND = sys.argv[3:]
PATTERNS = ("struct", "^#include.*stdio", "err.*apple$", "nothing at all", "x{250,} (warp|error)$")
CONDITIONS = {
    "size > 20000 && name ~ \"[.]c$\"": ["-size", "+20000c", "-name", "*.c"],
    "mode >> 12 == 4": ["-type", "d"],
    "name == \"big\" || name ~ \"^many\"": ["(", "-name", "big", "-o", "-name", "many*", ")"],
    "uid == 12345": ["-uid", "12345"],
}
WRONG = ((GREP, ("-a", HOST), "a pattern is needed"), (GREP, ("x",), "-a is needed"),
         (GREP, ("-a", HOST, "x("), "x"), (FIND, ("-a", HOST, "-w", "size >"), "size >"),
         (FIND, ("-a", HOST, "a", "b"), "too many words"))


def lines(*command, cwd=None):
    done = subprocess.run(command, capture_output=True, check=False, cwd=cwd, timeout=60)
    return sorted(done.stdout.splitlines()), done


def fill(top):
    """Sources, a file of many lines, files with holes and lines over several blocks."""
    source = Path(__file__).resolve().parents[2] / "unit"
    subprocess.run(["cp", "-a", str(source), str(top / "unit")], check=True)
    dice = random.Random(2)
    with open(top / "big", "w", encoding="ascii") as file:
        for _ in range(60000):
            words = ("error", "apple", "x" * dice.randrange(300), "warp")
            file.write(" ".join(dice.choice(words) for _ in range(3)) + "\n")
    (top / "deep").mkdir()
    folder = top / "deep"
    for i in range(30):
        folder = folder / f"level {i}"
        folder.mkdir()
    (folder / "last").write_text("an error and an apple")
    (top / "many").mkdir()
    for i in range(1500):
        (top / "many" / f"many {i} {'n' * (i % 60)}").write_text(f"struct {i}\n" * (i % 5))
    scattered(top, dice)


def scattered(top, dice):
    """Two files that grow in turns, so that their blocks lie between one another."""
    with open(top / "one", "wb") as one, open(top / "two", "wb") as two:
        for i in range(200):
            for file in (one, two):
                file.write(b"%d %s struct\n" % (i, b"x" * dice.randrange(3900)))
                file.flush()


def greps(writer, top, to):
    for pattern in PATTERNS:
        wanted, _ = lines("grep", "-raE", "--", pattern, ".", cwd=top)
        got, done = lines(GREP, *to, pattern)
        wanted = sorted(line[2:] for line in wanted)
        problems = [] if wanted == got else [f"{len(wanted)} lines, {len(got)} here",
                                             *[str(line)[:200] for line in
                                               set(wanted) ^ set(got)][:4], str(done.stderr)]
        problems += [] if done.returncode == (not wanted) else [f"status {done.returncode}"]
        writer.case(f"grep {pattern}", problems)
    wanted, _ = lines("grep", "-raliE", "ERROR", "deep", "unit", "big", cwd=top)
    got = [lines(GREP, *to, "-l", "-i", "ERROR", place)[0] for place in ("deep", "unit", "/")]
    found = sorted(got[0] + got[1] + [b"big"])
    writer.case("grep -l -i in directories", [] if found == wanted and b"big" in got[2] else
                [str(wanted)[:200], str(found)[:200]])


def finds(writer, top, to):
    for condition, words in CONDITIONS.items():
        wanted, _ = lines("find", ".", "-mindepth", "1", *words, cwd=top)
        got, done = lines(FIND, *to, "-w", condition)
        problems = [] if sorted(line[2:] for line in wanted) == got else [
            f"{len(wanted)} files, {len(got)} here", str(done.stderr)]
        writer.case(f"find {condition}", problems)
    wanted, _ = lines("find", ".", "-mindepth", "1", cwd=top)
    got, _ = lines(FIND, *to)
    writer.case("find", [] if sorted(line[2:] for line in wanted) == got else
                [f"{len(wanted)} files, {len(got)} here"])


def packets():
    lines_of = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()
    return int(next(line for line in lines_of if line.lstrip().startswith("lo:")).split()[2])


def cost(writer, top, to):
    """A grep that finds little: one of 500 packets of the one-sided way, or fewer."""
    before = packets()
    wanted, _ = lines("grep", "-raE", "an error and", ".", cwd=top)
    between = packets()
    got, _ = lines(GREP, *to, "an error and")
    after = packets()
    alone, active = between - before, after - between
    print(f"# packets: one-sided {alone}, active {active}")
    writer.case("packets of grep", [] if active * 500 <= alone and len(got) == len(wanted) == 1
                else [f"{alone} one-sided, {active} active"])


def main():
    writer = tap.Writer()
    enter(writer, network=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for program, words, complaint in WRONG:
        writer.case(f"refused: {' '.join(words)[:30]}", run(program, *words).problems(
            2, "", complaint.replace("(", "[(]")))
    with World(*sys.argv[1:3], mib=128) as world:
        top = world.mount("active")
        fill(top)
        to = ("-a", HOST, "-p", world.port)
        greps(writer, top, to)
        finds(writer, top, to)
        cost(writer, world.mount("one-sided", "-1"), to)
        writer.case("no such directory", run(FIND, *to, "none").problems(3, "", "No such file"))
        writer.case("it ends, and its store is whole", world.end())
    writer.finish()


if __name__ == "__main__":
    main()
