/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_STORE_H
#define APPS_ARFS_STORE_H

/*
 * The store in the server's own hands, while no client is there: made, mapped, recovered and
 * checked. Nothing in it is trusted: clients could write to it. Calls return 0 or -errno.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

struct store {
	uint8_t *memory;
	size_t size;
	uint32_t undone; /* words that recovery put back */
};

/* Why a store is no good: one line */
struct store_fault {
	char text[160];
};

/* Fills @memory, zeros as yet, with an empty file system. -EINVAL: it is too small or too large */
int store_format(void *memory, size_t size, uint64_t id, uint32_t uid, uint32_t gid, uint64_t now);
/* A new backing file; -EEXIST: there is one */
int store_create(const char *path, uint64_t size);
/*
 * Maps it; nobody else may (-EBUSY). -EBADMSG: it is no file system. @reserve: the disk has room
 * for all of it from now on, also if the file was copied without its zeros; -ENOSPC
 */
int store_open(const char *path, bool reserve, struct store *out, struct store_fault *fault);
void store_close(struct store *s);
/* The superblock's numbers fit together and into @size bytes: 0, or -EBADMSG */
int store_super_check(const void *memory, size_t size, struct store_fault *fault);
/* Undoes the change that a kill left half done. store_super_check() was good. */
int store_recover(void *memory, size_t size, uint32_t *undone, struct store_fault *fault);
/* All of it: 0, -EBADMSG, or -ENOMEM. store_super_check() was good, and the undo log is empty. */
int store_check(const void *memory, size_t size, struct store_fault *fault);

#endif
