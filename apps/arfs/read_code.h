/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_READ_CODE_H
#define APPS_ARFS_READ_CODE_H

/*
 * What only looks at the file system, for programs and for clients that read one-sided: both have
 * an arfs_see() of their own. Anything may stand in the store. The reader compares the superblock's
 * seq before and behind; what it found between two that are equal and even is good.
 */

#include "errors.h"

#include "ask.h"

enum { ARFS_TYPE = 0170000, ARFS_DIR = 0040000, ARFS_FILE = 0100000, ARFS_SYMLINK = 0120000 };
enum { ARFS_DAMAGED = -EUCLEAN };

/* What a reader looks at, at once: each has a copy of its own at a client */
enum arfs_slot { ARFS_SLOT_SUPER, ARFS_SLOT_INODE, ARFS_SLOT_NUMBER, ARFS_SLOT_BLOCK };

struct arfs_place;

/* @len bytes at @offset; NULL: they cannot be read, *error says why */
static inline const void *arfs_see(struct arfs_place *p, enum arfs_slot slot, uint64_t offset,
				   uint32_t len);
static inline int arfs_error(const struct arfs_place *p);
static inline int arfs_same(const char *a, const char *b, uint32_t len);
/* Where the inodes begin, and how many there are */
static inline uint64_t arfs_inodes_at(const struct arfs_place *p);
static inline uint32_t arfs_inodes(const struct arfs_place *p);

/* An entry that was looked for */
struct arfs_found {
	uint64_t at;	 /* its offset */
	uint64_t before; /* of the entry before it in its block, or 0 */
	uint32_t inode, type;
};

static inline uint64_t arfs_inode_offset(const struct arfs_place *p, uint32_t inode)
{
	return arfs_inodes_at(p) + (uint64_t)inode * sizeof(struct arfs_inode);
}

static inline int arfs_inode_see(struct arfs_place *p, uint64_t node, const struct arfs_inode **out)
{
	uint32_t inode = (uint32_t)node;
	const struct arfs_inode *i;

	if (!inode || inode >= arfs_inodes(p))
		return -ESTALE;
	i = (const struct arfs_inode *)arfs_see(p, ARFS_SLOT_INODE, arfs_inode_offset(p, inode),
						sizeof(*i));
	if (!i)
		return arfs_error(p);
	if (!i->mode || i->generation != (uint32_t)(node >> 32))
		return -ESTALE;
	*out = i;
	return 0;
}

static inline int arfs_dir_see(struct arfs_place *p, uint64_t node, const struct arfs_inode **out)
{
	int ret = arfs_inode_see(p, node, out);

	return ret ? ret : ((*out)->mode & ARFS_TYPE) == ARFS_DIR ? 0 : -ENOTDIR;
}

static inline void arfs_attr_of(const struct arfs_inode *i, uint32_t inode, struct arfs_attr *to)
{
	to->node = arfs_node(inode, i->generation);
	to->mode = i->mode;
	to->nlink = i->nlink;
	to->uid = i->uid;
	to->gid = i->gid;
	to->rdev = i->rdev;
	to->blocks = i->blocks;
	to->size = i->size;
	to->atime = i->atime;
	to->mtime = i->mtime;
	to->ctime = i->ctime;
}

/* A number out of a block of numbers; 0 in, 0 out */
static inline int arfs_number(struct arfs_place *p, uint32_t block, uint32_t index, uint32_t *out)
{
	const uint32_t *at;

	*out = 0;
	if (!block)
		return 0;
	at = (const uint32_t *)arfs_see(p, ARFS_SLOT_NUMBER,
					(uint64_t)block * ARFS_BLOCK + index * 4, 4);
	if (!at)
		return arfs_error(p);
	*out = *at;
	return 0;
}

/* The block that is number @index of a file; 0: a hole */
static inline int arfs_map(struct arfs_place *p, const struct arfs_inode *i, uint64_t index,
			   uint32_t *block)
{
	int ret;

	*block = 0;
	if (index < ARFS_DIRECT) {
		*block = i->direct[index];
		return 0;
	}
	index -= ARFS_DIRECT;
	if (index < ARFS_PER_BLOCK)
		return arfs_number(p, i->indirect, (uint32_t)index, block);
	index -= ARFS_PER_BLOCK;
	if (index >= (uint64_t)ARFS_PER_BLOCK * ARFS_PER_BLOCK)
		return 0;
	ret = arfs_number(p, i->twice, (uint32_t)(index / ARFS_PER_BLOCK), block);
	return ret ? ret : arfs_number(p, *block, (uint32_t)(index % ARFS_PER_BLOCK), block);
}

/* The entry at @at of a block that ends at @end has a length that it can have */
static inline int arfs_entry_good(const struct arfs_entry *e, uint32_t at)
{
	return e->length >= sizeof(*e) && e->length % 8 == 0 && at + e->length <= ARFS_BLOCK &&
	       (!e->inode || sizeof(*e) + e->name_len <= e->length);
}

