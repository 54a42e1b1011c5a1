/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_INSN_H
#define BPF_INSN_H

/* The instruction format of RFC 9669. Names begin EBPF_, for the kernel's own headers have BPF_. */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct ebpf_insn {
	uint8_t code;
	uint8_t regs; /* source in the high half, destination in the low */
	int16_t off;
	int32_t imm;
};
static_assert(sizeof(struct ebpf_insn) == 8, "as in the object file");

enum ebpf_class {
	EBPF_LD = 0,
	EBPF_LDX = 1,
	EBPF_ST = 2,
	EBPF_STX = 3,
	EBPF_ALU = 4,
	EBPF_JMP = 5,
	EBPF_JMP32 = 6,
	EBPF_ALU64 = 7,
};

enum ebpf_size { EBPF_W = 0x00, EBPF_H = 0x08, EBPF_B = 0x10, EBPF_DW = 0x18 };
enum ebpf_mode { EBPF_IMM = 0x00, EBPF_MEM = 0x60, EBPF_MEMSX = 0x80, EBPF_ATOMIC = 0xc0 };
enum ebpf_source { EBPF_K = 0, EBPF_X = 8 };

enum ebpf_alu {
	EBPF_ADD = 0x00,
	EBPF_SUB = 0x10,
	EBPF_MUL = 0x20,
	EBPF_DIV = 0x30,
	EBPF_OR = 0x40,
	EBPF_AND = 0x50,
	EBPF_LSH = 0x60,
	EBPF_RSH = 0x70,
	EBPF_NEG = 0x80,
	EBPF_MOD = 0x90,
	EBPF_XOR = 0xa0,
	EBPF_MOV = 0xb0,
	EBPF_ARSH = 0xc0,
	EBPF_END = 0xd0,
};

enum ebpf_jump {
	EBPF_JA = 0x00,
	EBPF_JEQ = 0x10,
	EBPF_JGT = 0x20,
	EBPF_JGE = 0x30,
	EBPF_JSET = 0x40,
	EBPF_JNE = 0x50,
	EBPF_JSGT = 0x60,
	EBPF_JSGE = 0x70,
	EBPF_CALL = 0x80,
	EBPF_EXIT = 0x90,
	EBPF_JLT = 0xa0,
	EBPF_JLE = 0xb0,
	EBPF_JSLT = 0xc0,
	EBPF_JSLE = 0xd0,
};

/* imm of an atomic: an operation of enum ebpf_alu, or one of the last two; FETCH may be added */
enum ebpf_atomic { EBPF_FETCH = 0x01, EBPF_XCHG = 0xe0, EBPF_CMPXCHG = 0xf0 };

enum {
	EBPF_LDDW = EBPF_LD | EBPF_IMM | EBPF_DW,
	EBPF_CALL_CODE = EBPF_JMP | EBPF_CALL,
	EBPF_EXIT_CODE = EBPF_JMP | EBPF_EXIT,
	EBPF_JA_CODE = EBPF_JMP | EBPF_JA,
	EBPF_GOTOL_CODE = EBPF_JMP32 | EBPF_JA,
	EBPF_CALL_HELPER = 0, /* the source register of a call */
	EBPF_CALL_LOCAL = 1,
	EBPF_FP = 10, /* the frame pointer */
	EBPF_REGS = 11,
};

static inline unsigned int ebpf_dst(const struct ebpf_insn *in)
{
	return in->regs & 0xf;
}

static inline unsigned int ebpf_src(const struct ebpf_insn *in)
{
	return in->regs >> 4;
}

static inline enum ebpf_class ebpf_class(const struct ebpf_insn *in)
{
	return (enum ebpf_class)(in->code & 7);
}

static inline unsigned int ebpf_op(const struct ebpf_insn *in)
{
	return in->code & 0xf0;
}

static inline unsigned int ebpf_mode(const struct ebpf_insn *in)
{
	return in->code & 0xe0;
}

/* Bytes that a load, a store or an atomic touches */
static inline unsigned int ebpf_bytes(const struct ebpf_insn *in)
{
	static const uint8_t bytes[] = { 4, 2, 1, 8 };

	return bytes[(in->code >> 3) & 3];
}

static inline bool ebpf_is_alu(const struct ebpf_insn *in)
{
	return ebpf_class(in) == EBPF_ALU || ebpf_class(in) == EBPF_ALU64;
}

static inline bool ebpf_is_jump(const struct ebpf_insn *in)
{
	return ebpf_class(in) == EBPF_JMP || ebpf_class(in) == EBPF_JMP32;
}

/* Loads, stores and atomics */
static inline bool ebpf_is_memory(const struct ebpf_insn *in)
{
	return ebpf_class(in) >= EBPF_LDX && ebpf_class(in) <= EBPF_STX;
}

static inline bool ebpf_is_atomic(const struct ebpf_insn *in)
{
	return ebpf_class(in) == EBPF_STX && ebpf_mode(in) == EBPF_ATOMIC;
}

/* A jump that may also go on: neither ja, nor call, nor exit */
static inline bool ebpf_is_branch(const struct ebpf_insn *in)
{
	return ebpf_is_jump(in) && ebpf_op(in) != EBPF_JA && ebpf_op(in) != EBPF_CALL &&
	       ebpf_op(in) != EBPF_EXIT;
}

static inline bool ebpf_is_goto(const struct ebpf_insn *in)
{
	return in->code == EBPF_JA_CODE || in->code == EBPF_GOTOL_CODE;
}

/* How far a jump goes, counted from the next instruction */
static inline int32_t ebpf_distance(const struct ebpf_insn *in)
{
	return in->code == EBPF_GOTOL_CODE ? in->imm : in->off;
}

static inline bool ebpf_is_local_call(const struct ebpf_insn *in)
{
	return in->code == EBPF_CALL_CODE && ebpf_src(in) == EBPF_CALL_LOCAL;
}

/* The register that holds the address of a memory instruction */
static inline unsigned int ebpf_base(const struct ebpf_insn *in)
{
	return ebpf_class(in) == EBPF_LDX ? ebpf_src(in) : ebpf_dst(in);
}

#endif
