#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""warp-activecc: programs that are taken, and what is said of each kind that is not.

    activecc.py WARP-ACTIVECC
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tap  # noqa: E402
from example import run  # noqa: E402

CC = str(Path(sys.argv[1]).resolve())

GOOD = """#include <warp/program.h>

struct node {
	uint64_t next, value;
};

static __attribute__((noinline)) uint64_t twice(uint64_t v)
{
	return v * 2;
}

uint64_t walk(uint64_t args, uint64_t len)
{
	uint64_t sum = 0, copy[8];

	for (uint64_t at = *WARP_AT(uint64_t, args); at; at = WARP_AT(struct node, at)->next)
		sum += twice(WARP_AT(struct node, at)->value);
	for (int i = 0; i < 8; i++) /* no call of memset() */
		copy[i] = 0;
	copy[len & 7] = sum;
	warp_output(copy, sizeof(copy));
	return sum;
}
"""
ASSEMBLER = """	.text
	.globl	first
	.type	first,@function
first:
	r0 = 0
	if r2 == 0 goto done
	r0 = *(u64 *)(r1 + 8)
done:
	exit
"""
TWO = """#define VALUE 5
	# a comment

	.globl	main
	.type	main,@function
main:
	r0 = VALUE
	call twice	# of its own
#include "more.h"
	exit
	.section more,"ax",@progbits
	.type	twice,@function
twice:
	r0 = 4

	exit
"""
MACROS = """#include "other.h"
#ifdef GONE
#error GONE is there
#endif
unsigned long answer(void)
{
	return ANSWER + OTHER;
}
"""
# a name, a source, the pattern of what is said
REFUSED = [
    ("what clang refuses", "bad.c", "int f(void) { return nothing; }\n",
     r"bad\.c:1:22: error: use of undeclared identifier 'nothing'"),
    ("what the assembler refuses", "bad.s", "main:\n\tr0 = r1 plus r2\n", r"bad\.s:2:\d+: error: "),
    ("a write to constants", "constant.c", "static const volatile long c = 5;\n\nlong f(void)\n{\n"
     "\t*(volatile long *)&c = 6; /* here */\n\treturn c;\n}\n",
     r"^warp-activecc: constant\.c is refused: a write to constants; "
     r"\d+: \*\(u64 \*\)\(r\d \+0\) = r\d; "
     r"\S*constant\.c:5: \*\(volatile long \*\)&c = 6; /\* here \*/$"),
    ("a register without a value", "register.s",
     "\t.globl f\n\t.type f,@function\nf:\n\tr0 = r7\n\texit\n",
     r"register\.s is refused: r7 is not initialised; 0: r0 = r7; \S*register\.s:4: r0 = r7$"),
    ("a frame that is too small", "frame.s", "\t.globl f\n\t.type f,@function\nf:\n\tr0 = 0\n"
     "\t*(u64 *)(r10 - 520) = r0\n\texit\n", r"8 bytes at r10-520 are outside of the stack frame"),
    ("a jump out of the function", "jump.s",
     "\t.globl f\n\t.type f,@function\nf:\n\tr0 = 0\n\tgoto +100\n\texit\n",
     r"a jump out of its function; 1: goto \+100; \S*jump\.s:5: goto \+100$"),
    ("a function that nobody has", "unknown.c", "long nobody(void);\nlong f(void)\n{\n"
     "\treturn nobody();\n}\n", r"function nobody is not defined, nor a helper$"),
    ("the address of a function", "pointer.c", "static long g(void)\n{\n\treturn 1;\n}\n"
     "long (*volatile p)(void) = g;\nlong f(void)\n{\n\treturn !!p;\n}\n",
     r"the address of a function is taken"),
    ("no function that can be run", "local.c", "__attribute__((used)) static long f(void)\n{\n"
     "\treturn 1;\n}\n", r"the object has no global function$"),
    ("nothing at all", "nothing.c", "\n", r"the object holds no code$"),
]
USAGE = [
    ((), "a file is needed"), (("a.c", "b.c"), "one file at a time, not b.c"),
    (("--nothing", "a.c"), "no such option: --nothing"), (("-q", "a.c"), "no such option: -q"),
    (("a.c", "-o"), "a value is needed: -o"), (("a.txt",), r"neither \.c nor \.s nor \.o: a\.txt"),
    (("dir.c/a",), r"neither \.c nor \.s nor \.o: dir\.c/a"),
    (("-o", "a.c", "a.c"), "would replace its source: a.c"),
    (("-o", "b.o", "a.o"), "an object is only checked: a.o"),
    (("--helper", "sum", "a.c"), r"a helper is NAME:ID:ARGS.*, not sum"),
    (("--helper", "sum:2:6", "a.c"), "a helper is NAME:ID:ARGS"),
    (("--helper", ":2:1", "a.c"), "a helper is NAME:ID:ARGS"),
    (("--helper", "sum:2:1x", "a.c"), "a helper is NAME:ID:ARGS"),
    (("--helper", "sum:1:1", "a.c"), "two helpers of one name or number: sum:1:1"),
    (("--helper", "warp_output:70:1", "a.c"), "two helpers of one name or number"),
    (("--completion", "csh"), "expected bash, zsh or fish, got csh"),
    (("-O", "9" * 70, "good.c"), "no such level of optimisation"),
]
BASH = """source <(%s --completion bash) || exit
COMP_WORDS=(warp-activecc %s '%s')
COMP_CWORD=%d
_warp_activecc
printf '%%s\\n' "${COMPREPLY[@]}"
"""


