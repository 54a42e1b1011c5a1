# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Draws results as SVG: latency, bandwidth and processor time by size, distribution of latency;
latency by the length of a walk; and how several ways of the same compare.

    plots.py RESULTS FOLDER
"""
import json
import statistics
import sys
from pathlib import Path

try:
    import matplotlib
except ImportError:
    sys.exit(3)  # run.py tries another interpreter

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "warpsock"  # the same file from the same results
matplotlib.rcParams["svg.fonttype"] = "none"  # text as text
from matplotlib import pyplot, ticker  # noqa: E402

AXES = {"latency": ("Round trip by size", "us"), "bandwidth": ("Bandwidth by size", "MB/s"),
        "hops": ("A walk along a list, by hops", "us"),
        "cpu by bytes": ("CPU of both ends per GB, by size", "s/GB"),
        "cpu by messages": ("CPU of both ends per million messages, by size", "s")}
SIZES = {"hops": "hops"}  # what the sizes are, if not bytes of a message
STYLE = "osD^vPX*<>"


def save(figure, axes, path, title, x, y):
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def by_size(found, bench, axis, path):
    """A line for each arm, with the least and the greatest of its runs; false: nothing to draw."""
    rows = [row for row in found["rows"] if row["axis"] == axis and row["bench"] == bench]
    places = list(dict.fromkeys(row["place"] for row in rows))
    rows = sorted((row for row in rows if row["place"] == places[0]), key=lambda row: row["size"])
    if len(rows) < 2:
        return False
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for (key, name), marker in zip(found["arms"].items(), STYLE * 3):
        points = [(row["size"], row["runs"][key]) for row in rows if row["runs"].get(key)]
        if not points:
            continue
        ys = [statistics.median(runs) for _, runs in points]
        low = [y - min(runs) for y, (_, runs) in zip(ys, points)]
        high = [max(runs) - y for y, (_, runs) in zip(ys, points)]
        axes.errorbar([x for x, _ in points], ys, (low, high), label=name, marker=marker,
                      markersize=4, linewidth=1, capsize=2)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks([row["size"] for row in rows], [row["measure"].split(", ")[-1] for row in rows])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    save(figure, axes, path, f"{AXES[axis][0]} ({places[0]})",
         SIZES.get(axis, "bytes of a message"), AXES[axis][1])
    return True


def middle(several):
    """The quantiles of several runs: of each the median."""
    return [(run[0][0], statistics.median(value for _, value in run))
            for run in zip(*several)]


def distribution(found, row, path):
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for key, name in found["arms"].items():
        if row["quantiles"].get(key):
            points = middle(row["quantiles"][key])
            axes.plot([value for _, value in points], [part * 100 for part, _ in points],
                      label=name, linewidth=1)
    axes.set_xscale("log")
    save(figure, axes, path, f"Distribution of round trips, {row['measure']} ({row['place']})",
         "us", "% of round trips that take at most so long")


def by_way(found, path):
    """Bars of each way for each question, as parts of what the first way has; one plot a figure."""
    questions = list(dict.fromkeys(row["name"] for row in found["ways"]))
    ways = list(dict.fromkeys(row["way"] for row in found["ways"]))
    figure, plots = pyplot.subplots(1, 2, figsize=(10, 1 + 0.55 * len(questions)), sharey=True)
    high = 0.8 / (len(ways) - 1)
    for axes, what in zip(plots, ("seconds", "packets")):
        rows = {(row["name"], row["way"]): row[what] for row in found["ways"]}
        for i, way in enumerate(ways[1:]):
            there = [k for k, name in enumerate(questions) if (name, way) in rows]
            parts = [rows[questions[k], way] / rows[questions[k], ways[0]] for k in there]
            axes.barh([k + (i + 0.5) * high - 0.4 for k in there], parts, high, label=way)
        axes.axvline(1, color="black", linewidth=1, label=ways[0])
        axes.set_xscale("log")
        axes.set_yticks(range(len(questions)), questions)
        axes.set_title(what)
        axes.set_xlabel(f"of {ways[0]}'s")
        axes.grid(True, axis="x", alpha=0.3)
    plots[0].invert_yaxis()
    plots[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main():
    found = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2])
    if found.get("ways"):
        by_way(found, folder / "ways.svg")
        return
    for bench, axis in dict.fromkeys((row["bench"], row["axis"]) for row in found["rows"]
                                     if row["axis"]):
        name = axis if bench in ("latency", "bandwidth") else f"{bench} {axis}"
        by_size(found, bench, axis, folder / f"{name.replace(' ', '-')}.svg")
    for row in found["rows"]:
        if row["quantiles"] and row["size"] == 64:
            name = f"distribution-{row['bench']}-{row['place'].replace(' ', '-')}.svg"
            distribution(found, row, folder / name)


if __name__ == "__main__":
    main()
