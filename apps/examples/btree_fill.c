/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The first content of warp-btree's tree: level by level, from the leaves up, in one go. The nodes
 * of a level stand behind one another. They are not full, as after some time in use.
 */
#include "btree_fill.h"

#include "btree_node.h"

enum { FILLED = 24 /* values of a node */ };

static unsigned long nodes_for(unsigned long values)
{
	return (values + FILLED - 1) / FILLED;
}

unsigned long btree_fill_size(unsigned long keys)
{
	unsigned long nodes = 0;

	for (unsigned long n = keys; n; n = n > 1 ? nodes_for(n) : 0)
		nodes += nodes_for(n);
	return BTREE_NODES_AT + nodes * sizeof(struct btree_node);
}

static void leaf_fill(struct btree_node *leaf, unsigned long first, unsigned long keys)
{
	while (leaf->count < FILLED && first + leaf->count <= keys) {
		leaf->keys[leaf->count] = leaf->values[leaf->count] = first + leaf->count;
		leaf->count++;
	}
}

/* Above @children, each of which has @each keys below it, beginning with number @first of them */
static void inner_fill(struct btree_node *node, const struct btree_node *children,
		       unsigned long first, unsigned long count, unsigned long each)
{
	for (unsigned long i = first; i < count && i < first + FILLED; i++) {
		node->values[i - first] = (unsigned long)&children[i];
		if (i > first)
			node->keys[node->count++] = i * each + 1;
	}
}

void btree_fill(void *memory, unsigned long keys)
{
	struct btree_node *level = (struct btree_node *)((char *)memory + BTREE_NODES_AT);
	unsigned long count = nodes_for(keys), each = FILLED;
	unsigned long *head = memory;

	for (unsigned long i = 0; i < count; i++)
		leaf_fill(&level[i], i * FILLED + 1, keys);
	for (unsigned int above = 1; count > 1; above++) {
		struct btree_node *next = level + count;
		unsigned long n = nodes_for(count);

		for (unsigned long i = 0; i < n; i++) {
			next[i].level = above;
			inner_fill(&next[i], level, i * FILLED, count, each);
		}
		level = next;
		count = n;
		each *= FILLED;
	}
	head[BTREE_ROOT_AT / 8] = keys ? (unsigned long)level : 0;
	head[BTREE_FREE_AT / 8] = btree_fill_size(keys);
}
