#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pure.py LIBRARY: asking for a rule calls nothing but functions on memory.

The interposer asks in the middle of a program's socket calls, also in signal handlers and between
fork and exec. So the object files that answer may need no symbol beyond these few; a sanitizer's
own do not count.
"""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))
import tap  # noqa: E402  (found through the line above)

OBJECTS = ["rule_match.c.o", "glob.c.o"]
ALLOWED = {"bcmp", "memcmp", "memcpy", "strchr", "__memcpy_chk"}
ALLOWED |= {"config_glob_match", "_GLOBAL_OFFSET_TABLE_"}
SANITIZERS = ("__asan_", "__ubsan_", "__sanitizer_", "__sancov_", "__tsan_", "__start___sancov",
              "__stop___sancov")


def needed(library):
    """For each object file of the library, the symbols that it needs."""
    done = subprocess.run(["nm", "-A", "-P", library], check=True, stdout=subprocess.PIPE,
                          text=True)
    found = {}
    for line in done.stdout.splitlines():
        place, symbol, kind = line.split()[:3]
        names = found.setdefault(place.rstrip(":").rstrip("]").split("[")[-1].split("/")[-1], [])
        if kind in "Uw":
            names.append(symbol)
    return found


def main():
    writer, objects = tap.Writer(), needed(sys.argv[1])
    for name in OBJECTS:
        # clang under AddressSanitizer gives memcpy and others a name of its own
        wrong = [symbol for symbol in objects.get(name, ["(there is no such object)"])
                 if symbol not in ALLOWED and not symbol.startswith(SANITIZERS)]
        writer.case(f"{name} needs only functions on memory", wrong)
    writer.case("other objects need more", [] if "vsnprintf" in " ".join(objects["error.c.o"])
                else objects["error.c.o"])
    writer.finish()


if __name__ == "__main__":
    main()
