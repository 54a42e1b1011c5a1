/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Registers for the rewriter's own use: which are free, and numbers in them that the kernel's
 * verifier knows or does not know.
 */
#include "bpfkernel/inside.h"

enum { CAST_OFF = 1, CAST_TO_KERNEL = 1 };

void bpfkernel_cast(struct bpfgen_code *c, unsigned int dst, unsigned int src)
{
	bpfgen_insn(c, (struct ebpf_insn){ EBPF_ALU64 | EBPF_MOV | EBPF_X,
					   (uint8_t)(src << 4 | dst), CAST_OFF, CAST_TO_KERNEL });
}

uint64_t kernel_frame(const struct kernel_emit *e)
{
	return EBPF_STACK_ADDR + (uint64_t)(e->depth + 1) * EBPF_FRAME_SIZE;
}

uint32_t kernel_free_regs(const struct kernel_emit *e, uint32_t pc)
{
	const struct ebpf_insn *in = &e->unit.insns[pc];
	uint32_t next = pc + 1 + (in->code == EBPF_LDDW), taken;
	uint32_t used = next < e->unit.count ? e->unit.live[next] : 0;

	/* A branch needs what either way reads */
	taken = ebpf_is_branch(in) ? e->unit.live[pc + 1 + (uint32_t)ebpf_distance(in)] : 0;
	used |= taken | kernel_reads(in) | kernel_writes(in);
	if (e->fuel_reg < EBPF_FP)
		used |= 1u << e->fuel_reg;
	return ~used & ((1u << EBPF_FP) - 1);
}

unsigned int kernel_scratch(struct kernel_emit *e, uint32_t free, uint32_t busy, int slot,
			    bool *spilled)
{
	unsigned int reg = EBPF_FP;

	*spilled = !free;
	if (free)
		return 31 - (unsigned int)__builtin_clz(free);
	/* None is free, so all are initialised. r0 is never taken: three are busy at most. */
	if (e->fuel_reg < EBPF_FP)
		busy |= 1u << e->fuel_reg;
	do
		reg--;
	while (busy & 1u << reg);
	bpfgen_store(e->c, EBPF_DW, EBPF_FP, (int16_t)slot, reg);
	return reg;
}

void kernel_number(struct kernel_emit *e, unsigned int dst, uint64_t n, uint32_t free,
		   uint32_t busy)
{
	bool spilled;
	unsigned int y =
		kernel_scratch(e, free & ~(1u << dst), busy | 1u << dst, SLOT_SECOND, &spilled);

	bpfgen_constant(e->c, dst, n);
	bpfgen_load(e->c, EBPF_DW, y, EBPF_FP, SLOT_ZERO);
	bpfgen_alu(e->c, EBPF_ADD, dst, y);
	if (spilled)
		bpfgen_load(e->c, EBPF_DW, y, EBPF_FP, SLOT_SECOND);
}
