#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Generated expressions as code, against the same ones compiled by a C compiler.

    expressions.py EVALUATE CC [SEED]

Each expression is computed for a row of records; a case is one record. WARPSOCK_LONG: ten times
as many expressions.
"""
import os
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402

EXPRESSIONS, RECORDS = 1600, 64

# name, type in a layout, struct's letter
FIELDS = [
    ("a", "u8", "<B"), ("b", "s8", "<b"), ("c", "u16", "<H"), ("d", "s16", "<h"),
    ("e", "u32", "<I"), ("f", "s32", "<i"), ("g", "u64", "<Q"), ("h", "s64", "<q"),
    ("i", "be16", ">H"), ("j", "be32", ">I"), ("k", "be64", ">Q"), ("l", "sbe16", ">h"),
    ("m", "sbe32", ">i"), ("n", "sbe64", ">q"),
]
LAYOUT = "; ".join(f"{kind} {name}" for name, kind, _ in FIELDS) + "; pad[3]; text[9] t; u8 z"
TEXTS = [("t ~ \"^a.*c$\"", "(t[0] == 'a' && strlen(t) > 1 && t[strlen(t) - 1] == 'c')"),
         ("t == \"abc\"", "!strcmp(t, \"abc\")"),
         ("t == \"abcabcabc\"", "!strcmp(t, \"abcabcabc\")"),
         ("t == \"\\xff\\xfe\\x80\\xfd\"", "!strcmp(t, \"\\xff\\xfe\\x80\\xfd\")"),
         ("t != \"abcabcab\"", "!!strcmp(t, \"abcabcab\")"), ("t != \"\"", "!!*t"),
         ("t == \"B\"i", "!strcasecmp(t, \"b\")"),
         ("t !~ \"b\"", "!strchr(t, 'b')"), ("t ~ \"AB\"i", "!!strcasestr(t, \"ab\")")]

# What C leaves undefined is what docs/active-code.md says; C itself decides what is unsigned.
PROLOGUE = """
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#define DIV(a, b) ({ __typeof__((a) + (b)) x = (a), y = (b); \\
	y == 0 ? 0 : y == (__typeof__(y))-1 && (__typeof__(y))-1 < 0 ? -x : x / y; })
#define MOD(a, b) ({ __typeof__((a) + (b)) x = (a), y = (b); \\
	y == 0 ? x : y == (__typeof__(y))-1 && (__typeof__(y))-1 < 0 ? 0 : x % y; })
