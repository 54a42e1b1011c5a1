/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_ASK_H
#define APPS_ARFS_ASK_H

/* What clients and ARFS's programs say to one another. */

#include "layout.h"

enum {
	ARFS_DATA_MAX = 12288, /* of one write */
	ARFS_READ_MAX = 65536, /* of one read by a program */
	ARFS_LIST_MAX = 32768, /* of one answer of readdir */
};

enum arfs_flag {
	ARFS_LOCKED = 1,     /* a read that takes the lock, for others change too much */
	ARFS_EXCLUSIVE = 2,  /* create: there must be none */
	ARFS_APPEND = 4,     /* write at the end */
	ARFS_KEEP = 8,	     /* a file that loses its last name stays until it is released */
	ARFS_NOREPLACE = 16, /* rename: there must be none */
	ARFS_EXCHANGE = 32,  /* rename: both exist, and change places */
	ARFS_REAP_ALL = 64,  /* mend: release all that have no name */
	ARFS_PLUS = 128,     /* readdir: with attributes */
};

enum arfs_set {
	ARFS_SET_MODE = 1,
	ARFS_SET_UID = 2,
	ARFS_SET_GID = 4,
	ARFS_SET_SIZE = 8,
	ARFS_SET_ATIME = 16,
	ARFS_SET_MTIME = 32,
};

/* Arguments of all programs; two names, or what is written, stand behind them */
struct arfs_ask {
	uint64_t node, other; /* a directory or file, and the second one of rename and link */
	uint64_t now;	      /* programs have no clock */
	uint64_t offset, size;
	uint64_t atime, mtime;
	uint32_t mode, uid, gid, rdev;
	uint32_t flags, set;
	uint32_t name_len, other_len;
};

struct arfs_attr {
	uint64_t node;
	uint32_t mode, nlink, uid, gid, rdev, blocks;
	uint64_t size, atime, mtime, ctime;
};

/* The answer of what changes names: the new file, and one that lost its last name, or 0 */
struct arfs_changed {
	struct arfs_attr attr;
	uint64_t orphan;
};

/* What write answers */
struct arfs_written {
	uint64_t offset, size; /* where it went, and the file's size now */
};

/*
 * One of a directory's, in the answer of readdir; the next begins at a multiple of 8. With
 * ARFS_PLUS a struct arfs_attr stands before each, whose mode is 0 if nothing is known
 */
struct arfs_listed {
	uint64_t inode, next; /* next: where to go on behind it */
	uint32_t type, name_len;
	char name[];
};

/* The longest one */
enum { ARFS_LISTED_MAX = (24 + 255 + 7) & ~7 };

struct arfs_space {
	uint64_t id;
	uint32_t blocks, free_blocks, inodes, free_inodes;
};

#endif
