#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All measurements of `warpsock bench`, as a table: DDP against plain TCP and their ratio.

    run.py [--seconds N] [--rounds N] [WARPSOCK]

For ping-pong lower is better, time over time; for the others higher, rate over rate.
"""
import argparse
import json
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
MEASURES = [(kind, size, wait, crc)
            for kind, sizes, waits in (("pingpong", (64, 4096), ("block", "spin")),
                                       ("stream", (1024, 65536, 1 << 20), ("block",)),
                                       ("rdma-write", (65536, 1 << 20), ("block",)),
                                       ("rdma-read", (65536, 1 << 20), ("block",)))
            for size in sizes for wait in waits for crc in (True, False)]


def measure(warpsock, given, kind, size, wait, crc):
    command = [warpsock, "bench", kind, "--json", "--size", str(size), f"--{wait}",
               "--seconds", str(given.seconds), "--rounds", str(given.rounds)]
    done = subprocess.run(command + ([] if crc else ["--no-crc"]), stdout=subprocess.PIPE,
                          check=True, timeout=given.rounds * 2 * (given.seconds + 40))
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("warpsock", nargs="?", default=HERE.parent / "build/apps/warpsock")
    given = parser.parse_args()
    print(f"{'':12}{'octets':>8} {'wait':6}{'CRC':4}{'DDP':>10}{'TCP':>10}       ratio")
    for kind, size, wait, crc in MEASURES:
        found = measure(given.warpsock, given, kind, size, wait, crc)
        ddp, tcp = found["ddp"], found["tcp"]
        print(f"{kind:12}{size:8} {wait:6}{'on' if crc else 'off':4}{ddp['median']:10.1f}"
              f"{tcp['median']:10.1f} {ddp['unit']:5}{found['ratio']:7.3f}", flush=True)


if __name__ == "__main__":
    main()
