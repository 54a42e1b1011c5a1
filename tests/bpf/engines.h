/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_BPF_ENGINES_H
#define TESTS_BPF_ENGINES_H

/*
 * The same program by the interpreter and by machine code: whatever can be seen must be the
 * same.
 */

#include "bpf/run.h"

enum { ENGINES_MEMORY = 3 };

struct engines_end {
	struct ebpf_result result;
	int refused; /* the verifier's errno */
	struct ebpf_error err;
	uint8_t *memory[ENGINES_MEMORY]; /* of generated programs, as it is behind the run */
	uint8_t output[64];
};

extern const struct ebpf_helpers engines_helpers;

/* Memory for generated programs, each piece with a page behind it that cannot be touched */
int engines_open(struct engines_end *end);
void engines_close(struct engines_end *end);
/* Fills the memory in from @seed, runs at most @fuel instructions in pieces of at most @slice */
void engines_run(struct engines_end *end, const struct ebpf_insn *insns, size_t count,
		 unsigned int flags, uint64_t seed, uint64_t fuel, uint64_t slice);
/* What is different, or NULL */
const char *engines_differ(const struct engines_end *a, const struct engines_end *b);

#endif
