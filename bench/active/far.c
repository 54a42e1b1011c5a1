/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * B-tree and hash table from the client: the code of warp-btree and warp-hash by RDMA, and as
 * programs.
 */
#include "apps/examples/btree_code.h"
#include "apps/examples/place_rdma.h"
#include "key.h"
#include "speed.h"

static struct place trees[TREES], table;

static inline long btree_give(struct place *place, const struct btree_pair *pair)
{
	return -1;
}

static void place_open(struct place *place, struct warp_active_client *client, const char *path,
		       const char *region)
{
	place->end.client = client;
	if (warp_active_object_open(path, &place->end.object) ||
	    warp_active_region_find(client, region, &place->end.region))
		fail("no such object or region", 0);
}

void far_open(struct warp_active_client *client, const char *tree, const char *hash)
{
	static const char *const names[TREES] = { "tree0", "tree1" };

	for (int i = 0; i < TREES; i++)
		place_open(&trees[i], client, tree, names[i]);
	place_open(&table, client, hash, "hash");
}

/* What the function found */
static unsigned long run(struct place *place, const char *function, const void *args, size_t len)
{
	unsigned int rights = *function == 'g' ? WARP_ACTIVE_READ : 7;
	struct warp_active_result result;
	unsigned long value = 0;

	if (active_end_run(&place->end, function, rights, args, len, &value, sizeof(value),
			   &result))
		fail("a run failed", 0);
	return result.value == 1 ? value : 0;
}

/* --- B-tree ------------------------------------------------------------------------------- */

static struct btree_args tree_args(unsigned int tree, unsigned long key)
{
	const struct warp_active_region_info *region = &trees[tree].end.region;

	return (struct btree_args){ region->addr, region->size, { key, 0 }, 0 };
}

unsigned long tree_read(unsigned int tree, unsigned long key)
{
	const struct btree_args args = tree_args(tree, key);
	unsigned long value = 0;

	return btree_get(&trees[tree], &args, &value) == 1 ? value : 0;
}

unsigned long tree_run(unsigned int tree, unsigned long key)
{
	const struct btree_args args = tree_args(tree, key);

	return run(&trees[tree], "get", &args, sizeof(args));
}

/* --- hash table --------------------------------------------------------------------------- */

unsigned long hash_read(unsigned long key)
{
	const struct hash_args args =
		hash_args_for(table.end.region.addr, table.end.region.size, key);
	unsigned long value = 0;

	return hash_get(&table, &args, &value) == 1 ? value : 0;
}

unsigned long hash_write(unsigned long key)
{
	const struct hash_args args =
		hash_args_for(table.end.region.addr, table.end.region.size, key);

	return hash_put(&table, &args) ? 0 : key;
}

/* A put gives no output: it ended, so it was done */
unsigned long hash_run(const char *function, unsigned long key)
{
	const struct hash_args args =
		hash_args_for(table.end.region.addr, table.end.region.size, key);
	unsigned long value = run(&table, function, &args, sizeof(args));

	return *function == 'p' ? key : value;
}
