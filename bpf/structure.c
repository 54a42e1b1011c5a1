/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The verifier's first half: each instruction by itself, and where jumps and calls lead.
 *
 * When it has passed, each opcode is one of RFC 9669 that the engines know, unused fields are zero,
 * registers exist and r10 is not written, jumps stay in their function and never lead into a 64-bit
 * constant, calls lead to the beginning of a function or to a known helper, and no function ends
 * without exit or goto. Functions begin where symbols say or where calls lead.
 */
#include <stddef.h>

#include "bpf/program.h"

static const char *const bad_fields = "a field that is not used is not 0";
static const char *const bad_opcode = "unknown instruction";

static const char *alu_wrong(const struct ebpf_insn *in)
{
	bool wide = ebpf_class(in) == EBPF_ALU64, x = in->code & EBPF_X;
	unsigned int op = ebpf_op(in);

	if (op > EBPF_END)
		return bad_opcode;
	if (op == EBPF_NEG)
		return x ? bad_opcode : ebpf_src(in) || in->off || in->imm ? bad_fields : NULL;
	if (op == EBPF_END) {
		if (wide && x)
			return bad_opcode;
		if (in->imm != 16 && in->imm != 32 && in->imm != 64)
			return "a byte swap of no such width";
		return ebpf_src(in) || in->off ? bad_fields : NULL;
	}
	if (x ? in->imm != 0 : ebpf_src(in) != 0)
		return bad_fields;
	if (op == EBPF_MOV && x && (in->off == 8 || in->off == 16 || (wide && in->off == 32)))
		return NULL;
	if ((op == EBPF_DIV || op == EBPF_MOD) && in->off == 1)
		return NULL;
	return in->off ? bad_fields : NULL;
}

static const char *call_wrong(const struct ebpf_object *obj, const struct ebpf_insn *in)
{
	if (in->code != EBPF_CALL_CODE)
		return "a call through a register";
	if (ebpf_dst(in) || in->off)
		return bad_fields;
	if (ebpf_src(in) == EBPF_CALL_LOCAL)
		return NULL;
	if (ebpf_src(in) != EBPF_CALL_HELPER)
		return "a call of an unknown kind";
	return ebpf_helper_find(obj, in->imm) < 0 ? "a call of an unknown helper" : NULL;
}

static const char *jump_wrong(const struct ebpf_object *obj, const struct ebpf_insn *in)
{
	unsigned int op = ebpf_op(in);
	bool narrow = ebpf_class(in) == EBPF_JMP32, x = in->code & EBPF_X;

	if (op > EBPF_JSLE)
		return bad_opcode;
	if (op == EBPF_JA) {
		if (x)
			return bad_opcode;
		return in->regs || (narrow ? in->off : in->imm) ? bad_fields : NULL;
	}
	if (narrow && (op == EBPF_CALL || op == EBPF_EXIT))
		return bad_opcode;
	if (op == EBPF_CALL)
		return call_wrong(obj, in);
	if (op == EBPF_EXIT)
		return x ? bad_opcode : in->regs || in->off || in->imm ? bad_fields : NULL;
	return (x ? in->imm != 0 : ebpf_src(in) != 0) ? bad_fields : NULL;
}

static const char *atomic_wrong(const struct ebpf_insn *in)
{
	if (ebpf_bytes(in) < 4)
		return "an atomic of fewer than 4 bytes";
	switch (in->imm & ~EBPF_FETCH) {
	case EBPF_ADD:
	case EBPF_OR:
	case EBPF_AND:
	case EBPF_XOR:
		return NULL;
	case EBPF_XCHG:
	case EBPF_CMPXCHG:
		return in->imm & EBPF_FETCH ? NULL : "an unknown atomic";
	}
	return "an unknown atomic";
}

static const char *memory_wrong(const struct ebpf_insn *in)
{
	unsigned int mode = ebpf_mode(in);

	if (ebpf_class(in) == EBPF_ST)
		return mode != EBPF_MEM ? bad_opcode : ebpf_src(in) ? bad_fields : NULL;
	if (ebpf_is_atomic(in))
		return atomic_wrong(in);
	if (mode != EBPF_MEM &&
	    (mode != EBPF_MEMSX || ebpf_class(in) == EBPF_STX || ebpf_bytes(in) == 8))
		return bad_opcode;
	return in->imm ? bad_fields : NULL;
}

