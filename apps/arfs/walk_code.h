/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_WALK_CODE_H
#define APPS_ARFS_WALK_CODE_H

#include "bpfgen/expr.h"
#include "bpfgen/regex.h"

/* What a walk looks for: lines with a match of @re, or the @value of records; NULL: none */
struct walk_question {
	const struct bpfgen_regex *re;
	struct bpfgen_expr *where; /* only records for which it is not 0; NULL: all */
	struct bpfgen_expr *value;
};

/*
 * The walk of walk.bpf.c with the functions that it calls. Its entry is "main". To be freed with
 * free(). -EINVAL, -E2BIG: @err says why
 */
int walk_code_make(const struct walk_question *q, void **elf, size_t *len,
		   struct bpfgen_error *err);

#endif
