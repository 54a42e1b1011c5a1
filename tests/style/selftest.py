#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plants each violation in a small tree and checks that the right case, and only it, turns red."""
import subprocess
import sys
import tempfile
from pathlib import Path

import tree
from tree import tap

HERE = Path(__file__).resolve().parent
SPDX = "/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */\n"
CHAPTER = "/*\n * A file that is here to be checked by a test.\n */\n"


def function(lines, name="long_one"):
    return f"\nint {name}(void)\n{{\n" + "\tputs(\"x\");\n" * (lines - 4) + "\treturn 0;\n}\n"


def code(text):
    return SPDX + CHAPTER + text


def many(lines, count):
    return code("#include <stdio.h>\n" + "".join(function(lines, f"f{i}") for i in range(count)))


def uses(name, *others, data="1"):
    """A file whose function name() calls others."""
    declared = "".join(f"int {other}(void);\n" for other in others)
    calls = " + ".join([f"{other}()" for other in others] + [data])
    return code(f"{declared}\nint {name}(void)\n{{\n\treturn {calls};\n}}\n")


GOOD = {
    "tests/style/order.txt": "[hydra]\nlow: low\nhigh: high\n      other/*\n[ripc]\n",
    "hydra/low.c": uses("low"),
    "hydra/high.c": code("int height = 2;\n\nint low(void);\n") + function(4, "high"),
    "hydra/other/near.c": uses("near", "low", "high"),
    "ripc/a.c": uses("a"),
    "ripc/b.c": uses("b", "a"),
    "base/many.c": many(5, 20),
    "base/a.h": SPDX + "int a(void);\n",
    "base/a.c": SPDX + CHAPTER + '#include "base/a.h"\n\nint a(void)\n{\n\treturn 1;\n}\n',
    "mpa/b.c": SPDX + CHAPTER + '#include "base/a.h"\n\n#include <stdio.h>\n',
    "include/warp/ok.h": SPDX + "int ok(int);\n",
    "kmod/Kbuild": "# " + SPDX[3:-4] + "\nmodule-y := $(addprefix ../rdmap/,k.o)\n",
    "kmod/compat/base.c": code("int base_b(void);\n"),
    "kmod/compat/string.h": SPDX,
    "rdmap/k.c": uses("k", "base_b"),
    "stream/state/host.h": SPDX + "int host(void);\n",
    "stream/protocol/p.c": uses("p", "host"),
}


def entry(test, name="b", do="z"):
    return f"### {name}\n\n- TCP: x.\n- DDP: y.\n- Do: {do}\n- Test: {test}\n"


def limits(*found):
    return "# Limits\n\n## A section\n\n" + "\n".join(found)


def programs(*checks):
    return ("## Over an RDMA device\n\n" + "".join(
        f"- **curl**:\n  - Runs: x.\n  - Checks: {check}\n" for check in checks) +
        "\n## Other\n\n### curl 1.2\n")


