/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mappings, by raw system calls, which leave the program's malloc and errno alone.
 */
#include "base/map.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/point.h"

/* ThreadSanitizer has to know when memory changes hands, or a new owner races with the old one */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_WATCHED 1
#endif
#endif

#ifdef IS_WATCHED
#define memory_get mmap
#define memory_put munmap
#else
static void *memory_get(void *at, size_t len, int prot, int flags, int fd, off_t offset)
{
	return (void *)(uintptr_t)syscall(SYS_mmap, at, len, prot, flags, fd, offset);
}

static int memory_put(void *p, size_t len)
{
	return (int)syscall(SYS_munmap, p, len);
}
#endif

static int map_as(size_t len, int prot, int flags, int fd, void **out)
{
	int saved = errno;
	void *p = memory_get(NULL, len, prot, flags | MAP_NORESERVE, fd, 0);
	int err = p == MAP_FAILED ? -errno : 0;

	errno = saved;
	if (!err)
		*out = p;
	return err;
}

/* Where there is a limit, it is tried */
bool base_map_allows(size_t len)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	int saved = errno;
	void *p;

	syscall(SYS_prlimit64, 0, RLIMIT_AS, NULL, &limit);
	errno = saved;
	if (limit.rlim_cur == RLIM_INFINITY)
		return true;
	if (map_as(len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, &p))
		return false;
	base_map_destroy(p, len);
	return true;
}

static int map(size_t len, int flags, int fd, void **out)
{
	return map_as(len, PROT_READ | PROT_WRITE, flags, fd, out);
}

/*
 * After mlockall(MCL_FUTURE) the kernel fills a mapping that may be read at once: all of what is
 * mostly never touched
 */
static int map_sparse(size_t len, int flags, int fd, void **out)
{
	int saved, err = map_as(len, PROT_NONE, flags, fd, out);

	if (err)
		return err;
	saved = errno;
	syscall(SYS_munlock, *out, len);
	if (syscall(SYS_mprotect, *out, len, PROT_READ | PROT_WRITE))
		err = -errno;
	errno = saved;
	if (err)
		base_map_destroy(*out, len);
	return err;
}

int base_map_create(size_t len, void **out)
{
	return BASE_FAILS(map) ? -ENOMEM : map(len, MAP_PRIVATE | MAP_ANONYMOUS, -1, out);
}

int base_map_create_shared(size_t len, void **out)
{
	return BASE_FAILS(map_shared) ? -ENOMEM : map(len, MAP_SHARED | MAP_ANONYMOUS, -1, out);
}

int base_map_create_sparse(size_t len, void **out)
{
	return BASE_FAILS(map_shared) ? -ENOMEM
				      : map_sparse(len, MAP_SHARED | MAP_ANONYMOUS, -1, out);
}

int base_map_create_file(int fd, size_t len, void **out)
{
	return BASE_FAILS(map_file) ? -ENOMEM : map_sparse(len, MAP_SHARED, fd, out);
}

void base_map_destroy(void *p, size_t len)
{
	int saved = errno;

	if (p)
		memory_put(p, len);
	errno = saved;
}
