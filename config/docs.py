#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes pages from the tables of config/, or checks that they are what it would make.

    docs.py TABLES WARPSOCK --write    writes docs/options.md, docs/reasons.md, and the manual
                                       pages of man/*.in
    docs.py TABLES WARPSOCK            compares them with what is there; a case for each

TABLES is the program built from config/tables.c, WARPSOCK the launcher, which has the table of
commands. A manual page is its .in file with lines like @OPTIONS@ replaced. What reasons mean at
the other end is config/reason_ends.md. Examples of rules in the pages are read by the code that
reads rules.
"""
import argparse
import difflib
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import tap  # noqa: E402  (found through the line above)

EXAMPLE = ROOT / "docs/warpsock.conf.example"
TEMPLATE = ROOT / "man/warpsock.conf.5.in"
LAUNCHER = ROOT / "man/warpsock.1.in"
BENCH = ROOT / "man/warpsock-bench.1.in"
ENDS = ROOT / "config/reason_ends.md"

OPTIONS_HEAD = """\
# Options

Each option is an environment variable. A bad value is an error: `warpsock run` prints what was
expected and does not start the program. A variable that begins with `WARPSOCK_` and is not
listed here is reported with the name that was probably meant.

A number may have a unit: `k`, `M` or `G` for bytes (powers of 1024), `ns`, `us`, `ms` or `s` for
times. Without one it is bytes, or the unit given below. On is `on` or `1`, off is `off` or
`0`. What is marked *(planned)* is read and checked, but has no effect yet.

This page is made from config/option_table.c and config/profile.c: `ninja -C build docs`.
"""

PROFILES_HEAD = """\
## Profiles

A profile is a set of options under a name. A variable that is set overrides it.
"""

REASONS_HEAD = """\
# Reasons

A reason code tells why a connection is not on DDP, or how one that was on DDP ended. Reports and
logs have the name, `DDP_INFO` has the number; a number is never used again for something else.
`warpsock explain CODE` shows one of these, and takes an errno, too. What the program at the other
end is told stands [below](#at-the-other-end).

This page is made from config/reason_list.h and config/reason_ends.md: `ninja -C build docs`.
"""

GROUPS = {
    "choice": "This end did not ask for DDP",
    "peer": "The other end does not speak it",
    "host": "This host or process could not",
    "end": "It was on DDP and ended",
}


# --- Markdown -----------------------------------------------------------------------------------


def cell(text):
    return text.replace("|", "\\|")


def md_table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(cell, line)) + " |\n" for line in lines)


def md_item(text):
    """An item of a list, in lines of a page; what stands in backquotes is not broken."""
    text = re.sub("`[^`]*`", lambda match: match[0].replace(" ", "\0"), "- " + text)
    lines = textwrap.wrap(text, 100, subsequent_indent="  ", break_long_words=False,
                          break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ") + "\n"


def default_of(option):
    value = option["default"]
    unit = option["unit"] if value.isdigit() and value != "0" else ""
    return f"`{value}{unit}`" if value else "none"


def values_of(option):
    unit = f"; without a unit {option['unit']}" if option["unit"] else ""
    return option["range"] + unit


def for_users(tables):
    return [option for option in tables["options"] if not option["internal"]]


def options_md(tables):
    page = OPTIONS_HEAD + "\n"
    for option in for_users(tables):
        planned = " *(planned)*" if option["planned"] else ""
        page += md_item(f"**`{option['name']}`**, {values_of(option)}, by default "
                        f"{default_of(option)}: {option['text']}{planned}")
    page += "\n" + PROFILES_HEAD
    for profile in tables["profiles"]:
        page += f"\n### {profile['name']}\n\n{profile['text']}\n\n"
        page += md_table(["variable", "value"], [[f"`{name}`", f"`{value}`"] for name, value
                                                 in profile["values"].items()])
    return page


def reasons_md(tables):
    page = REASONS_HEAD
    for group, title in GROUPS.items():
        page += f"\n## {title}\n\n"
        for reason in tables["reasons"]:
            advice = f" *To do:* {reason['advice']}" if reason["advice"] else ""
            if reason["group"] == group:
                page += md_item(f"**`{reason['name']}`**, {reason['number']}: {reason['text']}"
                                f"{advice}")
    return page + "\n" + ENDS.read_text().split("\n", 1)[1]


# --- mdoc ---------------------------------------------------------------------------------------


def roff(text):
    """Plain text as mdoc: a sentence a line, nothing in it that is a macro or an escape."""
    text = re.sub(r"(?<=[.;]) (?=\S)", "\n", text.replace("\\", "\\e").replace("-", "\\-"))
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M) + "\n"


def options_mdoc(tables):
    page = ".Bl -tag -width Ds\n"
    for option in for_users(tables):
        page += f".It Ev {option['name']}\n" + roff(option["text"])
        if option["range"] != "rules":
            page += roff(f"Its value is {values_of(option)}; the default is "
                         f"{default_of(option).strip('`')}.")
        page += "It has no effect yet.\n" if option["planned"] else ""
    return page + ".El\n"


def profiles_mdoc(tables):
    page = ".Bl -tag -width Ds\n"
    for profile in tables["profiles"]:
        values = ", ".join(f"{name}={value}" for name, value in profile["values"].items())
        page += f".It Cm {profile['name']}\n" + roff(profile["text"]) + roff(values + ".")
    return page + ".El\n"


def example_mdoc():
    text = EXAMPLE.read_text().replace("\\", "\\e").replace("-", "\\-")
    return ".Bd -literal\n" + re.sub(r"^([.'])", r"\\&\1", text, flags=re.M) + ".Ed\n"


def page(template, parts):
    text = template.read_text()
    for mark, part in parts.items():
        if text.count(mark + "\n") != 1:
            sys.exit(f"{template}: {text.count(mark)} lines {mark}")
        text = text.replace(mark + "\n", part)
    return text


def page_mdoc(tables):
    return page(TEMPLATE, {"@OPTIONS@": options_mdoc(tables), "@PROFILES@": profiles_mdoc(tables),
                           "@EXAMPLE@": example_mdoc()})


# --- commands -----------------------------------------------------------------------------------


def flag_mdoc(option):
    letter = f"Fl {option['letter']} , " if option["letter"] else ""
    value = f" Ar {option['arg']}" if option["arg"] else ""
    return f"{letter}Fl -{option['name']}{value}"


def synopsis_mdoc(command, name=""):
    """A form on a line of its own, with the options in the first."""
    text = ""
    for number, form in enumerate(command["args"].split("\n")):
        text += f".Nm{name}\n.Cm {command['name']}\n"
        for option in command["options"] if not number else []:
            value = f" Ar {option['arg']}" if option["arg"] else ""
            text += f".Op Fl -{option['name']}{value}\n"
        text += f".Ar {form.replace('|', ' | ')}\n" if form else ""
    return text


def flags_mdoc(command):
    if not command["options"]:
        return ""
    items = "".join(f".It {flag_mdoc(option)}\n" + roff(option["text"])
                    for option in command["options"])
    return ".Bl -tag -width Ds\n" + items + ".El\n"


def command_mdoc(command):
    text = f".Ss {command['name']}\n" + roff(command["summary"])
    text += roff(command["text"]) if command["text"] else ""
    if command["name"] == "bench":
        return text + ".Xr warpsock-bench 1\nhas its options.\n"
    text += flags_mdoc(command)
    if command["examples"]:
        lines = [line.strip() for line in command["examples"].splitlines()]
        text += ".Bd -literal -offset indent\n" + roff_lines(lines) + ".Ed\n"
    return text


def roff_lines(lines):
    text = "\n".join(lines).replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M) + "\n"


def launcher_mdoc(commands):
    others = [command for command in commands if command["name"] != "bench"]
    return page(LAUNCHER, {
        "@SYNOPSIS@": "".join(map(synopsis_mdoc, others)),
        "@COMMANDS@": "Each has\n.Fl -help .\n" + "".join(map(command_mdoc, commands))})


def bench_mdoc(commands):
    command, = (command for command in commands if command["name"] == "bench")
    return page(BENCH, {"@SYNOPSIS@": synopsis_mdoc(command, " warpsock"),
                        "@OPTIONS@": flags_mdoc(command)})


# --- what is there ------------------------------------------------------------------------------


def made(tables, commands):
    return {"docs/options.md": options_md(tables), "docs/reasons.md": reasons_md(tables),
            "man/warpsock.conf.5": page_mdoc(tables), "man/warpsock.1": launcher_mdoc(commands),
            "man/warpsock-bench.1": bench_mdoc(commands)}


def differences(name, page):
    path = ROOT / name
    there = path.read_text() if path.exists() else ""
    return list(difflib.unified_diff(there.splitlines(), page.splitlines(), f"{name}, as it is",
                                     f"{name}, as the tables give it", lineterm="", n=0))


def rules_wrong(program, text):
    """What the parser says of a text with rules, and whether it found any."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([program, "check", file.name], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    if done.returncode:
        return done.stdout.splitlines()
    return [] if done.stdout else ["no rule in it"]


def rules_shown():
    """Every line of the manual page's source that begins as a rule does."""
    lines = re.findall(r"^use (?:ddp|auto|tcp) .*$", TEMPLATE.read_text(), re.M)
    return "\n".join(lines).replace("\\-", "-").replace("\\e", "\\")


def check(program, tables, commands):
    writer = tap.Writer()
    for name, page in made(tables, commands).items():
        writer.case(f"{name} is what the tables give", differences(name, page))
    writer.case("the example is rules", rules_wrong(program, EXAMPLE.read_text()))
    writer.case("the rules in the page are rules", rules_wrong(program, rules_shown()))
    writer.finish()


def asked(*args):
    done = subprocess.run(args, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables")
    parser.add_argument("warpsock")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    tables, commands = asked(options.tables), asked(options.warpsock, "help", "--json")
    if not options.write:
        check(options.tables, tables, commands)
    for name, page in made(tables, commands).items():
        (ROOT / name).write_text(page)


if __name__ == "__main__":
    main()
