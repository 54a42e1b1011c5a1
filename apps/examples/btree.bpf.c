/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warp-btree's programs: the tree's code, beside the tree.
 */
#include <warp/active_bpf.h>

#include "btree_code.h"
#include "place_memory.h"

static inline long btree_give(struct place *place, const struct btree_pair *pair)
{
	return warp_output(pair, sizeof(*pair));
}

/* 1 and the value as output, or 0 */
long get(const struct btree_args *args, unsigned long len)
{
	unsigned long value = 0;
	long ret = btree_get(0, args, &value);

	if (ret == 1)
		warp_output(&value, sizeof(value));
	return ret;
}

long put(const struct btree_args *args, unsigned long len)
{
	return btree_put(0, args);
}

/* Output: the root, then the pairs; 1 when there are more than it has room for */
long range(struct btree_args *args, unsigned long len)
{
	unsigned long next;
	int ret = 0;

	if (!args->root)
		ret = place_load(0, args->tree + BTREE_ROOT_AT, &args->root);
	warp_output(&args->root, sizeof(args->root));
	return ret ? ret : btree_range(0, args, &next);
}
