# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of the example programs of Active RDMA have in common: both ways of each."""
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "e2e")]
import tap  # noqa: E402
from example import Server, finish, run, start  # noqa: E402

HOST = "127.0.0.1"
WAYS = {"one-sided": ["-1"], "active": []}


class Example:
    """One of the programs, and its server while the block lasts."""

    def __init__(self, program, *options):
        self.program = program
        self.server = Server(program, "serve", "-a", HOST, "-p", "0", *options)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)

    def args(self, verb, way, *words):
        return [self.program, verb, "-a", HOST, "-p", self.server.port, *WAYS[way], *words]

    def ask(self, verb, way, *words):
        return run(*self.args(verb, way, *words))

    def start(self, verb, way, *words):
        return start(*self.args(verb, way, *words))

    def stop(self, writer):
        writer.case("the server ends by a signal", self.server.stop().problems())


def command_line(writer, program, refused):
    """--help, --version, and pairs of words and what is said of them."""
    writer.case("--help", run(program, "--help").problems())
    writer.case("--version", run(program, "--version").problems())
    for words, complaint in refused:
        writer.case(f"refused: {' '.join(words)[:30] or 'nothing'}",
                    run(program, *words).problems(2, "", complaint))


def finish_all(started):
    return [problem for one in started for problem in finish(one).problems()]


def times(writer, example, verb, *words, trips):
    """-r tells how many round trips each way takes."""
    for way in WAYS:
        done = example.ask(verb, way, "-r", "3", *words)
        wanted = f"{way}, {trips[way]} round trips"
        writer.case(f"times of {verb}, {way}", [] if wanted in done.out else
                    [f"no {wanted!r} in {done.out!r}", done.err])
