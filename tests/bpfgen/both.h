/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_BPFGEN_BOTH_H
#define TESTS_BPFGEN_BOTH_H

/* Generated code by the interpreter and by machine code: both must do the same. */

#include "bpf/run.h"
#include "bpfgen/code.h"

enum { BOTH_ROOM = 1 << 16 };

struct both {
	struct ebpf_object *obj[2];
	struct ebpf_run *run;
	uint8_t output[BOTH_ROOM];
	size_t output_len;
};

/* Loads the code as a file. What is wrong, or NULL */
const char *both_open(struct both *b, const struct bpfgen_code *c);
void both_close(struct both *b);
/*
 * Runs @entry by both with these arguments. NULL and *value if both come to the same end and it is
 * EBPF_DONE; else what is wrong. Memory that may be written is zero for both at first.
 */
const char *both_run(struct both *b, const char *entry, const uint64_t arg[5],
		     const struct ebpf_region *regions, size_t count, uint64_t *value);

#endif