def cc(*args):
    return run(CC, *args)


def left():
    """What is in the folder, objects that wait for their name included."""
    return sorted(path.name for path in Path().iterdir())


def command_line(writer):
    writer.case("--help", cc("--help").problems(0, None, "^$"))
    told = cc("--help").out
    writer.case("--help names each option", [name for name in (
        "--output", "--list", "--kernel", "--helper", "--clang", "-O", "-D", "-U", "-I", "-X",
        "--completion", "--version") if f"{name}" not in told])
    version = cc("--version")
    writer.case("--version", version.problems() or [] if re.fullmatch(
        r"warp-activecc \d+\.\d+\.\d+\n", version.out) else [version.out])
    for words, complaint in USAGE:
        writer.case(f"usage: {' '.join(words)[:40] or 'nothing'}",
                    cc(*words).problems(2, "", complaint))


KERNEL = """#include <warp/program.h>

uint64_t fine(uint64_t args, uint64_t len)
{
	return warp_output((void *)args, len);
}

uint64_t allocates(uint64_t args, uint64_t len)
{
	return (uint64_t)warp_alloc(0, len);
}
"""


def kernel(writer):
    Path("both.c").write_text(KERNEL, encoding="ascii")
    done = cc("--kernel", "both.c")
    wanted = (r"fine: in the kernel, about \d+ instructions\n"
              r"allocates: not in the kernel: the kernel has nothing for warp_alloc; \d+: call 2; "
              r"\S*both\.c:10: return .*\n")
    writer.case("what can run in the kernel", done.problems(0) + (
        [] if re.fullmatch(wanted, done.out) else [done.out]))


def good(writer):
    os.umask(0o027)
    writer.case("a program in C", cc("good.c").problems(0, "", "^$"))
    mode = Path("good.o").stat().st_mode & 0o777 if Path("good.o").exists() else 0
    writer.case("the object has the mode of a new file", [] if mode == 0o640 else [oct(mode)])
    writer.case("it can be checked again", cc("good.o").problems(0, "", "^$"))
    writer.case("a program in assembler", cc("-o", "first.o", "first.s").problems(0, "", "^$"))
    writer.case("objects are there, and nothing else", [] if {"good.o", "first.o"} == {
        name for name in left() if ".o" in name} else left())
    lines = cc("--list", "good.o").out.splitlines()
    wanted = (r"walk:", r"; \S*good\.c:17: sum \+= twice\(WARP_AT\(struct node, at\)->value\);",
              r" +\d+: r\d = \*\(u64 \*\)\(r\d \+8\)", r" +\d+: call \+\d+ +to \d+",
              r" +\d+: call 1", r"\(a function of its own\):", r" +\d+: r0 <<= 1", r" +\d+: exit")
    writer.case("a listing has functions, source lines and instructions",
                [pattern for pattern in wanted
                 if not any(re.fullmatch(pattern, line) for line in lines)])
    numbers = [int(line.split(":")[0]) for line in lines if re.match(r" +\d+:", line)]
    writer.case("a listing has each instruction once",
                [] if numbers == list(range(len(numbers))) else [str(numbers)])
    lines = [line for line in cc("--list", "two.S").out.splitlines() if line]
    wanted = ["main:", r"; \S*two\.S:7: r0 = VALUE", "      0: r0 = 5",
              r"; \S*two\.S:8: call twice\s# of its own", r"      1: call \+3 +to 5",
              r"      2: r0 \+= 1", r"      3: r0 \+= 2", r"; \S*two\.S:10: exit", "      4: exit",
              r"\(a function of its own\):", r"; \S*two\.S:14: r0 = 4", "      5: r0 = 4",
              r"; \S*two\.S:16: exit", "      6: exit"]
    writer.case("source lines of two sections, but of no file that is included",
                [] if len(lines) == len(wanted) and all(map(re.fullmatch, wanted, lines))
                else lines)
    Path("includes.s").write_text(ASSEMBLER.replace("\texit", '\t.include "more.h"\n\texit'))
    listed = cc("--list", "includes.s")
    writer.case("no source lines where clang's are wrong", listed.problems() or (
        [] if "r0 += 2\n" in listed.out and "includes.s:" not in listed.out else [listed.out]))
    run("clang", "-O1", "-g", "-target", "bpf", "-S", "-ffreestanding", "-o", "made.s",
        "-I", str(Path(__file__).resolve().parents[2] / "include"), "good.c")
    listed = cc("--list", "made.s")
    writer.case("assembler that clang has made keeps its source lines", listed.problems() or (
        [] if "good.c:17: sum += twice" in listed.out and "made.s" not in listed.out
        else [listed.out]))
    writer.case("where a jump leads", [] if re.search(
        r"if r2 == 0 goto \+1 +to 3\n", cc("-l", "first.o").out) else [cc("-l", "first.o").out])