static const char *constant_wrong(const struct ebpf_object *obj, uint32_t pc)
{
	const struct ebpf_insn *in = &obj->insns[pc];

	if (in->code != EBPF_LDDW)
		return bad_opcode;
	if (ebpf_src(in))
		return "a constant of an unknown kind (maps and pointers to them do not exist "
		       "here)";
	if (pc + 1 == obj->count || in[1].code || in[1].regs || in[1].off)
		return "a 64-bit constant without its second half";
	return in->off ? bad_fields : NULL;
}

/* Whether the instruction writes its destination register */
static bool writes_dst(const struct ebpf_insn *in)
{
	return ebpf_is_alu(in) || ebpf_class(in) == EBPF_LDX || ebpf_class(in) == EBPF_LD;
}

static const char *insn_wrong(const struct ebpf_object *obj, uint32_t pc)
{
	const struct ebpf_insn *in = &obj->insns[pc];

	if (ebpf_dst(in) >= EBPF_REGS || ebpf_src(in) >= EBPF_REGS)
		return "no such register";
	if (writes_dst(in) && ebpf_dst(in) == EBPF_FP)
		return "r10 cannot be written";
	if (ebpf_is_atomic(in) && in->imm & EBPF_FETCH && ebpf_src(in) == EBPF_FP &&
	    in->imm != (EBPF_CMPXCHG | EBPF_FETCH))
		return "r10 cannot be written";
	if (ebpf_is_alu(in))
		return alu_wrong(in);
	if (ebpf_is_jump(in))
		return jump_wrong(obj, in);
	return ebpf_is_memory(in) ? memory_wrong(in) : constant_wrong(obj, pc);
}

/* The second half of a 64-bit constant has opcode 0, so it is never taken for a first one. */
static bool is_second(const struct ebpf_object *obj, uint32_t pc)
{
	return pc && obj->insns[pc - 1].code == EBPF_LDDW;
}

static int calls_mark(struct ebpf_object *obj, uint32_t pc, struct ebpf_error *err)
{
	int64_t to = (int64_t)pc + 1 + obj->insns[pc].imm;

	if (to < 0 || to >= obj->count || is_second(obj, (uint32_t)to))
		return ebpf_refuse(obj, err, -EINVAL, pc, "a call out of the program");
	obj->facts[to].start = true;
	obj->facts[pc].target = true;
	return 0;
}

static int insns_check(struct ebpf_object *obj, struct ebpf_error *err)
{
	for (uint32_t pc = 0; pc < obj->count; pc++) {
		const char *wrong = insn_wrong(obj, pc);
		const struct ebpf_insn *in = &obj->insns[pc];

		if (wrong)
			return ebpf_refuse(obj, err, -EINVAL, pc, "%s", wrong);
		if (ebpf_is_local_call(in) && calls_mark(obj, pc, err))
			return -EINVAL;
		if (in->code == EBPF_CALL_CODE && pc + 1 < obj->count)
			obj->facts[pc + 1].target = true;
		pc += in->code == EBPF_LDDW;
	}
	return 0;
}

/* The function lies from @start up to @end */
static int function_check(struct ebpf_object *obj, uint32_t start, uint32_t end,
			  struct ebpf_error *err)
{
	const struct ebpf_insn *last = &obj->insns[end - 1];

	for (uint32_t pc = start; pc < end; pc++) {
		const struct ebpf_insn *in = &obj->insns[pc];
		int64_t to = (int64_t)pc + 1 + ebpf_distance(in);

		if (is_second(obj, pc) || (!ebpf_is_branch(in) && !ebpf_is_goto(in)))
			continue;
		if (to < start || to >= end)
			return ebpf_refuse(obj, err, -EINVAL, pc, "a jump out of its function");
		if (is_second(obj, (uint32_t)to))
			return ebpf_refuse(obj, err, -EINVAL, pc, "a jump into a constant");
		obj->facts[to].target = true;
	}
	if (is_second(obj, end - 1) || (!ebpf_is_goto(last) && last->code != EBPF_EXIT_CODE))
		return ebpf_refuse(obj, err, -EINVAL, end - 1, "the function has no end");
	return 0;
}

int ebpf_structure_check(struct ebpf_object *obj, struct ebpf_error *err)
{
	int ret = insns_check(obj, err);
	uint32_t start = 0;

	for (uint32_t pc = 0; pc < obj->count && !ret; pc++)
		if (obj->facts[pc].start && is_second(obj, pc))
			ret = ebpf_refuse(obj, err, -EINVAL, pc, "a function begins in a constant");
	for (uint32_t end = 1; end <= obj->count && !ret; end++)
		if (end == obj->count || obj->facts[end].start) {
			ret = function_check(obj, start, end, err);
			start = end;
		}
	return ret;
}
