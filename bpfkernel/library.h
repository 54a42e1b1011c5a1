/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPFKERNEL_LIBRARY_H
#define BPFKERNEL_LIBRARY_H

/*
 * Helpers for memory and output as code of programs. They take what helpers of their kind take, and
 * give what those give; a wrong address ends the run where such a helper would refuse.
 */

#include "bpfkernel/kernel.h"

/* Where the code of helpers sees the block, by a window for helpers alone */
#define BPFKERNEL_BLOCK_ADDR 0x8000000400000000u

enum bpfkernel_function {
	BPFKERNEL_OUTPUT, /* to what is behind struct bpfkernel_block */
	BPFKERNEL_COPY,
	BPFKERNEL_FILL,
	BPFKERNEL_COMPARE,
	BPFKERNEL_FIND,
	BPFKERNEL_CHOOSE, /* r0 is number r1 of the @values, 0 behind them */
};

struct bpfkernel_library;

int bpfkernel_library_create(struct bpfkernel_library **out);
void bpfkernel_library_destroy(struct bpfkernel_library *l);
/* The helper of number @id does this. @values are copied into the code. */
int bpfkernel_library_add(struct bpfkernel_library *l, uint32_t id, enum bpfkernel_function what,
			  const uint64_t *values, size_t count);
/* They live as long as @l and until more is added */
const struct bpfkernel_helper *bpfkernel_library_helpers(const struct bpfkernel_library *l,
							 size_t *count);

#endif
