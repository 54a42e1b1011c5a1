/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_FILE_CODE_H
#define APPS_ARFS_FILE_CODE_H

/* What is in files, and what is known of them: reads, and changes under the lock. */

#include "name_code.h"

/* --- data --- */

/* Zeros for a hole */
static inline long arfs_hole_give(uint64_t len)
{
	static const char zeros[512];
	long ret = 0;

	for (uint64_t n; len && ret >= 0; len -= n) {
		n = len < sizeof(zeros) ? len : sizeof(zeros);
		ret = warp_output(zeros, n);
	}
	return ret;
}

/* To the output: how many bytes, or an error */
ARFS_FAR long arfs_read(struct arfs_place *p, uint64_t node, uint64_t offset, uint64_t len)
{
	const struct arfs_inode *i;
	int ret = arfs_inode_see(p, node, &i);
	uint64_t size = ret ? 0 : i->size, at = offset, end;

	if (ret)
		return ret;
	if (arfs_is_dir(i))
		return -EISDIR;
	if (offset >= size)
		return 0;
	end = len < size - offset ? offset + len : size;
	while (at < end) {
		uint64_t in = at % ARFS_BLOCK, n = ARFS_BLOCK - in;
		uint32_t block;

		n = n < end - at ? n : end - at;
		ret = arfs_map(p, i, at / ARFS_BLOCK, &block);
		if (ret)
			return ret;
		if ((block ? warp_output((char *)arfs_block(p, block) + in, n)
			   : arfs_hole_give(n)) < 0)
			return -EINVAL;
		at += n;
	}
	return (long)(end - offset);
}

/* Behind the end a block may have anything: zeros, before the end goes from @size to @end */
static inline int arfs_tail_clear(struct arfs_place *p, const struct arfs_inode *i, uint64_t end)
{
	uint64_t in = i->size % ARFS_BLOCK, room = ARFS_BLOCK - in;
	uint32_t block;
	int ret;

	if (end <= i->size || !in)
		return 0;
	ret = arfs_map(p, i, i->size / ARFS_BLOCK, &block);
	if (ret || !block)
		return ret;
	warp_fill((char *)arfs_block(p, block) + in, 0,
		  room < end - i->size ? room : end - i->size);
	return 0;
}

static inline int arfs_data_put(struct arfs_place *p, struct arfs_inode *i, uint64_t offset,
				const char *from, uint64_t len)
{
	int ret = 0;

	for (uint64_t done = 0, n; done < len && !ret; done += n) {
		uint64_t in = (offset + done) % ARFS_BLOCK;
		uint32_t block = 0;

		n = ARFS_BLOCK - in < len - done ? ARFS_BLOCK - in : len - done;
		ret = arfs_map_make(p, i, (offset + done) / ARFS_BLOCK, &block);
		if (!ret)
			warp_copy((char *)arfs_block(p, block) + in, from + done, n);
	}
	return ret;
}

/* All or nothing of what the log holds: a block that was there has the new data in any case */
ARFS_FAR int arfs_write(struct arfs_place *p, const struct arfs_ask *ask, struct arfs_written *out)
{
	const struct arfs_inode *seen;
	struct arfs_inode *i;
	uint64_t offset = ask->offset;
	int ret = arfs_inode_see(p, ask->node, &seen);

	if (ret)
		return ret;
	i = (struct arfs_inode *)seen;
	if ((i->mode & ARFS_TYPE) != ARFS_FILE)
		return -EINVAL;
	if (ask->flags & ARFS_APPEND)
		offset = i->size;
	if (offset > ARFS_FILE_BLOCKS * ARFS_BLOCK - ARFS_DATA_MAX || ask->size > ARFS_DATA_MAX)
		return -EFBIG;
	ret = arfs_tail_clear(p, i, offset);
	if (!ret)
		ret = arfs_data_put(p, i, offset, arfs_name(ask), ask->size);
	if (ret)
		return ret;
	if (offset + ask->size > i->size)
		ARFS_SET(p, i->size, offset + ask->size);
	arfs_touch(p, i, ask->now);
	out->offset = offset;
	out->size = i->size;
	return 0;
}

/* --- attributes --- */

/* What is behind the new end is freed behind this change */
static inline int arfs_size_set(struct arfs_place *p, struct arfs_inode *i,
				const struct arfs_ask *ask)
{
	struct arfs_super *s = arfs_super(p);
	int ret;

	if (arfs_is_dir(i))
		return -EISDIR;
	if ((i->mode & ARFS_TYPE) != ARFS_FILE)
		return -EINVAL;
	if (ask->size > ARFS_FILE_BLOCKS * ARFS_BLOCK)
		return -EFBIG;
	ret = arfs_tail_clear(p, i, ask->size);
	if (ret)
		return ret;
	if (ask->size < i->size)
		ARFS_SET(p, s->trim, (uint32_t)ask->node);
	ARFS_SET(p, i->size, ask->size);
	arfs_touch(p, i, ask->now);
	return 0;
}

ARFS_FAR int arfs_setattr(struct arfs_place *p, const struct arfs_ask *ask,
			  struct arfs_changed *out)
{
	const struct arfs_inode *seen;
	struct arfs_inode *i;
	int ret = arfs_inode_see(p, ask->node, &seen);

	if (ret)
		return ret;
	i = (struct arfs_inode *)seen;
	if (ask->set & ARFS_SET_SIZE)
		ret = arfs_size_set(p, i, ask);
	if (ret)
		return ret;
	if (ask->set & ARFS_SET_MODE)
		ARFS_SET(p, i->mode, (i->mode & ARFS_TYPE) | (ask->mode & 07777));
	if (ask->set & ARFS_SET_UID)
		ARFS_SET(p, i->uid, ask->uid);
	if (ask->set & ARFS_SET_GID)
		ARFS_SET(p, i->gid, ask->gid);
	if (ask->set & ARFS_SET_ATIME)
		ARFS_SET(p, i->atime, ask->atime);
	if (ask->set & ARFS_SET_MTIME)
		ARFS_SET(p, i->mtime, ask->mtime);
	ARFS_SET(p, i->ctime, ask->now);
	arfs_attr_of(i, (uint32_t)ask->node, &out->attr);
	return 0;
}

/* --- files without a name --- */

/* Takes @inode out of the list of orphans, for arfs_trim(): 0, or -ENOENT */
ARFS_FAR int arfs_orphan_take(struct arfs_place *p, uint32_t inode)
{
	struct arfs_super *s = arfs_super(p);
	struct arfs_inode *i = arfs_inode(p, inode);
	uint32_t *at = &s->orphan;

	for (uint32_t n = s->inodes; n && *at && *at != inode; n--) {
		if (*at >= s->inodes)
			return ARFS_DAMAGED;
		at = &arfs_inode(p, *at)->next;
	}
	if (*at != inode || !inode)
		return -ENOENT;
	if (!i->mode || !i->kept)
		return ARFS_DAMAGED;
	ARFS_SET(p, *at, i->next);
	ARFS_SET(p, i->kept, 0);
	ARFS_SET(p, i->size, 0);
	ARFS_SET(p, s->trim, inode);
	return 0;
}

/* The last one of this client has closed it */
ARFS_FAR int arfs_release(struct arfs_place *p, const struct arfs_ask *ask)
{
	const struct arfs_inode *i;
	int ret = arfs_inode_see(p, ask->node, &i);

	if (ret || i->nlink)
		return ret;
	return arfs_orphan_take(p, (uint32_t)ask->node);
}

#endif
