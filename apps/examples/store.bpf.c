/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-store's programs: the store's code, beside the store.
 */
#include <warp/active_bpf.h>

#include "place_memory.h"
#include "store_code.h"

static inline long store_give(struct place *place, const void *from, unsigned long len)
{
	return warp_output(from, len);
}

/* 1 and the value as output, or 0 */
long get(const struct store_args *args, unsigned long len)
{
	return store_get(0, args, 0);
}

long put(const struct store_args *args, unsigned long len)
{
	return store_put(0, args, 0);
}

/* 1, or 0: there is no such key */
long delete (const struct store_args *args, unsigned long len)
{
	return store_delete(0, args, 0);
}
