/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the verifier refuses, with its words and the instruction; and what it must not refuse.
 */
#include "both.h"

static int nothing(struct ebpf_run *run, const uint64_t arg[5], uint64_t *result)
{
	return 0;
}

static const struct ebpf_helper list[] = { { "two", 2, 2, nothing } };
static const struct ebpf_helpers helpers = { list, 1 };

static void refused(const char *want, const struct ebpf_insn *insns, size_t count)
{
	const char *text = both_refusal(insns, count, &helpers);

	cr_assert(!strncmp(text, want, strlen(want)), "wanted \"%s\", got \"%s\"", want, text);
}

#define REFUSED(want, ...)                                         \
	do {                                                       \
		const struct ebpf_insn insns_[] = { __VA_ARGS__ }; \
		refused(want, insns_, base_array_size(insns_));    \
	} while (0)
#define TAKEN(...)                                                                            \
	do {                                                                                  \
		const struct ebpf_insn insns_[] = { __VA_ARGS__ };                            \
		ebpf_object_destroy(both_load(insns_, base_array_size(insns_), &helpers, 0)); \
	} while (0)

Test(bpf_verify, registers_must_be_written)
{
	REFUSED("r0 is not set at the end; 0: exit", EXIT);
	REFUSED("r6 is not initialised; 0: r0 = r6", MOVX(0, 6), EXIT);
	REFUSED("r6 is not initialised; 1: r6 += 1", MOV(0, 0), ADD(6, 1), EXIT);
	REFUSED("r7 is not initialised; 1", MOV(0, 0), LDX(EBPF_W, 0, 7, 0), EXIT);
	REFUSED("r7 is not initialised; 1", MOV(0, 0), STX(EBPF_W, 10, 7, -8), EXIT);
	REFUSED("r7 is not initialised; 1", MOV(0, 0), ST(EBPF_W, 7, 0, 0), EXIT);
	REFUSED("r7 is not initialised; 1", MOV(0, 0), JK(EBPF_JEQ, 7, 0, 0), EXIT);
	REFUSED("r7 is not initialised; 1", MOV(0, 0), J32X(EBPF_JEQ, 0, 7, 0), EXIT);
	REFUSED("r7 is not initialised; 1", MOV(0, 0), ALU64K(EBPF_NEG, 7, 0), EXIT);
	REFUSED("r7 is not initialised; 1", MOV(0, 0), ALU32K(EBPF_END, 7, 16), EXIT);
	REFUSED("r7 is not initialised; 1", ST(EBPF_DW, 10, -8, 0),
		ATOMIC(EBPF_DW, EBPF_ADD, 10, 7, -8), MOV(0, 0), EXIT);
	REFUSED("r0 is not initialised; 1", ST(EBPF_DW, 10, -8, 0),
		ATOMIC(EBPF_DW, EBPF_CMPXCHG | EBPF_FETCH, 10, 1, -8), EXIT);
	/* on one way of two, and only after a loop */
	REFUSED("r6 is not initialised; 3", MOV(0, 0), JK(EBPF_JEQ, 1, 0, 1), MOV(6, 0), MOVX(0, 6),
		EXIT);
	REFUSED("r6 is not initialised; 1", MOV(0, 0), MOVX(7, 6), MOV(6, 1), JA(-3), EXIT);
}

Test(bpf_verify, a_call_takes_r1_to_r5)
{
	for (unsigned int i = 1; i <= 5; i++)
		REFUSED("r", MOV(1, 0), MOV(2, 0), CALL(2), MOVX(0, i), EXIT);
	REFUSED("r1 is not initialised; 1", CALL(2), MOVX(0, 1), EXIT);
	TAKEN(MOV(6, 3), CALL(2), MOVX(0, 6), EXIT);
}

Test(bpf_verify, helpers_get_what_they_want)
{
	REFUSED("r1 is not initialised; 1: call 2", CALL_LOCAL(2), CALL(2), EXIT, MOV(0, 0), EXIT);
	REFUSED("r2 is not initialised; 2", CALL_LOCAL(3), MOV(1, 0), CALL(2), EXIT, MOV(0, 0),
		EXIT);
	TAKEN(CALL_LOCAL(4), MOV(1, 0), MOV(2, 0), CALL(2), EXIT, MOV(0, 0), EXIT);
	REFUSED("a call of an unknown helper", CALL(3), EXIT);
	REFUSED("a call of an unknown helper", CALL(-1), EXIT);
}

