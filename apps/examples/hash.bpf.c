/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-hash's programs: the table's code, beside the table. A wrong address in it ends the run.
 */
#include <warp/active_bpf.h>

#include "hash_code.h"

static inline int hash_load(struct hash_place *place, unsigned long addr, void *to,
			    unsigned long len)
{
	__builtin_memcpy(to, (const void *)addr, len);
	return 0;
}

static inline int hash_store(struct hash_place *place, unsigned long addr, const void *from,
			     unsigned long len)
{
	__builtin_memcpy((void *)addr, from, len);
	return 0;
}

static inline int hash_swap(struct hash_place *place, unsigned long addr, unsigned long *old,
			    unsigned long value)
{
	*old = __sync_val_compare_and_swap((unsigned long *)addr, *old, value);
	return 0;
}

static inline int hash_take(struct hash_place *place, unsigned long addr, unsigned long add,
			    unsigned long *old)
{
	*old = __sync_fetch_and_add((unsigned long *)addr, add);
	return 0;
}

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
