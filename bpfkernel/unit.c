/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is translated, and which registers are in use where.
 *
 * A register that is dead at an access can hold the address that is checked there. Liveness is
 * found backwards over all functions together, until nothing changes. It may be too wide; what is
 * called live is initialised, for our verifier has refused whatever reads a register that is not.
 */
#include <stdlib.h>
#include <string.h>

#include "bpfkernel/inside.h"

enum { CALL_CHANGES = 0x3f, CALL_READS = 0x3e };

static uint32_t bit(unsigned int reg)
{
	return reg < EBPF_FP ? 1u << reg : 0;
}

uint32_t kernel_reads(const struct ebpf_insn *in)
{
	uint32_t src = in->code & EBPF_X ? bit(ebpf_src(in)) : 0;

	if (ebpf_is_alu(in))
		return (ebpf_op(in) == EBPF_MOV ? 0 : bit(ebpf_dst(in))) |
		       (ebpf_op(in) == EBPF_END ? 0 : src);
	if (ebpf_is_branch(in))
		return bit(ebpf_dst(in)) | src;
	if (in->code == EBPF_EXIT_CODE || !ebpf_is_memory(in))
		return 0;
	if (ebpf_class(in) == EBPF_LDX)
		return bit(ebpf_src(in));
	return bit(ebpf_dst(in)) | (ebpf_class(in) == EBPF_STX ? bit(ebpf_src(in)) : 0) |
	       (ebpf_is_atomic(in) && in->imm == (EBPF_CMPXCHG | EBPF_FETCH) ? 1 : 0);
}

uint32_t kernel_writes(const struct ebpf_insn *in)
{
	if (ebpf_is_alu(in) || in->code == EBPF_LDDW || ebpf_class(in) == EBPF_LDX)
		return bit(ebpf_dst(in));
	if (!ebpf_is_atomic(in) || !(in->imm & EBPF_FETCH))
		return 0;
	return in->imm == (EBPF_CMPXCHG | EBPF_FETCH) ? 1 : bit(ebpf_src(in));
}

static const struct bpfkernel_helper *helper_of(const struct bpfkernel_params *p, int32_t id)
{
	for (size_t i = 0; i < p->helper_count; i++)
		if (p->helpers[i].id == (uint32_t)id)
			return &p->helpers[i];
	return NULL;
}

static int helper_refuse(const struct bpfkernel_params *p, uint32_t pc, struct ebpf_error *err)
{
	int i = ebpf_helper_find(p->object, p->object->insns[pc].imm);

	return ebpf_refuse(p->object, err, -EOPNOTSUPP, pc, "the kernel has nothing for %s",
			   i < 0 ? "this helper" : p->object->helpers->list[i].name);
}

/* Where each function begins; starts[i] of helper i */
static void functions_mark(struct kernel_unit *u, const struct bpfkernel_params *p,
			   uint32_t *starts)
{
	uint32_t at = p->object->count, function = 0;

	for (uint32_t pc = 0; pc < at; pc++) {
		function = p->object->facts[pc].start ? pc : function;
		u->function[pc] = function;
	}
	for (size_t i = 0; i < p->helper_count; i++) {
		starts[i] = at;
		memcpy(u->insns + at, p->helpers[i].insns, p->helpers[i].count * sizeof(*u->insns));
		for (size_t j = 0; j < p->helpers[i].count; j++)
			u->function[at + j] = at;
		at += (uint32_t)p->helpers[i].count;
	}
}

/* Whether the instruction is one that a run may come to */
static bool is_used(const struct kernel_unit *u, uint32_t pc)
{
	return u->used[u->function[pc]] && (pc >= u->object->count || u->object->facts[pc].reached);
}

/* *found: a function that was not known to be used */
static int call_resolve(struct kernel_unit *u, const struct bpfkernel_params *p,
			const uint32_t *starts, uint32_t pc, bool *found, struct ebpf_error *err)
{
	const struct ebpf_insn *in = &u->insns[pc];
	const struct bpfkernel_helper *h = NULL;

	if (!ebpf_is_local_call(in)) {
		h = helper_of(p, in->imm);
		if (!h)
			return helper_refuse(p, pc, err);
	}
	u->callee[pc] = h ? starts[h - p->helpers] : pc + 1 + (uint32_t)in->imm;
	*found |= !u->used[u->callee[pc]];
	u->used[u->callee[pc]] = true;
	return 0;
}