Test(bpf_verify, functions_see_only_their_arguments)
{
	REFUSED("r6 is not initialised; 3", MOV(6, 0), CALL_LOCAL(1), EXIT, MOVX(0, 6), EXIT);
	REFUSED("r0 is not initialised; 3", MOV(0, 0), CALL_LOCAL(1), EXIT, ADD(0, 1), EXIT);
	/* a function without a result has none */
	REFUSED("r0 is not set at the end; 1", CALL_LOCAL(1), EXIT, MOV(1, 0), EXIT);
	TAKEN(CALL_LOCAL(2), MOV(0, 0), EXIT, MOV(1, 0), EXIT);
	/* r2 is written by one caller only */
	REFUSED("r2 is not initialised; 8", CALL_LOCAL(7), MOV(1, 1), MOV(2, 1), CALL_LOCAL(4),
		MOV(1, 1), CALL_LOCAL(2), MOV(0, 0), EXIT, MOVX(0, 2), EXIT);
}

Test(bpf_verify, the_stack_frame)
{
	REFUSED("8 bytes at r10+0 are outside of the stack frame", ST(EBPF_DW, 10, 0, 0), EXIT);
	REFUSED("8 bytes at r10-4 are outside of the stack frame", ST(EBPF_DW, 10, -4, 0), EXIT);
	REFUSED("1 bytes at r10-513 are outside of the stack frame", ST(EBPF_B, 10, -513, 0), EXIT);
	REFUSED("8 bytes at r10-520 are outside of the stack frame", MOVX(1, 10), ADD(1, -512),
		STX(EBPF_DW, 1, 1, -8), EXIT);
	TAKEN(ST(EBPF_DW, 10, -512, 0), ST(EBPF_B, 10, -1, 0), MOV(0, 0), EXIT);
	REFUSED("8 bytes at r10-8 are read before they are written", LDX(EBPF_DW, 0, 10, -8), EXIT);
	REFUSED("8 bytes at r10-8 are read before they are written", ST(EBPF_W, 10, -8, 0),
		LDX(EBPF_DW, 0, 10, -8), EXIT);
	REFUSED("8 bytes at r10-8 are read before they are written", MOV(0, 0),
		JK(EBPF_JEQ, 1, 0, 1), ST(EBPF_DW, 10, -8, 0), LDX(EBPF_DW, 0, 10, -8), EXIT);
	TAKEN(ST(EBPF_W, 10, -8, 0), ST(EBPF_W, 10, -4, 0), LDX(EBPF_DW, 0, 10, -8), EXIT);
	/* others may write to it once its address is known to them */
	TAKEN(MOVX(1, 10), MOV(2, 8), CALL(2), LDX(EBPF_DW, 0, 10, -8), EXIT);
	TAKEN(MOVX(1, 10), CALL_LOCAL(2), LDX(EBPF_DW, 0, 10, -8), EXIT, MOV(0, 0), EXIT);
	REFUSED("a misaligned atomic", ST(EBPF_DW, 10, -16, 0), ST(EBPF_DW, 10, -8, 0), MOV(0, 0),
		ATOMIC(EBPF_DW, EBPF_ADD, 10, 0, -12), EXIT);
}

Test(bpf_verify, own_addresses)
{
	REFUSED("8 bytes at 0x8000000300000000 are outside of the program's data",
		LDDW(1, EBPF_DATA_ADDR), LDX(EBPF_DW, 0, 1, 0), EXIT);
	REFUSED("1 bytes at 0x8000000000000000 are outside", LDDW(1, EBPF_OWN_ADDR),
		LDX(EBPF_B, 0, 1, 0), EXIT);
	REFUSED("8 bytes at 0xffffffffffffffff are outside", MOV(1, -1), LDX(EBPF_DW, 0, 1, 0),
		EXIT);
	TAKEN(LDDW(1, EBPF_STACK_ADDR), LDX(EBPF_B, 0, 1, 0), EXIT);
}

