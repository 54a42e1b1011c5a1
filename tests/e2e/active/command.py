#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-active: objects at a server and on this host.

    command.py WARP-ACTIVE WARP-LIST LIST-OBJECT TEST-OBJECT REFUSED-OBJECT
"""
import hashlib
import os
import re
import sys
import tempfile
from pathlib import Path

from ways import HOST, Server, run, tap

ACTIVE, LIST, WALK, PROGRAMS, REFUSED = (str(Path(word).resolve()) for word in sys.argv[1:])
NOBODY = ("-a", HOST, "-p", "1")
WRONG = [
    ((), "which command"), (("lsit",), "did you mean list"), (("load",), "something is missing"),
    (("load", "x"), "a server is needed"), (("load", *NOBODY, "a", "b"), '"b" is too much'),
    (("run", "-r", "a:z", *NOBODY, WALK), "a:z is no region"),
    (("run", "-f", "0", *NOBODY, WALK), "0 is no value for -f"),
    (("run", "--fule", "1", WALK), "did you mean --fuel"),
    (("trace", WALK, "walk", "nothing"), "nothing is neither a number nor a region"),
    (("trace", "-r", "list", WALK), "list needs a file"),
    (("list", *NOBODY, WALK), "an object, or the regions"),
]


def command_line(writer):
    writer.case("--help", run(ACTIVE, "--help").problems())
    writer.case("--version", run(ACTIVE, "--version").problems())
    for name in ("load", "run", "list", "save", "trace", "bench", "help"):
        done = run(ACTIVE, "help", name)
        writer.case(f"help {name}", done.problems() + (
            [] if f"usage: warp-active {name}" in done.out else [done.out]))
    for words, complaint in WRONG:
        writer.case(f"refused: {' '.join(words)[:40] or 'nothing'}",
                    run(ACTIVE, *words).problems(2, "", complaint))
    writer.case("no server", run(ACTIVE, "list", *NOBODY).problems(3, "", "refused"))
    writer.case("no object", run(ACTIVE, "list", "/no/such").problems(3, "", "No such file"))


def at_server(writer, to):
    known = hashlib.sha256(Path(WALK).read_bytes()).hexdigest()
    writer.case("load", run(ACTIVE, "load", *to, WALK).problems(0, f"{known}  {WALK}\n"))
    writer.case("an object that the server refuses",
                run(ACTIVE, "load", *to, REFUSED).problems(1, "", r"refused\.bpf\.c:9"))
    writer.case("run", run(ACTIVE, "run", *to, WALK, "walk", "list", "64", "0").problems(
        0, "value 64 (0x40), 198 instructions\n"))
    for words, status, complaint in (
            (("walk", "list+8", "1", "0"), 1, "read of 8 bytes"), (("walk", "1", "1"), 1, "0x9"),
            (("-f", "50", "walk", "list", "64", "0"), 1, "fuel is used up"),
            (("-r", "list:w", "walk", "list", "1", "0"), 1, "does not allow"),
            (("-r", "none", "walk"), 3, "no such region"), (("none",), 1, 'no function "none"'),
            (("-r", "list=file", "walk"), 2, "which trace and bench take")):
        writer.case(f"run {' '.join(words)}",
                    run(ACTIVE, "run", *to, WALK, *words).problems(status, "", complaint))
    done = run(ACTIVE, "list", *to)
    writer.case("the regions", [] if re.fullmatch(
        r" +0  rwax  0x[0-9a-f]{12} +1050176  list\n", done.out) else [done.out, done.err])


def on_this_host(writer, to):
    """What a program does to saved memory is what it does at the server."""
    done = run(ACTIVE, "save", *to, "list", "saved")
    region = done.out.split()
    writer.case("save", done.problems() + (
        [] if Path("saved").stat().st_size == 1050176 else ["another size"]))
    saved = Path("saved").read_bytes()
    done = run(ACTIVE, "trace", *region, WALK, "walk", "list", "2", "0")
    writer.case("trace", [] if re.fullmatch(
        r"r1 = 0x7fff000000000000, r2 = 0x18\n"
        r"( +\d: r\d = \*\(u64 \*\)\(r1 \+[08]\) +r\d = 0x\w+\n){2}"
        r"; \S*list\.bpf\.c:\d+: for .*\n( +\d: .*\S\n)+"
        r"; \S*list\.bpf\.c:\d+: return node->value;\n"
        r" +7: r0 = \*\(u64 \*\)\(r2 \+0\) +r0 = 0x2\n +8: exit\n"
        r"value 2 \(0x2\), 12 instructions\n", done.out) else done.out.splitlines())
    writer.case("trace of an error", run(ACTIVE, "trace", *region, WALK, "walk", "8", "1", "0")
                .problems(1, None, r"read of 8 bytes at 0x10; 4: r2 = .*list\.bpf\.c"))
    writer.case("trace without the right to it",
                run(ACTIVE, "trace", region[0], region[1] + ":w", WALK, "walk", "list", "1", "0")
                .problems(1, None, "does not allow"))
    writer.case("trace ends with the fuel",
                run(ACTIVE, "trace", "-f", "20", *region, WALK, "walk", "list", "64", "0")
                .problems(1, None, "fuel is used"))
    done = run(ACTIVE, "bench", "-n", "20", *region, WALK, "walk", "list", "64", "0")
    writer.case("bench", [] if len(re.findall(
        r"^(machine code|interpreter) +\d+ ns .* 198 instructions$", done.out, re.M)) == 2
        else [done.out, done.err])
    writer.case("files stay as they are",
                [] if Path("saved").read_bytes() == saved else ["the file has changed"])


def helpers(writer):
    """Output, memory and fuel of helpers are those of a server."""
    Path("table").write_bytes(bytes(65536))
    region = ("-r", "table=table")
    done = run(ACTIVE, "trace", "-o", "out", "-f", "1000000", PROGRAMS, "flood")
    writer.case("output to a file", done.problems() + (
        [] if Path("out").read_bytes() == b"x" * 65500 else ["another output"]))
    writer.case("a region is changed for the program alone",
                run(ACTIVE, "trace", *region, PROGRAMS, "poke", "table", "5").problems()
                + ([] if Path("table").read_bytes() == bytes(65536) else ["the file has changed"]))
    Path("args").write_bytes((7).to_bytes(8, "little"))
    done = run(ACTIVE, "trace", "-f", "100000", "--args", "args", PROGRAMS, "steps")
    writer.case("arguments from a file", [] if "value 7 (0x7)" in done.out else [done.err])
    done = run(ACTIVE, "list", PROGRAMS)
    writer.case("list of an object", done.problems() + (
        [] if re.search(r"^poke:\n(.*\n)?; \S*active\.bpf\.c:\d+: ", done.out, re.M)
        else [done.out[:300]]))
    writer.case("an object that is refused here",
                run(ACTIVE, "list", REFUSED).problems(1, "", r"refused\.bpf\.c:9"))


def main():
    writer = tap.Writer()
    command_line(writer)
    with tempfile.TemporaryDirectory() as folder, Server(LIST, "serve", "-a", HOST, "-p", "0",
                                                         "-n", "100") as server:
        os.chdir(folder)
        to = ("-a", HOST, "-p", server.port)
        at_server(writer, to)
        on_this_host(writer, to)
        helpers(writer)
        os.chdir("/")
    writer.finish()


if __name__ == "__main__":
    main()
