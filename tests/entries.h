/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_ENTRIES_H
#define TESTS_ENTRIES_H

#include <dirent.h>

/* How many entries a folder has: of /proc/self/fd, whether descriptors are left over */
static inline int entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

#endif
