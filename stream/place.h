/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the states of streams lie: their folder, their names, and what is left behind there.
 */
#ifndef STREAM_PLACE_H
#define STREAM_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/runfile.h"

/* Is the folder fit? @make: makes it, and clears it once of what the dead have left. 0, -errno */
int stream_place_prepare(const char *dir, bool make);
/* It was there, and is gone: what prepare() knew of it is forgotten, and it is made again */
void stream_place_lost(const char *dir);
/* Has it room for so many bytes? 0, -ENOSPC, -errno */
int stream_place_room(const char *dir, size_t room);
/* -ENAMETOOLONG */
int stream_place_path(char path[BASE_RUNFILE_PATH], const char *dir, uint64_t cookie);
/* The same of a file that is no state */
int stream_place_file(char path[BASE_RUNFILE_PATH], const char *dir, const char *name);
/*
 * Removes states that nobody has who lives, and that nobody has touched for @age nanoseconds:
 * how many. Bounded.
 */
unsigned int stream_place_sweep(const char *dir, uint64_t age);

#endif
