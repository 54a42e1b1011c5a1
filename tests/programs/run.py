#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Real programs, under the launcher at both ends, at one, and at none.

    run.py WARPSOCK RESPLIT NAME [WAY...]   a scenario in these ways, or in all, as TAP
    run.py WARPSOCK RESPLIT --page [NAME...]   these, or all, and their part of docs/programs.md

RESPLIT is the proxy that cuts streams anew (resplit.c); WARPSOCK_SEED repeats its dice.
"""
import importlib
import re
import shutil
import subprocess
import sys
import time
import traceback
from collections import Counter

from play import HERE, Play
from way import WAYS
import tap

PAGE = HERE.parent.parent / "docs/programs.md"
BEGIN, END = "<!-- begin: tests/programs/run.py -->", "<!-- end -->"
HEAD = ("| command | connections | bytes out | bytes in | FPDUs out | FPDUs in |",
        "| --- | ---: | ---: | ---: | ---: | ---: |")
ALL = ("redis", "memcached", "nginx", "apache", "haproxy", "tls", "iperf3", "sockperf", "python",
       "socat", "rsync", "postgres", "sshd", "vsftpd", "inetd", "git", "processes", "java", "node")


def scenario(name):
    return importlib.import_module(f"play_{name}")


def missing(module):
    return [name for name in module.NEEDS if not shutil.which(name)]


def perform(tools, name, way, writer):
    """Plays it one way; returns its rows for the page."""
    module, start = scenario(name), time.monotonic()
    if way.name in getattr(module, "NOT", {}):
        writer.skip(f"{way.name}: all of it", module.NOT[way.name])
        return []
    with Play(*tools, writer, module, way) as play:
        try:
            module.play(play)
            play.proxied()
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            play.case("the scenario came to its end",
                      [str(error), *traceback.format_exc().splitlines()[-6:]])
        print(f"# {name}, {way.name}: {time.monotonic() - start:.1f} s, {seen(play.rows)}",
              flush=True)
        return play.rows


def version(module):
    """As the program says it of itself."""
    done = subprocess.run(module.VERSION, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=20, check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    return found[0] if found else "?"


# --- the page -----------------------------------------------------------------------------------


def cell(text):
    return text.replace("|", "\\|")


def line(text, report):
    return (f"| `{cell(text)}` | {report['connections']['software']} "
            f"| {report['bytes']['tx']} | {report['bytes']['rx']} "
            f"| {report['fpdus']['tx']} | {report['fpdus']['rx']} |")


def page_parts():
    """What the page has by now: rows of the matrix and sections, by name."""
    text = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    sections = {part.split()[0]: f"### {part.strip()}\n" for part in text.split("### ")[1:]}
    rows = dict(re.findall(r"^(\| (\S+) \|.*)$", text.split("### ")[0], re.M))
    return {name: row for row, name in rows.items()}, sections


def page_problems(name, rows):
    """What the page does not say, or says and was not done."""
    section = page_parts()[1].get(name)
    if not section:
        return [f"docs/programs.md has no section {name}"]
    said = set(re.findall(r"^\| (`.*`) \|", section, re.M))
    done = {f"`{cell(text)}`" for text, _ in rows}
    again = f"write it anew with tests/programs/run.py WARPSOCK RESPLIT --page {name}"
    return [f"{which}: {one} ({again})"
            for which, some in (("not on the page", done - said), ("not done", said - done))
            for one in sorted(some)]


def section_of(name, rows):
    module = scenario(name)
    about = module.__doc__.split(": ", 1)[1].strip()
    return "\n".join([f"### {name} {version(module)}", "", about[0].upper() + about[1:], "", *HEAD,
                      *(line(*row) for row in rows), ""])


def seen(rows):
    """Of a scenario one way: what its reports count."""
    kinds, why = Counter(), Counter()
    for report in (report for _, report in rows if report):
        kinds.update(report["connections"])
        why.update(report["fallbacks"])
    said = [f"{kinds['software']} on DDP"] if kinds["software"] else []
    said += [f"{count} {reason}" for reason, count in sorted(why.items())]
    return ", ".join(said) or "works"


def write_page(tools, names):
    writer = tap.Writer()
    matrix, sections = page_parts()
    for name in names:
        ways = {way.name: perform(tools, name, way, writer) for way in WAYS.values()}
        cells = (seen(rows) if rows else "-" for rows in ways.values())
        matrix[name] = f"| {name} | {' | '.join(cells)} |"
        sections[name] = section_of(name, ways["both"])
    if writer.failed:
        sys.exit("something failed: docs/programs.md stays as it is")
    lines = [f"| program | {' | '.join(WAYS)} |", "| --- |" + " --- |" * len(WAYS),
             *(matrix[name] for name in ALL), "", *(sections[name] for name in ALL)]
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text("\n".join([before + BEGIN, "", *lines, END + rest.split(END)[1]]))


def main():
    *tools, name = sys.argv[1:4]
    if name == "--page":
        write_page(tools, sys.argv[4:] or ALL)
        return
    module, writer = scenario(name), tap.Writer()
    lacking = missing(module)
    if lacking:
        print(f"1..0 # SKIP no {' '.join(lacking)} here")
        return
    for way in sys.argv[4:] or WAYS:
        rows = perform(tools, name, WAYS[way], writer)
        if WAYS[way].whole:
            writer.case("docs/programs.md names these commands", page_problems(name, rows))
    writer.finish()


if __name__ == "__main__":
    main()
