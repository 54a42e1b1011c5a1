/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a filter answers: each instruction by small programs, and the machine against the kernel's.
 */
#include "preload/guard/filter.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))
#define IMM(k) BPF_STMT(BPF_LD | BPF_IMM, k)
#define ALU(op, k) BPF_STMT(BPF_ALU | (op) | BPF_K, k)
#define RET_A BPF_STMT(BPF_RET | BPF_A, 0)
#define RET(k) BPF_STMT(BPF_RET | BPF_K, k)
#define MAX 10

static const struct seccomp_data call = {
	.nr = 7,
	.arch = 9,
	.instruction_pointer = 0x1122334455667788ull,
	.args = { 0xaabbccdd00112233ull, 2, 3, 4, 5, 6 },
};

static __u32 run(const struct sock_filter *program, unsigned int n, bool *looks)
{
	return filter_run(program, n, &call, looks);
}

Test(preload_filter, instructions)
{
	static const struct {
		const char *what;
		struct sock_filter program[MAX];
		__u32 answer;
		bool looks;
	} cases[] = {
		{ "constant", { RET(5) }, 5, false },
		{ "number", { LD(nr), RET_A }, 7, false },
		{ "arch", { LD(arch), RET_A }, 9, false },
		{ "address", { LD(instruction_pointer), RET_A }, 0x55667788, false },
		{ "argument", { LD(args[0]), RET_A }, 0x00112233, true },
		{ "its upper half",
		  { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 20), RET_A },
		  0xaabbccdd,
		  true },
		{ "last argument", { LD(args[5]), RET_A }, 6, true },
		{ "length", { BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), RET_A }, sizeof(call), false },
		{ "add", { IMM(5), ALU(BPF_ADD, 0xffffffff), RET_A }, 4, false },
		{ "sub", { IMM(5), ALU(BPF_SUB, 6), RET_A }, 0xffffffff, false },
		{ "mul", { IMM(5), ALU(BPF_MUL, 6), RET_A }, 30, false },
		{ "div", { IMM(65), ALU(BPF_DIV, 8), RET_A }, 8, false },
		{ "and", { IMM(6), ALU(BPF_AND, 3), RET_A }, 2, false },
		{ "or", { IMM(6), ALU(BPF_OR, 3), RET_A }, 7, false },
		{ "xor", { IMM(6), ALU(BPF_XOR, 3), RET_A }, 5, false },
		{ "lsh", { IMM(6), ALU(BPF_LSH, 4), RET_A }, 96, false },
		{ "rsh", { IMM(0x80000000), ALU(BPF_RSH, 31), RET_A }, 1, false },
		{ "neg", { IMM(1), ALU(BPF_NEG, 0), RET_A }, 0xffffffff, false },
		{ "x",
		  { BPF_STMT(BPF_LDX | BPF_IMM, 3), IMM(10), BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
		    RET_A },
		  13,
		  false },
		{ "tax and txa",
		  { IMM(4), BPF_STMT(BPF_MISC | BPF_TAX, 0), IMM(0),
		    BPF_STMT(BPF_MISC | BPF_TXA, 0), RET_A },
		  4,
		  false },
		{ "memory",
		  { IMM(4), BPF_STMT(BPF_ST, 15), IMM(0), BPF_STMT(BPF_LD | BPF_MEM, 15), RET_A },
		  4,
		  false },
		{ "x's memory",
		  { BPF_STMT(BPF_LDX | BPF_IMM, 3), BPF_STMT(BPF_STX, 0),
		    BPF_STMT(BPF_LD | BPF_MEM, 0), RET_A },
		  3,
		  false },
		{ "ja", { BPF_STMT(BPF_JMP | BPF_JA, 1), RET(1), RET(2) }, 2, false },
		{ "jeq",
		  { LD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ, 7, 1, 0), RET(1), RET(2) },
		  2,
		  false },
		{ "not jeq",
		  { LD(nr), BPF_JUMP(BPF_JMP | BPF_JEQ, 8, 1, 0), RET(1), RET(2) },
		  1,
		  false },
		{ "jgt",
		  { LD(nr), BPF_JUMP(BPF_JMP | BPF_JGT, 7, 1, 0), RET(1), RET(2) },
		  1,
		  false },
		{ "jge",
		  { LD(nr), BPF_JUMP(BPF_JMP | BPF_JGE, 7, 1, 0), RET(1), RET(2) },
		  2,
		  false },
		{ "jset",
		  { LD(nr), BPF_JUMP(BPF_JMP | BPF_JSET, 4, 1, 0), RET(1), RET(2) },
		  2,
		  false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool looks;

		cr_expect_eq(run(cases[i].program, MAX, &looks), cases[i].answer, "%s",
			     cases[i].what);
		cr_expect_eq(looks, cases[i].looks, "%s", cases[i].what);
	}
}