Test(bpf_verify, jumps)
{
	REFUSED("a jump out of its function", MOV(0, 0), JA(1), EXIT);
	REFUSED("a jump out of its function", MOV(0, 0), JA(-3), EXIT);
	REFUSED("a jump out of its function", MOV(0, 0), JK(EBPF_JEQ, 0, 0, 32767), EXIT);
	REFUSED("a jump out of its function", MOV(0, 0), GOTOL(INT32_MAX), EXIT);
	REFUSED("a jump out of its function", MOV(0, 0), GOTOL(INT32_MIN), EXIT);
	REFUSED("a jump out of its function", MOV(0, 0), CALL_LOCAL(2), JA(1), EXIT, MOV(0, 0),
		EXIT);
	REFUSED("a jump into a constant", JA(1), LDDW(0, 5), EXIT);
	REFUSED("the function has no end", MOV(0, 0));
	REFUSED("the function has no end", MOV(0, 0), JK(EBPF_JEQ, 0, 0, -1));
	REFUSED("the function has no end", EXIT, LDDW(0, 0));
	REFUSED("the function has no end", MOV(0, 0), CALL(2));
	REFUSED("the function has no end; 1", CALL_LOCAL(1), MOV(0, 0), MOV(0, 0), EXIT);
	REFUSED("a call out of the program", CALL_LOCAL(1), EXIT);
	REFUSED("a call out of the program", CALL_LOCAL(-2), EXIT);
	REFUSED("a call out of the program", CALL_LOCAL(INT32_MIN), EXIT);
	REFUSED("a call out of the program", CALL_LOCAL(2), EXIT, LDDW(0, 0), EXIT);
	TAKEN(JA(-1));
	TAKEN(MOV(0, 0), EXIT, MOV(0, 0), EXIT);
}

Test(bpf_verify, opcodes)
{
	static const int gone[] = { 0x00, 0x20, 0x28, 0x30, 0x38, 0x40, 0x48,	     0x50,
				    0x58, 0x99, 0x8d, 0x0d, 0x0e, 0x86, 0x96,	     0xe4,
				    0xe7, 0xe5, 0xe6, 0xdf, 0x8c, 0x8f, 0x7c + 0x80, 0x9d,
				    0x82, 0x83, 0xc2, 0xd2, 0xc1, 0xa1, 0xe1 };

	for (size_t i = 0; i < base_array_size(gone); i++) {
		const struct ebpf_insn insns[] = { MOV(0, 0), INSN(gone[i], 0, 0, 0, 0), EXIT };
		const char *text = both_refusal(insns, 3, &helpers);

		cr_assert_neq(text[0], 0);
	}
}

/* Whatever the bytes: no opcode is taken that the engines do not know. */
Test(bpf_verify, every_opcode_is_known_or_refused)
{
	int known = 0;

	for (int code = 0; code < 256; code++) {
		const struct ebpf_insn insns[] = {
			MOV(0, 1),
			MOVX(3, 10),
			ADD(3, -8),
			ST(EBPF_DW, 10, -8, 0),
			INSN(code, code == 0x18 || (code & 7) == 4 || (code & 7) == 7 ? 0 : 3, 0, 0,
			     0),
			MOV(0, 0),
			EXIT
		};
		struct ebpf_object *obj = NULL;
		struct ebpf_error err;
		struct ebpf_params params = { 0 };

		if (ebpf_object_assemble(insns, 7, NULL, 0, &obj, &err))
			continue;
		both_run(insns, 7, NULL, &params, 20);
		ebpf_object_destroy(obj);
		known++;
	}
	cr_assert_gt(known, 70);
}

