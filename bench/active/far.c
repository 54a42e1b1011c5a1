/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * B-tree and hash table from the client: the code of warp-btree and warp-hash by RDMA, and as
 * programs.
 */
#include "apps/examples/btree_code.h"
#include "apps/examples/place_rdma.h"
#include "key.h"
#include "speed.h"

/* Programs of the second ones run in the kernel */
static struct place trees[TREES][2], table[2];
static struct active_end lists[2];

static inline long btree_give(struct place *place, const struct btree_pair *pair)
{
	return -1;
}

static void end_open(struct active_end *end, struct warp_active_client *client, const char *path,
		     const char *region)
{
	end->client = client;
	if (warp_active_object_open(path, &end->object) ||
	    warp_active_region_find(client, region, &end->region))
		fail("no such object or region", 0);
}

void far_open(struct warp_active_client *client, const char *list, const char *tree,
	      const char *hash)
{
	static const char *const names[TREES] = { "tree0", "tree1" };

	for (int in_kernel = 0; in_kernel < 2; in_kernel++) {
		struct active_end *ends[] = { &lists[in_kernel], &table[in_kernel].end,
					      &trees[0][in_kernel].end, &trees[1][in_kernel].end };

		end_open(ends[0], client, list, "list");
		end_open(ends[1], client, hash, "hash");
		for (int i = 0; i < TREES; i++)
			end_open(ends[2 + i], client, tree, names[i]);
		for (int i = 0; i < 4; i++) {
			ends[i]->in_kernel = in_kernel;
			ends[i]->spin_us = SPIN_US;
		}
	}
}

unsigned long list_run(unsigned long count, bool in_kernel)
{
	struct active_end *end = &lists[in_kernel];
	const unsigned long args[] = { end->region.addr, count, 0 };
	struct warp_active_result result;

	if (active_end_run(end, "walk", WARP_ACTIVE_READ, args, sizeof(args), NULL, 0, &result))
		fail("a run failed", 0);
	return result.value;
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
	const struct warp_active_region_info *region = &trees[tree][0].end.region;

	return (struct btree_args){ region->addr, region->size, { key, 0 }, 0 };
}

unsigned long tree_read(unsigned int tree, unsigned long key)
{
	const struct btree_args args = tree_args(tree, key);
	unsigned long value = 0;

	return btree_get(&trees[tree][0], &args, &value) == 1 ? value : 0;
}

unsigned long tree_run(unsigned int tree, unsigned long key, bool in_kernel)
{
	const struct btree_args args = tree_args(tree, key);

	return run(&trees[tree][in_kernel], "get", &args, sizeof(args));
}

/* --- hash table --------------------------------------------------------------------------- */

unsigned long hash_read(unsigned long key)
{
	const struct hash_args args =
		hash_args_for(table[0].end.region.addr, table[0].end.region.size, key);
	unsigned long value = 0;

	return hash_get(&table[0], &args, &value) == 1 ? value : 0;
}

unsigned long hash_write(unsigned long key)
{
	const struct hash_args args =
		hash_args_for(table[0].end.region.addr, table[0].end.region.size, key);

	return hash_put(&table[0], &args) ? 0 : key;
}

/* A put gives no output: it ended, so it was done */
unsigned long hash_run(const char *function, unsigned long key, bool in_kernel)
{
	const struct hash_args args =
		hash_args_for(table[0].end.region.addr, table[0].end.region.size, key);
	unsigned long value = run(&table[in_kernel], function, &args, sizeof(args));

	return *function == 'p' ? key : value;
}
