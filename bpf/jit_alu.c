/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Arithmetic and comparisons as x86-64 code.
 *
 * r0 to r9 live in rax, rdi, rsi, rdx, r10, r8, r12, r13, r14, r15. rbp is the end of the active
 * stack frame at the host's address, rbx the run, r11 the fuel; rcx and r9 are free for one
 * instruction. The value of r10 is made of rbp when it is needed.
 */
#include <stddef.h>

#include "bpf/jit.h"

enum x86_reg jit_reg(unsigned int reg)
{
	static const uint8_t map[EBPF_REGS] = { X86_RAX, X86_RDI, X86_RSI, X86_RDX, X86_R10, X86_R8,
						X86_R12, X86_R13, X86_R14, X86_R15, X86_RBP };

	return (enum x86_reg)map[reg];
}

enum x86_reg jit_operand(struct jit_making *m, unsigned int reg)
{
	if (reg != EBPF_FP)
		return jit_reg(reg);
	m->held.valid = false;
	x86_mov(&m->c, JIT_T2, X86_RBP);
	x86_rm(&m->c, X86_WIDE(0x03), JIT_T2, JIT_RUN(frame_shift));
	return JIT_T2;
}

static bool is_shift(const struct ebpf_insn *in)
{
	return ebpf_op(in) == EBPF_LSH || ebpf_op(in) == EBPF_RSH || ebpf_op(in) == EBPF_ARSH;
}

static bool is_division(const struct ebpf_insn *in)
{
	return ebpf_op(in) == EBPF_DIV || ebpf_op(in) == EBPF_MOD;
}

bool jit_uses_scratch(const struct ebpf_object *obj, uint32_t pc)
{
	const struct ebpf_insn *in = &obj->insns[pc];
	bool x = in->code & EBPF_X;

	if (ebpf_is_alu(in))
		return is_division(in) || (x && (is_shift(in) || ebpf_src(in) == EBPF_FP));
	if (ebpf_is_branch(in))
		return ebpf_dst(in) == EBPF_FP || (x && ebpf_src(in) == EBPF_FP);
	if (ebpf_is_memory(in))
		return obj->facts[pc].place != EBPF_IN_FRAME || ebpf_is_atomic(in) ||
		       (ebpf_class(in) == EBPF_STX && ebpf_src(in) == EBPF_FP);
	return ebpf_is_jump(in);
}

static void shift(struct jit_making *m, const struct ebpf_insn *in, bool wide)
{
	unsigned int group = ebpf_op(in) == EBPF_LSH ? 4 : ebpf_op(in) == EBPF_RSH ? 5 : 7;
	enum x86_reg dst = jit_reg(ebpf_dst(in));

	if (!(in->code & EBPF_X)) {
		x86_rr(&m->c, X86_OP(0xc1, wide), group, dst);
		x86_byte(&m->c, (unsigned int)in->imm & (wide ? 63 : 31));
		return;
	}
	x86_mov(&m->c, JIT_T1, jit_operand(m, ebpf_src(in)));
	m->held.valid = false;
	x86_rr(&m->c, X86_OP(0xd3, wide), group, dst);
}

/* rax, rdx: saved where they are not the destination; the divisor is in rcx and good */
static void divide(struct jit_making *m, const struct ebpf_insn *in, bool wide)
{
	enum x86_reg dst = jit_reg(ebpf_dst(in));
	enum x86_reg result = ebpf_op(in) == EBPF_DIV ? X86_RAX : X86_RDX;
	struct x86 *c = &m->c;

	if (dst != X86_RAX)
		x86_store(c, JIT_RUN(scratch), X86_RAX);
	if (dst != X86_RDX)
		x86_mov(c, JIT_T2, X86_RDX);
	x86_mov(c, X86_RAX, dst);
	if (in->off) { /* cqo, cdq */
		if (wide)
			x86_byte(c, 0x48);
		x86_byte(c, 0x99);
	} else {
		x86_rr(c, X86_OP(0x31, false), X86_RDX, X86_RDX);
	}
	x86_rr(c, X86_OP(0xf7, wide), in->off ? 7 : 6, JIT_T1);
	x86_rr(c, X86_OP(0x89, wide), result, dst);
	if (dst != X86_RAX)
		x86_load(c, X86_RAX, JIT_RUN(scratch));
	if (dst != X86_RDX)
		x86_mov(c, X86_RDX, JIT_T2);
}