Test(bpf_verify, unused_fields)
{
	static const struct ebpf_insn bad[] = {
		INSN(EBPF_ALU64 | EBPF_ADD, 0, 1, 0, 0),
		INSN(EBPF_ALU64 | EBPF_ADD, 0, 0, 1, 0),
		INSN(EBPF_ALU64 | EBPF_ADD | EBPF_X, 0, 1, 0, 1),
		INSN(EBPF_ALU64 | EBPF_MOV | EBPF_X, 0, 1, 0, 1),
		INSN(EBPF_ALU64 | EBPF_MOV | EBPF_X, 0, 1, 7, 0),
		INSN(EBPF_ALU | EBPF_MOV | EBPF_X, 0, 1, 32, 0),
		INSN(EBPF_ALU64 | EBPF_MOV, 0, 0, 8, 0),
		INSN(EBPF_ALU64 | EBPF_DIV | EBPF_X, 0, 1, 2, 0),
		INSN(EBPF_ALU64 | EBPF_NEG, 0, 0, 0, 1),
		INSN(EBPF_ALU | EBPF_END, 0, 0, 0, 8),
		INSN(EBPF_ALU64 | EBPF_END, 0, 0, 1, 16),
		INSN(EBPF_LDX | EBPF_MEM | EBPF_W, 0, 10, -8, 1),
		INSN(EBPF_STX | EBPF_MEM | EBPF_W, 10, 1, -8, 1),
		INSN(EBPF_ST | EBPF_MEM | EBPF_W, 10, 1, -8, 1),
		INSN(EBPF_JMP | EBPF_JA, 0, 0, 0, 1),
		INSN(EBPF_JMP | EBPF_JA, 1, 0, 0, 0),
		INSN(EBPF_JMP32 | EBPF_JA, 0, 0, 1, 0),
		INSN(EBPF_JMP | EBPF_JEQ, 0, 1, 0, 0),
		INSN(EBPF_JMP | EBPF_JEQ | EBPF_X, 0, 1, 0, 1),
		INSN(EBPF_EXIT_CODE, 0, 0, 0, 1),
		INSN(EBPF_EXIT_CODE, 1, 0, 0, 0),
		INSN(EBPF_CALL_CODE, 1, 0, 0, 2),
		INSN(EBPF_CALL_CODE, 0, 0, 1, 2),
		INSN(EBPF_CALL_CODE, 0, 2, 0, 2),
		INSN(EBPF_ALU64 | EBPF_MOV, 11, 0, 0, 0),
		INSN(EBPF_ALU64 | EBPF_MOV | EBPF_X, 0, 15, 0, 0),
		INSN(EBPF_ALU64 | EBPF_MOV, 10, 0, 0, 0),
		INSN(EBPF_LDX | EBPF_MEM | EBPF_W, 10, 1, 0, 0),
		ATOMIC(EBPF_DW, EBPF_ADD | EBPF_FETCH, 1, 10, 0),
		ATOMIC(EBPF_DW, EBPF_SUB, 10, 1, -8),
		ATOMIC(EBPF_DW, EBPF_XCHG, 10, 1, -8),
		ATOMIC(EBPF_H, EBPF_ADD, 10, 1, -8),
		ATOMIC(EBPF_DW, 0x100, 10, 1, -8),
		INSN(EBPF_LDDW, 0, 1, 0, 0),
		INSN(EBPF_LDDW, 0, 0, 1, 0),
	};

	for (size_t i = 0; i < base_array_size(bad); i++) {
		const struct ebpf_insn insns[] = { MOV(0, 0), ST(EBPF_DW, 10, -8, 0), bad[i],
						   INSN(0, 0, 0, 0, 0), EXIT };
		const struct ebpf_insn without[] = { MOV(0, 0), ST(EBPF_DW, 10, -8, 0), bad[i],
						     EXIT };
		bool wide = bad[i].code == EBPF_LDDW;
		const char *text = both_refusal(wide ? insns : without, wide ? 5 : 4, &helpers);

		cr_assert(strstr(text, "; 2: "), "row %zu: %s", i, text);
	}
	REFUSED("a 64-bit constant without its second half", INSN(EBPF_LDDW, 0, 0, 0, 0));
	REFUSED("a 64-bit constant without its second half", INSN(EBPF_LDDW, 0, 0, 0, 0),
		INSN(0, 1, 0, 0, 0), EXIT);
	REFUSED("a 64-bit constant without its second half", INSN(EBPF_LDDW, 0, 0, 0, 0), EXIT);
}

Test(bpf_verify, sizes)
{
	struct ebpf_insn *insns = calloc(EBPF_INSNS_MAX + 1, sizeof(*insns));
	struct ebpf_object *obj = NULL;
	struct ebpf_error err;

	for (int i = 0; i <= EBPF_INSNS_MAX; i++)
		insns[i] = (struct ebpf_insn)EXIT;
	cr_assert_eq(ebpf_object_assemble(insns, 0, NULL, 0, &obj, &err), -EINVAL);
	cr_assert_eq(ebpf_object_assemble(insns, EBPF_INSNS_MAX + 1, NULL, 0, &obj, &err), -E2BIG);
	insns[0] = (struct ebpf_insn)MOV(0, 0);
	cr_assert_not(ebpf_object_assemble(insns, EBPF_INSNS_MAX, NULL, 0, &obj, &err));
	ebpf_object_destroy(obj);
	free(insns);
}

