#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Real programs over DDP, both ends under the launcher, no connection on TCP.

    run.py WARPSOCK NAME        a scenario, as TAP
    run.py WARPSOCK --page      all of them, and the table of docs/programs.md from their reports
"""
import importlib
import re
import shutil
import subprocess
import sys
import traceback

from play import HERE, Play
import tap

PAGE = HERE.parent.parent / "docs/programs.md"
BEGIN, END = "<!-- begin: tests/programs/run.py -->", "<!-- end -->"
HEAD = ("| command | connections | octets out | octets in | FPDUs out | FPDUs in |",
        "| --- | ---: | ---: | ---: | ---: | ---: |")
ALL = ("redis", "memcached", "nginx", "apache", "haproxy", "tls", "iperf3", "sockperf", "python",
       "socat", "rsync", "postgres", "sshd")


def scenario(name):
    return importlib.import_module(f"play_{name}")


def missing(module):
    return [name for name in module.NEEDS if not shutil.which(name)]


def perform(warpsock, name, writer):
    """Plays it; returns its rows for the page."""
    module = scenario(name)
    with Play(warpsock, writer) as play:
        try:
            module.play(play)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            writer.case("the scenario came to its end",
                        [str(error), *traceback.format_exc().splitlines()[-6:]])
        return play.rows


def version(module):
    """As the program says it of itself."""
    done = subprocess.run(module.VERSION, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=20, check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    return found[0] if found else "?"


def cell(text):
    return text.replace("|", "\\|")


def line(text, report):
    return (f"| `{cell(text)}` | {report['connections']['software']} "
            f"| {report['bytes']['tx']} | {report['bytes']['rx']} "
            f"| {report['fpdus']['tx']} | {report['fpdus']['rx']} |")


def page_problems(name, rows):
    """What the page does not say, or says and was not done."""
    text = PAGE.read_text()
    found = re.search(rf"^### {name} .*?(?=^### |^<!-- end)", text, re.M | re.S)
    if not found:
        return [f"docs/programs.md has no section {name}"]
    said = set(re.findall(r"^\| (`.*`) \|", found[0], re.M))
    done = {f"`{cell(text)}`" for text, _ in rows}
    again = "write it anew with tests/programs/run.py WARPSOCK --page"
    return [f"{which}: {one} ({again})"
            for which, some in (("not on the page", done - said), ("not done", said - done))
            for one in sorted(some)]


def sentence(module):
    text = module.__doc__.split(": ", 1)[1].strip()
    return text[0].upper() + text[1:]


def section(warpsock, name, writer):
    module = scenario(name)
    rows = perform(warpsock, name, writer)
    return [f"### {name} {version(module)}", "", sentence(module), "", *HEAD,
            *(line(*row) for row in rows), ""]


def write_page(warpsock):
    writer, lines = tap.Writer(), []
    for name in ALL:
        lines += section(warpsock, name, writer)
    if writer.failed:
        sys.exit("something failed: docs/programs.md stays as it is")
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text("\n".join([before + BEGIN, "", *lines, END + after]))


def main():
    warpsock, name = sys.argv[1:]
    if name == "--page":
        write_page(warpsock)
        return
    module, writer = scenario(name), tap.Writer()
    lacking = missing(module)
    if lacking:
        print(f"1..0 # SKIP no {' '.join(lacking)} here")
        return
    rows = perform(warpsock, name, writer)
    writer.case("docs/programs.md names these commands", page_problems(name, rows))
    writer.finish()


if __name__ == "__main__":
    main()
