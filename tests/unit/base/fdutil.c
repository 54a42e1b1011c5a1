/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptor helpers, judged by what libc and the kernel say of the descriptor afterwards.
 */
#include "base/fdutil.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

static bool readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLIN);
}

Test(fdutil, nonblock_keeps_other_flags)
{
	int fd = open("/dev/null", O_WRONLY | O_APPEND);

	cr_assert_eq(base_fd_set_nonblock(fd, true), 0);
	cr_assert_eq(fcntl(fd, F_GETFL) & (O_NONBLOCK | O_APPEND), O_NONBLOCK | O_APPEND);
	cr_assert_eq(base_fd_set_nonblock(fd, false), 0);
	cr_assert_eq(fcntl(fd, F_GETFL) & (O_NONBLOCK | O_APPEND), O_APPEND);
}

Test(fdutil, cloexec_on_and_off)
{
	int fd = open("/dev/null", O_WRONLY);

	cr_assert_eq(base_fd_set_cloexec(fd, true), 0);
	cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(base_fd_set_cloexec(fd, false), 0);
	cr_assert_eq(fcntl(fd, F_GETFD), 0);
}

Test(fdutil, bad_descriptor_is_ebadf)
{
	cr_expect_eq(base_fd_set_nonblock(-1, true), -EBADF);
	cr_expect_eq(base_fd_set_cloexec(-1, true), -EBADF);
	cr_expect_eq(base_eventfd_notify(-1), -EBADF);
	cr_expect_eq(base_eventfd_drain(-1), -EBADF);
}

Test(fdutil, eventfd_rings_and_drains)
{
	int fd = -1;

	cr_assert_eq(base_eventfd_create(&fd), 0);
	cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	cr_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
	cr_assert_not(readable(fd));
	cr_assert_eq(base_eventfd_drain(fd), 0);
	cr_assert_eq(base_eventfd_notify(fd), 0);
	cr_assert_eq(base_eventfd_notify(fd), 0);
	cr_assert(readable(fd));
	cr_assert_eq(base_eventfd_drain(fd), 0);
	cr_assert_not(readable(fd));
	base_fd_close(fd);
}

Test(fdutil, ring_of_a_full_eventfd_is_no_error)
{
	uint64_t most = UINT64_MAX - 1;
	int fd = -1;

	cr_assert_eq(base_eventfd_create(&fd), 0);
	cr_assert_eq(write(fd, &most, sizeof(most)), (ssize_t)sizeof(most));
	cr_assert_eq(base_eventfd_notify(fd), 0);
	cr_assert(readable(fd));
}

Test(fdutil, close_keeps_errno)
{
	int fd = open("/dev/null", O_WRONLY);

	errno = ERANGE;
	base_fd_close(fd);
	cr_assert_eq(fcntl(fd, F_GETFD), -1);
	errno = ERANGE;
	base_fd_close(fd);
	base_fd_close(-1);
	cr_assert_eq(errno, ERANGE);
}

static int moved_to, dropped;

static int keep(int fd)
{
	moved_to = base_fd_dup_high(fd);
	base_fd_close(fd);
	return moved_to;
}

static void drop(int fd)
{
	dropped = fd;
}

Test(fdutil, who_keeps_descriptors_is_asked)
{
	int fd = open("/dev/null", O_RDONLY), kept;

	cr_expect_eq(base_fd_keep(fd), fd);
	base_fd_drop(fd);
	base_fd_keeper(keep, drop);
	kept = base_fd_keep(fd);
	cr_expect_gt(kept, 700);
	cr_expect_eq(kept, moved_to);
	cr_expect_eq(base_fd_keep(-1), -1);
	base_fd_drop(-1);
	cr_expect_eq(dropped, 0);
	base_fd_drop(kept);
	cr_expect_eq(dropped, kept);
	base_fd_close(kept);
}

Test(fdutil, high_duplicates_are_high_and_close_on_exec)
{
	int fd = open("/dev/null", O_RDONLY), high = base_fd_dup_high(fd);

	cr_expect_gt(high, 700);
	cr_expect_eq(fcntl(high, F_GETFD), FD_CLOEXEC);
	cr_expect(base_fd_is_open(high));
	base_fd_close(high);
	cr_expect_not(base_fd_is_open(high));
	cr_expect_eq(base_fd_dup_high(-1), -EBADF);
}

/* To fork() copies the table up to the highest number */
Test(fdutil, high_duplicates_are_not_the_highest)
{
	int fd = open("/dev/null", O_RDONLY), high;
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	high = base_fd_dup_high(fd);
	cr_expect(high > 700 && high < 4096, "%d", high);
	base_fd_close(high);
}
