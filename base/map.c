/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mappings, by raw system calls, which leave the program's malloc and errno alone.
 */
#include "base/map.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int map(size_t len, int flags, void **out)
{
	int saved = errno;
	long p = syscall(SYS_mmap, NULL, len, PROT_READ | PROT_WRITE,
			 flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err = p == -1 ? -errno : 0;

	errno = saved;
	if (!err)
		*out = (void *)(uintptr_t)p;
	return err;
}

int base_map_create(size_t len, void **out)
{
	return map(len, MAP_PRIVATE, out);
}

int base_map_create_shared(size_t len, void **out)
{
	return map(len, MAP_SHARED, out);
}

void base_map_destroy(void *p, size_t len)
{
	int saved = errno;

	if (p)
		syscall(SYS_munmap, p, len);
	errno = saved;
}
