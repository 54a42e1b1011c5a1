/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each arithmetic instruction of RFC 9669 with its edges, in all pairs of registers: machine code
 * treats some registers specially. What is wanted was computed by hand from the RFC's text.
 */
#include "both.h"

struct row {
	const char *name;
	uint64_t dst, src, want;
	unsigned int code;
	int off, imm;
};

#define A64 EBPF_ALU64
#define A32 EBPF_ALU
#define X EBPF_X
#define MIN64 0x8000000000000000u
#define ONES UINT64_MAX
#define V 0x0123456789abcdefu

static const struct row rows[] = {
	/* base64 */
	{ "add", 5, 7, 12, A64 | EBPF_ADD | X, 0, 0 },
	{ "add wraps", ONES, 2, 1, A64 | EBPF_ADD | X, 0, 0 },
	{ "add a constant is sign-extended", 5, 0, 4, A64 | EBPF_ADD, 0, -1 },
	{ "add a large constant", 1, 0, 0x80000000, A64 | EBPF_ADD, 0, 0x7fffffff },
	{ "sub", 5, 7, (uint64_t)-2, A64 | EBPF_SUB | X, 0, 0 },
	{ "sub a constant", 5, 0, 6, A64 | EBPF_SUB, 0, -1 },
	{ "or", 0xf0, 0x0f, 0xff, A64 | EBPF_OR | X, 0, 0 },
	{ "or a constant is sign-extended", 0, 0, ONES << 31, A64 | EBPF_OR, 0, INT32_MIN },
	{ "and", 0xff0, 0x0ff, 0x0f0, A64 | EBPF_AND | X, 0, 0 },
	{ "and a constant is sign-extended", ONES, 0, (uint64_t)-16, A64 | EBPF_AND, 0, -16 },
	{ "xor", V, ONES, ~V, A64 | EBPF_XOR | X, 0, 0 },
	{ "xor a constant", V, 0, ~V, A64 | EBPF_XOR, 0, -1 },
	{ "neg", 1, 0, ONES, A64 | EBPF_NEG, 0, 0 },
	{ "neg of the least", MIN64, 0, MIN64, A64 | EBPF_NEG, 0, 0 },
	{ "mov", 1, V, V, A64 | EBPF_MOV | X, 0, 0 },
	{ "mov a constant is sign-extended", 1, 0, (uint64_t)-5, A64 | EBPF_MOV, 0, -5 },
	{ "lsh", 1, 63, MIN64, A64 | EBPF_LSH | X, 0, 0 },
	{ "lsh by nothing", V, 0, V, A64 | EBPF_LSH | X, 0, 0 },
	{ "lsh counts modulo 64", 1, 65, 2, A64 | EBPF_LSH | X, 0, 0 },
	{ "lsh by a constant", V, 0, V << 8, A64 | EBPF_LSH, 0, 8 },
	{ "lsh by a constant modulo 64", 1, 0, 2, A64 | EBPF_LSH, 0, 65 },
	{ "rsh", MIN64, 63, 1, A64 | EBPF_RSH | X, 0, 0 },
	{ "rsh counts modulo 64", 4, ONES << 6 | 1, 2, A64 | EBPF_RSH | X, 0, 0 },
	{ "rsh by a constant", V, 0, V >> 4, A64 | EBPF_RSH, 0, 4 },
	{ "arsh", MIN64, 63, ONES, A64 | EBPF_ARSH | X, 0, 0 },
	{ "arsh of a positive number", 8, 2, 2, A64 | EBPF_ARSH | X, 0, 0 },
	{ "arsh by a constant", (uint64_t)-8, 0, (uint64_t)-2, A64 | EBPF_ARSH, 0, 2 },
	/* base32: the upper half is cleared */
	{ "add32", ONES, 2, 1, A32 | EBPF_ADD | X, 0, 0 },
	{ "add32 a constant", 1ull << 40, 0, 0xffffffff, A32 | EBPF_ADD, 0, -1 },
	{ "sub32", 0, 1, 0xffffffff, A32 | EBPF_SUB | X, 0, 0 },
	{ "sub32 a constant", MIN64, 0, 1, A32 | EBPF_SUB, 0, -1 },
	{ "or32", ONES << 32, 5, 5, A32 | EBPF_OR | X, 0, 0 },
	{ "or32 a constant", 0, 0, 0xfffffff0, A32 | EBPF_OR, 0, -16 },
	{ "and32", ONES, ONES, 0xffffffff, A32 | EBPF_AND | X, 0, 0 },
	{ "and32 a constant", ONES, 0, 0xfffffffe, A32 | EBPF_AND, 0, -2 },
	{ "xor32", ONES, 1, 0xfffffffe, A32 | EBPF_XOR | X, 0, 0 },
	{ "xor32 a constant", V, 0, ~V & 0xffffffff, A32 | EBPF_XOR, 0, -1 },
	{ "neg32", 1, 0, 0xffffffff, A32 | EBPF_NEG, 0, 0 },
	{ "mov32", 1, V, 0x89abcdef, A32 | EBPF_MOV | X, 0, 0 },
	{ "mov32 a constant", 1, 0, 0xfffffffb, A32 | EBPF_MOV, 0, -5 },
	{ "lsh32", 1, 31, 0x80000000, A32 | EBPF_LSH | X, 0, 0 },
	{ "lsh32 by nothing clears the upper half", V, 0, 0x89abcdef, A32 | EBPF_LSH | X, 0, 0 },
	{ "lsh32 counts modulo 32", 1, 33, 2, A32 | EBPF_LSH | X, 0, 0 },
	{ "lsh32 by a constant modulo 32", 1, 0, 2, A32 | EBPF_LSH, 0, 33 },
	{ "lsh32 by the constant 0", V, 0, 0x89abcdef, A32 | EBPF_LSH, 0, 0 },
	{ "rsh32", V, 4, 0x089abcde, A32 | EBPF_RSH | X, 0, 0 },
	{ "rsh32 by a constant", V, 0, 0x89ab, A32 | EBPF_RSH, 0, 16 },
	{ "arsh32", 0x80000000, 31, 0xffffffff, A32 | EBPF_ARSH | X, 0, 0 },
	{ "arsh32 by a constant", V, 0, 0xfff89abc, A32 | EBPF_ARSH, 0, 12 },
	/* divmul64 */
	{ "mul", 1ull << 32, 1ull << 31, MIN64, A64 | EBPF_MUL | X, 0, 0 },
	{ "mul by a constant", 3, 0, (uint64_t)-21, A64 | EBPF_MUL, 0, -7 },
	{ "div", 100, 7, 14, A64 | EBPF_DIV | X, 0, 0 },
	{ "div has no sign", ONES, 2, INT64_MAX, A64 | EBPF_DIV | X, 0, 0 },
	{ "div by zero", 100, 0, 0, A64 | EBPF_DIV | X, 0, 0 },
	{ "div by a constant is sign-extended", ONES, 0, 1, A64 | EBPF_DIV, 0, -1 },
	{ "div by the constant zero", 7, 0, 0, A64 | EBPF_DIV, 0, 0 },
	{ "mod", 100, 7, 2, A64 | EBPF_MOD | X, 0, 0 },
	{ "mod by zero", V, 0, V, A64 | EBPF_MOD | X, 0, 0 },
	{ "mod by a constant", 100, 0, 2, A64 | EBPF_MOD, 0, 7 },
	{ "mod by the constant zero", V, 0, V, A64 | EBPF_MOD, 0, 0 },
	{ "sdiv", (uint64_t)-100, 7, (uint64_t)-14, A64 | EBPF_DIV | X, 1, 0 },
	{ "sdiv by minus one", 5, ONES, (uint64_t)-5, A64 | EBPF_DIV | X, 1, 0 },
	{ "sdiv that overflows", MIN64, ONES, MIN64, A64 | EBPF_DIV | X, 1, 0 },
	{ "sdiv by zero", MIN64, 0, 0, A64 | EBPF_DIV | X, 1, 0 },
	{ "sdiv by a constant", 100, 0, (uint64_t)-14, A64 | EBPF_DIV, 1, -7 },
	{ "smod has the dividend's sign", (uint64_t)-100, 7, (uint64_t)-2, A64 | EBPF_MOD | X, 1,
	  0 },
	{ "smod by minus one", MIN64, ONES, 0, A64 | EBPF_MOD | X, 1, 0 },
	{ "smod by zero", V, 0, V, A64 | EBPF_MOD | X, 1, 0 },
	{ "smod by a constant", 100, 0, 2, A64 | EBPF_MOD, 1, -7 },
	/* divmul32 */
	{ "mul32", 0x80000001, 2, 2, A32 | EBPF_MUL | X, 0, 0 },
	{ "mul32 by a constant", ONES, 0, 0xfffffffd, A32 | EBPF_MUL, 0, 3 },
	{ "div32", ONES, 2, 0x7fffffff, A32 | EBPF_DIV | X, 0, 0 },
	{ "div32 by zero in its half", V, MIN64, 0, A32 | EBPF_DIV | X, 0, 0 },
	{ "div32 by a constant", 0xffffffff, 0, 1, A32 | EBPF_DIV, 0, -1 },
	{ "mod32", ONES, 16, 15, A32 | EBPF_MOD | X, 0, 0 },
	{ "mod32 by zero clears the upper half", V, 0, 0x89abcdef, A32 | EBPF_MOD | X, 0, 0 },
	{ "mod32 by the constant zero", V, 0, 0x89abcdef, A32 | EBPF_MOD, 0, 0 },
	{ "sdiv32", 0xffffff9c, 7, 0xfffffff2, A32 | EBPF_DIV | X, 1, 0 },
	{ "sdiv32 that overflows", 0x80000000, 0xffffffff, 0x80000000, A32 | EBPF_DIV | X, 1, 0 },
	{ "sdiv32 by zero", 5, 0, 0, A32 | EBPF_DIV | X, 1, 0 },
	{ "sdiv32 by a constant", 100, 0, 0xfffffff2, A32 | EBPF_DIV, 1, -7 },
	{ "smod32", 0xffffff9c, 7, 0xfffffffe, A32 | EBPF_MOD | X, 1, 0 },
	{ "smod32 that overflows", 0x80000000, 0xffffffff, 0, A32 | EBPF_MOD | X, 1, 0 },
	{ "smod32 by zero", V, 0, 0x89abcdef, A32 | EBPF_MOD | X, 1, 0 },
	/* movsx */
	{ "movsx 8", 1, 0x180, (uint64_t)-128, A64 | EBPF_MOV | X, 8, 0 },
	{ "movsx 8, positive", ONES, 0xff7f, 0x7f, A64 | EBPF_MOV | X, 8, 0 },
	{ "movsx 16", 1, 0x18000, (uint64_t)-32768, A64 | EBPF_MOV | X, 16, 0 },
	{ "movsx 32", 1, 0x180000000, ONES << 31, A64 | EBPF_MOV | X, 32, 0 },
	{ "movsx32 8", 1, 0x80, 0xffffff80, A32 | EBPF_MOV | X, 8, 0 },
	{ "movsx32 16", 1, 0x8000, 0xffff8000, A32 | EBPF_MOV | X, 16, 0 },
	/* byte swaps, on a little-endian host */
	{ "le16", V, 0, 0xcdef, A32 | EBPF_END, 0, 16 },
	{ "le32", V, 0, 0x89abcdef, A32 | EBPF_END, 0, 32 },
	{ "le64", V, 0, V, A32 | EBPF_END, 0, 64 },
	{ "be16", V, 0, 0xefcd, A32 | EBPF_END | X, 0, 16 },
	{ "be32", V, 0, 0xefcdab89, A32 | EBPF_END | X, 0, 32 },
	{ "be64", V, 0, 0xefcdab8967452301, A32 | EBPF_END | X, 0, 64 },
	{ "bswap16", V, 0, 0xefcd, A64 | EBPF_END, 0, 16 },
	{ "bswap32", V, 0, 0xefcdab89, A64 | EBPF_END, 0, 32 },
	{ "bswap64", V, 0, 0xefcdab8967452301, A64 | EBPF_END, 0, 64 },
};

