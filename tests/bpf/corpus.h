/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_BPF_CORPUS_H
#define TESTS_BPF_CORPUS_H

/* Programs made to do harm: the verifier refuses them, or they end as @want says. */

#include <stddef.h>

#include "bpf/insn.h"

enum { HOSTILE_REFUSED = -1 };

struct hostile {
	const char *name;
	int want; /* an enum ebpf_status, or HOSTILE_REFUSED */
	const struct ebpf_insn *insns;
	size_t count;
};

extern const struct hostile hostile_corpus[];
extern const size_t hostile_count;

#endif
