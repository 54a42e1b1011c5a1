/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Descriptors by raw system calls, as base/fdutil.h has them: what one side opens and the other
 * closes must go the same way, past whatever stands before libc's names. All return what the call
 * gives, or -errno.
 */
#ifndef SOFT_FD_H
#define SOFT_FD_H

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int soft_fd_result(long n)
{
	return n < 0 ? -errno : (int)n;
}

static inline int soft_fd_socket(int family)
{
	return soft_fd_result(
		syscall(SYS_socket, family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static inline int soft_fd_accept(int fd)
{
	return soft_fd_result(syscall(SYS_accept4, fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

static inline int soft_fd_epoll(void)
{
	return soft_fd_result(syscall(SYS_epoll_create1, EPOLL_CLOEXEC));
}

/* @events 0 with EPOLL_CTL_DEL */
static inline int soft_fd_watch(int epoll, int op, int fd, uint32_t events, void *ptr)
{
	struct epoll_event ev = { .events = events, .data.ptr = ptr };

	return soft_fd_result(syscall(SYS_epoll_ctl, epoll, op, fd, &ev));
}

static inline int soft_fd_events(int epoll, struct epoll_event *ev, int n, int timeout_ms)
{
	return soft_fd_result(syscall(SYS_epoll_pwait, epoll, ev, n, timeout_ms, NULL, 0));
}

#endif
