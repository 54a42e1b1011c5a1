#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks the manual pages against what is built: no page, no export.

    pages.py BUILD [--root ROOT]

Each exported call and each installed program has a page, each exported variable, macro of a public
header and environment variable is explained on one, what a page shows of a struct or of a call is
what the header says, no page refers to one of ours that is not there, and mandoc has nothing to
complain about.
"""
import argparse
import json
import re
import shutil
import subprocess
from pathlib import Path

import tree
from tree import tap

LIBRARIES = ("lib/libwarp.so", "am/libamudp.so", "active/libwarp-active.so")
NAME = re.compile(r"^\.Nm (\S+)", re.M)
REFERENCE = re.compile(r"^\.Xr (warp\S*) (\d)", re.M)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.M | re.S)
ATTRIBUTE = re.compile(r"\s*__attribute__\(\(.*\)\)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
VARIABLE = re.compile(r'"(WARPSOCK_[A-Z_]+)"')
# am/'s helpers that take a variable's name; the console sets SLAVE_* for its workers
AM_VARIABLE = re.compile(r'\b(?:am_env_[a-z]+|microseconds|rate)\("([A-Z_]+)"'
                         r'|\badd_directory\(&?\w+, "([A-Z_]+)"'
                         r'|\bgetenv\("AMUDP_(?!SLAVE_)([A-Z_]+)"')
MACRO = re.compile(r"^#define (\w+)(\(?)", re.M)
# include guards, and what only other macros use: AMUDP_QX and so on
INNER = re.compile(r"WARP_\w+_H|AMUDP_([A-Z]{1,2}|A\d+|DECLARE)")
FORM = re.compile(r"(AM_(?:Request|GetXfer|Reply)\w*?)\d+")
OPTION = re.compile(r'"([a-z-]+)", \'[a-zA-Z]\', (?:NULL|")')
CALL = re.compile(r"^(\w[\w *]*?)(\*?)((?:warp_|_?AM)\w+)\(([^;{]*)\);", re.M)


def run(args):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60)


def squeeze(text):
    return re.sub(r"\s*([*,()])\s*", r"\1", " ".join(text.split()))


def name_section(text):
    return text.partition(".Sh NAME")[2].partition(".Sh")[0]


def exported(library, data=False):
    """The calls of a library, or its variables."""
    out = run(["nm", "-D", "--defined-only", str(library)]).stdout
    return sorted({line.split()[2].partition("@")[0] for line in out.splitlines()
                   if line.split()[1] != "A" and (line.split()[1] in "BDR") == data})


def programs(build):
    out = subprocess.run(["meson", "introspect", "--installed", str(build)], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return sorted(Path(path).name for path in json.loads(out).values()
                  if Path(path).parent.name == "bin")


def structs(text):
    """The declarations of structs in text, from name to body, without comments."""
    return {name: squeeze(body) for name, body in STRUCT.findall(COMMENT.sub("", text))}


def calls(headers):
    """What a page must say of each call: its type and its arguments."""
    found = {}
    for kind, star, name, args in CALL.findall(COMMENT.sub("", headers)):
        args = [squeeze(arg) for arg in args.split(",")]
        found[name] = (squeeze(kind + star), args)
    return found


def shown_calls(text):
    """Yields name, type and arguments of each call in a page's synopsis."""
    synopsis = text.partition(".Sh SYNOPSIS")[2].partition(".Sh")[0]
    kind, name, args = None, None, []
    for line in synopsis.splitlines():
        macro, _, rest = line.partition(" ")
        if macro == ".Ft":
            kind = squeeze(rest)
        elif macro == ".Fn":
            name, _, rest = rest.partition(" ")
            quoted = re.findall(r'"([^"]*)"|(\S+)', rest)
            yield name, kind, [squeeze(a or b) for a, b in quoted]
        elif macro == ".Fo":
            name, args = rest, []
        elif macro == ".Fa":
            args.append(squeeze(rest.strip('"')))
        elif macro == ".Fc":
            yield name, kind, args


def wrong_structs(page, text, declared):
    for name, body in structs(text).items():
        if declared.get(name) != body:
            yield f"{page.name}: struct {name} is not as in the header"


def wrong_calls(page, text, declared):
    for name, kind, args in shown_calls(text):
        if declared.get(name) != (kind, args):
            yield f"{page.name}: {name} is {declared.get(name)} in the header"


def variables(root):
    """The environment variables that base/ and preload/ read and that the launcher's table has."""
    files = tree.ours(root / "base", ".c") + tree.ours(root / "preload", ".c")
    files = [path for path in files if path != root / "base/point.c"]  # no program has it
    files += [path for path in [root / "config/config.c"] if path.exists()]
    return sorted({name for path in files for name in VARIABLE.findall(path.read_text())})


