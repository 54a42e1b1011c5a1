/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is a store whole? Each block has one owner at most, the bitmap says which have one; each inode in
 * use has as many names as it says, or is in the list of orphans, or is being trimmed; each entry
 * leads to an inode of its kind. The counts of what is free are right.
 *
 * Whatever stands there, each inode and each block is looked at a bounded number of times, and
 * nothing outside of the memory.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store_fault.h"

struct check {
	const uint8_t *memory;
	struct arfs_super s;
	uint8_t *owned;	 /* of each block: it has an owner */
	uint32_t *names; /* of each inode: entries that lead there */
	uint32_t *below; /* of each directory: directories in it */
	uint8_t *orphan; /* of each inode */
	uint32_t used;	 /* inodes */
	struct store_fault *fault;
};

static const void *block_at(const struct check *c, uint32_t block)
{
	return c->memory + (size_t)block * ARFS_BLOCK;
}

static const struct arfs_inode *inode_at(const struct check *c, uint32_t inode)
{
	return (const struct arfs_inode *)block_at(c, c->s.inodes_at) + inode;
}

/* --- blocks --- */

static int block_own(struct check *c, uint32_t inode, uint32_t block)
{
	if (block < c->s.data_at || block >= c->s.blocks)
		return store_bad(c->fault, "inode %u has block %u, which is none", inode, block);
	if (c->owned[block])
		return store_bad(c->fault, "inode %u has block %u, which has an owner", inode,
				 block);
	c->owned[block] = 1;
	return 0;
}

/* A block of numbers; @depth 2: of numbers of such blocks */
static int numbers_own(struct check *c, uint32_t inode, uint32_t block, int depth, uint32_t *count)
{
	const uint32_t *number = block_at(c, block);
	int ret = block_own(c, inode, block);

	++*count;
	for (uint32_t i = 0; i < ARFS_PER_BLOCK && !ret && depth; i++) {
		if (!number[i])
			continue;
		if (depth > 1) {
			ret = numbers_own(c, inode, number[i], depth - 1, count);
		} else {
			ret = block_own(c, inode, number[i]);
			++*count;
		}
	}
	return ret;
}

static int blocks_own(struct check *c, uint32_t inode)
{
	const struct arfs_inode *i = inode_at(c, inode);
	uint32_t count = 0;
	int ret = 0;

	for (unsigned int k = 0; k < ARFS_DIRECT && !ret; k++) {
		if (i->direct[k]) {
			ret = block_own(c, inode, i->direct[k]);
			count++;
		}
	}
	if (!ret && i->indirect)
		ret = numbers_own(c, inode, i->indirect, 1, &count);
	if (!ret && i->twice)
		ret = numbers_own(c, inode, i->twice, 2, &count);
	if (!ret && count != i->blocks)
		ret = store_bad(c->fault, "inode %u has %u blocks and says %u", inode, count,
				i->blocks);
	return ret;
}

static int bitmap_check(struct check *c)
{
	const uint8_t *map = block_at(c, c->s.bitmap_at);
	uint32_t used = 0;

	for (uint32_t b = 0; b < c->s.blocks; b++) {
		bool set = map[b / 8] >> b % 8 & 1, want = b < c->s.data_at || c->owned[b];

		if (set != want)
			return store_bad(c->fault, "block %u is %s in the bitmap", b,
					 set ? "taken" : "free");
		used += set;
	}
	if (c->s.free_blocks != c->s.blocks - used)
		return store_bad(c->fault, "%u blocks are free, and it says %u", c->s.blocks - used,
				 c->s.free_blocks);
	return 0;
}

/* --- directories --- */

/* Block number @index of a directory, of which the numbers were checked; 0: a hole */
static uint32_t dir_block(const struct check *c, const struct arfs_inode *i, uint64_t index)
{
	const uint32_t *number;
	uint32_t block;

	if (index < ARFS_DIRECT)
		return i->direct[index];
	index -= ARFS_DIRECT;
	if (index < ARFS_PER_BLOCK) {
		number = block_at(c, i->indirect);
		return i->indirect ? number[index] : 0;
	}
	index -= ARFS_PER_BLOCK;
	if (index / ARFS_PER_BLOCK >= ARFS_PER_BLOCK || !i->twice)
		return 0;
	number = block_at(c, i->twice);
	block = number[index / ARFS_PER_BLOCK];
	number = block_at(c, block);
	return block ? number[index % ARFS_PER_BLOCK] : 0;
}

static int entry_check(struct check *c, uint32_t dir, const struct arfs_entry *e)
{
	const struct arfs_inode *i;

	if (e->inode >= c->s.inodes || !inode_at(c, e->inode)->mode)
		return store_bad(c->fault, "directory %u leads to inode %u", dir, e->inode);
	i = inode_at(c, e->inode);
	if (!e->name_len || memchr(e->name, 0, e->name_len) || memchr(e->name, '/', e->name_len) ||
	    e->hash != arfs_hash(e->name, e->name_len) || e->type != (i->mode >> 12 & 15))
		return store_bad(c->fault, "directory %u has a wrong name for inode %u", dir,
				 e->inode);
	c->names[e->inode]++;
	if (!S_ISDIR(i->mode))
		return 0;
	c->below[dir]++;
	return i->parent == dir && e->inode != ARFS_ROOT
		       ? 0
		       : store_bad(c->fault, "directory %u is not below %u", e->inode, dir);
}

