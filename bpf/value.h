/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_VALUE_H
#define BPF_VALUE_H

/* What the verifier knows of the value in a register. */

#include "bpf/insn.h"

enum value_kind {
	VALUE_NONE,   /* nothing was written, on some way */
	VALUE_NUMBER, /* from lo to hi, as signed numbers */
	VALUE_FRAME,  /* an address: from lo to hi behind the end of the own stack frame */
};

struct value {
	enum value_kind kind;
	int64_t lo, hi;
};

struct value value_number(int64_t lo, int64_t hi);
struct value value_any(void);
bool value_is_exact(const struct value *v);
/* Every value that is in a or in b */
struct value value_join(struct value a, struct value b);
/* The same, but what grew over @old has no bounds any more, so that loops come to an end */
struct value value_widen(struct value old, struct value joined);
bool value_same(const struct value *a, const struct value *b);
/* Behind an ALU instruction */
struct value value_alu(const struct ebpf_insn *in, struct value dst, struct value src);
/* What a load of this size can give */
struct value value_loaded(unsigned int bytes, bool extended);

#endif
