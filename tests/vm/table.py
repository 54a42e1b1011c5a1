# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The table of docs/interop.md: rows are the checks of a case, columns the pairs that they ran on.

A case names its table on a line `# Table: operations` or `# Table: streams`, and its checks say
their pair before their name (lib.sh). A cell has passed, or its check ends with ` # departure NAME`
of the closed list departures.txt. A case without that line, and checks without a pair, are about
the lab itself and in no cell.
"""
import re
import subprocess
from pathlib import Path

import tap

HERE = Path(__file__).resolve().parent
PAIRS = {
    "operations": ["software-siw", "siw-software", "verbs-software", "verbs-verbs"],
    "streams": ["software-librspreload", "librspreload-software", "verbs-software", "verbs-verbs",
                "verbs-librspreload"],
}
ALL_PAIRS = {pair for pairs in PAIRS.values() for pair in pairs}
RESULTS = "# What was run last\n"  # in the page; what stands before it is kept
SHARE = 10  # at most one cell in so many may be a departure
LATER = "not yet"
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

    def __init__(self, kind, cases):
        self.pairs = PAIRS[kind]
        self.rows, self.other = {}, []
        for case in cases:
            pair, name, departure = NAMED.match(case.name).groups()
            if pair not in self.pairs:
                self.other.append(case)
                continue
            cell = departure if departure and case.result == "passed" else case.result
            self.rows.setdefault(name, {})[pair] = cell

    def columns(self):
        """Those of the software stack, and those of verbs when there is any"""
        seen = {pair for row in self.rows.values() for pair in row}
        return [pair for pair in self.pairs if pair in seen or not pair.startswith("verbs")]

    def problems(self, known):
        for name, row in self.rows.items():
            for pair in self.columns():
                if pair not in row:
                    yield f"no cell: {pair}: {name}"
                elif row[pair] not in {"passed", "failed", "skipped", *known}:
                    yield f"{pair}: {name}: no such departure: {row[pair]}"

    def cells(self):
        return [cell for row in self.rows.values() for cell in row.values()]

    def later(self):
        return sum(pair not in row for row in self.rows.values() for pair in self.pairs)

    def lines(self):
        if not self.rows:
            return
        yield f"| case | {' | '.join(self.pairs)} |\n|{' --- |' * (len(self.pairs) + 1)}\n"
        for name, row in self.rows.items():
            yield f"| {name} | {' | '.join(row.get(pair, LATER) for pair in self.pairs)} |\n"


def judged(results, whole):
    """Cases about the table itself: the list is closed, every cell is there, few are departures."""
    known, grids = departures(), [Grid(script.table, cases) for script, cases in results
                                  if script.table]
    problems = [problem for grid in grids for problem in grid.problems(known)]
    cells = [cell for grid in grids for cell in grid.cells()]
    odd = sum(cell in known for cell in cells)
    if whole and odd * SHARE > len(cells):
        problems.append(f"{odd} of {len(cells)} cells are departures")
    if whole:
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
                yield tap.Case((f"{head}: " if head in ALL_PAIRS else "") + cells[0] +
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


def counted(text):
    """How many cells of each sort a page has"""
    found = {}
    for line in text.splitlines():
        for cell in re.split(r" \| ", line.strip("| "))[1:] if line.startswith("| ") else ():
            found[cell] = found.get(cell, 0) + 1
    return found


def departure_lines(text):
    seen = counted(text)
    yield ("\nDepartures that stand in cells, and in how many:\n\n"
           "| cell | whose | where | what | cells |\n| --- | --- | --- | --- | --- |\n")
    for name, d in departures().items():
        yield f"| {name} | {d['who']} | {d['where']} | {d['what']} | {seen.get(name, 0)} |\n"


def write(path, results, known, kernel, chosen):
    """Cases that were not run now keep what they have there; when checks are chosen, others do."""
    page = Path(path)
    head, _, rest = (page.read_text() if page.exists() else "").partition(RESULTS)
    old = {text.split(":")[0]: "## " + text.rstrip() + "\n" for text in rest.split("\n## ")[1:]}
    if chosen:
        results = [(script, merged(read_section(old.get(script.name, "")), cases))
                   for script, cases in results]
    new = {script.name: section(script, cases) for script, cases in results}
    sections = ["\n" + {**old, **new}[name] for name in known if name in {**old, **new}]
    lines = [head, RESULTS, "\nWritten by `./dev vm-test --table FILE`. In the name of a column "
             f"the first connects, the second listens; \"{LATER}\": there is no such case yet.\n\n",
             "| | version |\n| --- | --- |\n"]
    lines.append(f"| Linux, siw | {linux(kernel)} |\n")
    for name, package in (("librdmacm", "librdmacm1"), ("tshark", "tshark")):
        lines.append(f"| {name} | {version(package)} |\n")
    page.write_text("".join([*lines, *departure_lines("".join(sections)), *sections]))
