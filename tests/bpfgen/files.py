#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ELF files that bpfgen/ writes, as LLVM's tools and warp-activecc read them.

    files.py EVALUATE WARP-ACTIVECC
"""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

# the second one needs jumps that are longer than 16 bits can say
PATTERNS = ("^a.*b$", "[acegik]*a[acegik]{10}q", "", "[^x]{3}|\\d+")


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=50)
    return done.stdout, done.stderr.splitlines() or (done.returncode and [str(done)]) or []


def instructions(text):
    """The opcodes of each slot of a disassembly: eight bytes, or sixteen of a long constant"""
    slots = []
    for found in re.finditer(r"^ *\d+:\t((?:[0-9a-f]{2}[ \t])+)", text, re.M):
        slots += [found[1]] * (len(found[1].split()) // 8)
    return slots


def judge(writer, evaluate, activecc, pattern, path):
    path.write_bytes(subprocess.run([evaluate, "file", pattern], check=True, timeout=20,
                                    stdout=subprocess.PIPE).stdout)
    text, problems = run("llvm-readelf", "--sections", "--symbols", str(path))
    size = re.search(r"\.text +PROGBITS +0+ 0+40 ([0-9a-f]+)", text)
    if not size or not re.search(r"FUNC +GLOBAL DEFAULT +1 main$", text, re.M):
        problems += text.splitlines()
    writer.case(f"llvm-readelf reads the file of {pattern!r}", problems)
    count = int(size[1], 16) // 8 if size else -1
    text, problems = run("llvm-objdump", "--disassemble", str(path))
    found = len(instructions(text))
    if found != count:
        problems.append(f"{found} slots, not {count}")
    # gotol is younger than LLVM 14; all others it knows
    unknown = [line for line in text.splitlines()
               if "<unknown>" in line and ":\t06 00 00 00 " not in line]
    writer.case(f"llvm-objdump knows its {count} instructions", problems + unknown[:5])
    text, problems = run(activecc, "--list", str(path))
    if not text.startswith("main:\n") or not re.search(rf"\n *{count - 1}: ", text):
        problems += text.splitlines()[:5]
    writer.case("warp-activecc takes it", problems)
    return text


def main():
    writer = tap.Writer()
    with tempfile.TemporaryDirectory(prefix="warpsock-bpfgen-") as scratch:
        texts = [judge(writer, *sys.argv[1:3], pattern, Path(scratch) / f"{i}.o")
                 for i, pattern in enumerate(PATTERNS)]
    writer.case("one of them has long jumps", [] if any("gotol" in text for text in texts)
                else [str([len(text) for text in texts])])
    writer.finish()


if __name__ == "__main__":
    main()