static void division(struct jit_making *m, const struct ebpf_insn *in, bool wide)
{
	enum x86_reg dst = jit_reg(ebpf_dst(in));
	size_t zero, minus = 0, end, end2 = 0;
	bool div = ebpf_op(in) == EBPF_DIV;
	struct x86 *c = &m->c;

	if (in->code & EBPF_X)
		x86_mov(c, JIT_T1, jit_operand(m, ebpf_src(in)));
	else
		x86_mov_imm(c, JIT_T1, (uint64_t)in->imm);
	m->held.valid = false;
	x86_rr(c, X86_OP(0x85, wide), JIT_T1, JIT_T1);
	zero = x86_jump(c, X86_E);
	if (in->off) {
		x86_group_imm(c, wide, 7, JIT_T1, -1);
		minus = x86_jump(c, X86_E);
	}
	divide(m, in, wide);
	end = x86_jump(c, X86_ALWAYS);
	if (in->off) {
		x86_link_here(c, minus);
		x86_rr(c, X86_OP(div ? 0xf7 : 0x31, wide), div ? 3 : (unsigned int)dst, dst);
		end2 = x86_jump(c, X86_ALWAYS);
	}
	x86_link_here(c, zero);
	if (div || !wide)
		x86_rr(c, X86_OP(div ? 0x31 : 0x89, false), dst, dst);
	x86_link_here(c, end);
	if (in->off)
		x86_link_here(c, end2);
}

static void swap(struct jit_making *m, const struct ebpf_insn *in)
{
	bool turns = ebpf_class(in) == EBPF_ALU64 || in->code & EBPF_X;
	enum x86_reg dst = jit_reg(ebpf_dst(in));
	struct x86 *c = &m->c;

	if (in->imm == 16) {
		if (turns) {
			x86_rr(c, (struct x86_op){ .code = 0xc1, .narrow = true }, 0, dst);
			x86_byte(c, 8);
		}
		x86_rr(c, X86_OP(0x0fb7, false), dst, dst);
	} else if (turns) { /* bswap has its register in the opcode */
		x86_byte(c, 0x40 | (in->imm == 64 ? 8 : 0) | (dst & 8) >> 3);
		x86_byte(c, 0x0f);
		x86_byte(c, 0xc8 | (dst & 7));
	} else if (in->imm == 32) {
		x86_rr(c, X86_OP(0x89, false), dst, dst);
	}
}

static void move(struct jit_making *m, const struct ebpf_insn *in, bool wide)
{
	enum x86_reg dst = jit_reg(ebpf_dst(in)), src;
	unsigned int code = in->off == 8 ? 0x0fbe : in->off == 16 ? 0x0fbf : 0x63;

	if (!(in->code & EBPF_X)) {
		x86_mov_imm(&m->c, dst, wide ? (uint64_t)in->imm : (uint32_t)in->imm);
		return;
	}
	src = jit_operand(m, ebpf_src(in));
	if (in->off)
		x86_rr(&m->c, (struct x86_op){ .code = code, .wide = wide, .byte = in->off == 8 },
		       dst, src);
	else
		x86_rr(&m->c, X86_OP(0x89, wide), src, dst);
}

static void multiply(struct jit_making *m, const struct ebpf_insn *in, bool wide)
{
	enum x86_reg dst = jit_reg(ebpf_dst(in));

	if (in->code & EBPF_X) {
		x86_rr(&m->c, X86_OP(0x0faf, wide), dst, jit_operand(m, ebpf_src(in)));
		return;
	}
	x86_rr(&m->c, X86_OP(0x69, wide), dst, dst);
	x86_word(&m->c, (uint32_t)in->imm);
}

