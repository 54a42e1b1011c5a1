/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_BTREE_CODE_H
#define APPS_EXAMPLES_BTREE_CODE_H

/*
 * The code of warp-btree's tree, for its client and for the programs that the client sends
 * (place.h).
 */

#include <stdbool.h>

#include "btree_node.h"
#include "place.h"

/* Where a key is: the nodes from the root on, and which of each one's values leads to it */
struct btree_path {
	unsigned long root, node[BTREE_LEVELS];
	unsigned int at[BTREE_LEVELS];
	unsigned int depth, full; /* how many, and how many of them are full, from the last on */
	bool found;
};

/* How many of the keys are @key or less */
static inline unsigned int btree_rank(const struct btree_node *node, unsigned int count,
				      unsigned long key)
{
	unsigned int low = 0;

	for (unsigned int n = count; n;) {
		unsigned int half = n / 2;

		if (node->keys[low + half] <= key) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

/* The node, if what it holds can be; the root is one of any level */
static inline int btree_see(struct place *place, unsigned long addr, unsigned int below,
			    struct btree_node *buffer, const struct btree_node **out)
{
	const struct btree_node *node =
		(const struct btree_node *)place_see(place, addr, buffer, sizeof(*buffer));

	if (!node)
		return place_error(place);
	*out = node;
	return node->count <= BTREE_KEYS && node->level < below ? 0 : PLACE_DAMAGED;
}

/* 1: it is there, its value in *value; 0: it is not; or an error */
static inline int btree_get(struct place *place, const struct btree_args *args,
			    unsigned long *value)
{
	unsigned long addr;
	unsigned int below = BTREE_LEVELS;
	int ret = place_load(place, args->tree + BTREE_ROOT_AT, &addr);

	while (!ret && addr) {
		struct btree_node buffer;
		const struct btree_node *node;
		unsigned int i;

		ret = btree_see(place, addr, below, &buffer, &node);
		if (ret)
			return ret;
		i = btree_rank(node, node->count, args->pair.key);
		below = node->level;
		if (!below) {
			*value = node->values[i - !!i];
			return i && node->keys[i - 1] == args->pair.key;
		}
		addr = node->values[i];
	}
	return ret;
}

/* --- put ---------------------------------------------------------------------------------- */

/* The way to the key, of a tree that is not empty */
static inline int btree_find(struct place *place, unsigned long key, struct btree_path *path)
{
	unsigned long addr = path->root;
	unsigned int below = BTREE_LEVELS;

	path->depth = path->full = 0;
	for (unsigned int depth = 0; depth < BTREE_LEVELS; depth++) {
		struct btree_node buffer;
		const struct btree_node *node;
		unsigned int i;
		int ret = btree_see(place, addr, below, &buffer, &node);

		if (ret)
			return ret;
		i = btree_rank(node, node->count, key);
		below = node->level;
		path->full = node->count == BTREE_KEYS ? path->full + 1 : 0;
		path->found = !below && i && node->keys[i - 1] == key;
		path->node[depth] = addr;
		path->at[depth] = path->found ? i - 1 : i;
		path->depth = depth + 1;
		if (!below)
			return 0;
		addr = node->values[i];
	}
	return PLACE_DAMAGED;
}

/* What changes in a node: a value is replaced, or a key with its value comes in, or both */
struct btree_change {
	unsigned int at, level;
	bool replaces, inserts;
	unsigned long left;	 /* the value that replaces */
	struct btree_pair right; /* what comes in */
};

/* Key and value number @i of the node with its change */
static inline unsigned long btree_key(const struct btree_node *old, const struct btree_change *c,
				      unsigned int i)
{
	if (!c->inserts || i < c->at)
		return old->keys[i];
	return i == c->at ? c->right.key : old->keys[i - 1];
}

static inline unsigned long btree_value(const struct btree_node *old, const struct btree_change *c,
					unsigned int i)
{
	unsigned int comes = c->at + !!c->level;

	if (c->replaces && i == c->at)
		return c->left;
	if (!c->inserts || i < comes)
		return old->values[i];
	return i == comes ? c->right.value : old->values[i - 1];
}

/* The keys from @from on and their values as a node at @addr */
static inline int btree_write(struct place *place, unsigned long addr, const struct btree_node *old,
			      const struct btree_change *c, unsigned int from, unsigned int count)
{
	struct btree_node buffer;
	struct btree_node *to = (struct btree_node *)place_draft(place, addr, &buffer);

	to->count = count;
	to->level = c->level;
	for (unsigned int i = 0; i < count; i++)
		to->keys[i] = btree_key(old, c, from + i);
	for (unsigned int i = 0; i < count + !!c->level; i++)
		to->values[i] = btree_value(old, c, from + i);
	return place_publish(place, addr, to, sizeof(*to));
}

/*
 * The node at @addr with its change, as one node or two from *free on. *c becomes the change of the
 * node above.
 */
static inline int btree_copy(struct place *place, unsigned long addr, struct btree_change *c,
			     unsigned long *free)
{
	struct btree_node buffer;
	const struct btree_node *old;
	int ret = btree_see(place, addr, BTREE_LEVELS, &buffer, &old);
	unsigned int count, skips;
	bool split;

	if (ret)
		return ret;
	count = old->count + c->inserts;
	split = count > BTREE_KEYS;
	c->level = old->level;
	skips = split && c->level; /* the key in the middle goes up */
	ret = btree_write(place, *free, old, c, 0, split ? BTREE_HALF : count);
	if (!ret && split)
		ret = btree_write(place, *free + sizeof(*old), old, c, BTREE_HALF + skips,
				  count - BTREE_HALF - skips);
	c->right.key = split ? btree_key(old, c, BTREE_HALF) : 0;
	c->right.value = *free + sizeof(*old);
	c->left = *free;
	c->replaces = true;
	c->inserts = split;
	*free += split ? 2 * sizeof(*old) : sizeof(*old);
	return ret;
}

/* The path's nodes again with the pair, from *free on; the new root is c->left */
static inline int btree_copy_all(struct place *place, const struct btree_path *path,
				 struct btree_change *c, unsigned long *free)
{
	int ret = 0;

	for (unsigned int i = path->depth; i-- && !ret;) {
		c->at = path->at[i];
		ret = btree_copy(place, path->node[i], c, free);
	}
	return ret;
}

/* A node of nothing but its change: the first leaf, or a root above two nodes */
static inline int btree_root(struct place *place, struct btree_change *c, unsigned int level,
			     unsigned long *free)
{
	static const struct btree_node none = { 0 };
	int ret;

	c->at = 0;
	c->level = level;
	ret = btree_write(place, *free, &none, c, 0, 1);
	c->left = *free;
	return ret;
}

/* So many bytes; what an earlier try had is used first */
static inline int btree_take(struct place *place, const struct btree_args *args, unsigned long need,
			     unsigned long *at, unsigned long *have)
{
	unsigned long offset = 0;
	int ret;

	if (need <= *have)
		return 0;
	ret = place_add(place, args->tree + BTREE_FREE_AT, need, &offset);
	if (!ret && (offset > args->size || args->size - offset < need))
		return PLACE_FULL;
	*at = args->tree + offset;
	*have = need;
	return ret;
}

/* One try: 1 when the new root is there, 0 when another one was quicker */
static inline int btree_try(struct place *place, const struct btree_args *args, unsigned long *at,
			    unsigned long *have)
{
	struct btree_path path = { 0 };
	struct btree_change c = { .right = args->pair };
	unsigned long nodes, free, seen;
	int ret = place_load(place, args->tree + BTREE_ROOT_AT, &path.root);

	if (!ret && path.root)
		ret = btree_find(place, args->pair.key, &path);
	if (ret)
		return ret;
	c.inserts = !path.found;
	c.replaces = path.found;
	c.left = args->pair.value;
	nodes = path.depth + (path.found ? 0 : path.full + (path.full == path.depth));
	ret = btree_take(place, args, nodes * sizeof(struct btree_node), at, have);
	free = *at;
	if (!ret)
		ret = btree_copy_all(place, &path, &c, &free);
	if (!ret && c.inserts)
		ret = btree_root(place, &c, path.depth, &free);
	seen = path.root;
	if (!ret)
		ret = place_swap(place, args->tree + BTREE_ROOT_AT, &seen, c.left);
	return ret ? ret : seen == path.root;
}

/* 0, or an error */
static inline int btree_put(struct place *place, const struct btree_args *args)
{
	unsigned long at = 0, have = 0;

	for (int i = 0; i < BTREE_TRIES; i++) {
		int ret = btree_try(place, args, &at, &have);

		if (ret)
			return ret < 0 ? ret : 0;
	}
	return PLACE_AGAIN;
}

/* --- range -------------------------------------------------------------------------------- */

/* What is found goes here: 0, or a negative number when there is no room for it */
static inline long btree_give(struct place *place, const struct btree_pair *pair);

/* The leaf for @key, and in *next the least key that there can be in the one behind it, or 0 */
static inline int btree_leaf(struct place *place, unsigned long root, unsigned long key,
			     struct btree_node *buffer, const struct btree_node **leaf,
			     unsigned long *next)
{
	unsigned int below = BTREE_LEVELS;
	unsigned long addr = root;

	*next = 0;
	for (;;) {
		int ret = btree_see(place, addr, below, buffer, leaf);
		unsigned int i;

		if (ret)
			return ret;
		below = (*leaf)->level;
		if (!below)
			return 0;
		i = btree_rank(*leaf, (*leaf)->count, key);
		if (i < (*leaf)->count)
			*next = (*leaf)->keys[i];
		addr = (*leaf)->values[i];
	}
}

/*
 * Gives the pairs from args->pair.key to args->pair.value, of the tree that has the root
 * args->root. What it had no room for is left: *from is the key to go on with. 1: there is more, 0:
 * that is all; or an error
 */
static inline int btree_range(struct place *place, const struct btree_args *args,
			      unsigned long *from)
{
	*from = args->pair.key;
	while (args->root) {
		struct btree_node buffer;
		const struct btree_node *leaf;
		unsigned long next;
		int ret = btree_leaf(place, args->root, *from, &buffer, &leaf, &next);

		if (ret)
			return ret;
		for (unsigned int i = 0; i < leaf->count && i < BTREE_KEYS; i++) {
			struct btree_pair pair = { leaf->keys[i], leaf->values[i] };

			if (pair.key < *from)
				continue;
			if (pair.key > args->pair.value)
				return 0;
			*from = pair.key;
			if (btree_give(place, &pair) < 0)
				return 1;
		}
		if (next <= *from || next > args->pair.value)
			return 0;
		*from = next;
	}
	return 0;
}

#endif
