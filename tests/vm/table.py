# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The table of docs/interop.md: rows are the checks of a case, columns the pairs that they ran on.

A case names its columns on a line `# Table: PAIR...`, says on another, `# No others: WHY`, why it
has not all, and its checks say their pair before their name (lib.sh). A cell has passed, or its
check ends with ` # departure NAME` of the closed list departures.txt; none is skipped. A case
without such a line, and checks without a pair, are in no cell.
"""
import re
import subprocess
from collections import Counter
from pathlib import Path

import tap

HERE = Path(__file__).resolve().parent
PAIRS = ["software-siw", "siw-software", "software-librspreload", "librspreload-software",
         "verbs-software", "verbs-verbs", "verbs-librspreload", "librspreload-verbs"]
RESULTS = "# What was run last\n"  # in the page; what stands before it is kept
SHARE = 10  # at most one cell in so many may be a departure
LATER = "not run"
NAMED = re.compile(r"(?:([a-z]+-[a-z]+): )?(.*?)(?: # departure (\S+))?$")


# --- the closed list ------------------------------------------------------------------------------


def departures(text=None):
    """name -> its fields"""
    text = (HERE / "departures.txt").read_text() if text is None else text
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = {}
    for block in "\n".join(lines).strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if set(fields) != {"name", "who", "where", "what"}:
            raise ValueError(f"departures.txt: {block}")
        found[fields["name"]] = fields
    return found


# --- cells ----------------------------------------------------------------------------------------


class Grid:
    """The cells of one case."""

    def __init__(self, pairs, cases):
        self.pairs = pairs
        self.rows, self.other = {}, []
        for case in cases:
            pair, name, departure = NAMED.match(case.name).groups()
            if pair not in self.pairs:
                self.other.append(case)
                continue
            cell = departure if departure and case.result == "passed" else case.result
            self.rows.setdefault(name, {})[pair] = cell

    def problems(self, known):
        for name, row in self.rows.items():
            for pair in self.pairs:
                if pair not in row:
                    yield f"no cell: {pair}: {name}"
                elif row[pair] == "skipped":
                    yield f"{pair}: {name}: skipped"
                elif row[pair] not in {"passed", "failed", *known}:
                    yield f"{pair}: {name}: no such departure: {row[pair]}"

    def cells(self):
        return [cell for row in self.rows.values() for cell in row.values()]

    def column(self, pair):
        """What stands in it, in a few words"""
        found = Counter(row.get(pair, LATER) for row in self.rows.values())
        if pair not in self.pairs:
            return ""
        if not found:
            return LATER
        return ", ".join(cell if cell == "passed" and len(found) == 1 else f"{cell} {n}"
                         for cell, n in sorted(found.items(), key=lambda item: -item[1]))

    def lines(self):
        if not self.rows:
            return
        yield f"| case | {' | '.join(self.pairs)} |\n|{' --- |' * (len(self.pairs) + 1)}\n"
        for name, row in self.rows.items():
            yield f"| {name} | {' | '.join(row.get(pair, LATER) for pair in self.pairs)} |\n"


def judged(results, whole):
    """Cases about the table itself: the list is closed, every cell is there, few are departures."""
    known = departures()
    grids = [Grid(script.table, cases) for script, cases in results if script.table]
    problems = [problem for grid in grids for problem in grid.problems(known)]
    problems += [f"{script.name}: nothing says why it has not all columns" for script, _ in results
                 if script.table and len(script.table) < len(PAIRS) and not script.others]
    cells = [cell for grid in grids for cell in grid.cells()]
    odd = sum(cell in known for cell in cells)
    if whole and odd * SHARE > len(cells):
        problems.append(f"{odd} of {len(cells)} cells are departures")
    if whole:
        problems += [f"{script.name}: has no cell" for script, cases in results
                     if script.table and not Grid(script.table, cases).rows]
        used = {cell for cell in cells if cell in known}
        problems += [f"no cell says {name}" for name in sorted(set(known) - used)]
    return tap.Case(f"{len(cells)} cells, {odd} of them departures of a closed list",
                    "failed" if problems else "passed", problems[:30])


# --- the page -------------------------------------------------------------------------------------


def version(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout or "not installed"


def linux(kernel):
    unpacked = HERE.parent.parent / "build-vm" / kernel / "version"
    return unpacked.read_text().strip() if unpacked.exists() else version(f"linux-source-{kernel}")


def other_lines(cases):
    if cases:
        yield "\n| besides | result |\n| --- | --- |\n"
    for case in cases:
        result = case.result if case.result != "skipped" else f"skipped: {case.reason}"
        yield f"| {case.name} | {result} |\n"


def read_section(text):
    """The cases that a section of the page tells of"""
    heads = []
    for line in text.splitlines():
        cells = line[2:-2].split(" | ")
        if not line.startswith("| ") or cells[0] == "---":
            continue
        if cells[0] in ("case", "besides"):
            heads = cells[1:]
            continue
        for head, cell in zip(heads, cells[1:]):
            departs = cell not in ("passed", "failed", "skipped", LATER)
            if cell != LATER and not cell.startswith("skipped: "):
                yield tap.Case((f"{head}: " if head in PAIRS else "") + cells[0] +
                               (f" # departure {cell}" if departs else ""),
                               "passed" if departs else cell)


def merged(old, new):
    """The cases of both; of one that both have, the new."""
    def key(case):
        return re.sub(r" # departure .*|(?<=capture )(\S+:) \w+ \w+ \d+ .*", r"\1", case.name)
    found = {key(case): case for case in old}
    return list({**found, **{key(case): case for case in new}}.values())


def section(script, cases):
    passed = sum(case.result == "passed" for case in cases)
    lines = [f"## {script.name}: {passed} of {len(cases)}\n\n{script.what}.\n\n"]
    if not script.table:
        return "".join([*lines, *list(other_lines(cases))]).replace("\n\n\n", "\n\n")
    grid = Grid(script.table, cases)
    return "".join([*lines, *grid.lines(), *other_lines(grid.other)])


def summary_lines(grids, others):
    """Rows the cases, columns the pairs, and why a case has not all"""
    yield ("\nIn the name of a column the first connects, the second listens. A cell is empty "
           "where a case is not about that pair,\nfor the reason in its last cell; "
           "a name with a number is a departure, and in how many rows.\n\n")
    yield (f"| case | rows | {' | '.join(PAIRS)} | why no others |\n"
           f"|{' --- |' * (len(PAIRS) + 3)}\n")
    for name, grid in grids.items():
        cells = " | ".join(grid.column(pair) for pair in PAIRS)
        yield f"| {name} | {len(grid.rows)} | {cells} | {others[name]} |\n"
    cells = Counter(cell for grid in grids.values() for cell in grid.cells())
    known = departures()
    odd = sum(cells[name] for name in known)
    yield f"\n{sum(cells.values())} cells: {cells['passed']} passed, {odd} departures"
    yield "".join(f", {cells[word]} {word}" for word in ("failed", "skipped") if cells[word])
    yield ".\n\n| departure | whose | where | what | cells |\n| --- | --- | --- | --- | --- |\n"
    for name, d in known.items():
        yield f"| {name} | {d['who']} | {d['where']} | {d['what']} | {cells[name]} |\n"


def write(path, results, known, kernel, chosen):
    """Cases that were not run now keep what they have there; when checks are chosen, others do."""
    page = Path(path)
    head, _, rest = (page.read_text() if page.exists() else "").partition(RESULTS)
    old = {text.split(":")[0]: "## " + text.rstrip() + "\n" for text in rest.split("\n## ")[1:]}
    if chosen:
        results = [(script, merged(read_section(old.get(script.name, "")), cases))
                   for script, cases in results]
    new = {script.name: section(script, cases) for script, cases in results}
    sections = {name: {**old, **new}[name] for name in known if name in {**old, **new}}
    grids = {name: Grid(script.table, read_section(sections.get(name, "")))
             for name, script in known.items() if script.table}
    lines = [head, RESULTS, "\nWritten by `./dev vm-test --table FILE`.\n\n",
             "| | version |\n| --- | --- |\n", f"| Linux, siw | {linux(kernel)} |\n"]
    for name, package in (("librdmacm", "librdmacm1"), ("tshark", "tshark")):
        lines.append(f"| {name} | {version(package)} |\n")
    others = {name: script.others for name, script in known.items()}
    page.write_text("".join([*lines, *summary_lines(grids, others),
                             *("\n" + text for text in sections.values())]))
