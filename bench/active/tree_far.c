/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The look-up in a B-tree from the client: the code of warp-btree by Reads, and as a program.
 */
#include "apps/examples/btree_code.h"
#include "apps/examples/place_rdma.h"
#include "speed.h"

static struct place places[TREES];

static inline long btree_give(struct place *place, const struct btree_pair *pair)
{
	return -1;
}

void tree_open(struct warp_active_client *client, const char *path)
{
	struct warp_active_object *object;

	if (warp_active_object_open(path, &object))
		fail("there is no such object", 0);
	for (int i = 0; i < TREES; i++) {
		const char name[] = { 't', 'r', 'e', 'e', (char)('0' + i), 0 };

		places[i].end.client = client;
		places[i].end.object = object;
		if (warp_active_region_find(client, name, &places[i].end.region))
			fail("no tree", i);
	}
}

static struct btree_args args_for(unsigned int tree, unsigned long key)
{
	const struct warp_active_region_info *region = &places[tree].end.region;

	return (struct btree_args){ region->addr, region->size, { key, 0 }, 0 };
}

unsigned long tree_read(unsigned int tree, unsigned long key)
{
	const struct btree_args args = args_for(tree, key);
	unsigned long value;

	return btree_get(&places[tree], &args, &value) == 1 ? value : 0;
}

unsigned long tree_run(unsigned int tree, unsigned long key)
{
	const struct btree_args args = args_for(tree, key);
	struct warp_active_result result;
	unsigned long value = 0;

	if (active_end_run(&places[tree].end, "get", WARP_ACTIVE_READ, &args, sizeof(args), &value,
			   sizeof(value), &result))
		fail("a run failed", 0);
	return result.value == 1 ? value : 0;
}
