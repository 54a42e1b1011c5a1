/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arithmetic and comparisons of RFC 9669, sections 4.1 to 4.3, with its edges: shifts count
 * modulo the width, division by zero gives 0, modulo by zero leaves the destination, and the one
 * signed overflow of a division wraps. A result of 32 bits clears the upper half.
 */
#include <endian.h>

#include "bpf/state.h"

static uint64_t swapped(uint64_t v, int32_t width)
{
	switch (width) {
	case 16:
		return __builtin_bswap16((uint16_t)v);
	case 32:
		return __builtin_bswap32((uint32_t)v);
	}
	return __builtin_bswap64(v);
}

static uint64_t cut(uint64_t v, int32_t width)
{
	return width == 64 ? v : v & ((1ull << width) - 1);
}

static uint64_t converted(const struct ebpf_insn *in, uint64_t v)
{
	bool to_big = ebpf_class(in) == EBPF_ALU && in->code & EBPF_X;

	if (ebpf_class(in) == EBPF_ALU64 || to_big == (__BYTE_ORDER == __LITTLE_ENDIAN))
		return swapped(v, in->imm);
	return cut(v, in->imm);
}

static uint64_t extended(uint64_t v, int16_t width)
{
	switch (width) {
	case 8:
		return (uint64_t)(int8_t)v;
	case 16:
		return (uint64_t)(int16_t)v;
	case 32:
		return (uint64_t)(int32_t)v;
	}
	return v;
}

static uint64_t divided(bool mod, bool sign, uint64_t a, uint64_t b)
{
	if (!b)
		return mod ? a : 0;
	if (!sign)
		return mod ? a % b : a / b;
	if ((int64_t)b == -1)
		return mod ? 0 : 0 - a;
	return (uint64_t)(mod ? (int64_t)a % (int64_t)b : (int64_t)a / (int64_t)b);
}

/* Arithmetic whose lower 32 bits depend on nothing but lower 32 bits */
static uint64_t plain(unsigned int op, uint64_t a, uint64_t b)
{
	switch (op) {
	case EBPF_ADD:
		return a + b;
	case EBPF_SUB:
		return a - b;
	case EBPF_MUL:
		return a * b;
	case EBPF_OR:
		return a | b;
	case EBPF_AND:
		return a & b;
	case EBPF_XOR:
		return a ^ b;
	}
	return 0 - a; /* EBPF_NEG */
}

static uint64_t alu64(const struct ebpf_insn *in, uint64_t a, uint64_t b)
{
	switch (ebpf_op(in)) {
	case EBPF_LSH:
		return a << (b & 63);
	case EBPF_RSH:
		return a >> (b & 63);
	case EBPF_ARSH:
		return (uint64_t)((int64_t)a >> (b & 63));
	case EBPF_DIV:
	case EBPF_MOD:
		return divided(ebpf_op(in) == EBPF_MOD, in->off, a, b);
	case EBPF_MOV:
		return extended(b, in->off);
	}
	return plain(ebpf_op(in), a, b);
}

static uint32_t alu32(const struct ebpf_insn *in, uint32_t a, uint32_t b)
{
	switch (ebpf_op(in)) {
	case EBPF_LSH:
		return a << (b & 31);
	case EBPF_RSH:
		return a >> (b & 31);
	case EBPF_ARSH:
		return (uint32_t)((int32_t)a >> (b & 31));
	case EBPF_DIV:
	case EBPF_MOD:
		return (uint32_t)(in->off ? divided(ebpf_op(in) == EBPF_MOD, true,
						    (uint64_t)(int32_t)a, (uint64_t)(int32_t)b)
					  : divided(ebpf_op(in) == EBPF_MOD, false, a, b));
	case EBPF_MOV:
		return (uint32_t)extended(b, in->off);
	}
	return (uint32_t)plain(ebpf_op(in), a, b);
}

uint64_t ebpf_alu(const struct ebpf_insn *in, uint64_t dst, uint64_t src)
{
	if (ebpf_op(in) == EBPF_END)
		return converted(in, dst);
	if (ebpf_class(in) == EBPF_ALU64)
		return alu64(in, dst, src);
	return alu32(in, (uint32_t)dst, (uint32_t)src);
}

static bool compared(unsigned int op, uint64_t a, uint64_t b, int64_t sa, int64_t sb)
{
	switch (op) {
	case EBPF_JEQ:
		return a == b;
	case EBPF_JNE:
		return a != b;
	case EBPF_JSET:
		return a & b;
	case EBPF_JGT:
		return a > b;
	case EBPF_JGE:
		return a >= b;
	case EBPF_JLT:
		return a < b;
	case EBPF_JLE:
		return a <= b;
	case EBPF_JSGT:
		return sa > sb;
	case EBPF_JSGE:
		return sa >= sb;
	case EBPF_JSLT:
		return sa < sb;
	}
	return sa <= sb; /* EBPF_JSLE */
}

bool ebpf_taken(const struct ebpf_insn *in, uint64_t dst, uint64_t src)
{
	if (ebpf_class(in) == EBPF_JMP)
		return compared(ebpf_op(in), dst, src, (int64_t)dst, (int64_t)src);
	return compared(ebpf_op(in), (uint32_t)dst, (uint32_t)src, (int32_t)dst, (int32_t)src);
}
