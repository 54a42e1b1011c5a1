/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_ENTRY_H
#define APPS_ARFS_ENTRY_H

/* What the server tells of files, as FUSE wants it. */

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include "ask.h"

static inline struct timespec entry_time(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

static inline void entry_stat(const struct arfs_attr *a, struct stat *to)
{
	*to = (struct stat){ .st_ino = (uint32_t)a->node,
			     .st_mode = a->mode,
			     .st_nlink = a->nlink,
			     .st_uid = a->uid,
			     .st_gid = a->gid,
			     .st_rdev = a->rdev,
			     .st_size = (off_t)a->size,
			     .st_blksize = ARFS_BLOCK,
			     .st_blocks = (blkcnt_t)a->blocks * (ARFS_BLOCK / 512),
			     .st_atim = entry_time(a->atime),
			     .st_mtim = entry_time(a->mtime),
			     .st_ctim = entry_time(a->ctime) };
}

/* The kernel may show it for @keep seconds without asking */
static inline struct fuse_entry_param entry_of(const struct arfs_attr *a, double keep)
{
	struct fuse_entry_param e = {
		.ino = a->node, .generation = 1, .attr_timeout = keep, .entry_timeout = keep
	};

	entry_stat(a, &e.attr);
	return e;
}

#endif
