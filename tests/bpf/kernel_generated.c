/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three regions in an arena, with bytes between them that no program may change.
 */
#include "kernel_generated.h"

#include <string.h>

#include "assemble.h"
#include "generate.h"

enum { GUARDED = 0x4000 };

static const uint32_t places[ENGINES_MEMORY] = { 0x1000, 0x2003, 0x3010 };
static const uint32_t sizes[ENGINES_MEMORY] = { GENERATED_SIZE, GENERATED_READONLY_SIZE,
						GENERATED_FAR_SIZE };

/* As the helpers of engines.c, but that a refusal is an access that goes wrong */
static const struct ebpf_insn mix[] = {
	ALU64K(EBPF_MUL, 2, 3),
	ALU64K(EBPF_MUL, 3, 5),
	ALU64K(EBPF_MUL, 4, 7),
	ALU64K(EBPF_MUL, 5, 11),
	MOVX(0, 1),
	ALU64X(EBPF_XOR, 0, 2),
	ALU64X(EBPF_XOR, 0, 3),
	ALU64X(EBPF_XOR, 0, 4),
	ALU64X(EBPF_XOR, 0, 5),
	EXIT,
};
static const struct ebpf_insn refuse[] = {
	ALU64K(EBPF_AND, 2, 31),
	LDX(EBPF_B, 0, 1, 0),
	JK(EBPF_JEQ, 2, 0, 4),
	LDX(EBPF_B, 0, 1, 0),
	ADD(1, 1),
	ADD(2, -1),
	JA(-5),
	ALU64K(EBPF_AND, 3, 3),
	MOV(0, 0),
	JK(EBPF_JNE, 3, 0, 1),
	LDX(EBPF_B, 0, 0, 0),
	EXIT,
};

void kernel_generated_memory(struct kernel_engine *k, const struct engines_end *from)
{
	memset(k->arena.memory, 0x5a, GUARDED);
	for (int i = 0; i < ENGINES_MEMORY; i++)
		memcpy(k->arena.memory + places[i], from->memory[i], sizes[i]);
}

/* Nothing of a run stays in its own memory */
static bool block_is_clear(const struct bpfkernel_block *b)
{
	static const uint8_t zeros[sizeof(*b) - offsetof(struct bpfkernel_block, stack)];

	return !memcmp(b->stack, zeros, sizeof(zeros));
}

bool kernel_generated_same(const struct kernel_engine *k, const struct engines_end *want)
{
	static uint8_t all[GUARDED];

	memset(all, 0x5a, sizeof(all));
	for (int i = 0; i < ENGINES_MEMORY; i++)
		memcpy(all + places[i], want->memory[i], sizes[i]);
	return !memcmp(all, k->arena.memory, sizeof(all)) && block_is_clear(k->block);
}

void kernel_generated(struct kernel_engine *k)
{
	static const uint64_t addrs[] = { GENERATED_REGION, GENERATED_READONLY, GENERATED_FAR };
	static const unsigned int rights[] = { EBPF_MAY_READ | EBPF_MAY_WRITE | EBPF_MAY_ATOMIC,
					       EBPF_MAY_READ, EBPF_MAY_READ | EBPF_MAY_WRITE };

	for (int i = 0; i < ENGINES_MEMORY; i++)
		kernel_engine_window(k, addrs[i], places[i], sizes[i], rights[i]);
	k->extra[0] =
		(struct bpfkernel_helper){ GENERATED_HELPER, mix, sizeof(mix) / sizeof(mix[0]) };
	k->extra[1] = (struct bpfkernel_helper){ GENERATED_HELPER_FAILS, refuse,
						 sizeof(refuse) / sizeof(refuse[0]) };
	k->extra_count = 2;
}
