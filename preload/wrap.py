#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes the interposer's entry points of wrap.list: wrap.py LIST OUT, by OUT's name.

wrap.h    struct libc_calls, a member for each call, and what preload/ implements: call_NAME
wrap.c    the exported functions, libc's names, the stand-ins; a look at the table, enter and leave
          around a call of ours (preload/guard/call.h), and no logic
wrap.map  the version map: an anonymous node, for a named one would silently disable interposition
"""
import re
import sys
from dataclasses import dataclass

KINDS = "fd|list|any|out|after|took|end|file|var|also|self|other|msg"
LINE = re.compile(rf"({KINDS})(\*?)\s+(.*?)(\w+)\((.*)\)\s+:\s+(.+)$")
NOTE = """/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Made of wrap.list by wrap.py */
"""

# Classes that are no calls of libc's to us, but names for others
NAMES_ONLY = ("var", "also", "self", "other")

HEADERS = """#include <aio.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
"""


@dataclass
class Call:
    kind: str
    point: bool  # a cancellation point
    result: str
    name: str
    params: str
    early: str

    @property
    def args(self):
        if self.params == "void":
            return ""
        params = [param for param in self.params.split(",") if param.strip() != "..."]
        return ", ".join(re.search(r"(\w+)$", param)[1] for param in params)


def parse(path):
    calls = []
    for line in open(path):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        if not match:
            sys.exit(f"{path}: not understood: {line}")
        calls.append(Call(match[1], bool(match[2]), match[3].strip(), *match.groups()[3:]))
    return calls


def header(calls):
    calls = [call for call in calls if call.kind not in NAMES_ONLY]
    out = NOTE + "#ifndef PRELOAD_WRAP_H\n#define PRELOAD_WRAP_H\n\n" + HEADERS
    out += "\nstruct libc_calls {\n"
    for call in calls:
        out += f"\t{call.result} (*{call.name})({call.params});\n"
    out += "};\n\nextern struct libc_calls libc;\n\n"
    out += "struct libc_name {\n\tconst char *name;\n\tsize_t at;\n};\n\n"
    out += f"#define LIBC_NAMES {len(calls)}\n"
    out += "extern const struct libc_name libc_names[LIBC_NAMES];\n\n"
    for call in [call for call in calls if call.kind != "file"]:
        result = "_Noreturn void" if call.kind == "end" else "long"
        got = "long got, " if call.kind == "after" else ""
        out += f"{result} call_{call.name}({got}{call.params});\n"
        if call.kind == "took":
            out += f"long took_{call.name}(long got, {call.params});\n"
    out += "\n/* syscall() of a call that we take, as its name is called; false: not ours */\n"
    out += "bool libc_route(long n, const long *a, long *r);\n"
    return out + "\n#endif\n"


def stand_in(call):
    real = ""
    if call.early.startswith("= "):
        value = call.early[2:]
    elif call.early == "libc":
        value = f"real({call.args})"
        real = f"\t{call.result} (*real)({call.params});\n\n"
        real += f"\tlibc_find(\"{call.name}\", &real);\n"
    else:
        value = f"syscall({', '.join(filter(None, [call.early, call.args]))})"
    value = f"({call.result}){value}" if call.result != "void" else value
    ret = "return " if call.result != "void" else ""
    out = f"static {call.result} early_{call.name}({call.params})\n{{\n"
    return out + f"{real}\t{ret}{value};\n}}\n\n"


def answer(call):
    """What the program gets of `r`."""
    if call.result == "void":
        return ""
    how = "libc_pointer" if call.result.endswith("*") else "libc_result"
    return f"\treturn ({call.result}){how}(r);\n"


def ours(call):
    """Enter and leave around call_NAME, out of the way of what is not ours."""
    point = "true" if call.point else "false"
    ret = "return " if call.result != "void" else ""
    theirs = f"\tif (r == CALL_THEIRS)\n\t\t{ret}libc.{call.name}({call.args});\n"
    out = f"__attribute__((noinline)) static {call.result} ours_{call.name}({call.params})\n{{\n"
    out += "\tstruct call *e;\n"
    if call.kind == "after":
        out += "\tlong r;\n\n\tdo {\n"
        out += "\t\tbool theirs = device_accepts(fd);\n\n"
        out += "\t\tr = theirs ? CALL_THEIRS : kernel_accept_begin(fd);\n"
        out += f"\t\tif (!r)\n\t\t\tr = libc_try(libc.{call.name}({call.args}));\n"
        out += "\t\te = call_enter(r == CALL_THEIRS);\n"
        out += f"\t\tr = call_{call.name}(r, {call.args});\n"
        out += "\t} while (call_leave(e, &r));\n"
        return out + answer(call) + "}\n\n"
    out += "\tlong r;\n\n\tdo {\n"
    out += f"\t\te = call_enter({point});\n\t\tr = call_{call.name}({call.args});\n"
    out += "\t} while (call_leave(e, &r));\n"
    return out + theirs + answer(call) + "}\n\n"


def stood_in(call):
    """The arguments, with the FILE that stands in for `file`."""
    return re.sub(r"\bfile\b", "files_of(file)", call.args)


def entry(call):
    export = '__attribute__((visibility("default")))'
    if call.kind in ("self", "other"):
        return ""
    if call.kind == "also":
        return (f"{export} {call.result} wrap_{call.name}({call.params}) __asm__(\"{call.name}\")\n"
                f"\t__attribute__((alias(\"{call.early}\")));\n\n")
    out = f"{export} {call.result} wrap_{call.name}({call.params}) __asm__(\"{call.name}\");\n"
    out += f"{call.result} wrap_{call.name}({call.params})\n{{\n"
    ret = "return " if call.result != "void" else ""
    if call.kind == "var":
        last = call.args.split(", ")[-1]
        behind = f"{call.result} wrap_{call.early}({call.params[:-3]}va_list args);\n"
        out = behind + out + f"\tva_list args;\n\t{call.result} r;\n\n\tva_start(args, {last});\n"
        out += f"\tr = wrap_{call.early}({call.args}, args);\n\tva_end(args);\n"
        return out + "\treturn r;\n}\n\n"
    if call.kind == "end":
        return out + f"\tcall_{call.name}({call.args});\n}}\n\n"
    if call.kind == "file":
        return out + f"\t{ret}(libc.{call.name})({stood_in(call)});\n}}\n\n"
    if call.kind == "out":
        r = f"call_{call.name}({call.args})"
        return out + f"\tlong r = {r};\n\n{answer(call)}}}\n\n"
    if call.kind == "took":
        out += f"\tif (!fdtab_is_ours(fd)) {{\n\t\tlong got = libc.{call.name}({call.args});\n\n"
        out += f"\t\treturn ({call.result})(got < 0 ? got : took_{call.name}(got, "
        out += f"{call.args}));\n\t}}\n"
    elif call.kind != "any":
        theirs = "!fdtab_is_ours(fd)"
        if call.kind == "list":
            theirs = "!polling_has_ours(fds, n)"
        elif call.kind == "msg":
            theirs += " && !__atomic_load_n(&fdtab_streams, __ATOMIC_RELAXED)"
        out += f"\tif ({theirs})\n\t\t{ret}libc.{call.name}({call.args});\n"
        if not ret:
            out += "\telse\n\t"
    return ours(call) + out + f"\t{ret}ours_{call.name}({call.args});\n}}\n\n"


def source(calls):
    real = [call for call in calls if call.kind not in NAMES_ONLY]
    out = NOTE + '#include <wrap.h>\n\n#include <stddef.h>\n#include <sys/syscall.h>\n'
    out += '#include <unistd.h>\n\n'
    out += "".join(f'#include "preload/{name}.h"\n' for name in
                   ("calls/files", "device/device", "guard/call", "table/fdtab", "table/libc",
                    "wait/kernel", "wait/polling"))
    out += "\n"
    out += "".join(stand_in(call) for call in real)
    out += "struct libc_calls libc = {\n"
    out += "".join(f"\t.{call.name} = early_{call.name},\n" for call in real)
    out += "};\n\nconst struct libc_name libc_names[LIBC_NAMES] = {\n"
    for call in real:
        out += f"\t{{ \"{call.name}\", offsetof(struct libc_calls, {call.name}) }},\n"
    out += "};\n\n"
    out += "".join(entry(call) for call in sorted(calls, key=lambda c: c.kind in NAMES_ONLY))
    return out + route(real)


def routes(calls):
    """(number of a system call, call, where in the arguments each parameter stands)."""
    known = {}
    for pattern in (r"(SYS_\w+)()$", r"= syscall\((SYS_\w+), (.*)\)$"):
        for call in calls:
            match = re.match(pattern, call.early)
            if not match or match[1] in known or (call.result == "void" and call.kind != "end"):
                continue
            names = call.args.split(", ") if call.args else []
            given = match[2].split(", ") if match[2] else names
            if all(name in given for name in names):
                known[match[1]] = (call, [given.index(name) for name in names])
    return known


def route(calls):
    """syscall() by number: the exported function of the name."""
    out = "bool libc_route(long n, const long *a, long *r)\n{\n\tswitch (n) {\n"
    for number, (call, places) in routes(calls).items():
        types = [re.sub(r"\w+$", "", param).strip() for param in call.params.split(",")]
        args = ", ".join(f"({kind})a[{at}]" for kind, at in zip(types, places))
        value = f"wrap_{call.name}({args})"
        out += f"\tcase {number}:\n"
        out += f"\t\t{value};\n" if call.kind == "end" else f"\t\t*r = (long){value};\n"
        out += "\t\treturn true;\n"
    return out + "\tdefault:\n\t\treturn false;\n\t}\n}\n"


# No call of libc's: what preload/helper_main.c looks up
HELPER = "warpsock_helper"


def version_map(calls):
    names = f"\t{HELPER};\n" + "".join(f"\t{call.name};\n" for call in calls)
    return "{\nglobal:\n" + names + "local:\n\t*;\n};\n"


def main():
    makers = {".h": header, ".c": source, ".map": version_map}
    calls = parse(sys.argv[1])
    out = sys.argv[2]
    with open(out, "w") as file:
        file.write(makers[out[out.rindex("."):]](calls))


if __name__ == "__main__":
    main()
