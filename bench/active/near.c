/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * B-tree and hash table for the server in C: the code of warp-btree and warp-hash by plain
 * pointers.
 */
#include "apps/examples/btree_code.h"
#include "apps/examples/place_memory.h"
#include "key.h"
#include "speed.h"

static inline long btree_give(struct place *place, const struct btree_pair *pair)
{
	return -1;
}

unsigned long tree_find(unsigned long tree, unsigned long key)
{
	const struct btree_args args = { tree, 0, { key, 0 }, 0 };
	unsigned long value = 0;

	return btree_get(NULL, &args, &value) == 1 ? value : 0;
}

unsigned long hash_size(void)
{
	return HASH_ENTRIES_AT + HASH_KEYS * sizeof(struct hash_entry);
}

unsigned long hash_near_get(unsigned long table, unsigned long key)
{
	const struct hash_args args = hash_args_for(table, hash_size(), key);
	unsigned long value = 0;

	return hash_get(NULL, &args, &value) == 1 ? value : 0;
}

unsigned long hash_near_put(unsigned long table, unsigned long key)
{
	const struct hash_args args = hash_args_for(table, hash_size(), key);

	return hash_put(NULL, &args) ? 0 : key;
}

void hash_fill(void *memory)
{
	*(unsigned long *)memory = HASH_ENTRIES_AT;
	for (unsigned long key = 1; key <= HASH_KEYS; key++)
		if (!hash_near_put((unsigned long)memory, key))
			fail("no room in the table", 0);
}