/* The kernel would not take these; here they must not be followed anywhere */
Test(preload_filter, programs_that_are_none)
{
	static const struct {
		const char *what;
		struct sock_filter program[2];
	} cases[] = {
		{ "behind the data", { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(call)), RET_A } },
		{ "far behind it", { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0xfffffffc), RET_A } },
		{ "between words", { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), RET_A } },
		{ "memory that is none", { BPF_STMT(BPF_LD | BPF_MEM, 16), RET(1) } },
		{ "far jump", { BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), RET(1) } },
		{ "division by nothing", { ALU(BPF_DIV, 0), RET(1) } },
		{ "no end", { IMM(1), IMM(2) } },
		{ "packets", { BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), RET(1) } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool looks;

		cr_expect_eq(run(cases[i].program, 2, &looks), SECCOMP_RET_KILL_PROCESS, "%s",
			     cases[i].what);
	}
}

Test(preload_filter, answers)
{
	static const struct {
		__u32 answer;
		bool lets;
	} cases[] = {
		{ SECCOMP_RET_ALLOW, true },	     { SECCOMP_RET_LOG, true },
		{ SECCOMP_RET_TRACE | 5, true },     { SECCOMP_RET_USER_NOTIF, true },
		{ SECCOMP_RET_KILL_PROCESS, false }, { SECCOMP_RET_KILL_THREAD, false },
		{ SECCOMP_RET_TRAP, false },	     { SECCOMP_RET_ERRNO | EPERM, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(filter_lets(cases[i].answer), cases[i].lets, "%zu", i);
}

/* One that goes by number and argument: said here, and done by the kernel */
static struct sock_filter judge[] = {
	LD(nr),
	BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_getppid, 0, 1),
	RET(SECCOMP_RET_ERRNO | 71),
	BPF_JUMP(BPF_JMP | BPF_JEQ, SYS_getpgid, 0, 3),
	LD(args[0]),
	BPF_JUMP(BPF_JMP | BPF_JGT, 5, 0, 1),
	RET(SECCOMP_RET_ERRNO | 72),
	RET(SECCOMP_RET_ALLOW),
};

static int errno_here(long nr, long arg)
{
	struct seccomp_data c = { .nr = (int)nr, .args = { (__u64)arg } };
	bool looks;
	__u32 answer = filter_run(judge, sizeof(judge) / sizeof(judge[0]), &c, &looks);

	return filter_lets(answer) ? 0 : (int)(answer & SECCOMP_RET_DATA);
}

static int errno_there(long nr, long arg)
{
	return syscall(nr, arg) < 0 ? errno : 0;
}

Test(preload_filter, as_the_kernel)
{
	struct sock_fprog program = { sizeof(judge) / sizeof(judge[0]), judge };
	static const struct {
		long nr, arg;
	} calls[] = {
		{ SYS_getppid, 0 }, { SYS_getpgid, 0 }, { SYS_getpgid, 6 }, { SYS_getpid, 6 }
	};
	pid_t pid = fork();
	int status;

	if (!pid) {
		int bad = 0;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
			_exit(100);
		for (int i = 0; i < 4; i++) {
			int here = errno_here(calls[i].nr, calls[i].arg);
			int there = errno_there(calls[i].nr, calls[i].arg);

			/* A group of that number need not exist */
			bad += here != (there == ESRCH ? 0 : there);
		}
		_exit(bad);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_assert_eq(errno_here(SYS_getppid, 0), 71);
	cr_assert_eq(errno_here(SYS_getpgid, 6), 72);
	cr_assert_eq(errno_here(SYS_getpgid, 5), 0);
}
