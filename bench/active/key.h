/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BENCH_ACTIVE_KEY_H
#define BENCH_ACTIVE_KEY_H

#include <stdio.h>

#include "apps/examples/hash_code.h"

/* What puts or gets a key, which is a number */
static inline struct hash_args hash_args_for(unsigned long table, unsigned long size,
					     unsigned long key)
{
	struct hash_args args = { { 0, key, "" }, table, size };

	snprintf(args.entry.key, sizeof(args.entry.key), "key %lu", key);
	return args;
}

#endif
