/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_X86_H
#define BPF_X86_H

/* A buffer of x86-64 machine code, and how its instructions are encoded. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum x86_reg {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI,
	X86_R8,
	X86_R9,
	X86_R10,
	X86_R11,
	X86_R12,
	X86_R13,
	X86_R14,
	X86_R15,
	X86_NONE,
};

struct x86 {
	uint8_t *code;
	size_t len, room;
	bool failed; /* for want of memory; what is put is dropped from then on */
};

/* base + index + disp */
struct x86_mem {
	enum x86_reg base, index;
	int32_t disp;
};

/* How an instruction is written: opcodes from 0x0f00 on have two bytes */
struct x86_op {
	unsigned int code;
	bool wide;   /* 64 bits */
	bool narrow; /* 16 bits */
	bool byte;   /* its register is one of 8 bits */
	bool lock;
};

#define X86_WIDE(c) ((struct x86_op){ .code = (c), .wide = true })
#define X86_OP(c, w) ((struct x86_op){ .code = (c), .wide = (w) })

void x86_byte(struct x86 *c, unsigned int v);
void x86_word(struct x86 *c, uint32_t v);
void x86_quad(struct x86 *c, uint64_t v);
/* opcode with a register (or an opcode's extension) and a register; with memory */
void x86_rr(struct x86 *c, struct x86_op op, unsigned int reg, enum x86_reg rm);
void x86_rm(struct x86 *c, struct x86_op op, unsigned int reg, struct x86_mem m);
/* The group of 0x81 and 0x83: add 0, or 1, and 4, sub 5, xor 6, cmp 7 */
void x86_group_imm(struct x86 *c, bool wide, unsigned int group, enum x86_reg rm, int32_t imm);
void x86_mov_imm(struct x86 *c, enum x86_reg to, uint64_t v);
void x86_mov(struct x86 *c, enum x86_reg to, enum x86_reg from);
void x86_load(struct x86 *c, enum x86_reg to, struct x86_mem m);
void x86_store(struct x86 *c, struct x86_mem m, enum x86_reg from);
void x86_store_imm32(struct x86 *c, struct x86_mem m, uint32_t v);
/* A jump whose distance is filled in later: condition 0 to 15, or X86_ALWAYS, or X86_CALL */
enum { X86_ALWAYS = 16, X86_CALL = 17 };
enum { X86_B = 2, X86_AE = 3, X86_E = 4, X86_NE = 5, X86_BE = 6, X86_A = 7 };
enum { X86_L = 12, X86_GE = 13, X86_LE = 14, X86_G = 15 };
size_t x86_jump(struct x86 *c, unsigned int condition);
/* Makes the jump at @at lead to @to, or to what comes next */
void x86_link(struct x86 *c, size_t at, size_t to);
void x86_link_here(struct x86 *c, size_t at);

#endif