static int entries_check(struct check *c, uint32_t dir, const uint8_t *block)
{
	uint32_t at = 0;

	while (at < ARFS_BLOCK) {
		const struct arfs_entry *e = (const void *)(block + at);
		int ret = 0;

		if (ARFS_BLOCK - at < sizeof(*e) || e->length < sizeof(*e) || e->length % 8 ||
		    e->length > ARFS_BLOCK - at ||
		    (e->inode && sizeof(*e) + e->name_len > e->length))
			return store_bad(c->fault, "directory %u has a bad length", dir);
		if (e->inode)
			ret = entry_check(c, dir, e);
		if (ret)
			return ret;
		at += e->length;
	}
	return 0;
}

static int dir_check(struct check *c, uint32_t dir)
{
	const struct arfs_inode *i = inode_at(c, dir);
	int ret = 0;

	/* As many blocks as it has: a size alone takes no time */
	if (i->size % ARFS_BLOCK || i->size / ARFS_BLOCK > i->blocks)
		return store_bad(c->fault, "directory %u has %llu bytes", dir,
				 (unsigned long long)i->size);
	for (uint64_t n = 0; n < i->size / ARFS_BLOCK && !ret; n++) {
		uint32_t block = dir_block(c, i, n);

		ret = block ? entries_check(c, dir, block_at(c, block))
			    : store_bad(c->fault, "directory %u has a hole", dir);
	}
	return ret;
}

/* --- inodes --- */

static int list_check(struct check *c, uint32_t first, bool orphans, uint32_t *count)
{
	for (*count = 0; first; ++*count) {
		if (first <= ARFS_ROOT || first >= c->s.fresh_inode || c->orphan[first] ||
		    !inode_at(c, first)->mode == orphans)
			return store_bad(c->fault, "a list of inodes leads to %u", first);
		c->orphan[first] = 1;
		first = inode_at(c, first)->next;
	}
	return 0;
}

static int inode_check(struct check *c, uint32_t inode)
{
	const struct arfs_inode *i = inode_at(c, inode);
	int ret;

	if (!i->mode)
		return 0;
	c->used++;
	if (inode >= c->s.fresh_inode)
		return store_bad(c->fault, "inode %u was never used", inode);
	ret = blocks_own(c, inode);
	return !ret && S_ISDIR(i->mode) ? dir_check(c, inode) : ret;
}

static int names_check(struct check *c, uint32_t inode)
{
	const struct arfs_inode *i = inode_at(c, inode);
	uint32_t names = c->names[inode], want;

	if (!i->mode)
		return 0;
	if (i->kept != c->orphan[inode])
		return store_bad(c->fault, "inode %u is in the wrong list", inode);
	if (!i->nlink)
		return !names && (c->orphan[inode] || c->s.trim == inode)
			       ? 0
			       : store_bad(c->fault, "inode %u is lost", inode);
	want = S_ISDIR(i->mode) ? names + c->below[inode] + 1 : names;
	if (inode == ARFS_ROOT)
		want = 2 + c->below[inode];
	if (i->nlink != want || i->kept || (!names && inode != ARFS_ROOT))
		return store_bad(c->fault, "inode %u has %u names and says %u", inode, want,
				 i->nlink);
	return 0;
}

static int inodes_check(struct check *c)
{
	uint32_t orphans, freed;
	int ret = 0;

	if (c->s.fresh_inode <= ARFS_ROOT || c->s.fresh_inode > c->s.inodes ||
	    c->s.trim >= c->s.inodes || !S_ISDIR(inode_at(c, ARFS_ROOT)->mode) ||
	    inode_at(c, ARFS_ROOT)->generation)
		return store_bad(c->fault, "its superblock or its root is wrong");
	for (uint32_t n = ARFS_ROOT; n < c->s.inodes && !ret; n++)
		ret = inode_check(c, n);
	if (!ret)
		ret = list_check(c, c->s.orphan, true, &orphans);
	for (uint32_t n = ARFS_ROOT; n < c->s.inodes && !ret; n++)
		ret = names_check(c, n);
	if (!ret)
		ret = list_check(c, c->s.free_inode, false, &freed);
	if (ret)
		return ret;
	if (c->s.free_inodes != c->s.inodes - 1 - c->used ||
	    c->s.free_inodes != c->s.inodes - c->s.fresh_inode + freed)
		return store_bad(c->fault, "%u inodes are used, and it says that %u are free",
				 c->used, c->s.free_inodes);
	return 0;
}

int store_check(const void *memory, size_t size, struct store_fault *fault)
{
	struct check c = { .memory = memory, .fault = fault };
	int ret = -ENOMEM;

	memcpy(&c.s, memory, sizeof(c.s));
	c.owned = calloc(c.s.blocks, 1);
	c.names = calloc(c.s.inodes, sizeof(*c.names));
	c.below = calloc(c.s.inodes, sizeof(*c.below));
	c.orphan = calloc(c.s.inodes, 1);
	if (c.owned && c.names && c.below && c.orphan) {
		ret = inodes_check(&c);
		if (!ret)
			ret = bitmap_check(&c);
	}
	free(c.owned);
	free(c.names);
	free(c.below);
	free(c.orphan);
	return ret;
}