static int calls_resolve(struct kernel_unit *u, const struct bpfkernel_params *p,
			 const uint32_t *starts, struct ebpf_error *err)
{
	bool found = true;
	int ret = 0;

	for (uint32_t pc = 0; pc < u->count; pc++)
		u->callee[pc] = NO_CALL;
	u->used[p->entry] = true;
	while (found && !ret) {
		found = false;
		for (uint32_t pc = 0; pc < p->object->count && !ret; pc++) {
			if (u->insns[pc].code == EBPF_CALL_CODE && is_used(u, pc))
				ret = call_resolve(u, p, starts, pc, &found, err);
			pc += u->insns[pc].code == EBPF_LDDW;
		}
	}
	return ret;
}

/* Loops begin where a jump leads back to */
static void heads_mark(struct kernel_unit *u)
{
	for (uint32_t pc = 0; pc < u->count; pc++) {
		const struct ebpf_insn *in = &u->insns[pc];
		uint32_t to = pc + 1 + (uint32_t)ebpf_distance(in);

		if (in->code == EBPF_LDDW)
			pc++;
		else if ((ebpf_is_branch(in) || ebpf_is_goto(in)) && to <= pc &&
			 u->head[to] < pc - to + 1)
			u->head[to] = pc - to + 1;
	}
}

static uint32_t live_before(struct kernel_unit *u, uint32_t pc, uint32_t entry)
{
	const struct ebpf_insn *in = &u->insns[pc];
	uint32_t next = pc + 1 + (in->code == EBPF_LDDW), out;

	if (in->code == EBPF_EXIT_CODE)
		return u->function[pc] == entry || u->wanted[u->function[pc]];
	if (ebpf_is_goto(in))
		return u->live[pc + 1 + (uint32_t)ebpf_distance(in)];
	out = next < u->count ? u->live[next] : 0;
	if (u->callee[pc] != NO_CALL) {
		u->wanted[u->callee[pc]] |= out & 1;
		return (out & ~(uint32_t)CALL_CHANGES) | (u->live[u->callee[pc]] & CALL_READS);
	}
	if (ebpf_is_branch(in))
		out |= u->live[pc + 1 + (uint32_t)ebpf_distance(in)];
	return (out & ~kernel_writes(in)) | kernel_reads(in);
}

static void live_find(struct kernel_unit *u, uint32_t entry)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (uint32_t pc = u->count; pc--;) {
			bool second = pc && u->insns[pc - 1].code == EBPF_LDDW;
			uint32_t live = second ? 0 : live_before(u, pc, entry);

			changed |= live != u->live[pc];
			u->live[pc] = (uint16_t)live;
		}
	}
}

int kernel_unit_make(struct kernel_unit *u, const struct bpfkernel_params *p,
		     struct ebpf_error *err)
{
	uint32_t starts[BPFKERNEL_HELPERS_MAX];
	int ret = -ENOMEM;

	if (p->helper_count > BPFKERNEL_HELPERS_MAX)
		return -EINVAL;
	u->object = p->object;
	u->count = p->object->count;
	for (size_t i = 0; i < p->helper_count; i++)
		u->count += (uint32_t)p->helpers[i].count;
	u->insns = calloc(u->count, sizeof(*u->insns));
	u->callee = calloc(u->count, sizeof(*u->callee));
	u->function = calloc(u->count, sizeof(*u->function));
	u->live = calloc(u->count, sizeof(*u->live));
	u->used = calloc(u->count, sizeof(*u->used));
	u->wanted = calloc(u->count, sizeof(*u->wanted));
	u->head = calloc(u->count, sizeof(*u->head));
	if (u->insns && u->callee && u->function && u->live && u->used && u->wanted && u->head) {
		memcpy(u->insns, p->object->insns, p->object->count * sizeof(*u->insns));
		functions_mark(u, p, starts);
		ret = calls_resolve(u, p, starts, err);
	}
	if (ret)
		return ret;
	heads_mark(u);
	live_find(u, p->entry);
	return 0;
}

void kernel_unit_free(struct kernel_unit *u)
{
	free(u->insns);
	free(u->callee);
	free(u->function);
	free(u->live);
	free(u->used);
	free(u->wanted);
	free(u->head);
}
