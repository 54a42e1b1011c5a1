/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the states of streams lie: their folder, their names, and what is left behind there.
 */
#ifndef STREAM_PLACE_H
#define STREAM_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/runfile.h"

/* A folder, and whose */
struct stream_place {
	const char *dir; /* as its user gave it, or empty; NULL: there is none */
	uid_t user;
};

/* The effective user's */
struct stream_place stream_place_of(const char *dir);
/* Is the folder fit? @make: makes it. 0, -errno */
int stream_place_prepare(struct stream_place place, bool make);
/* It was there, and is gone: what prepare() knew of it is forgotten, and it is made again */
void stream_place_lost(struct stream_place place);
/*
 * Was less than half of its memory used, some milliseconds ago, and are @room bytes at most the
 * user's share? That is a half of all, among those who have states in /dev/shm. 0, -ENOSPC, -errno
 */
int stream_place_room(struct stream_place place, size_t room);
/* The same, but for what is used of it. It may be that nobody has looked yet */
int stream_place_share(struct stream_place place, size_t room);
/* Was half of its memory used, or more, some milliseconds ago? */
bool stream_place_is_scarce(void);
/* -ENAMETOOLONG */
int stream_place_path(char path[BASE_RUNFILE_PATH], struct stream_place place, uint64_t cookie);
/* The same of a slab: its own name, by number */
int stream_place_slab(char path[BASE_RUNFILE_PATH], struct stream_place place, uint64_t number);
/*
 * Calls @fn with the path of each slab, until it says true: 1; else 0. -ENOMEM: not with all of
 * them
 */
int stream_place_slabs(struct stream_place place, bool (*fn)(const char *path, void *ctx),
		       void *ctx);
/* The same of a file that is no state */
int stream_place_file(char path[BASE_RUNFILE_PATH], struct stream_place place, const char *name);
/*
 * Removes states that nobody has who lives: those whose maker is dead, or that nobody has touched
 * for @age nanoseconds. How many; bounded.
 */
unsigned int stream_place_sweep(struct stream_place place, uint64_t age);
/* The same if this process has not done so for @pause nanoseconds. Has it removed any? */
bool stream_place_clean(struct stream_place place, uint64_t pause);
/*
 * This process is about to become another user, or to change its root, and comes to no folder more
 * but those that @stays says: the names of all files that it has there go, whoever else has them.
 * Connections go on; other programs have them by a relay.
 */
void stream_names_drop(bool (*stays)(struct stream_place place, const void *ctx), const void *ctx);
/* Is the folder the same one behind chroot(@root)? */
bool stream_place_is_under(struct stream_place place, const char *root);
/*
 * May the file of connections that are no more be kept for new ones? Off where the program ends, or
 * another one follows
 */
void stream_spare_allow(bool on);
/*
 * Is there memory for one connection more with @ring (0: as it is without a wish)? It is taken now,
 * without a name, where there is none: 0, -errno
 */
int stream_memory_ask(uint32_t ring);

#endif
