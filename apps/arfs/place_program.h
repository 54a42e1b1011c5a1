/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_PLACE_PROGRAM_H
#define APPS_ARFS_PLACE_PROGRAM_H

/*
 * The store by pointers, for programs. The server checks each access, so a number that leads out
 * of the region ends the run, and whoever takes the lock next undoes what the run had changed.
 */

#include <warp/active_bpf.h>

#include "read_code.h"

struct arfs_place {
	unsigned long base;
	unsigned int plus; /* attributes are listed, too */
};

static inline const void *arfs_see(struct arfs_place *p, enum arfs_slot slot, uint64_t offset,
				   uint32_t len)
{
	return (const void *)(p->base + offset);
}

/* There is nothing at address 0 */
static inline int arfs_error(const struct arfs_place *p)
{
	return ARFS_DAMAGED;
}

static inline int arfs_same(const char *a, const char *b, uint32_t len)
{
	return !warp_compare(a, b, len);
}

static inline struct arfs_super *arfs_super(const struct arfs_place *p)
{
	return (struct arfs_super *)p->base;
}

static inline uint64_t arfs_inodes_at(const struct arfs_place *p)
{
	return (uint64_t)arfs_super(p)->inodes_at * ARFS_BLOCK;
}

static inline uint32_t arfs_inodes(const struct arfs_place *p)
{
	return arfs_super(p)->inodes;
}

static inline struct arfs_inode *arfs_inode(const struct arfs_place *p, uint32_t inode)
{
	return (struct arfs_inode *)(p->base + arfs_inode_offset(p, inode));
}

static inline long arfs_attr_list(struct arfs_place *p, uint64_t inode)
{
	struct arfs_attr attr = { 0 };

	if (!p->plus)
		return 0;
	if (inode < arfs_inodes(p))
		arfs_attr_of(arfs_inode(p, (uint32_t)inode), (uint32_t)inode, &attr);
	return warp_output(&attr, sizeof(attr));
}

static inline int arfs_list_give(struct arfs_place *p, const struct arfs_listed *head,
				 const char *name)
{
	unsigned long zero = 0, pad = -head->name_len & 7u;

	/* All or nothing: a client reads no half entry */
	if (arfs_attr_list(p, head->inode) < 0 || warp_output(head, sizeof(*head)) < 0 ||
	    warp_output(name, head->name_len) < 0 || warp_output(&zero, pad) < 0)
		return -1;
	return 0;
}

#endif
