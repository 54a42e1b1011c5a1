/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of a connection, found as a program finds it that nobody has announced: in all files of
 * the runtime folder.
 */
#ifndef TESTS_STATES_H
#define TESTS_STATES_H

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stream/life/life.h"

static inline void states_folder(char *path, size_t size)
{
	const char *dir = getenv("WARPSOCK_RUNTIME_DIR");

	if (dir)
		snprintf(path, size, "%s", dir);
	else
		snprintf(path, size, "/dev/shm/warpsock-%u", geteuid());
}

/* The one in this file that is not closed; mapped for ever, or NULL */
static inline struct stream_state *states_in(const char *path, uint64_t cookie)
{
	const size_t len =
		sizeof(struct stream_slab_file) + STREAM_CELLS * sizeof(struct stream_state);
	int file = open(path, O_RDWR | O_CLOEXEC);
	struct stream_slab_file *slab =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	close(file);
	if (slab == MAP_FAILED)
		return NULL;
	for (uint32_t i = 0; i < slab->cells; i++)
		if (slab->used & 1ull << i && slab->cell[i].cookie == cookie &&
		    !base_load(&slab->cell[i].closer))
			return &slab->cell[i];
	munmap(slab, len);
	return NULL;
}

static inline struct stream_state *states_find(uint64_t cookie)
{
	struct stream_state *st = NULL;
	char path[4096], folder[1024];
	struct dirent *entry;
	DIR *dir;

	states_folder(folder, sizeof(folder));
	dir = opendir(folder);
	while (dir && !st && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (*entry->d_name == 's')
			st = states_in(path, cookie);
	}
	if (dir)
		closedir(dir);
	return st;
}

#endif
