/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that use io_uring.
 *
 * A ring that a program makes by libc's syscall() or by the shared liburing is refused
 * (preload/calls/limit.c), or noted where it is allowed. A program that has liburing's code inside
 * makes its system calls by itself, for the ring's memory, too, so there is no name to take. But a
 * ring has a descriptor, and is mostly made when a program begins, so that its number is a low one.
 * Those are looked at when connections begin, ten times a second at most, until one is found.
 *
 * A look asks once which of the numbers are open, by a poll() that waits for nothing. Of those that
 * are and are not ours it asks what kind of file each is. Few are of none, and only of those /proc
 * has to say more, which takes the kernel as long as a hundred others. To ask the ring itself, by
 * io_uring_enter(), would be cheaper still; but there are sandboxes that end the process for that.
 */
#include "preload/guard/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sockutil.h"
#include "preload/table/fdtab.h"

#define NUMBERS 256
#define RINGS_REFRESH (100 * BASE_NS_PER_MS)

static bool used;	   /* atomic */
static uint64_t look_next; /* atomic */

/* Of the kernel's own kinds, which have no name */
static bool is_nameless(int fd)
{
	struct stat st;

	return !syscall(SYS_fstat, fd, &st) && !(st.st_mode & S_IFMT);
}

static bool is_ring(int fd)
{
	static const char ring[] = "anon_inode:[io_uring]";
	char path[32], target[sizeof(ring)];
	long n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = syscall(SYS_readlinkat, AT_FDCWD, path, target, sizeof(target));
	return n == sizeof(ring) - 1 && !memcmp(target, ring, sizeof(ring) - 1);
}

/* The numbers that may be a ring's, into @fds: how many */
static unsigned int numbers_list(struct pollfd fds[NUMBERS])
{
	unsigned int n = 0;

	for (int fd = 0; fd < NUMBERS; fd++)
		if (!fdtab_is_ours(fd))
			fds[n++] = (struct pollfd){ .fd = fd };
	return n;
}

static bool any_ring(void)
{
	struct pollfd fds[NUMBERS];
	unsigned int n = numbers_list(fds);
	/* Where it fails nothing is known to be closed */
	int saved = errno, got = base_poll(fds, n, 0);
	bool found = false;

	for (unsigned int i = 0; i < n && !found; i++)
		found = (got < 0 || !(fds[i].revents & POLLNVAL)) && is_nameless(fds[i].fd) &&
			is_ring(fds[i].fd);
	errno = saved;
	return found;
}

bool uring_used(void)
{
	uint64_t now, next;

	if (__atomic_load_n(&used, __ATOMIC_RELAXED))
		return true;
	now = base_now();
	next = __atomic_load_n(&look_next, __ATOMIC_RELAXED);
	if (!base_deadline_passed(next, now) ||
	    !__atomic_compare_exchange_n(&look_next, &next, base_deadline(now, RINGS_REFRESH),
					 false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	if (any_ring())
		__atomic_store_n(&used, true, __ATOMIC_RELAXED);
	return __atomic_load_n(&used, __ATOMIC_RELAXED);
}

void uring_note(void)
{
	__atomic_store_n(&used, true, __ATOMIC_RELAXED);
}
