#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Active RDMA against one-sided Reads and a server in C: list, B-trees, hash table. All ends poll.

    run.py [--rounds N] [--samples N] [BUILD]
"""
import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--samples", type=int, default=1000, help="of each way, each round")
    parser.add_argument("build", nargs="?", type=Path, default=HERE.parent.parent / "build")
    given = parser.parse_args()
    programs = [given.build / f"apps/examples/{name}.object" for name in ("list", "btree", "hash")]
    if not programs[0].exists():
        sys.exit(f"{programs[0]} is not there: it is made where clang is. Install clang, then: "
                 f"meson setup --reconfigure {given.build}")
    done = subprocess.run([str(given.build / "bench/active/active_speed"), *map(str, programs),
                           str(given.rounds), str(given.samples)], timeout=900)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
