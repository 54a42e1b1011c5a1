/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-hash's programs: the table's code, beside the table.
 */
#include <warp/active_bpf.h>

#include "hash_code.h"
#include "place_memory.h"

/* 1 and the value as output, or 0 */
long get(const struct hash_args *args, unsigned long len)
{
	unsigned long value;
	long ret = hash_get(0, args, &value);

	if (ret == 1)
		warp_output(&value, sizeof(value));
	return ret;
}

long put(const struct hash_args *args, unsigned long len)
{
	return hash_put(0, args);
}
