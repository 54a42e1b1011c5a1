#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-ddp under the launcher and without it.

    ddp.py WARPSOCK WARP-DDP

      warp-ddp use  --- user message, Writes, Reads, Atomics ---  warp-ddp serve
"""
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from launch import Stage  # noqa: E402

WARP_DDP = os.path.abspath(sys.argv[2])
CLIENT = """Write 1: 12 bytes, status 0
Read 2: 12 bytes, status 0
read back "hello there"
Atomic 3: 8 bytes, status 0
the counter was 40
Atomic 4: 8 bytes, status 0
the counter was 42
Write 5: 8 bytes, status 0
the server says bye
"""
NO_DDP = "sockets know no DDP here; run it as: warpsock run -- warp-ddp"


def missing(text, *wanted):
    return [f"no {w!r} in {text!r}" for w in wanted if w not in text]


def works(writer, stage):
    server = stage.start("server", [WARP_DDP, "serve", "-p", "0"], rules=[])
    port = re.search(r"port (\d+)", stage.wait_text("server")).group(1)
    status = stage.run("client", [WARP_DDP, "use", "-p", port, "hello there"], rules=[])
    writer.case("the client does all of it", missing(stage.text("client"), CLIENT) +
                ([f"status {status}"] if status else []))
    status = stage.end(server)
    writer.case("the server's memory was written and counted",
                missing(stage.text("server"), 'the client wrote "hello there"',
                        "the counter is 84", "provider soft") +
                ([f"status {status}"] if status else []))
    report = stage.report("client") or {}
    writer.case("the report counts it",
                [] if report.get("connections", {}).get("software") == 1 else [str(report)])


def options(writer, stage):
    """What the environment says is in force, and the peer goes by it"""
    env = {"WARPSOCK_RING": "50k", "WARPSOCK_CRC": "off", "WARPSOCK_SPIN": "200us",
           "WARPSOCK_MARKERS": "on", "WARPSOCK_CREDITS": "32"}
    server = stage.start("opt-server", [WARP_DDP, "serve", "-p", "0"], rules=[], env=env)
    port = re.search(r"port (\d+)", stage.wait_text("opt-server")).group(1)
    status = stage.run("opt-client", [WARP_DDP, "use", "-p", port, "hello there"], rules=[],
                       env=env)
    stage.end(server)
    writer.case("options of the environment",
                missing(stage.text("opt-client"), CLIENT, "CRC off", "ring 65536", "markers in out")
                + missing(stage.text("opt-server"), "ring 65536", "markers in out") +
                ([f"status {status}"] if status else []))


def without(writer, stage):
    for name, args in (("serve", ["serve", "-p", "0"]), ("use", ["use", "-p", "1", "x"])):
        status = stage.run(name, [WARP_DDP, *args], mode=None)
        writer.case(f"{name} without the launcher says what to do",
                    missing(stage.text(name, "err"), NO_DDP) +
                    ([] if status == 4 else [f"status {status}"]))


def refused(writer, stage):
    for args in ([], ["serve", "x"], ["use"], ["take"], ["-x"]):
        name = "refused" + "".join(args)
        status = stage.run(name, [WARP_DDP, *args], mode=None)
        writer.case(f"refused: {' '.join(args) or 'nothing'}",
                    missing(stage.text(name, "err"), "usage: warp-ddp") +
                    ([] if status == 2 else [f"status {status}"]))


def main():
    writer = tap.Writer()
    with Stage(sys.argv[1]) as stage:
        for cases in (works, options, without, refused):
            cases(writer, stage)
    writer.finish()


if __name__ == "__main__":
    main()
