# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results as Markdown: of plain TCP the median, of the other arms their ratio to it.

A ratio is one of medians; behind it stand the least and the greatest run, over the same median.
"""
import statistics
import textwrap

from arms import BASE

NOTHING = 1e-9
COLUMNS = 100


def number(value):
    """Three digits that count."""
    for limit, form in ((100000, ",.0f"), (1000, ",.0f"), (100, ".0f"), (10, ".1f"), (1, ".2f")):
        if abs(value) >= limit:
            return format(value, form)
    return format(value, ".3g")


def spread(median, values, form=number):
    return f"{form(median)} ({form(min(values))} to {form(max(values))})"


def signed(value):
    return ("+" if value >= 0 else "") + number(value)


def ratio(value):
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def figures(row, key):
    """What a row says of an arm: the median, and all runs in its measure; None: nothing."""
    mine, base = row["runs"].get(key), row["runs"][BASE.key]
    if not mine:
        return None
    middle = statistics.median(base)
    if row["how"] == "ratio" and middle <= NOTHING:
        return None
    told = {"ratio": lambda value: value / middle, "difference": lambda value: value - middle,
            "value": lambda value: value}[row["how"]]
    return told(statistics.median(mine)), [told(value) for value in mine]


def cell(row, key):
    """A ratio has no unit; what is no ratio has one."""
    found = figures(row, key)
    if not found:
        return "-"
    form, unit = {"ratio": (ratio, ""), "difference": (signed, f" {row['unit']}"),
                  "value": (number, f" {row['unit']}")}[row["how"]]
    return spread(*found, form) + unit


def title(row):
    return ": ".join(word for word in (row["measure"], row["figure"]) if word)


def table(rows, arms):
    """One benchmark. Arms without a value in it have no column."""
    keys = [key for key in arms if key != BASE.key and any(key in row["runs"] for row in rows)]
    names = ["what", "where", "better", arms[BASE.key], *(arms[key] for key in keys)]
    lines = [f"| {' | '.join(names)} |", "|" + " --- |" * len(names)]
    for row in rows:
        base = row["runs"][BASE.key]
        cells = [title(row), row["place"], row["better"],
                 f"{spread(statistics.median(base), base)} {row['unit']}",
                 *(cell(row, key) for key in keys)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def settings(found):
    s = found["settings"]
    places = "; ".join(f"{name}: {what}" for name, what in s["places"].items())
    lines = [f"Measured {s['date']}, commit {s['commit']}, scale {s['scale']}: up to {s['rounds']} "
             f"rounds in turns, of {s['seconds']} s where a run has a length.",
             f"Processor: {s['processor']}, {s['processors']} of them; Linux {s['kernel']}; load "
             f"before: {s['load']:.2f}.", f"Places: {places}."]
    if s.get("packages"):
        lines.append(f"Packages: {s['packages']}.")
    if s["busy"]:
        lines.append("**The machine was busy with other programs: these figures say nothing.**")
    return lines


def fold(text):
    return textwrap.fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)


def left_out(found):
    lines = [f"- {name}: {why}" for name, why in found["left_out"].items()]
    for entry in found["skipped"]:
        what = " ".join(filter(None, (entry["bench"] + ":", entry["measure"], entry.get("arm"))))
        lines.append(f"- {what}: {'FAILED: ' if entry.get('failed') else ''}{entry['reason']}")
    return ["", "Left out:", "", *lines] if lines else []


def markdown(found, texts):
    """All of it; texts: a line about each benchmark."""
    lines = "\n\n".join(map(fold, settings(found))).split("\n")
    benches = list(dict.fromkeys(row["bench"] for row in found["rows"]))
    for bench in benches:
        rows = [row for row in found["rows"] if row["bench"] == bench]
        text = "; ".join(filter(None, (texts.get(bench), found["notes"].get(bench))))
        lines += ["", f"### {bench}", "", fold(text), "", *table(rows, found["arms"])]
    return "\n".join(lines + left_out(found)) + "\n"
