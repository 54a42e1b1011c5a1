/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_WALK_CODE_H
#define APPS_ARFS_WALK_CODE_H

#include "bpfgen/expr.h"
#include "bpfgen/regex.h"

/*
 * The walk of walk.bpf.c with the function that it calls: for lines with a match of @re, or for
 * records for which @where is not 0 (NULL: all). Its entry is "main". To be freed with free().
 * -EINVAL, -E2BIG: @err says why
 */
int walk_code_make(const struct bpfgen_regex *re, struct bpfgen_expr *where, void **elf,
		   size_t *len, struct bpfgen_error *err);

#endif