def passed_on(writer):
    Path("more").mkdir()
    Path("more/other.h").write_text("#define OTHER 40\n")
    Path("macros.c").write_text(MACROS)
    words = ("-D", "ANSWER=2", "-DGONE", "-UGONE", "-Imore", "-O1", "-X-Wno-pedantic")
    listed = cc(*words, "--list", "macros.c")
    writer.case("-D, -U, -I, -O and -X", listed.problems() or (
        [] if "r0 = 42\n" in listed.out else [listed.out]))
    Path("nobody.c").write_text("long nobody(long a, long b);\nlong f(long a)\n{\n"
                                "\treturn nobody(nobody(a, 1), 2);\n}\n")
    writer.case("--helper", cc("--helper", "nobody:70:2", "nobody.c").problems(0))
    writer.case("--helper that takes more arguments than it gets",
                cc("--helper", "nobody:70:4", "nobody.c").problems(1, "", "r3 is not initialised"))


def refused(writer):
    before = left()
    for name, file, source, pattern in REFUSED:
        Path(file).write_text(source)
        problems = cc(file).problems(1, "", f"(?m){pattern}")
        Path(file).unlink()
        writer.case(f"refused: {name}", problems or ([] if left() == before else left()))
    object_before = Path("good.o").read_bytes()
    Path("good.c").write_text("long nobody(void);\nlong f(void)\n{\n\treturn nobody();\n}\n")
    writer.case("an object stays when a newer one is refused",
                cc("good.c").problems(1) or
                ([] if Path("good.o").read_bytes() == object_before else ["it did not"]))
    Path("cut.o").write_bytes(object_before[:700])
    writer.case("refused: an object that is cut", cc("cut.o").problems(1, "", "cut.o is refused"))
    Path("text.o").write_text("text")
    writer.case("refused: a file that is no object",
                cc("text.o").problems(1, "", "not a little-endian ELF object"))


def failed(writer):
    writer.case("no such source", cc("missing.c").problems(1, "", "no such file.*missing.c"))
    writer.case("no such object", cc("missing.o").problems(3, "", "missing.o: No such file"))
    writer.case("a folder", cc("more/../../" + Path().resolve().name + "/dir.o").problems(
        3, "", "no file of up to 32 MiB"))
    writer.case("no compiler", cc("--clang", "/nonexistent/clang", "first.s").problems(
        3, "", "^warp-activecc: /nonexistent/clang: No such file or directory$"))
    writer.case("a compiler that is killed", cc("--clang", "./killed", "first.s").problems(
        3, "", "^warp-activecc: ./killed: Killed$"))
    writer.case("no such folder for the object", cc("-o", "nowhere/a.o", "first.s").problems(
        3, "", "nowhere/a.o: No such file"))
    with open("/dev/full", "w") as full:
        done = subprocess.run([CC, "--list", "first.o"], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=30)
    writer.case("no room for the listing", [] if done.returncode == 3 and
                "standard output: No space left" in done.stderr else [str(done)])
    writer.case("nothing is left over", [name for name in left() if ".o." in name])


def completion(writer):
    for words, last, wanted in (("", "--l", {"--list"}), ("", "--he", {"--help", "--helper"}),
                                ("--completion", "z", {"zsh"}), ("", "first", {"first.s",
                                                                               "first.o"})):
        script = BASH % (CC, words, last, 1 + bool(words))
        done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True,
                              timeout=20)
        writer.case(f"bash completes {words} {last}", [] if set(done.stdout.split()) == wanted
                    else [done.stdout, done.stderr])
    for shell, args in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
        path = Path(f"completion.{shell}")
        path.write_text(cc("--completion", shell).out)
        done = run(shell, *args, str(path))
        writer.case(f"{shell} can read its completion", done.problems(0, None, "^$") or [
            word for word in ("list", "helper", "clang") if word not in path.read_text()])


def main():
    writer = tap.Writer()
    with tempfile.TemporaryDirectory(prefix="warpsock-activecc-") as scratch:
        os.chdir(scratch)
        Path("good.c").write_text(GOOD)
        Path("first.s").write_text(ASSEMBLER)
        Path("two.S").write_text(TWO)
        Path("more.h").write_text("\tr0 += 1\n\tr0 += 2\n")
        Path("dir.o").mkdir()
        Path("killed").write_text("#!/bin/sh\nkill -KILL $$\n")
        Path("killed").chmod(0o700)
        command_line(writer)
        Path("dir.o").rmdir()
        good(writer)
        kernel(writer)
        passed_on(writer)
        refused(writer)
        Path("dir.o").mkdir()
        failed(writer)
        completion(writer)
        os.chdir("/")
    writer.finish()


if __name__ == "__main__":
    main()
