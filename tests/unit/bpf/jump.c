/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each jump of RFC 9669, of 64 and 32 bits, with a register and with a constant: taken and not.
 */
#include "both.h"

#define ONES UINT64_MAX
#define HIGH (1ull << 40)

static const struct row {
	unsigned int op;
	uint64_t dst, src;
	bool taken64, taken32;
} rows[] = {
	{ EBPF_JEQ, 5, 5, true, true },
	{ EBPF_JEQ, 5, 6, false, false },
	{ EBPF_JEQ, HIGH, 0, false, true },
	{ EBPF_JNE, 5, 5, false, false },
	{ EBPF_JNE, 5, 6, true, true },
	{ EBPF_JNE, HIGH, 0, true, false },
	{ EBPF_JGT, 6, 5, true, true },
	{ EBPF_JGT, 5, 5, false, false },
	{ EBPF_JGT, ONES, 5, true, true },
	{ EBPF_JGT, HIGH, 5, true, false },
	{ EBPF_JGE, 5, 5, true, true },
	{ EBPF_JGE, 4, 5, false, false },
	{ EBPF_JGE, HIGH, 5, true, false },
	{ EBPF_JLT, 4, 5, true, true },
	{ EBPF_JLT, 5, 5, false, false },
	{ EBPF_JLT, HIGH, 5, false, true },
	{ EBPF_JLE, 5, 5, true, true },
	{ EBPF_JLE, 6, 5, false, false },
	{ EBPF_JLE, HIGH, 5, false, true },
	{ EBPF_JSET, 6, 2, true, true },
	{ EBPF_JSET, 5, 2, false, false },
	{ EBPF_JSET, HIGH, ONES, true, false },
	{ EBPF_JSGT, 5, ONES, true, true },
	{ EBPF_JSGT, ONES, 5, false, false },
	{ EBPF_JSGT, 0x80000000, 5, true, false },
	{ EBPF_JSGE, 5, 5, true, true },
	{ EBPF_JSGE, ONES, 0, false, false },
	{ EBPF_JSGE, 0x80000000, 0, true, false },
	{ EBPF_JSLT, ONES, 5, true, true },
	{ EBPF_JSLT, 5, ONES, false, false },
	{ EBPF_JSLT, 0x80000000, 5, false, true },
	{ EBPF_JSLE, 5, 5, true, true },
	{ EBPF_JSLE, 0, ONES, false, false },
	{ EBPF_JSLE, 0x80000000, 0, false, true },
};

static void check(const struct row *row, unsigned int dst, unsigned int src)
{
	for (int narrow = 0; narrow < 2; narrow++) {
		unsigned int class = narrow ? EBPF_JMP32 : EBPF_JMP;
		uint64_t want = narrow ? row->taken32 : row->taken64;

		cr_assert_eq(BOTH_VALUE(LDDW(dst, row->dst), LDDW(src, row->src),
					INSN(class | row->op | EBPF_X, dst, src, 2, 0), MOV(0, 0),
					EXIT, MOV(0, 1), EXIT),
			     want, "0x%x of %d: r%u r%u", row->op, narrow, dst, src);
		if (row->src != (uint64_t)(int32_t)row->src)
			continue;
		cr_assert_eq(BOTH_VALUE(LDDW(dst, row->dst),
					INSN(class | row->op, dst, 0, 2, row->src), MOV(0, 0), EXIT,
					MOV(0, 1), EXIT),
			     want, "0x%x of %d: r%u and a constant", row->op, narrow, dst);
	}
}

Test(bpf_jump, every_condition_in_every_register)
{
	for (size_t i = 0; i < base_array_size(rows); i++)
		for (unsigned int dst = 0; dst < EBPF_FP; dst++)
			check(&rows[i], dst,
			      (dst + 1 + (unsigned int)i) % EBPF_FP == dst
				      ? (dst + 1) % EBPF_FP
				      : (dst + 1 + (unsigned int)i) % EBPF_FP);
}

Test(bpf_jump, without_a_condition)
{
	cr_assert_eq(BOTH_VALUE(MOV(0, 1), JA(1), MOV(0, 2), EXIT), 1);
	cr_assert_eq(BOTH_VALUE(MOV(0, 1), GOTOL(1), MOV(0, 2), EXIT), 1);
	cr_assert_eq(BOTH_VALUE(JA(2), MOV(0, 7), EXIT, GOTOL(-3)), 7);
	cr_assert_eq(BOTH_VALUE(MOV(0, 3), JA(0), EXIT), 3);
}

Test(bpf_jump, far_beyond_16_bits)
{
	enum { FAR = 50000 };
	struct ebpf_insn *insns = calloc(FAR + 3, sizeof(*insns));

	insns[0] = (struct ebpf_insn)GOTOL(FAR);
	for (size_t i = 1; i <= FAR; i++)
		insns[i] = (struct ebpf_insn)EXIT;
	insns[FAR + 1] = (struct ebpf_insn)MOV(0, 9);
	insns[FAR + 2] = (struct ebpf_insn)GOTOL(-3);
	cr_assert_eq(both_value(insns, FAR + 3), 9);
	free(insns);
}

Test(bpf_jump, loops)
{
	/* the sum of 1 to 100, counting down; and a loop with its test at its head */
	cr_assert_eq(BOTH_VALUE(MOV(0, 0), MOV(1, 100), ALU64X(EBPF_ADD, 0, 1), ADD(1, -1),
				JK(EBPF_JNE, 1, 0, -3), EXIT),
		     5050);
	cr_assert_eq(BOTH_VALUE(MOV(0, 0), MOV(1, 100), JK(EBPF_JEQ, 1, 0, 3),
				ALU64X(EBPF_ADD, 0, 1), ADD(1, -1), JA(-4), EXIT),
		     5050);
	/* one in another */
	cr_assert_eq(BOTH_VALUE(MOV(0, 0), MOV(1, 10), MOV(2, 10), ADD(0, 1), ADD(2, -1),
				JK(EBPF_JNE, 2, 0, -3), ADD(1, -1), JK(EBPF_JNE, 1, 0, -6), EXIT),
		     100);
}