/* All other registers keep what they hold. */
static void check(const struct row *row, unsigned int dst, unsigned int src)
{
	bool has_src = row->code & X && (row->code & 0xf0) != EBPF_END;
	struct ebpf_insn insns[128];
	size_t n = 0;

	for (unsigned int i = 0; i < EBPF_FP; i++) {
		uint64_t v = i == dst ? row->dst : i == src && has_src ? row->src : 0x1111u * i;
		const struct ebpf_insn set[] = { LDDW(i, v) };

		memcpy(&insns[n], set, sizeof(set));
		n += 2;
	}
	insns[n++] = (struct ebpf_insn)INSN(row->code, dst, has_src ? src : 0, row->off, row->imm);
	for (unsigned int i = 0; i < EBPF_FP; i++) {
		insns[n++] = (struct ebpf_insn)STX(EBPF_DW, 10, i, -8 - 8 * (int)i);
	}
	for (unsigned int i = 0; i < EBPF_FP; i++) {
		uint64_t v = i == dst ? row->want : i == src && has_src ? row->src : 0x1111u * i;
		const struct ebpf_insn test[] = { LDX(EBPF_DW, 1, 10, -8 - 8 * (int)i), LDDW(2, v),
						  MOV(0, 100 + (int)i), JX(EBPF_JEQ, 1, 2, 1),
						  EXIT };

		memcpy(&insns[n], test, sizeof(test));
		n += base_array_size(test);
	}
	insns[n++] = (struct ebpf_insn)MOV(0, 0);
	insns[n++] = (struct ebpf_insn)EXIT;
	cr_assert_eq(both_value(insns, n), 0, "%s: r%u, r%u", row->name, dst, src);
}