#define SHL(a, b) ((a) << ((b) & 63))
#define SHR(a, b) ((a) >> ((b) & 63))
struct record {
"""


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def number(self):
        value = self.rng.choice((0, 1, 2, 7, 63, 64, 255, 256, 65535, 2**31 - 1, 2**31, 2**32,
                                 2**63 - 1, 2**63, 2**64 - 1, self.rng.randrange(1000),
                                 self.rng.getrandbits(self.rng.randint(1, 64))))
        if value < 2**63 and self.rng.random() < 0.8:
            text = hex(value) if self.rng.random() < 0.2 else str(value)
            return text, f"INT64_C({value})"
        return f"{value}u", f"UINT64_C({value})"

    def leaf(self):
        roll = self.rng.random()
        if roll < 0.3:
            return self.number()
        if roll < 0.35:
            return self.rng.choice([("'a'", "(int64_t)'a'"), (r"'\n'", "(int64_t)10"),
                                    (r"'\xfe'", "(int64_t)254")])
        if roll < 0.42:
            text, c = self.rng.choice(TEXTS)
            return f"({text})", f"(int64_t)({c})"
        name = self.rng.choice(FIELDS)[0]
        return name, name

    def tree(self, depth):
        """The text in our language, and in C with brackets around everything."""
        if not depth or self.rng.random() < 0.12:
            return self.leaf()
        text, c = self.tree(depth - 1)
        if self.rng.random() < 0.15:
            op = self.rng.choice("!-~")
            return f"{op}({text})", f"((int64_t)!({c}))" if op == "!" else f"({op}({c}))"
        right, c_right = self.tree(self.rng.randint(0, depth - 1))
        op = self.rng.choice(("||", "&&", "|", "^", "&", "==", "!=", "<", "<=", ">", ">=", "<<",
                              ">>", "+", "-", "*", "/", "%"))
        ours = f"({text}) {op} ({right})"
        called = {"<<": "SHL", ">>": "SHR", "/": "DIV", "%": "MOD"}.get(op)
        if called:
            return ours, f"{called}({c}, {c_right})"
        if op in ("||", "&&", "==", "!=", "<", "<=", ">", ">="):
            return ours, f"((int64_t)(({c}) {op} ({c_right})))"
        return ours, f"(({c}) {op} ({c_right}))"

    def chain(self):
        """Without brackets: C itself says what binds stronger."""
        ops = ("||", "&&", "|", "^", "&", "==", "!=", "<", "<=", ">", ">=", "+", "-", "*")
        words = []
        for i in range(self.rng.randint(3, 9)):
            words += [self.rng.choice(ops)] if i else []
            words.append(self.rng.choice(("", "", "-", "!", "~")) +
                         self.rng.choice("abcdefghijklmn"))
        return " ".join(words), " ".join(words)

    def expression(self):
        return self.chain() if self.rng.random() < 0.3 else self.tree(self.rng.randint(1, 6))

    def value(self, letter):
        bits = struct.calcsize(letter) * 8
        value = self.rng.choice((0, 1, 2, 2**bits - 1, 2**(bits - 1), 2**(bits - 1) - 1, 7, 64,
                                 self.rng.getrandbits(bits), self.rng.getrandbits(bits)))
        value &= 2**bits - 1
        if letter[1].islower():
            value -= (value >> (bits - 1)) << bits
        return struct.pack(letter, value)

    def record(self):
        text = self.rng.choice((b"", b"abc", b"ac", b"aXc", b"abcabcabc", b"zABz", b"b",
                                b"\0b", b"abc\0junk", b"\xff\xfe\x80\xfd", b"abcabcab"))
        return b"".join(self.value(letter) for _, _, letter in FIELDS) + b"pad" + \
            text.ljust(9, b"\0") + b"c"


def c_program(expressions, records):
    kinds = {"B": "uint8_t", "b": "int8_t", "H": "uint16_t", "h": "int16_t", "I": "uint32_t",
             "i": "int32_t", "Q": "uint64_t", "q": "int64_t"}
    lines = [PROLOGUE]
    for name, _, letter in FIELDS:
        size = struct.calcsize(letter) * 8
        order = "" if letter[0] == "<" or size == 8 else \
            " __attribute__((scalar_storage_order(\"big-endian\")))"
        lines.append(f"\tstruct {{ {kinds[letter[1]]} v; }} __attribute__((packed)){order} {name};")
    lines.append("\tchar pad[3], t[9], z;\n} __attribute__((packed));")
    loads = [f"{'uint64_t' if letter[1] == 'Q' else 'int64_t'} {name} = r->{name}.v;"
             for name, _, letter in FIELDS]
    for i, c in enumerate(expressions):
        lines.append(f"static int64_t f{i}(const struct record *r)\n{{\n" + "\n".join(loads) +
                     "char t[10] = \"\"; memcpy(t, r->t, 9);\n"
                     f"return (int64_t)({c});\n}}")
    lines.append("static const unsigned char records[][%d] = {" % len(records[0]))
    lines += ["{" + ",".join(map(str, record)) + "}," for record in records]
    lines.append("};\nstatic int64_t (*const list[])(const struct record *) = {")
    lines.append(", ".join(f"f{i}" for i in range(len(expressions))) + "};")
    lines.append(f"""int main(void)
{{
	for (int i = 0; i < {len(expressions)}; i++)
		for (int j = 0; j < {len(records)}; j++)
			printf("%" PRId64 "\\n", list[i]((const void *)records[j]));
	return 0;
}}""")
    return "\n".join(lines)


def by_compiler(cc, expressions, records):
    with tempfile.TemporaryDirectory(prefix="warpsock-expr-") as scratch:
        source, program = Path(scratch) / "all.c", Path(scratch) / "all"
        source.write_text(c_program(expressions, records))
        subprocess.run([*cc, "-O0", "-fwrapv", "-w", str(source), "-o", str(program)], check=True,
                       timeout=200)
        return subprocess.run([str(program)], stdout=subprocess.PIPE, text=True, check=True,
                              timeout=60).stdout.splitlines()


def by_us(program, expressions, records):
    words = " ".join(record.hex() for record in records)
    done = subprocess.run([program, "expr", LAYOUT], text=True, timeout=200,
                          input="".join(f"{text}\t{words}\n" for text in expressions),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"not ok 1 - expressions\n# {done.stderr}\n1..1")
    return done.stdout.splitlines()


def compare(writer, program, cc, rng):
    maker = Maker(rng)
    pairs = [maker.expression() for _ in range(EXPRESSIONS)]
    records = [maker.record() for _ in range(RECORDS)]
    ours = by_us(program, [text for text, _ in pairs], records)
    theirs = by_compiler(cc, [c for _, c in pairs], records)
    problems = [line for line in ours if line.startswith("!")]
    if len(ours) == len(theirs):
        problems += [f"{pairs[i // RECORDS][0]} for {records[i % RECORDS].hex()}: {mine}, not {c}"
                     for i, (mine, c) in enumerate(zip(ours, theirs)) if mine != c]
    else:
        problems.append(f"{len(ours)} answers, not {len(theirs)}")
    writer.case(f"{len(theirs)} values are as in C", problems[:20])


def main():
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    writer = tap.Writer()
    for turn in range(10 if os.environ.get("WARPSOCK_LONG") else 1):
        compare(writer, sys.argv[1], sys.argv[2].split(), random.Random(seed + turn))
    writer.finish()


if __name__ == "__main__":
    main()
