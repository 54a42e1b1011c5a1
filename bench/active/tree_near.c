/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The look-up in a B-tree for the server in C: the code of warp-btree by plain pointers.
 */
#include "apps/examples/btree_code.h"
#include "apps/examples/place_memory.h"
#include "speed.h"

static inline long btree_give(struct place *place, const struct btree_pair *pair)
{
	return -1;
}

unsigned long tree_find(unsigned long tree, unsigned long key)
{
	const struct btree_args args = { tree, 0, { key, 0 }, 0 };
	unsigned long value;

	return btree_get(0, &args, &value) == 1 ? value : 0;
}
