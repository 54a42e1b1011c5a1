#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""README.md's two hosts, on one: what it has to be typed is typed, and says what stands there.

    readme.py WARPSOCK

Numbers differ from run to run, and the server's name is this host's.
"""
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import tap  # noqa: E402
from launch import free_port  # noqa: E402
from sessions import Desk  # noqa: E402
from terminal import Terminal  # noqa: E402

README = HERE.parent.parent / "README.md"


def sessions(port):
    """(line to type, what it is to say) of each indented block."""
    text = README.read_text()
    text = text[text.index("## Start it"):text.index("## See that")]
    text = text.replace("server:7000", f"127.0.0.1:{port}").replace("7000", str(port))
    text = text.replace("-h server", "-h 127.0.0.1").replace("10.1.2.3", "127.0.0.1")
    for block in re.findall(r"(?:^    .*\n)+", text, re.M):
        first, _, rest = re.sub(r"^    ", "", block, flags=re.M).partition("\n")
        yield first.removeprefix("$ "), rest


def masked(text):
    return re.sub(r"\d+(\.\d+)?", "N", text)


def main():
    writer, port = tap.Writer(), free_port()
    typed = list(sessions(port))
    writer.case("a server, a check and a client", [] if [line.split()[1] for line, _ in typed] ==
                ["run", "check", "run"] else [str(typed)])
    with Desk(sys.argv[1]) as desk, Terminal(desk.stage.dir, desk.env) as server:
        server.press(typed[0][0] + "\n")
        server.see("eady to accept connections")
        for line, wanted in typed[1:]:
            seen, status = desk.terminal.type(line)
            writer.case(line.split(" -")[0], [] if masked(seen) == masked(wanted) and not status
                        else [f"status {status}, and not what README.md shows:",
                              *seen.splitlines()])
        server.press("\x03")
        server.wait_prompt()
    writer.finish()


if __name__ == "__main__":
    main()
