/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Instructions in words, in the syntax of LLVM's assembler for BPF. Any eight bytes have a text;
 * those that are no instruction get their opcode in hexadecimal.
 */
#include <stdio.h>

#include "bpf/object.h"

static const char *const alu_sign[16] = { "+=",	 "-=", "*=", "/=", "|=",   "&=",  "<<=", ">>=",
					  "neg", "%=", "^=", "=",  "s>>=", "end", "?",	 "?" };
static const char *const jump_sign[16] = { "goto", "==",   ">", ">=", "&",  "!=",  "s>", "s>=",
					   "call", "exit", "<", "<=", "s<", "s<=", "?",	 "?" };
static const char *const size_name[4] = { "u32", "u16", "u8", "u64" };

struct text {
	char *at;
	size_t room;
};

#define say(t, ...) snprintf((t)->at, (t)->room, __VA_ARGS__)

static const char *size_of(const struct ebpf_insn *in)
{
	return size_name[(in->code >> 3) & 3];
}

static void alu_text(const struct ebpf_insn *in, struct text *t)
{
	char r = ebpf_class(in) == EBPF_ALU ? 'w' : 'r';
	unsigned int dst = ebpf_dst(in), src = ebpf_src(in);
	const char *sign = alu_sign[in->code >> 4];
	bool mov = ebpf_op(in) == EBPF_MOV;

	if (ebpf_op(in) == EBPF_NEG)
		say(t, "%c%u = -%c%u", r, dst, r, dst);
	else if (ebpf_op(in) == EBPF_END)
		say(t, "r%u = %s%d r%u", dst,
		    r == 'r'		? "bswap"
		    : in->code & EBPF_X ? "be"
					: "le",
		    in->imm, dst);
	else if (!(in->code & EBPF_X))
		say(t, "%c%u %s%s %d", r, dst, in->off && !mov ? "s" : "", sign, in->imm);
	else if (mov && in->off)
		say(t, "%c%u = (s%d)%c%u", r, dst, in->off, r, src);
	else
		say(t, "%c%u %s%s %c%u", r, dst, in->off ? "s" : "", sign, r, src);
}

static void jump_text(const struct ebpf_insn *in, struct text *t)
{
	char r = ebpf_class(in) == EBPF_JMP32 ? 'w' : 'r';
	const char *sign = jump_sign[in->code >> 4];

	if (in->code == EBPF_CALL_CODE)
		say(t, ebpf_src(in) == EBPF_CALL_LOCAL ? "call %+d" : "call %d", in->imm);
	else if (in->code == EBPF_EXIT_CODE)
		say(t, "exit");
	else if (ebpf_is_goto(in))
		say(t, "goto%s %+d", r == 'w' ? "l" : "", ebpf_distance(in));
	else if (in->code & EBPF_X)
		say(t, "if %c%u %s %c%u goto %+d", r, ebpf_dst(in), sign, r, ebpf_src(in), in->off);
	else
		say(t, "if %c%u %s %d goto %+d", r, ebpf_dst(in), sign, in->imm, in->off);
}

static void memory_text(const struct ebpf_insn *in, struct text *t)
{
	bool extended = ebpf_mode(in) == EBPF_MEMSX;
	const char *size = size_of(in);

	if (ebpf_class(in) == EBPF_LDX)
		say(t, "r%u = *(%c%s *)(r%u %+d)", ebpf_dst(in), extended ? 's' : 'u', size + 1,
		    ebpf_src(in), in->off);
	else if (ebpf_class(in) == EBPF_ST)
		say(t, "*(%s *)(r%u %+d) = %d", size, ebpf_dst(in), in->off, in->imm);
	else if (!ebpf_is_atomic(in))
		say(t, "*(%s *)(r%u %+d) = r%u", size, ebpf_dst(in), in->off, ebpf_src(in));
	else
		say(t, "lock 0x%x *(%s *)(r%u %+d), r%u", (unsigned int)in->imm, size, ebpf_dst(in),
		    in->off, ebpf_src(in));
}

const char *ebpf_insn_text(const struct ebpf_insn *in, const struct ebpf_insn *next, char *text,
			   size_t room)
{
	struct text t = { text, room };

	if (ebpf_is_alu(in))
		alu_text(in, &t);
	else if (ebpf_is_jump(in))
		jump_text(in, &t);
	else if (ebpf_is_memory(in))
		memory_text(in, &t);
	else if (in->code == EBPF_LDDW)
		say(&t, "r%u = 0x%llx ll", ebpf_dst(in),
		    (unsigned long long)((uint32_t)in->imm | (uint64_t)(uint32_t)next->imm << 32));
	else
		say(&t, "instruction 0x%02x", in->code);
	return text;
}
