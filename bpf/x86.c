/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Encodes the few x86-64 instructions that the JIT needs into a buffer that grows.
 */
#include "bpf/x86.h"

#include <stdlib.h>
#include <string.h>

static void put(struct x86 *c, const void *bytes, size_t n)
{
	if (c->len + n > c->room && !c->failed) {
		size_t room = c->room ? c->room * 2 : 4096;
		uint8_t *more = realloc(c->code, room);

		c->failed = !more;
		c->code = more ? more : c->code;
		c->room = more ? room : c->room;
	}
	if (c->failed)
		return;
	memcpy(c->code + c->len, bytes, n);
	c->len += n;
}

void x86_byte(struct x86 *c, unsigned int v)
{
	uint8_t byte = (uint8_t)v;

	put(c, &byte, 1);
}

void x86_word(struct x86 *c, uint32_t v)
{
	put(c, &v, 4);
}

void x86_quad(struct x86 *c, uint64_t v)
{
	put(c, &v, 8);
}

/* Prefixes and opcode. A REX prefix makes registers 4 to 7 of 8 bits sil, dil and so on. */
static void op_put(struct x86 *c, struct x86_op op, unsigned int reg, unsigned int index,
		   unsigned int base)
{
	unsigned int rex = (op.wide ? 8 : 0) | (reg & 8) >> 1 | (index & 8) >> 2 | (base & 8) >> 3;

	if (op.lock)
		x86_byte(c, 0xf0);
	if (op.narrow)
		x86_byte(c, 0x66);
	if (rex || op.byte)
		x86_byte(c, 0x40 | rex);
	if (op.code > 0xff)
		x86_byte(c, op.code >> 8);
	x86_byte(c, op.code);
}

void x86_rr(struct x86 *c, struct x86_op op, unsigned int reg, enum x86_reg rm)
{
	op_put(c, op, reg, 0, rm);
	x86_byte(c, 0xc0 | (reg & 7) << 3 | (rm & 7));
}

void x86_rm(struct x86 *c, struct x86_op op, unsigned int reg, struct x86_mem m)
{
	bool sib = m.index != X86_NONE || (m.base & 7) == X86_RSP;
	bool small = m.disp == (int8_t)m.disp;
	unsigned int index = m.index == X86_NONE ? (unsigned int)X86_RSP : m.index;
	unsigned int mod = small ? 0x40 : 0x80;

	op_put(c, op, reg, m.index == X86_NONE ? 0 : m.index, m.base);
	if (!m.disp && (m.base & 7) != X86_RBP)
		mod = 0;
	x86_byte(c, mod | (reg & 7) << 3 | (sib ? 4 : m.base & 7));
	if (sib)
		x86_byte(c, (index & 7) << 3 | (m.base & 7));
	if (mod == 0x40)
		x86_byte(c, (uint8_t)m.disp);
	else if (mod)
		x86_word(c, (uint32_t)m.disp);
}

void x86_group_imm(struct x86 *c, bool wide, unsigned int group, enum x86_reg rm, int32_t imm)
{
	bool small = imm == (int8_t)imm;

	x86_rr(c, X86_OP(small ? 0x83 : 0x81, wide), group, rm);
	if (small)
		x86_byte(c, (uint8_t)imm);
	else
		x86_word(c, (uint32_t)imm);
}

void x86_mov_imm(struct x86 *c, enum x86_reg to, uint64_t v)
{
	if (v <= UINT32_MAX) {
		op_put(c, X86_OP(0xb8 | (to & 7), false), 0, 0, to);
		x86_word(c, (uint32_t)v);
	} else if (v == (uint64_t)(int32_t)v) {
		x86_rr(c, X86_WIDE(0xc7), 0, to);
		x86_word(c, (uint32_t)v);
	} else {
		op_put(c, X86_WIDE(0xb8 | (to & 7)), 0, 0, to);
		x86_quad(c, v);
	}
}

void x86_mov(struct x86 *c, enum x86_reg to, enum x86_reg from)
{
	if (to != from)
		x86_rr(c, X86_WIDE(0x89), from, to);
}

void x86_load(struct x86 *c, enum x86_reg to, struct x86_mem m)
{
	x86_rm(c, X86_WIDE(0x8b), to, m);
}

void x86_store(struct x86 *c, struct x86_mem m, enum x86_reg from)
{
	x86_rm(c, X86_WIDE(0x89), from, m);
}

void x86_store_imm32(struct x86 *c, struct x86_mem m, uint32_t v)
{
	x86_rm(c, X86_OP(0xc7, false), 0, m);
	x86_word(c, v);
}

size_t x86_jump(struct x86 *c, unsigned int condition)
{
	if (condition < X86_ALWAYS) {
		x86_byte(c, 0x0f);
		x86_byte(c, 0x80 | condition);
	} else {
		x86_byte(c, condition == X86_CALL ? 0xe8 : 0xe9);
	}
	x86_word(c, 0);
	return c->len - 4;
}

void x86_link(struct x86 *c, size_t at, size_t to)
{
	uint32_t distance = (uint32_t)(to - (at + 4));

	if (!c->failed)
		memcpy(c->code + at, &distance, 4);
}

void x86_link_here(struct x86 *c, size_t at)
{
	x86_link(c, at, c->len);
}