Test(bpf_alu, every_instruction_in_every_register)
{
	for (size_t i = 0; i < base_array_size(rows); i++)
		for (unsigned int dst = 0; dst < EBPF_FP; dst++)
			for (unsigned int src = 0; src < EBPF_FP; src += dst == 0 ? 1 : 3)
				if (dst != src || rows[i].dst == rows[i].src || !(rows[i].code & X))
					check(&rows[i], dst, src);
}

Test(bpf_alu, the_same_register_twice)
{
	for (unsigned int r = 0; r < EBPF_FP; r++) {
		cr_assert_eq(BOTH_VALUE(LDDW(r, 100), ALU64X(EBPF_DIV, r, r), MOVX(0, r), EXIT), 1);
		cr_assert_eq(BOTH_VALUE(LDDW(r, 100), ALU64X(EBPF_MOD, r, r), MOVX(0, r), EXIT), 0);
		cr_assert_eq(BOTH_VALUE(LDDW(r, 3), ALU64X(EBPF_LSH, r, r), MOVX(0, r), EXIT), 24);
		cr_assert_eq(BOTH_VALUE(LDDW(r, 3), ALU64X(EBPF_MUL, r, r), MOVX(0, r), EXIT), 9);
		cr_assert_eq(BOTH_VALUE(LDDW(r, 3), ALU64X(EBPF_SUB, r, r), MOVX(0, r), EXIT), 0);
	}
}

