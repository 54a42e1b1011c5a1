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


MACROS = """
#define WARP_X_H
#define AMUDP_QX(a) a
#define AMUDP_A16(a) a
#define AM_RequestI0(a) AMUDP_QX(a)
#define AM_RequestI16(a) AMUDP_QX(a)
#define AMX_Go(a) a
#define EBAD 1
"""
EXPLAINED = """.Sh NAME
.Nm AM_RequestIN ,
.Nm a_table
.Sh DESCRIPTION
.Fn AMX_Go
fails with
.Dv EBAD .
.Bl -tag
.It Va const char *a_label
.It Ev DEPTH , Ev DELAY
.El
"""

# what is changed in the page that explains names, into what, how many complaints there are then
GAPS = [
    ("nothing", "", "", 0),
    ("a macro that is only mentioned", ".Nm AM_RequestIN ,", ".Nm x ,\n.Fn AM_RequestIN ,", 1),
    ("a family by one of its members", "AM_RequestIN", "AM_RequestI0", 1),
    ("an alias", "AMX_Go", "AMX_Stop", 1),
    ("a constant", "EBAD", "EGOOD", 1),
    ("a part of a constant's name", "EBAD", "EBADLY", 1),
    ("a variable of a library", "a_table", "a_tables", 1),
    ("its entry", ".It Va const char *a_label", ".Va a_label", 1),
    ("a variable of the environment", " , Ev DELAY", "", 1),
    ("one that nobody reads", "Ev DELAY", "Ev DELAY , Ev DREAM", 1),
]


def gaps(text):
    read = {"".join(names) for names in pages.AM_VARIABLE.findall(
        'am_env_int("DEPTH", 1); getenv("AMUDP_SLAVE_RANK"); microseconds("DELAY", 2);')}
    return [*pages.unexplained_macros(MACROS, [text]),
            *pages.unexplained_data(["a_table", "a_label"], [text]),
            *(read ^ pages.am_variables_shown(text))]


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
    for what, old, new, count in GAPS:
        found = gaps(EXPLAINED.replace(old, new, 1) if old else EXPLAINED)
        writer.case(f"left out: {what}", [] if len(found) == count else [str(found)])
    names = pages.NAME.findall(pages.name_section(PAGE))
    writer.case("names of a page", [] if names == ["warp_one", "warp_two"] else [str(names)])
    found = pages.REFERENCE.findall(PAGE)
    writer.case("references", [] if found == [("warp_rdma", "7")] else [str(found)])
    table = '{ "all", \'a\', NULL, NULL,\n "text" },\n{\n"mode", \'M\', "MODE", "on auto",\n'
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