/* In one block of a directory, at @offset: 1 found, 0 not there */
static inline int arfs_block_find(struct arfs_place *p, uint64_t offset, const char *name,
				  uint32_t len, struct arfs_found *out)
{
	const char *block = (const char *)arfs_see(p, ARFS_SLOT_BLOCK, offset, ARFS_BLOCK);
	uint32_t hash = arfs_hash(name, len), before = 0, at = 0;

	if (!block)
		return arfs_error(p);
	while (at < ARFS_BLOCK) {
		const struct arfs_entry *e = (const struct arfs_entry *)(const void *)(block + at);

		if (!arfs_entry_good(e, at))
			return ARFS_DAMAGED;
		if (e->inode && e->hash == hash && e->name_len == len &&
		    arfs_same(e->name, name, len)) {
			out->at = offset + at;
			out->before = at ? offset + before : 0;
			out->inode = e->inode;
			out->type = e->type;
			return 1;
		}
		before = at;
		at += e->length;
	}
	return 0;
}

/* In the directory @i: 0, or -ENOENT */
static inline int arfs_dir_find(struct arfs_place *p, const struct arfs_inode *i, const char *name,
				uint32_t len, struct arfs_found *out)
{
	uint64_t blocks = i->size / ARFS_BLOCK;

	for (uint64_t n = 0; n < blocks; n++) {
		uint32_t block;
		int ret = arfs_map(p, i, n, &block);

		if (!ret && !block)
			ret = ARFS_DAMAGED;
		if (!ret)
			ret = arfs_block_find(p, (uint64_t)block * ARFS_BLOCK, name, len, out);
		if (ret)
			return ret < 0 ? ret : 0;
	}
	return -ENOENT;
}

/* What one name of a directory stands for */
static inline int arfs_lookup(struct arfs_place *p, uint64_t dir, const char *name, uint32_t len,
			      struct arfs_attr *out)
{
	const struct arfs_inode *i;
	struct arfs_found found = { 0 };
	int ret = arfs_dir_see(p, dir, &i);

	if (!ret)
		ret = arfs_dir_find(p, i, name, len, &found);
	if (ret)
		return ret;
	if (found.inode >= arfs_inodes(p))
		return ARFS_DAMAGED;
	i = (const struct arfs_inode *)arfs_see(p, ARFS_SLOT_INODE,
						arfs_inode_offset(p, found.inode), sizeof(*i));
	if (!i)
		return arfs_error(p);
	if (!i->mode)
		return ARFS_DAMAGED;
	arfs_attr_of(i, found.inode, out);
	return 0;
}

static inline int arfs_getattr(struct arfs_place *p, uint64_t node, struct arfs_attr *out)
{
	const struct arfs_inode *i;
	int ret = arfs_inode_see(p, node, &i);

	if (!ret)
		arfs_attr_of(i, (uint32_t)node, out);
	return ret;
}

/* What is listed goes here: 0, or a negative number when there is no room for it */
static inline int arfs_list_give(struct arfs_place *p, const struct arfs_listed *head,
				 const char *name);

/* The entries of one block from offset @from of the directory on: 1 when there is no more room */
static inline int arfs_block_list(struct arfs_place *p, uint32_t number, uint64_t base,
				  uint64_t from)
{
	const char *block = (const char *)arfs_see(p, ARFS_SLOT_BLOCK,
						   (uint64_t)number * ARFS_BLOCK, ARFS_BLOCK);
	uint32_t at = 0;

	if (!block)
		return arfs_error(p);
	while (at < ARFS_BLOCK) {
		const struct arfs_entry *e = (const struct arfs_entry *)(const void *)(block + at);
		struct arfs_listed head;

		if (!arfs_entry_good(e, at))
			return ARFS_DAMAGED;
		head.inode = e->inode;
		head.next = base + at + e->length;
		head.type = e->type;
		head.name_len = e->name_len;
		if (e->inode && base + at >= from && arfs_list_give(p, &head, e->name))
			return 1;
		at += e->length;
	}
	return 0;
}

/* An entry that is removed joins the one before it, so offsets stay good */
static inline int arfs_list(struct arfs_place *p, uint64_t dir, uint64_t from)
{
	const struct arfs_inode *i;
	int ret = arfs_dir_see(p, dir, &i);
	uint64_t blocks = ret ? 0 : i->size / ARFS_BLOCK;

	for (uint64_t n = from / ARFS_BLOCK; n < blocks && !ret; n++) {
		uint32_t block;

		ret = arfs_map(p, i, n, &block);
		if (!ret && !block)
			ret = ARFS_DAMAGED;
		if (!ret)
			ret = arfs_block_list(p, block, n * ARFS_BLOCK, from);
	}
	return ret > 0 ? 0 : ret;
}

#endif