Test(bpf_alu, the_frame_pointer_is_an_operand)
{
	const uint64_t fp = EBPF_STACK_ADDR + EBPF_FRAME_SIZE;

	cr_assert_eq(BOTH_VALUE(MOVX(0, 10), EXIT), fp);
	cr_assert_eq(BOTH_VALUE(MOV(0, 1), ALU64X(EBPF_ADD, 0, 10), EXIT), fp + 1);
	cr_assert_eq(BOTH_VALUE(MOV(0, 1), ALU64X(EBPF_MUL, 0, 10), EXIT), fp);
	cr_assert_eq(BOTH_VALUE(LDDW(0, ONES), ALU64X(EBPF_DIV, 0, 10), EXIT), ONES / fp);
	cr_assert_eq(BOTH_VALUE(MOV(0, 1), ALU64X(EBPF_LSH, 0, 10), EXIT), 1);
	cr_assert_eq(BOTH_VALUE(ALU32X(EBPF_MOV, 0, 10), EXIT), (uint32_t)fp);
	cr_assert_eq(BOTH_VALUE(MOV(0, 1), LDDW(1, fp), JX(EBPF_JEQ, 10, 1, 1), MOV(0, 2), EXIT),
		     1);
	cr_assert_eq(BOTH_VALUE(MOV(0, 1), JX(EBPF_JEQ, 10, 10, 1), MOV(0, 2), EXIT), 1);
}