def am_variables(root):
    """Those that am/ reads, which may have AMUDP_ before them."""
    text = "".join(path.read_text() for path in tree.ours(root / "am", ".c"))
    return {"".join(names) for names in AM_VARIABLE.findall(text)}


def am_variables_shown(text):
    """Those that a page has entries for."""
    return {name for line in text.splitlines() if line.startswith(".It Ev ")
            for name in re.findall(r"\bEv (\w+)", line)}


def macros(headers):
    """The macros of public headers, from name to whether it is called; N is any number."""
    return {FORM.sub(r"\1N", name): bool(bracket) for name, bracket in MACRO.findall(headers)
            if not INNER.fullmatch(name)}


def unexplained_macros(headers, pages):
    """One that is called has a name of its own; other words, and those under AMX_, have a place."""
    named = {name for text in pages for name in NAME.findall(name_section(text))}
    words = {word for text in pages for word in re.findall(r"\w+", text)}
    for name, is_called in macros(headers).items():
        if name not in (named if is_called and not name.startswith("AMX_") else words):
            yield f"{name} is on no page"


def unexplained_data(names, pages):
    for name in names:
        entry = re.compile(rf"^\.(Nm|It Va .*) \*?{name}\b", re.M)
        if not any(entry.search(text) for text in pages):
            yield f"{name} is on no page"


def lint(writer, pages):
    if not shutil.which("mandoc"):
        writer.skip("mandoc finds nothing wrong", "no mandoc here")
        return
    done = run(["mandoc", "-Tlint", "-Wwarning", *map(str, pages)])
    writer.case("mandoc finds nothing wrong", done.stdout.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--root", type=Path, default=tree.ROOT)
    given = parser.parse_args()
    root, writer = given.root.resolve(), tap.Writer()
    pages = {page: page.read_text() for page in sorted((root / "man").glob("*.[1-9]"))}
    names = {(name, page.suffix[1:]) for page, text in pages.items()
             for name in NAME.findall(name_section(text))}
    headers = "\n".join(ATTRIBUTE.sub("", path.read_text())
                        for pattern in ("rdma*.h", "amudp*.h", "active*.h")
                        for path in sorted((root / "include/warp").glob(pattern)))
    lint(writer, pages)
    writer.case("each exported call has a page",
                [f"{name} has none" for library in LIBRARIES
                 for name in exported(given.build / library)
                 if (name, "3") not in names])
    interfaces = [text for page, text in pages.items() if page.suffix in (".3", ".7")]
    data = [name for library in LIBRARIES
            for name in exported(given.build / library, data=True)]
    writer.case("each exported variable is explained", list(unexplained_data(data, interfaces)))
    public = "\n".join(path.read_text() for path in sorted((root / "include/warp").glob("*.h")))
    writer.case("each macro of the public headers is explained",
                list(unexplained_macros(public, interfaces)))
    writer.case("each installed program has a page",
                [f"{name} has none" for name in programs(given.build)
                 if (name, "1") not in names])
    writer.case("each page of ours that another refers to is there",
                [f"{page.name}: {name}({section})" for page, text in pages.items()
                 for name, section in REFERENCE.findall(text)
                 if not (root / "man" / f"{name}.{section}").exists()])
    listed = (root / "man/meson.build").read_text()
    writer.case("each page is installed",
                [f"{page.name} is not" for page in pages if f"'{page.name}'" not in listed])
    writer.case("each environment variable is explained",
                [f"{name} is on no page" for name in variables(root)
                 if not any(f".It Ev {name}\n" in text for text in pages.values())])
    read, shown = am_variables(root), am_variables_shown((root / "man/amudp.7").read_text())
    writer.case("each environment variable of jobs is explained, and read",
                [f"{name} is read or explained only" for name in sorted(read ^ shown)])
    manual = "".join((root / "man" / name).read_text() for name in ("warpsock.1",
                                                                    "warpsock-bench.1"))
    options = OPTION.findall("".join(path.read_text()
                                     for path in sorted((root / "apps/warpsock").glob("*.[ch]"))))
    writer.case("each option of the launcher is explained",
                [f"{name} is on no page" for name in options
                 if not re.search(rf"^\.It .*\bFl -{name}\b", manual, re.M)])
    writer.case("structs are shown as they are",
                [wrong for page, text in pages.items()
                 for wrong in wrong_structs(page, text, structs(headers))])
    declared = calls(headers)
    writer.case("calls are shown as they are",
                [wrong for page, text in pages.items()
                 for wrong in wrong_calls(page, text, declared)])
    writer.case("what is to be explained is seen",
                [f"too few: {len(some)}, {some}"
                 for some, least in [(declared, 30), (options, 1), (data, 7), (read, 30),
                                     (macros(public), 70)] if len(some) < least])
    writer.finish()


if __name__ == "__main__":
    main()
