#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks the manual pages against what is built: no page, no export.

    pages.py BUILD [--root ROOT]

Each exported call and each installed program has a page, what a page shows of a struct or of a
call is what the header says, no page refers to one of ours that is not there, and mandoc has
nothing to complain about.
"""
import argparse
import json
import re
import shutil
import subprocess
from pathlib import Path

import tree
from tree import tap

NAME = re.compile(r"^\.Nm (\S+)", re.M)
REFERENCE = re.compile(r"^\.Xr (warp\S*) (\d)", re.M)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.M | re.S)
ATTRIBUTE = re.compile(r"\s*__attribute__\(\(.*\)\)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
VARIABLE = re.compile(r'"(WARPSOCK_[A-Z_]+)"')
OPTION = re.compile(r'^\t+\{ "([a-z-]+)", (?:no|required|optional)_argument', re.M)
CALL = re.compile(r"^(\w[\w *]*?)(\*?)((?:warp_|_?AM)\w+)\(([^;{]*)\);", re.M)


def run(args):
    return subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=60)


def squeeze(text):
    return re.sub(r"\s*([*,()])\s*", r"\1", " ".join(text.split()))


def name_section(text):
    return text.partition(".Sh NAME")[2].partition(".Sh")[0]


def exported(library):
    out = run(["nm", "-D", "--defined-only", str(library)]).stdout
    return sorted({line.split()[2].partition("@")[0] for line in out.splitlines()
                   if line.split()[1] not in "ABDR"})


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
    headers = "\n".join(ATTRIBUTE.sub("", path.read_text()) for pattern in ("rdma*.h", "amudp*.h")
                        for path in sorted((root / "include/warp").glob(pattern)))
    lint(writer, pages)
    writer.case("each exported call has a page",
                [f"{name} has none" for library in ("lib/libwarp.so", "am/libamudp.so")
                 for name in exported(given.build / library)
                 if (name, "3") not in names])
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
    manual = (root / "man/warpsock.1").read_text()
    options = OPTION.findall("".join(path.read_text()
                                     for path in sorted((root / "apps/warpsock").glob("*.[ch]"))))
    writer.case("each option of the launcher is explained",
                [f"{name} is not in warpsock.1" for name in options
                 if f".It Fl -{name}" not in manual])
    writer.case("structs are shown as they are",
                [wrong for page, text in pages.items()
                 for wrong in wrong_structs(page, text, structs(headers))])
    declared = calls(headers)
    writer.case("calls are shown as they are",
                [wrong for page, text in pages.items()
                 for wrong in wrong_calls(page, text, declared)])
    writer.case("the header's calls and the launcher's options are seen",
                [] if len(declared) > 30 and options else [str(declared), str(options)])
    writer.finish()


if __name__ == "__main__":
    main()