/* Machine code makes one instruction of a move and what is added to it */
Test(bpf_alu, a_move_and_a_sum)
{
	const uint64_t fp = EBPF_STACK_ADDR + EBPF_FRAME_SIZE;

	for (unsigned int dst = 0; dst < EBPF_FP; dst++)
		for (unsigned int src = 0; src < EBPF_FP; src++) {
			unsigned int more = (src + 1) % EBPF_FP;

			cr_assert_eq(BOTH_VALUE(LDDW(src, V), MOVX(dst, src), ADD(dst, -7),
						MOVX(0, dst), EXIT),
				     V - 7);
			cr_assert_eq(BOTH_VALUE(LDDW(src, V), MOVX(dst, src),
						ALU64X(EBPF_ADD, dst, dst), MOVX(0, dst), EXIT),
				     2 * V);
			cr_assert_eq(BOTH_VALUE(LDDW(src, V), MOV(more, 3), MOVX(dst, src),
						ALU64X(EBPF_ADD, dst, more), MOVX(0, dst), EXIT),
				     dst == more ? 2 * V : V + 3, "r%u r%u", dst, src);
			cr_assert_eq(BOTH_VALUE(LDDW(src, V), MOVX(dst, src),
						ALU64X(EBPF_ADD, dst, EBPF_FP), MOVX(0, dst), EXIT),
				     V + fp);
		}
	cr_assert_eq(BOTH_VALUE(MOVX(0, EBPF_FP), ADD(0, -8), EXIT), fp - 8);
	/* Not where a jump leads between them: the second time round nothing is moved */
	cr_assert_eq(BOTH_VALUE(MOV(1, 5), MOV(2, 3), MOVX(0, 1), ADD(0, 1), ADD(2, -1),
				JK(EBPF_JNE, 2, 0, -3), EXIT),
		     8);
	/* 32 bits, and less: the upper half goes before the sum */
	cr_assert_eq(BOTH_VALUE(LDDW(1, ONES), ALU32X(EBPF_MOV, 0, 1), ADD(0, 1), EXIT),
		     1ull << 32);
	cr_assert_eq(BOTH_VALUE(LDDW(1, ONES), MOVX(0, 1), ALU32K(EBPF_ADD, 0, 1), EXIT), 0);
	cr_assert_eq(BOTH_VALUE(MOV(1, 0xff), INSN(EBPF_ALU64 | EBPF_MOV | EBPF_X, 0, 1, 8, 0),
				ADD(0, 2), EXIT),
		     1);
}

Test(bpf_alu, a_constant_of_64_bits)
{
	cr_assert_eq(BOTH_VALUE(LDDW(0, V), EXIT), V);
	cr_assert_eq(BOTH_VALUE(LDDW(0, ONES), EXIT), ONES);
	cr_assert_eq(BOTH_VALUE(LDDW(0, 0xffffffffu), EXIT), 0xffffffffu);
	cr_assert_eq(BOTH_VALUE(LDDW(0, 0), EXIT), 0);
}
