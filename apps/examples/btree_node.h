/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_BTREE_NODE_H
#define APPS_EXAMPLES_BTREE_NODE_H

/*
 * A B+-tree in a region: an ordered map of numbers.
 *
 * The region begins with the address of the root, or 0, and the offset of its free memory, which
 * only grows. A node never changes once the root leads to it. To put something, one makes copies of
 * all nodes from the leaf to the root, and enters the new root by a compare-and-swap. So readers
 * need no lock and see one state of the whole tree, and whoever dies leaves nothing half-done.
 * Nodes that were replaced are not used again.
 */

enum {
	BTREE_ROOT_AT = 0,
	BTREE_FREE_AT = 8,
	BTREE_NODES_AT = 64,
	BTREE_KEYS = 31, /* of a node, at most */
	BTREE_HALF = 16, /* of one more, when it is split */
	BTREE_LEVELS = 12,
	BTREE_TRIES = 100,
};

struct btree_node {
	unsigned int count; /* of keys */
	unsigned int level; /* 0: a leaf */
	unsigned long keys[BTREE_KEYS];
	/* of a leaf: what belongs to the key; else nodes, one more than keys: keys[i] is the least
	 * that there can be below values[i + 1] */
	unsigned long values[BTREE_KEYS + 1];
};

struct btree_pair {
	unsigned long key, value;
};

/* Arguments of the programs */
struct btree_args {
	unsigned long tree; /* the region's address */
	unsigned long size;
	struct btree_pair pair; /* range: the first key and the last one */
	unsigned long root;	/* range: of the tree as another call saw it, or 0 */
};

#endif
