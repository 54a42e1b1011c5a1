#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draws what Active Messages do here: latency, rate and bandwidth by depth, latency by loss.

    plot.py [--realtime] BUILD DIRECTORY [ROUNDS [TRIPS]]

Writes an SVG for each curve and the numbers beside it as a text file. Each number is the median of
several runs, for others may use the machine; a latency is that of so many round trips.
"""
import functools
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 5
TRIPS = 2000
WIDTH, HEIGHT, EDGE = 640, 400, 60
DEPTHS = [1, 2, 4, 8, 16, 32, 64, 128]
LOSSES = [0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3]


def measure(prefix, rounds, build, *args, loss=0):
    command = [*prefix, f"{build}/bench/am/amside", "2", "L", *map(str, args)]
    env = {**os.environ, "AMUDP_FAULT_RATE": str(loss)}
    runs = [subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60, env=env)
            for _ in range(rounds)]
    return statistics.median(float(done.stdout.split()[-1]) for done in runs)


def draw(path, title, x_name, y_name, xs, ys):
    """Points at equal distances: the scale of x is that of its list."""
    top = max(ys) * 1.1
    step = (WIDTH - 2 * EDGE) / (len(xs) - 1)
    points = [(EDGE + i * step, HEIGHT - EDGE - y / top * (HEIGHT - 2 * EDGE))
              for i, y in enumerate(ys)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
        f'<text x="{x:.1f}" y="{HEIGHT - EDGE + 16}" text-anchor="middle">{name}</text>'
        f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{value:.3g}</text>'
        for (x, y), name, value in zip(points, xs, ys))
    path.with_suffix(".svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<text x="{WIDTH / 2}" y="24" text-anchor="middle" font-size="15">{title}</text>'
        f'<path d="M{EDGE},{EDGE} V{HEIGHT - EDGE} H{WIDTH - EDGE}" fill="none" stroke="black"/>'
        f'<polyline points="{line}" fill="none" stroke="navy" stroke-width="2"/>{marks}'
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 16}" text-anchor="middle">{x_name}</text>'
        f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" '
        f'text-anchor="middle">{y_name}</text></svg>\n')
    path.with_suffix(".txt").write_text("".join(f"{x}\t{y}\n" for x, y in zip(xs, ys)))
    print(path.with_suffix(".svg"))


def main():
    args = [arg for arg in sys.argv[1:] if arg != "--realtime"]
    prefix = ["chrt", "-f", "10"] if len(args) < len(sys.argv) - 1 else []
    build, out = os.path.abspath(args[0]), Path(args[1])
    rounds = int(args[2]) if len(args) > 2 else ROUNDS
    trips = args[3] if len(args) > 3 else TRIPS
    run = functools.partial(measure, prefix, rounds, build)
    out.mkdir(parents=True, exist_ok=True)
    rates = [run("rate", 64, 0.2, depth, min(depth, 32)) / 2 for depth in DEPTHS]
    draw(out / "rate-by-depth", "Round trips of 64 octets by depth", "requests outstanding",
         "thousands a second", DEPTHS, [rate / 1e3 for rate in rates])
    draw(out / "latency-by-depth", "Latency of 64 octets by depth", "requests outstanding",
         "microseconds", DEPTHS, [depth / rate * 1e6 for depth, rate in zip(DEPTHS, rates)])
    draw(out / "bandwidth-by-depth", "Bandwidth of 65000-octet transfers by depth",
         "transfers outstanding", "GB/s", DEPTHS,
         [run("bulk", 0.2, 65000, depth) / 1e9 for depth in DEPTHS])
    draw(out / "latency-by-loss", "Round trip of 64 octets by loss", "share of packets dropped",
         "microseconds", LOSSES,
         [run("pingpong", 64, trips, "spin", loss=loss) for loss in LOSSES])


if __name__ == "__main__":
    main()