# check, what the planted file is, its text, words of the one case that must fail
PLANTS = [
    ("layers", "base/up.c", code('#include "mpa/b.h"\n'), "layers of base"),
    ("layers", "mpa/up.c", code('#include "ddp/x.h"\n'), "layers of mpa"),
    ("layers", "ddp/skip.c", code("#include <warp/ok.h>\n"), "layers of ddp"),
    ("layers", "mpa/deep/up.c", code('#include "ddp/x.h"\n'), "layers of mpa"),
    ("layers", "soft/verbs.c", code("#include <infiniband/verbs.h>\n"), "layers of soft"),
    ("layers", "new/x.c", code('#include "base/a.h"\n'), "layers of new"),
    ("layers", "preload/new/x.c", code('#include "base/a.h"\n'), "layers of preload"),
    ("layers", "preload/table/up.c", code('#include "preload/wait/w.h"\n'), "preload/table"),
    ("layers", "preload/wait/up.h", SPDX + "int x(void);\n", "defines what it declares"),
    ("layers", "tests/style/layers.txt", "base mpa\nmpa base\ninclude\n", "no circle"),
    ("order", "hydra/low.c", uses("low", "high"), "order of hydra"),
    ("order", "hydra/low.c", "extern int height;\n" + uses("low", data="height"), "order of hydra"),
    ("order", "hydra/low.c", code("int high(void);\nint (*call)(void) = high;\n"
                                  "int low(void)\n{\n\treturn 1;\n}\n"), "order of hydra"),
    ("order", "hydra/high.c", "int height;\n" + uses("high", "near"), "order of hydra"),
    ("order", "hydra/new.c", uses("new"), "order of hydra"),
    ("order", "ripc/a.c", uses("a", "b"), "order of ripc"),
    ("order", "ripc/a.c", code("not C\n"), "order of ripc"),
    ("order", "tests/style/order.txt", "[hydra]\nlow: low gone\nhigh: high other/near\n", "hydra"),
    ("order", "tests/style/order.txt", "[hydra]\nlow: low high\nhigh: high other/*\n", "hydra"),
    ("order", "tests/style/order.txt", "[gone]\n", "order of gone"),
    ("freestanding", "stream/protocol/p.c", uses("p", "getpid"), "stream/protocol stands alone"),
    ("freestanding", "rdmap/k.c", code("#include <unistd.h>\n"), "rdmap stands alone"),
    ("freestanding", "rdmap/k.c", code("double k(double a);\n\ndouble k(double a)\n{\n"
                                       "\treturn a * 2;\n}\n"), "rdmap stands alone"),
    ("freestanding", "rdmap/k.c", code("int k(int *(*next)(int *));\n\n"
                                       "int k(int *(*next)(int *))\n{\n\tint big[300];\n\n"
                                       "\treturn *next(big);\n}\n"), "rdmap stands alone"),
    ("lengths", "base/l.c", code(function(101)), "over 100 lines"),
    ("lengths", "base/l.c", many(14, 45), "the median function"),
    ("lengths", "base/l.c", many(46, 5), "nine in ten"),
    ("lengths", "base/l.c", code("int x;\n" * 700), "no file is over"),
    ("lengths", "base/l.h", SPDX + "int x;\n" * 200, "no file is over"),
    ("lengths", "tests/style/exceptions.txt", "base/a.c a: it is not long\n", "is needed"),
    ("format", "mpa/f.c", code("int  x;\n"), "format of mpa"),
    ("words", "base/w.c", code("int x; \n"), "white space"),
    ("words", "base/w.h", "int x;\n", "licence first"),
    ("words", "base/w.sh", "#!/bin/sh\necho\n", "licence first"),
    ("words", "base/w.c", SPDX + "int x;\n", "opens with a chapter"),
    ("words", "base/w.c", SPDX + "/*\n * Short.\n */\n", "opens with a chapter"),
    ("words", "base/w.h", SPDX + "\t\t\t" + "x" * 77 + "\n", "100 columns"),
    ("words", "base/w.h", SPDX + "/* TO" "DO: all */\n", "left to be done"),
    ("words", "base/w.py", "# " + SPDX[3:-4] + "\n# XX" "X why\n", "left to be done"),
    ("words", "base/w.h", SPDX + "typedef struct x { int y; } x_t;\n", "typedef of a struct"),
    ("words", "base/w.h", SPDX + "#if 0\nint x;\n#endif\n", "switched off"),
    ("prose", "docs/w.md", "longer " * 20 + "\nword.\n", "of a page is over"),
    ("prose", "docs/w.md", "| a | b |\n| --- | --- |\n| a | " + "word " * 20 + "|\n",
     "of a page is over"),
    ("prose", "docs/w.md", "A b.\n\n" + "word word\n" * 26 + "word.\n", "words in the mean"),
    ("prose", "docs/w.md", "- " + "word\n  " * 26 + "word\n- " + "word\n  " * 25 + "word\n",
     "words in the mean"),
    ("prose", "docs/w.md", "A [page](no.md) is read.\n", "leads somewhere"),
    ("prose", "docs/w.md", "# One\n\nA [place](w.md#two) is read.\n", "leads somewhere"),
    ("prose", "docs/w.md", "It is in `base/none.c`.\n", "names is there"),
    ("prose", "docs/w.md", "A nudge is sent.\n", "given up"),
    ("prose", "base/w.c", code("/* The heirs of a stream */\n"), "given up"),
    ("prose", "base/w.h", SPDX + "void bell(void);\n", "given up"),
    ("limits", "docs/limits.md", limits(entry("`t.txt`: other words")), "that exists"),
    ("limits", "docs/limits.md", limits(entry("`u.txt`: some words")), "that exists"),
    ("limits", "docs/strangers.md", "## A\n\n### b\n\n- Result: x\n- Remains: y\n"
     "- Test: `u.txt`: some words\n", "that exists"),
    ("limits", "docs/limits.md", limits(entry("some words")), "that exists"),
    ("limits", "docs/limits.md", limits(entry("`t.txt`: some words", do="")), "that exists"),
    ("limits", "docs/limits.md", limits(entry("`t.txt`: some words").replace("- Do: z\n", "")),
     "that exists"),
    ("limits", "docs/limits.md", limits(entry("`t.txt`: some words"),
                                        entry("`t.txt`: some words", "A")), "in order"),
    ("programs", "docs/programs.md", programs(), "has an entry"),
    ("programs", "docs/programs.md", programs("`t`: a; c"), "that there are"),
    ("programs", "docs/programs.md", programs("`u`: a"), "that there are"),
    ("programs", "docs/programs.md", programs("a"), "that there are"),
    ("headers", "include/warp/h.h", SPDX + "size_t x(void);\n", "warp/h.h as C"),
    ("headers", "include/warp/h.h", SPDX + "#define int ;\nstruct { } x;\n", "warp/h.h as C"),
    ("headers", "include/warp/h.h", SPDX + "int class(int new);\n", "warp/h.h as C++"),
]

