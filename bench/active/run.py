#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Active RDMA against one-sided Reads and a server in C: list, B-trees, hash table. All ends poll.

    run.py [--rounds N] [--samples N] [--out FOLDER] [BUILD]

FOLDER gets results.json and a plot of the walks, hops.svg.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import drawing  # noqa: E402

NAMES = {"one-sided": "a Read for each node", "active": "a program, in the server's process",
         "XDP": "a program, in the kernel", "rpc": "a server in C", "UDP": "the same by UDP",
         "AF_XDP": "the same by AF_XDP"}


def results_read(lines):
    """As bench/plots.py wants them: the walks, with their hops for sizes."""
    rows, arms = {}, {}
    for name, number, way, *rounds in (line.split("\t") for line in lines):
        if not name.startswith("list") or not any(map(float, rounds)):
            continue
        arms[way] = NAMES[way]
        row = rows.setdefault(name, {"bench": "latency", "axis": "hops", "place": "loopback",
                                     "size": int(number), "measure": number, "runs": {},
                                     "quantiles": {}})
        row["runs"][way] = list(map(float, rounds))
    return {"arms": arms, "rows": list(rows.values())}


def plot(lines, folder):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "results.json"
    path.write_text(json.dumps(results_read(lines), indent=1) + "\n", encoding="utf-8")
    return drawing.draw(path, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--samples", type=int, default=1000, help="of each way, each round")
    parser.add_argument("--out", type=Path, metavar="FOLDER")
    parser.add_argument("build", nargs="?", type=Path, default=HERE.parent.parent / "build")
    given = parser.parse_args()
    programs = [given.build / f"apps/examples/{name}.object" for name in ("list", "btree", "hash")]
    if not programs[0].exists():
        sys.exit(f"{programs[0]} is not there: it is made where clang is. Install clang, then: "
                 f"meson setup --reconfigure {given.build}")
    with tempfile.NamedTemporaryFile("r", encoding="ascii") as results:
        done = subprocess.run([str(given.build / "bench/active/active_speed"), *map(str, programs),
                               str(given.rounds), str(given.samples), results.name],
                              timeout=900, check=False)
        if done.returncode or not given.out:
            sys.exit(done.returncode)
        sys.exit(plot(results.read().splitlines(), given.out))


if __name__ == "__main__":
    main()
