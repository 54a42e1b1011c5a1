/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFKERNEL_SYSTEM_H
#define BPFKERNEL_SYSTEM_H

/* What the rewriter's code needs of Linux: an arena, programs for XDP, maps, and an interface. */

#include "bpf/insn.h"

#include <stddef.h>

/* Memory of this process that programs in the kernel reach, too */
struct bpfkernel_arena {
	int fd;
	uint8_t *memory;
	size_t size;
};

/*
 * All of it is there from the beginning, for a program's store to a page that is not there would be
 * lost. -EOPNOTSUPP: the kernel has no arenas; -EPERM: this process may not have one
 */
int bpfkernel_arena_create(size_t size, struct bpfkernel_arena *out);
void bpfkernel_arena_destroy(struct bpfkernel_arena *arena);

/*
 * Loads a program for XDP and gives its descriptor, or a negative errno; what the kernel's verifier
 * says stands in @text, one line
 */
int bpfkernel_program_load(const struct ebpf_insn *insns, size_t count, char *text, size_t room);

struct bpfkernel_test {
	const void *in;
	void *out;
	size_t in_len, out_len; /* out_len: the room, and then what there was */
	unsigned int repeat;
	uint32_t verdict, ns;
};

/* Runs it with a packet, as if it had come from an interface */
int bpfkernel_program_test(int fd, struct bpfkernel_test *test);

#endif
