#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The eBPF engine against native C: list walks, hashes and byte searches, checks included; and
queries that are made at run time against regexec(3) and native C.

    run.py [--milliseconds N] [BUILD]

Compiles kernels.bpf.c with clang and runs bpf_speed, which prints nanoseconds for one step and
the ratios to native C.
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Freestanding: <stdint.h> is clang's own, where libc's asks for headers of 32-bit programs
CLANG = ["clang", "-O2", "-g", "-mcpu=v3", "-target", "bpf", "-ffreestanding"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--milliseconds", type=float, default=20, help="of one turn of 15")
    parser.add_argument("build", nargs="?", type=Path, default=HERE.parent.parent / "build")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        program = f"{scratch}/kernels.o"
        subprocess.run([*CLANG, "-c", str(HERE / "kernels.bpf.c"), "-o", program], check=True,
                       timeout=60)
        done = subprocess.run([str(given.build / "bench/bpf/bpf_speed"), program,
                               str(given.milliseconds)], timeout=600)
    print(flush=True)
    queries = subprocess.run([str(given.build / "bench/bpf/bpf_queries")], timeout=600)
    sys.exit(done.returncode or queries.returncode)


if __name__ == "__main__":
    main()
