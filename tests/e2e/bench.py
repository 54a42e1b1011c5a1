#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each measurement of `warpsock bench`, as small as can be: is its JSON whole, and was DDP DDP?

    bench.py WARPSOCK

How fast anything is does not matter here.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

ROUNDS, COUNT, SIZE = 2, 20, 5000
UNITS = {"pingpong": "us", "stream": "MB/s", "rdma-write": "MB/s", "rdma-read": "MB/s"}
NATIVE = ("rdma-write", "rdma-read")
# Program octets of one end that a run has at least, to the other end
LEAST = COUNT * SIZE * ROUNDS
BAD = (["pingpong", "--size", "0"], ["pingpong", "--cpus", "0"], ["pingpong", "--seconds", "x"],
       ["sing"], [], ["pingpong", "stream"], ["stream", "--rounds", "100"])


def run(warpsock, *args):
    return subprocess.run([warpsock, "bench", *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, check=False)


def asked(args):
    """The settings that these options make."""
    first = sorted(os.sched_getaffinity(0))[:2]
    cpus = [first[0], first[-1]] if "--cpus" not in args else [0, 0]
    return {"size": SIZE, "count": COUNT, "seconds": 20, "rounds": ROUNDS,
            "wait": "spin" if "--spin" in args else "block", "crc": "--no-crc" not in args,
            "cpus": cpus}


def side_problems(name, side, unit, cpus):
    runs = side["runs"]
    wanted = {"median": statistics.median(runs), "min": min(runs), "max": max(runs), "unit": unit}
    problems = [f"{name}.{key}: {side[key]}, not {value}" for key, value in wanted.items()
                if key == "unit" and side[key] != value
                or key != "unit" and not math.isclose(side[key], value, abs_tol=0.002)]
    if len(runs) != ROUNDS or min(runs) <= 0:
        problems.append(f"{name}: runs {runs}")
    return problems + [f"{name}.{end}: on processor {side[end]['cpu']}, not {cpu}"
                       for end, cpu in zip(("server", "client"), cpus)
                       if side[end]["cpu"] != cpu]


def ddp_problems(kind, found, report):
    """The runs over DDP were that."""
    if kind in NATIVE:
        return [f"{end}: {found['ddp'][end]}" for end in ("server", "client")
                if found["ddp"][end]["provider"] != "soft"
                or found["ddp"][end]["crc"] != found["settings"]["crc"]
                or found["ddp"][end]["tx_fpdus"] + found["ddp"][end]["rx_fpdus"] < COUNT]
    wanted = {"software": 2 * ROUNDS, "kernel": 0, "verbs": 0, "tcp": 0}
    problems = []
    if report["connections"] != wanted or found["connections"] != {"software": 4, "tcp": 0}:
        problems.append(f"connections: {report['connections']}, {found['connections']}")
    if min(report["bytes"].values()) < LEAST or report["errors"]:
        problems.append(f"too few octets, or errors: {report}")
    return problems


def problems_of(warpsock, kind, *args):
    with tempfile.TemporaryDirectory(prefix="warpsock-e2e-") as folder:
        path = Path(folder) / "report.json"
        done = run(warpsock, kind, "--json", "--rounds", str(ROUNDS), "--count", str(COUNT),
                   "--size", str(SIZE), "--seconds", "20", "--report", str(path), *args)
        if done.returncode:
            return [f"status {done.returncode}: {done.stderr}"]
        found = json.loads(done.stdout)
        report = json.loads(path.read_text()) if kind not in NATIVE else None
    wanted = asked(args)
    problems = [] if found["settings"] == wanted else [f"{found['settings']}, not {wanted}"]
    for place, via in enumerate(("ddp", "tcp")):
        problems += side_problems(via, found[via], UNITS[kind], wanted["cpus"])
        if found[via]["turns"] != list(range(place, 2 * ROUNDS, 2)):
            problems.append(f"{via}: not in turns: {found[via]['turns']}")
    ratio = found["ddp"]["median"] / found["tcp"]["median"]
    if found["bench"] != kind or not math.isclose(found["ratio"], ratio, rel_tol=0.01):
        problems.append(f"{found['bench']}: ratio {found['ratio']}, not {ratio}")
    return problems + ddp_problems(kind, found, report)


def main():
    warpsock, writer = sys.argv[1], tap.Writer()
    for kind in UNITS:
        for args in ([], ["--cpus", "0,0"], ["--no-crc", "--block"]):
            writer.case(" ".join([kind, *args]), problems_of(warpsock, kind, *args))
    for args in BAD:
        done = run(warpsock, *args)
        writer.case(f"bench {' '.join(args)}: refused with a word",
                    [] if done.returncode == 125 and done.stderr and not done.stdout
                    else [f"{done}"])
    writer.finish()


if __name__ == "__main__":
    main()
