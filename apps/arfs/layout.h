/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_LAYOUT_H
#define APPS_ARFS_LAYOUT_H

/*
 * ARFS in its backing file: the superblock, the undo log, the bitmap of blocks, the inodes, and the
 * blocks of files. docs/arfs.md has the drawing. Numbers are little-endian.
 *
 * A change writes each word of 8 bytes that it changes, as it was before, to the undo log first.
 * The change is done when the log is empty again, and undone as long as it is not. What a word of
 * the structure does not reach yet (a new block, a name behind the end of its entry) needs no log.
 */

#include <stdint.h>

#define ARFS_MAGIC 0x3153465241776172ull /* "rawARFS1" */

enum {
	ARFS_VERSION = 1,
	ARFS_BLOCK = 4096,
	ARFS_PER_BLOCK = ARFS_BLOCK / 4, /* block numbers in a block of them */
	ARFS_DIRECT = 12,
	ARFS_ROOT = 1, /* the inode; number 0 is none */
	ARFS_NAME_MAX = 255,
	ARFS_TARGET_MAX = 4095, /* of a symbolic link */
	ARFS_LINK_MAX = 65000,
	ARFS_DEPTH_MAX = 1 << 16, /* of directories in one another */
	ARFS_UNDO_BLOCKS = 16,
	ARFS_UNDO_MAX = ARFS_UNDO_BLOCKS * ARFS_BLOCK / 16,
	ARFS_BLOCKS_MIN = 64,
	ARFS_BLOCKS_PER_INODE = 2,
};

/* Blocks of the largest file */
#define ARFS_FILE_BLOCKS (ARFS_DIRECT + ARFS_PER_BLOCK + (uint64_t)ARFS_PER_BLOCK * ARFS_PER_BLOCK)

/* In block 0 */
struct arfs_super {
	uint64_t magic;
	uint32_t version, block;
	uint64_t id; /* of this file system: random */
	/* Counts, and numbers of blocks; they never change */
	uint32_t blocks, inodes;
	uint32_t undo_at, bitmap_at, inodes_at, data_at;
	/* From here on all changes, under the region's lock */
	uint64_t seq;  /* odd: a change is under way */
	uint64_t undo; /* entries of the undo log */
	uint32_t free_blocks, free_inodes;
	uint32_t free_inode;  /* the first of a list, or 0 */
	uint32_t fresh_inode; /* from here on inodes were never used */
	uint32_t next_block;  /* where to look for a free one; a guess, not in the log */
	uint32_t orphan;      /* the first of a list of inodes without a name, or 0 */
	uint32_t trim;	      /* an inode that has blocks behind its end, or 0 */
	uint32_t pad;
};

struct arfs_undo {
	uint64_t at, was; /* offset of a word, and what it was */
};

/* The mode is 0 in one that is not used */
struct arfs_inode {
	uint32_t mode, nlink, uid, gid;
	uint64_t size;
	uint64_t atime, mtime, ctime; /* nanoseconds since 1970 */
	uint32_t generation, rdev;    /* generation: one more when it is used again */
	uint32_t blocks, parent;      /* blocks of its own; of a directory: the one above it */
	uint32_t direct[ARFS_DIRECT];
	uint32_t indirect, twice; /* a block of numbers, and a block of numbers of such blocks */
	uint32_t next;		  /* in the list of free ones, or of orphans */
	uint32_t kept;		  /* 1: it is in the list of orphans */
};

/* In a directory's blocks, one behind the other; the lengths of a block's entries add up to it */
struct arfs_entry {
	uint32_t inode; /* 0: none */
	uint32_t hash;
	uint16_t length; /* up to the next entry: a multiple of 8 */
	uint8_t name_len, type;
	uint32_t pad;
	char name[];
};

_Static_assert(sizeof(struct arfs_super) == 96, "words are where the format has them");
_Static_assert(sizeof(struct arfs_inode) == 128, "32 in a block");
_Static_assert(sizeof(struct arfs_entry) == 16, "two words before the name");

enum { ARFS_INODES_PER_BLOCK = ARFS_BLOCK / 128 };

/* A file as clients name it: its inode, and which use of that, so that a later use is another */
static inline uint64_t arfs_node(uint32_t inode, uint32_t generation)
{
	return (uint64_t)generation << 32 | inode;
}

static inline uint32_t arfs_entry_length(uint32_t name_len)
{
	return (16 + name_len + 7) & ~7u;
}

static inline uint32_t arfs_hash(const char *name, uint32_t len)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619u;
	return h;
}

#endif