/* Made to take long: each way through has another state. It is refused, or taken, but soon. */
Test(bpf_verify, hard_programs_end, .timeout = 30)
{
	struct ebpf_insn *insns = calloc(EBPF_INSNS_MAX, sizeof(*insns));
	struct ebpf_object *obj = NULL;
	struct ebpf_error err;
	size_t n = 0;

	insns[n++] = (struct ebpf_insn)MOV(0, 0);
	for (; n < EBPF_INSNS_MAX - 3; n += 3) {
		int far = n > 30000 ? -(int)(n * 31 % 29999) - 3 : (int)(n * 17 % 29999);

		insns[n] = (struct ebpf_insn)ST(EBPF_B, 10, -1 - (int)(n * 7 % 512), 0);
		insns[n + 1] = (struct ebpf_insn)ALU64K(EBPF_ADD, 0, (int)n);
		insns[n + 2] = (struct ebpf_insn)JK(EBPF_JSET, 1, 1, far);
	}
	while (n < EBPF_INSNS_MAX)
		insns[n++] = (struct ebpf_insn)EXIT;
	if (!ebpf_object_assemble(insns, n, NULL, 0, &obj, &err))
		ebpf_object_destroy(obj);
	else
		cr_assert(strstr(err.text, "too complex"), "%s", err.text);
	free(insns);
}

Test(bpf_verify, texts_of_instructions)
{
	static const struct {
		struct ebpf_insn in[2];
		const char *want;
	} rows[] = {
		{ { ADD(1, -5) }, "r1 += -5" },
		{ { ALU32X(EBPF_MOV, 1, 2) }, "w1 = w2" },
		{ { INSN(EBPF_ALU64 | EBPF_MOV | EBPF_X, 1, 2, 8, 0) }, "r1 = (s8)r2" },
		{ { INSN(EBPF_ALU64 | EBPF_DIV | EBPF_X, 1, 2, 1, 0) }, "r1 s/= r2" },
		{ { INSN(EBPF_ALU64 | EBPF_MOD, 1, 0, 1, 3) }, "r1 s%= 3" },
		{ { ALU64K(EBPF_NEG, 3, 0) }, "r3 = -r3" },
		{ { ALU32K(EBPF_END, 3, 16) }, "r3 = le16 r3" },
		{ { INSN(EBPF_ALU | EBPF_END | EBPF_X, 3, 0, 0, 32) }, "r3 = be32 r3" },
		{ { ALU64K(EBPF_END, 3, 64) }, "r3 = bswap64 r3" },
		{ { LDDW(4, 0x123456789abcdef0) }, "r4 = 0x123456789abcdef0 ll" },
		{ { LDX(EBPF_H, 1, 2, 6) }, "r1 = *(u16 *)(r2 +6)" },
		{ { LDSX(EBPF_W, 1, 2, -6) }, "r1 = *(s32 *)(r2 -6)" },
		{ { ST(EBPF_B, 10, -1, 7) }, "*(u8 *)(r10 -1) = 7" },
		{ { STX(EBPF_DW, 10, 3, -8) }, "*(u64 *)(r10 -8) = r3" },
		{ { ATOMIC(EBPF_DW, EBPF_ADD, 1, 2, 0) }, "lock 0x0 *(u64 *)(r1 +0), r2" },
		{ { JK(EBPF_JSGT, 1, -3, 4) }, "if r1 s> -3 goto +4" },
		{ { J32X(EBPF_JNE, 1, 2, -4) }, "if w1 != w2 goto -4" },
		{ { JA(3) }, "goto +3" },
		{ { GOTOL(-30000) }, "gotol -30000" },
		{ { CALL(7) }, "call 7" },
		{ { CALL_LOCAL(7) }, "call +7" },
		{ { EXIT }, "exit" },
		{ { INSN(0x20, 0, 0, 0, 0) }, "instruction 0x20" },
	};
	char text[64];

	for (size_t i = 0; i < base_array_size(rows); i++)
		cr_assert_str_eq(ebpf_insn_text(rows[i].in, rows[i].in + 1, text, sizeof(text)),
				 rows[i].want);
}
