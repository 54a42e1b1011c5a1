/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptor helpers.
 *
 * Only raw system calls: these run in the progress thread and in critical sections of
 * intercepted calls, where libc's close, read and write lead back into the interposer and are
 * cancellation points. A flag is written only when it differs.
 */
#include "base/fdutil.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"

static int flag_set(int fd, int get, int set, long flag, bool on)
{
	long old = syscall(SYS_fcntl, fd, get, 0);
	long new = on ? old | flag : old & ~flag;

	if (old < 0)
		return -errno;
	if (new != old && syscall(SYS_fcntl, fd, set, new) < 0)
		return -errno;
	return 0;
}

int base_fd_set_nonblock(int fd, bool on)
{
	return flag_set(fd, F_GETFL, F_SETFL, O_NONBLOCK, on);
}

int base_fd_set_cloexec(int fd, bool on)
{
	return flag_set(fd, F_GETFD, F_SETFD, FD_CLOEXEC, on);
}

int base_eventfd_create(int *out)
{
	long fd = syscall(SYS_eventfd2, 0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	*out = (int)fd;
	return 0;
}

/* EAGAIN of a nonblocking eventfd means that it is already in the state asked for. */
static int eventfd_result(long n)
{
	return n < 0 && errno != EAGAIN ? -errno : 0;
}

int base_eventfd_notify(int fd)
{
	uint64_t one = 1;

	return eventfd_result(syscall(SYS_write, fd, &one, sizeof(one)));
}

int base_eventfd_drain(int fd)
{
	uint64_t count;

	return eventfd_result(syscall(SYS_read, fd, &count, sizeof(count)));
}

/*
 * Three quarters up: select() and tables by number stay small, and the limit is not hit at once.
 * Not where the limit is high: each fork() copies the table up to the highest number
 */
#define HIGH_LIMIT 4096u

int base_fd_dup_high(int fd)
{
	struct rlimit limit;
	long low = 768, got;
	int saved = errno, err;

	if (syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) == 0)
		low = (long)base_min(limit.rlim_cur, HIGH_LIMIT) / 4 * 3;
	got = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, low);
	if (got < 0)
		got = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0);
	err = errno;
	errno = saved;
	return got < 0 ? -err : (int)got;
}

/* Set before there are threads */
static int (*keeper_keep)(int fd);
static void (*keeper_drop)(int fd);

void base_fd_keeper(int (*keep)(int fd), void (*drop)(int fd))
{
	keeper_keep = keep;
	keeper_drop = drop;
}

int base_fd_keep(int fd)
{
	return keeper_keep && fd >= 0 ? keeper_keep(fd) : fd;
}

void base_fd_drop(int fd)
{
	if (keeper_drop && fd >= 0)
		keeper_drop(fd);
}

bool base_fd_is_open(int fd)
{
	int saved = errno;
	bool open = syscall(SYS_fcntl, fd, F_GETFD, 0) >= 0;

	errno = saved;
	return open;
}

void base_fd_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = saved;
}
