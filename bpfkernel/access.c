/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Loads, stores and atomics: the address is compared with the windows, and only the offset in one
 * of them leads to memory.
 *
 *	x = off - window.addr + base
 *	to the tail if x > window.size - length
 *	x = (arena's pointer) (x + window.place)
 *	the access by x
 *
 * Invariant: what is accessed lies in a window that has the right, with every byte. Behind that
 * stands the kernel: a pointer into an arena has 32 bits, so that a processor that guesses wrong
 * stays in the arena, too.
 *
 * The tail, behind everything else, tries the other windows. Where the verifier knows that an
 * address is one place of the program's own memory, nothing is compared.
 */
#include <stdlib.h>

#include "bpfgen/inside.h"
#include "bpfkernel/inside.h"

static unsigned int rights_of(const struct ebpf_insn *in)
{
	if (ebpf_class(in) == EBPF_LDX)
		return EBPF_MAY_READ;
	return ebpf_is_atomic(in) ? EBPF_MAY_ATOMIC : EBPF_MAY_WRITE;
}

static uint32_t window_low(const struct kernel_emit *e, const struct bpfkernel_window *w)
{
	return (uint32_t)e->p->arena + w->place;
}

/* 32 bits are all that counts of an address in the arena */
static void add_low(struct kernel_emit *e, unsigned int reg, uint32_t n)
{
	if (n)
		bpfgen_insn(e->c,
			    (struct ebpf_insn){ EBPF_ALU | EBPF_ADD, (uint8_t)reg, 0, (int32_t)n });
}

/* What is for helpers alone they reach by one register, so no program's address leads there. */
static bool window_serves(const struct kernel_emit *e, const struct bpfkernel_window *w,
			  const struct ebpf_insn *in, bool helper)
{
	bool own = helper && ebpf_base(in) == BPFKERNEL_HELPER_BASE;

	return w->size >= ebpf_bytes(in) && (w->rights & rights_of(in)) &&
	       (own || !(w->flags & BPFKERNEL_HELPERS));
}

static int window_first(const struct kernel_emit *e, const struct ebpf_insn *in)
{
	for (size_t i = 0; i < e->window_count; i++)
		if (!(e->windows[i].flags & BPFKERNEL_IN_BLOCK) &&
		    window_serves(e, &e->windows[i], in, e->in_helper))
			return (int)i;
	return -1;
}

/* x = how far behind the window's beginning the access is; to @miss if it does not lie in it */
static void window_compare(struct kernel_emit *e, const struct bpfkernel_window *w,
			   const struct ebpf_insn *in, unsigned int x, unsigned int miss)
{
	bpfgen_constant(e->c, x, (uint64_t)in->off - w->addr);
	bpfgen_alu(e->c, EBPF_ADD, x, ebpf_base(in));
	bpfgen_if_imm(e->c, EBPF_JGT, x, (int32_t)(w->size - ebpf_bytes(in)), miss);
}

/* --- the access itself -------------------------------------------------------------------- */

static void load_write(struct kernel_emit *e, const struct ebpf_insn *in, unsigned int x,
		       int16_t disp)
{
	static const uint8_t sizes[] = { [1] = EBPF_B, [2] = EBPF_H, [4] = EBPF_W, [8] = EBPF_DW };
	unsigned int bytes = ebpf_bytes(in), dst = ebpf_dst(in);

	bpfgen_load(e->c, (enum ebpf_size)sizes[bytes], dst, x, disp);
	/* Linux has no such loads from arenas */
	if (ebpf_mode(in) == EBPF_MEMSX)
		bpfgen_insn(e->c, (struct ebpf_insn){ EBPF_ALU64 | EBPF_MOV | EBPF_X,
						      (uint8_t)(dst << 4 | dst),
						      (int16_t)(bytes * 8), 0 });
}

static void access_write(struct kernel_emit *e, uint32_t pc, unsigned int x, int16_t disp)
{
	struct ebpf_insn in = e->unit.insns[pc];
	bool spilled = false, number = ebpf_class(&in) == EBPF_STX && ebpf_src(&in) == EBPF_FP;
	unsigned int src = ebpf_src(&in);

	if (ebpf_class(&in) == EBPF_LDX) {
		load_write(e, &in, x, disp);
		return;
	}
	if (number) {
		src = kernel_scratch(e, kernel_free_regs(e, pc) & ~(1u << x),
				     kernel_reads(&in) | 1u << x, SLOT_SECOND, &spilled);
		bpfgen_constant(e->c, src, kernel_frame(e));
	}
	in.regs = (uint8_t)(src << 4 | x);
	in.off = disp;
	bpfgen_insn(e->c, in);
	/* Linux 6.18 leaves the upper half of r0 as it was where nothing was different */
	if (ebpf_is_atomic(&in) && in.imm == (EBPF_CMPXCHG | EBPF_FETCH) && ebpf_bytes(&in) == 4)
		bpfgen_insn(e->c, (struct ebpf_insn){ EBPF_ALU | EBPF_MOV | EBPF_X, 0, 0, 0 });
	if (spilled)
		bpfgen_load(e->c, EBPF_DW, src, EBPF_FP, SLOT_SECOND);
}

/* Bytes of the stack that are not zero when the run ends */
static void stored_mark(struct kernel_emit *e, const struct ebpf_insn *in, size_t at)
{
	if (ebpf_class(in) == EBPF_LDX)
		return;
	for (size_t i = at / 8; i <= (at + ebpf_bytes(in) - 1) / 8; i++)
		e->stored[i / 64] |= 1ull << i % 64;
}

/* The verifier knows the one place that the address is; @x is free */
static bool exact_write(struct kernel_emit *e, uint32_t pc, unsigned int x)
{
	const struct ebpf_fact *fact = e->in_helper ? NULL : &e->p->object->facts[pc];
	size_t frame = (e->depth + 1) * EBPF_FRAME_SIZE;

	if (!fact || fact->place == EBPF_ANYWHERE)
		return false;
	if (fact->place == EBPF_IN_CONSTANTS) {
		bpfgen_insn(e->c,
			    (struct ebpf_insn){ EBPF_ALU | EBPF_MOV, (uint8_t)x, 0,
						(int32_t)((uint32_t)e->p->arena + e->p->constants +
							  (uint32_t)fact->at) });
		bpfkernel_cast(e->c, x, x);
		access_write(e, pc, x, 0);
		return true;
	}
	if (fact->place == EBPF_IN_FRAME)
		stored_mark(e, &e->unit.insns[pc], (size_t)((int64_t)frame + fact->at));
	frame = fact->place == EBPF_IN_DATA ? offsetof(struct bpfkernel_block, data)
					    : frame + offsetof(struct bpfkernel_block, stack);
	bpfgen_load(e->c, EBPF_DW, x, EBPF_FP, SLOT_BLOCK);
	access_write(e, pc, x, (int16_t)((int64_t)frame + fact->at));
	return true;
}

static void align_check(struct kernel_emit *e, const struct ebpf_insn *in, unsigned int x,
			unsigned int misaligned)
{
	int32_t mask = (int32_t)ebpf_bytes(in) - 1;

	if (!(in->off & mask)) {
		bpfgen_if_imm(e->c, EBPF_JSET, ebpf_base(in), mask, misaligned);
		return;
	}
	bpfgen_alu(e->c, EBPF_MOV, x, ebpf_base(in));
	bpfgen_alu_imm(e->c, EBPF_ADD, x, in->off);
	bpfgen_if_imm(e->c, EBPF_JSET, x, mask, misaligned);
}

static struct kernel_tail *tail_new(struct kernel_emit *e, const struct ebpf_insn *in,
				    unsigned int x, uint32_t free)
{
	struct kernel_tail *t;

	if (!bpfgen_grow((void **)&e->tails, &e->tail_room, e->tail_count, sizeof(*t)))
		return NULL;
	t = &e->tails[e->tail_count++];
	*t = (struct kernel_tail){ .in = *in,
				   .pc = e->at,
				   .helper = e->in_helper,
				   .x = x,
				   .free = free & ~(1u << x),
				   .first = window_first(e, in),
				   .slow = bpfgen_label(e->c),
				   .hit = bpfgen_label(e->c),
				   .misaligned = bpfgen_label(e->c) };
	return t;
}

static void checked_write(struct kernel_emit *e, uint32_t pc, const struct kernel_tail *t)
{
	const struct bpfkernel_window *w = t->first < 0 ? NULL : &e->windows[t->first];

	if (ebpf_is_atomic(&t->in))
		align_check(e, &t->in, t->x, t->misaligned);
	if (!w) {
		bpfgen_goto(e->c, t->slow);
	} else {
		window_compare(e, w, &t->in, t->x, t->slow);
		if (t->disp == t->in.off && (uint32_t)w->addr == window_low(e, w)) {
			bpfkernel_cast(e->c, t->x, ebpf_base(&t->in));
		} else {
			add_low(e, t->x, window_low(e, w) - (uint32_t)t->disp);
			bpfkernel_cast(e->c, t->x, t->x);
		}
	}
	bpfgen_here(e->c, t->hit);
	access_write(e, pc, t->x, t->disp);
}

int kernel_access(struct kernel_emit *e, uint32_t pc)
{
	const struct ebpf_insn *in = &e->unit.insns[pc];
	uint32_t free = kernel_free_regs(e, pc), busy = kernel_reads(in);
	struct kernel_tail *t, tail;
	bool spilled = false;
	unsigned int x;

	if (ebpf_class(in) == EBPF_LDX && ebpf_dst(in) != ebpf_src(in))
		free |= 1u << ebpf_dst(in);
	/* Of the registers that a load may use its own is the best: others stay as they are */
	x = ebpf_class(in) == EBPF_LDX && ebpf_dst(in) != ebpf_src(in)
		    ? ebpf_dst(in)
		    : kernel_scratch(e, free, busy | kernel_writes(in), SLOT_FIRST, &spilled);
	if (!exact_write(e, pc, x)) {
		t = tail_new(e, in, x, free);
		if (!t)
			return -ENOMEM;
		t->disp = in->off;
		tail = *t;
		checked_write(e, pc, &tail);
	}
	if (spilled)
		bpfgen_load(e->c, EBPF_DW, x, EBPF_FP, SLOT_FIRST);
	return 0;
}

/* --- behind everything else --------------------------------------------------------------- */

/* x is the offset in the window, whose length may be shorter than its size at the moment */
static void block_take(struct kernel_emit *e, const struct bpfkernel_window *w,
		       const struct kernel_tail *t, unsigned int miss)
{
	bool spilled = false;
	unsigned int y = kernel_scratch(e, t->free, kernel_reads(&t->in) | 1u << t->x, SLOT_SECOND,
					&spilled);
	unsigned int shorter = bpfgen_label(e->c);

	if (w->length_at) {
		bpfgen_load(e->c, EBPF_DW, y, EBPF_FP, SLOT_BLOCK);
		bpfgen_load(e->c, EBPF_DW, y, y, (int16_t)w->length_at);
		bpfgen_alu_imm(e->c, EBPF_SUB, y, (int32_t)ebpf_bytes(&t->in));
		bpfgen_if(e->c, EBPF_JSLT, y, t->x, shorter);
	}
	bpfgen_load(e->c, EBPF_DW, y, EBPF_FP, SLOT_BLOCK);
	bpfgen_alu(e->c, EBPF_ADD, y, t->x);
	bpfgen_alu_imm(e->c, EBPF_ADD, y, (int32_t)w->place - t->disp);
	bpfgen_alu(e->c, EBPF_MOV, t->x, y);
	if (spilled)
		bpfgen_load(e->c, EBPF_DW, y, EBPF_FP, SLOT_SECOND);
	bpfgen_goto(e->c, t->hit);
	if (!w->length_at)
		return;
	bpfgen_here(e->c, shorter);
	if (spilled)
		bpfgen_load(e->c, EBPF_DW, y, EBPF_FP, SLOT_SECOND);
	bpfgen_goto(e->c, miss);
}

static void tail_try(struct kernel_emit *e, const struct kernel_tail *t,
		     const struct bpfkernel_window *w)
{
	unsigned int miss = bpfgen_label(e->c);

	window_compare(e, w, &t->in, t->x, miss);
	if (w->flags & BPFKERNEL_IN_BLOCK) {
		block_take(e, w, t, miss);
	} else {
		add_low(e, t->x, window_low(e, w) - (uint32_t)t->disp);
		bpfkernel_cast(e->c, t->x, t->x);
		bpfgen_goto(e->c, t->hit);
	}
	bpfgen_here(e->c, miss);
}

/* r1 the address, r2 the instruction, r3 the length, r4 the rights */
static void tail_fail(struct kernel_emit *e, const struct kernel_tail *t)
{
	bpfgen_here(e->c, t->misaligned);
	if (ebpf_base(&t->in) != 1)
		bpfgen_alu(e->c, EBPF_MOV, 1, ebpf_base(&t->in));
	bpfgen_alu_imm(e->c, EBPF_ADD, 1, t->in.off);
	bpfgen_alu_imm(e->c, EBPF_MOV, 2, (int32_t)t->pc);
	bpfgen_alu_imm(e->c, EBPF_MOV, 3, (int32_t)ebpf_bytes(&t->in));
	bpfgen_alu_imm(e->c, EBPF_MOV, 4, (int32_t)rights_of(&t->in));
	bpfgen_goto(e->c, e->fail_memory);
}

/* To @next unless the window at r1 has r3 bytes; r5 and r6 are changed */
static void window_holds(struct kernel_emit *e, const struct bpfkernel_window *w, unsigned int next)
{
	bpfgen_constant(e->c, 5, -w->addr);
	bpfgen_alu(e->c, EBPF_ADD, 5, 1);
	bpfgen_if_imm(e->c, EBPF_JGT, 5, (int32_t)w->size - 1, next);
	if (w->length_at) {
		bpfgen_load(e->c, EBPF_DW, 6, EBPF_FP, SLOT_BLOCK);
		bpfgen_load(e->c, EBPF_DW, 6, 6, (int16_t)w->length_at);
		bpfgen_if(e->c, EBPF_JGE, 5, 6, next);
	} else {
		bpfgen_alu_imm(e->c, EBPF_MOV, 6, (int32_t)w->size);
	}
	bpfgen_alu(e->c, EBPF_SUB, 6, 5);
	bpfgen_if(e->c, EBPF_JGT, 3, 6, next);
}

/* What is wrong: no window there, or one without the right; else it was misaligned */
static void fail_memory_write(struct kernel_emit *e)
{
	unsigned int keep = bpfgen_label(e->c);

	bpfgen_here(e->c, e->fail_memory);
	for (size_t i = 0; i < e->window_count; i++) {
		const struct bpfkernel_window *w = &e->windows[i];
		unsigned int next = bpfgen_label(e->c);

		if (!w->size || w->flags & BPFKERNEL_HELPERS)
			continue;
		window_holds(e, w, next);
		bpfgen_alu_imm(e->c, EBPF_MOV, 0, EBPF_ALIGN);
		bpfgen_alu(e->c, EBPF_MOV, 5, 4);
		bpfgen_alu_imm(e->c, EBPF_AND, 5, (int32_t)~w->rights);
		bpfgen_if_imm(e->c, EBPF_JEQ, 5, 0, keep);
		bpfgen_alu_imm(e->c, EBPF_MOV, 0, EBPF_RIGHTS);
		bpfgen_goto(e->c, keep);
		bpfgen_here(e->c, next);
	}
	bpfgen_alu_imm(e->c, EBPF_MOV, 0, EBPF_ADDRESS);
	bpfgen_here(e->c, keep);
	bpfgen_load(e->c, EBPF_DW, 5, EBPF_FP, SLOT_BLOCK);
	bpfgen_store(e->c, EBPF_DW, 5, offsetof(struct bpfkernel_block, addr), 1);
	bpfgen_store(e->c, EBPF_W, 5, offsetof(struct bpfkernel_block, len), 3);
	bpfgen_store(e->c, EBPF_W, 5, offsetof(struct bpfkernel_block, rights), 4);
}

void kernel_tails(struct kernel_emit *e)
{
	for (size_t i = 0; i < e->tail_count; i++) {
		const struct kernel_tail *t = &e->tails[i];

		bpfgen_here(e->c, t->slow);
		for (size_t j = 0; j < e->window_count; j++)
			if ((int)j != t->first &&
			    window_serves(e, &e->windows[j], &t->in, t->helper))
				tail_try(e, t, &e->windows[j]);
		tail_fail(e, t);
	}
	if (e->tail_count)
		fail_memory_write(e);
	/* On to fail_plain, which the caller writes: r2 is the instruction, r0 the status */
}
