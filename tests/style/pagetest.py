#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks the check of the manual pages: each planted lie must be seen, and the truth must pass."""
import tempfile
from pathlib import Path

import pages
from tree import tap

HEADER = """
struct warp_x {
	int a; /* comment */
	struct warp_y *b, *c;
};
int warp_one(struct warp_x *x, int n);
/* int warp_not(void); */
const char *warp_two(void);
"""
PAGE = """.Sh NAME
.Nm warp_one ,
.Nm warp_two
.Nd calls
.Sh SYNOPSIS
.Ft int
.Fo warp_one
.Fa "struct warp_x *x"
.Fa "int n"
.Fc
.Ft const char *
.Fn warp_two void
.Sh DESCRIPTION
.Bd -literal
struct warp_x {
	int a;
	struct warp_y *b, *c;
};
.Ed
.Xr warp_rdma 7
"""

# what is changed in the page, into what, how many complaints there are then
LIES = [
    ("nothing", "", "", 0),
    ("a member's type", "int a;", "long a;", 1),
    ("a member too many", "int a;", "int a, z;", 1),
    ("a struct's name", "struct warp_x {", "struct warp_z {", 1),
    ("an argument's type", '"int n"', '"long n"', 1),
    ("an argument that is missing", '.Fa "int n"\n', "", 1),
    ("what a call returns", ".Ft const char *", ".Ft char *", 1),
    ("a call that is none", ".Fn warp_two void", ".Fn warp_too void", 1),
    ("a call that is none any more", ".Fn warp_two void", ".Fn warp_not void", 1),
]


def complaints(text):
    page = Path("x.3")
    return [*pages.wrong_structs(page, text, pages.structs(HEADER)),
            *pages.wrong_calls(page, text, pages.calls(HEADER))]


def lint_of(text):
    """What mandoc says of a page."""
    with tempfile.TemporaryDirectory() as name:
        page = Path(name) / "x.3"
        page.write_text(text)
        return pages.run(["mandoc", "-Tlint", "-Wwarning", str(page)]).stdout


def main():
    writer = tap.Writer()
    for what, old, new, count in LIES:
        found = complaints(PAGE.replace(old, new, 1) if old else PAGE)
        writer.case(f"changed: {what}", [] if len(found) == count else [str(found)])
    names = pages.NAME.findall(pages.name_section(PAGE))
    writer.case("names of a page", [] if names == ["warp_one", "warp_two"] else [str(names)])
    found = pages.REFERENCE.findall(PAGE)
    writer.case("references", [] if found == [("warp_rdma", "7")] else [str(found)])
    table = '\t\t{ "all", no_argument, NULL, 1 },\n\t\t{ "mode", required_argument, NULL, 2 },\n'
    found = pages.OPTION.findall(table)
    writer.case("options", [] if found == ["all", "mode"] else [str(found)])
    if pages.shutil.which("mandoc"):
        said = lint_of(PAGE.replace(".Ed\n", ""))
        writer.case("mandoc complains", [] if "Bd" in said else [said])
    else:
        writer.skip("mandoc complains", "no mandoc here")
    writer.finish()


if __name__ == "__main__":
    main()