# The same with nothing wrong: these must stay green.
FINE = [
    ("layers", "tests/t.c", code('#include "mpa/b.h"\n#include <infiniband/verbs.h>\n')),
    ("layers", "preload/wait/w.h", SPDX + "/* int y(int); */\nextern int (*z)(void);\n"),
    ("layers", "verbs/v.c", code('#include "base/a.h"\n#include <infiniband/verbs.h>\n')),
    ("order", "hydra/low.c", code("static int high(void)\n{\n\treturn 1;\n}\n\n"
                                  "int low(void)\n{\n\treturn high();\n}\n")),
    ("order", "hydra/low.c", code("int low(int (*high)(void))\n{\n\treturn high();\n}\n")),
    ("order", "base/high.c", uses("b", "high", "low")),
    ("freestanding", "stream/protocol/p.c", code("#include <string.h>\n\n"
     "int p(const char *a);\n\nint p(const char *a)\n{\n\treturn memcmp(a, a + 9, 9);\n}\n")),
    ("lengths", "base/l.c", code(function(100))),
    ("lengths", "build/l.c", code(function(200))),
    ("limits", "docs/limits.md", limits(entry("`t.txt`: some\n  words; `t.txt`: words"),
                                        entry("`t.txt`: some words", "C"))),
    ("programs", "docs/programs.md", programs("`t`: a; b; `t`: b")),
    ("words", "base/w.c", code('char *name = "/tmp/x-XX' 'XXXX";\n')),
    ("prose", "docs/w.md", "# One\n\nSee:\n\n    " + "x" * 99 + "\n\n```\n" + "x" * 101 +
     "\n```\n\n[Here](#one) and [there](../docs/w.md#one), `base/a.c`, `other/a.c`.\n"),
    ("prose", "docs/w.md", "<!-- x: begin -->\n| " + "x" * 99 + " |\n<!-- x: end -->\n"),
    ("prose", "docs/conformance.md", "A b.\n\n| case | b |\n| " + "x" * 99 + " |\n"),
    ("prose", "docs/w.md", "A b.\n\n" + "word\n" * 40 + "word.\n"),
    ("prose", "tests/w.c", code("static void nap(void);\n")),
    ("words", "include/warp/amudp_x.h", SPDX + "typedef struct x { int y; } x_t;\n"),
]


def red_cases(check, files):
    """The names of the cases that fail when check looks at a tree of these files."""
    with tempfile.TemporaryDirectory(prefix="warpsock-style-") as name:
        for path, text in files.items():
            target = Path(name, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        done = subprocess.run([sys.executable, HERE / f"{check}.py", "--root", name], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    cases = tap.judge(done.stdout, done.returncode)
    return [case.name for case in cases if case.result == "failed"]


def targets():
    """What the plants include or name: an #include of nothing would prove nothing."""
    headers = ("mpa/b.h", "ddp/x.h", "preload/wait/w.h")
    return {**dict.fromkeys(headers, SPDX), "tests/t.txt": "some\nwords\n",
            "tests/vm/cases/t.sh": f'# {SPDX[3:-4]}\ncheck "a" a\ncheck "b" b\n'}


def plant_problems(check, path, text, words):
    red = red_cases(check, {**GOOD, **targets(), path: text})
    # A header that is wrong in C is wrong in C++ too.
    stray = [case for case in red if words not in case]
    return [] if red and not stray else [f"red: {red or 'nothing'}, wanted: {words}"]


def main():
    writer = tap.Writer()
    for check in ("layers", "order", "freestanding", "lengths", "format", "words", "prose",
                  "limits", "programs", "headers"):
        red = red_cases(check, GOOD)
        writer.case(f"{check} passes a good tree", [f"red: {red}"] if red else [])
    for check, path, text, words in PLANTS:
        writer.case(f"{check} finds {words} in {path}", plant_problems(check, path, text, words))
    for check, path, text in FINE:
        red = red_cases(check, {**GOOD, **targets(), path: text})
        writer.case(f"{check} does not mind {path}", [f"red: {red}"] if red else [])
    writer.finish()


if __name__ == "__main__":
    main()
