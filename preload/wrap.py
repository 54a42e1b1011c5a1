#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes the interposer's entry points of wrap.list: wrap.py LIST OUT, by OUT's name.

wrap.h    struct libc_calls, a member for each call, and what preload/ implements: call_NAME
wrap.c    the exported functions, libc's names, the stand-ins; a look at the table and no logic
wrap.map  the version map: an anonymous node, for a named one would silently disable interposition
"""
import re
import sys
from dataclasses import dataclass

LINE = re.compile(r"(fd|any|end)\s+(.*?)(\w+)\((.*)\)\s+:\s+(.+)$")
NOTE = """/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Made of wrap.list by wrap.py */
"""

HEADERS = """#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
"""


@dataclass
class Call:
    kind: str
    result: str
    name: str
    params: str
    early: str

    @property
    def args(self):
        if self.params == "void":
            return ""
        return ", ".join(re.search(r"(\w+)$", param)[1] for param in self.params.split(","))


def parse(path):
    calls = []
    for line in open(path):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        if not match:
            sys.exit(f"{path}: not understood: {line}")
        calls.append(Call(match[1], match[2].strip(), *match.groups()[2:]))
    return calls


def header(calls):
    out = NOTE + "#ifndef PRELOAD_WRAP_H\n#define PRELOAD_WRAP_H\n\n" + HEADERS
    out += "\nstruct libc_calls {\n"
    for call in calls:
        out += f"\t{call.result} (*{call.name})({call.params});\n"
    out += "};\n\nextern struct libc_calls libc;\n\n"
    out += "struct libc_name {\n\tconst char *name;\n\tsize_t at;\n};\n\n"
    out += f"#define LIBC_NAMES {len(calls)}\n"
    out += "extern const struct libc_name libc_names[LIBC_NAMES];\n\n"
    for call in calls:
        result = "_Noreturn void" if call.kind == "end" else "long"
        out += f"{result} call_{call.name}({call.params});\n"
    return out + "\n#endif\n"


def stand_in(call):
    value = call.early[2:] if call.early.startswith("= ") else \
        f"syscall({', '.join(filter(None, [call.early, call.args]))})"
    value = f"({call.result}){value}" if call.result != "void" else value
    ret = "return " if call.result != "void" else ""
    return f"static {call.result} early_{call.name}({call.params})\n{{\n\t{ret}{value};\n}}\n\n"


def entry(call):
    export = '__attribute__((visibility("default")))'
    out = f"{export} {call.result} wrap_{call.name}({call.params}) __asm__(\"{call.name}\");\n"
    out += f"{call.result} wrap_{call.name}({call.params})\n{{\n"
    if call.kind == "fd":
        out += f"\tif (!fdtab_is_ours(fd))\n\t\treturn libc.{call.name}({call.args});\n"
    if call.kind == "end":
        out += f"\tcall_{call.name}({call.args});\n"
    else:
        out += f"\treturn ({call.result})libc_result(call_{call.name}({call.args}));\n"
    return out + "}\n\n"


def source(calls):
    out = NOTE + '#include <wrap.h>\n\n#include <stddef.h>\n#include <sys/syscall.h>\n'
    out += '#include <unistd.h>\n\n#include "preload/fdtab.h"\n#include "preload/libc.h"\n\n'
    out += "".join(stand_in(call) for call in calls)
    out += "struct libc_calls libc = {\n"
    out += "".join(f"\t.{call.name} = early_{call.name},\n" for call in calls)
    out += "};\n\nconst struct libc_name libc_names[LIBC_NAMES] = {\n"
    for call in calls:
        out += f"\t{{ \"{call.name}\", offsetof(struct libc_calls, {call.name}) }},\n"
    out += "};\n\n"
    return out + "".join(entry(call) for call in calls)


def version_map(calls):
    names = "".join(f"\t{call.name};\n" for call in calls)
    return "{\nglobal:\n" + names + "local:\n\t*;\n};\n"


def main():
    makers = {".h": header, ".c": source, ".map": version_map}
    calls = parse(sys.argv[1])
    out = sys.argv[2]
    with open(out, "w") as file:
        file.write(makers[out[out.rindex("."):]](calls))


if __name__ == "__main__":
    main()