/* add, or, and, sub, xor: their numbers in the group of 0x81, and the opcodes eight times that */
static void simple(struct jit_making *m, const struct ebpf_insn *in, bool wide)
{
	static const uint8_t group[16] = { [EBPF_ADD >> 4] = 0,
					   [EBPF_OR >> 4] = 1,
					   [EBPF_AND >> 4] = 4,
					   [EBPF_SUB >> 4] = 5,
					   [EBPF_XOR >> 4] = 6 };
	unsigned int number = group[in->code >> 4];
	enum x86_reg dst = jit_reg(ebpf_dst(in));

	if (in->code & EBPF_X)
		x86_rr(&m->c, X86_OP(number << 3 | 1, wide), jit_operand(m, ebpf_src(in)), dst);
	else
		x86_group_imm(&m->c, wide, number, dst, in->imm);
}

bool jit_is_sum(const struct ebpf_object *obj, uint32_t pc)
{
	const struct ebpf_insn *in = &obj->insns[pc];

	return in->code == (EBPF_ALU64 | EBPF_MOV | EBPF_X) && !in->off &&
	       ebpf_src(in) != EBPF_FP && !obj->facts[pc + 1].target &&
	       (in[1].code & ~EBPF_X) == (EBPF_ALU64 | EBPF_ADD) &&
	       ebpf_dst(&in[1]) == ebpf_dst(in) &&
	       !(in[1].code & EBPF_X && ebpf_src(&in[1]) == EBPF_FP);
}

void jit_sum(struct jit_making *m, const struct ebpf_insn *in)
{
	struct x86_mem at = { jit_reg(ebpf_src(in)), X86_NONE, in[1].imm };
	unsigned int more = ebpf_src(&in[1]);

	if (in[1].code & EBPF_X)
		at = (struct x86_mem){ at.base, jit_reg(more == ebpf_dst(in) ? ebpf_src(in) : more),
				       0 };
	x86_rm(&m->c, X86_WIDE(0x8d), jit_reg(ebpf_dst(in)), at);
}

void jit_alu(struct jit_making *m, const struct ebpf_insn *in)
{
	bool wide = ebpf_class(in) == EBPF_ALU64;

	if (is_shift(in))
		shift(m, in, wide);
	else if (is_division(in))
		division(m, in, wide);
	else if (ebpf_op(in) == EBPF_MUL)
		multiply(m, in, wide);
	else if (ebpf_op(in) == EBPF_MOV)
		move(m, in, wide);
	else if (ebpf_op(in) == EBPF_END)
		swap(m, in);
	else if (ebpf_op(in) == EBPF_NEG)
		x86_rr(&m->c, X86_OP(0xf7, wide), 3, jit_reg(ebpf_dst(in)));
	else
		simple(m, in, wide);
}

void jit_compare(struct jit_making *m, const struct ebpf_insn *in)
{
	bool wide = ebpf_class(in) == EBPF_JMP, test = ebpf_op(in) == EBPF_JSET;
	enum x86_reg dst = jit_operand(m, ebpf_dst(in));

	if (in->code & EBPF_X) {
		x86_rr(&m->c, X86_OP(test ? 0x85 : 0x39, wide), jit_operand(m, ebpf_src(in)), dst);
	} else if (test) {
		x86_rr(&m->c, X86_OP(0xf7, wide), 0, dst);
		x86_word(&m->c, (uint32_t)in->imm);
	} else if (!in->imm) { /* the same flags as of a comparison with 0, in fewer bytes */
		x86_rr(&m->c, X86_OP(0x85, wide), dst, dst);
	} else {
		x86_group_imm(&m->c, wide, 7, dst, in->imm);
	}
}
