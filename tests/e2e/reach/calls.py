#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes a call of each name in wrap.list, without a prototype: calls.py LIST OUT."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "preload"))
import wrap  # noqa: E402


def main():
    calls = [call for call in wrap.parse(sys.argv[1]) if call.kind != "other"]
    out = wrap.NOTE.replace("wrap.py", "calls.py") + '#include <stddef.h>\n\n'
    out += "struct reach_call {\n\tconst char *name, *kind;\n\tlong (*call)(long fd);\n};\n\n"
    for call in calls:
        out += f"static long call_{call.name}(long fd)\n{{\n\tlong {call.name}();\n\n"
        out += f"\treturn {call.name}(fd, 0L, 0L, 0L, 0L, 0L);\n}}\n\n"
    out += "const struct reach_call reach_calls[] = {\n"
    for call in calls:
        out += f"\t{{ \"{call.name}\", \"{call.kind}\", call_{call.name} }},\n"
    out += "\t{ NULL, NULL, NULL },\n};\n"
    Path(sys.argv[2]).write_text(out)


if __name__ == "__main__":
    main()
