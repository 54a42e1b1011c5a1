/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls on epoll sets. What is about a set without members of ours goes to libc as it is.
 */
#include <errno.h>

#include "base/clock.h"
#include "preload/guard/mask.h"
#include "preload/sock/listener_proxy.h"
#include "preload/table/fdtab.h"
#include "preload/table/libc.h"
#include "preload/table/user_iov.h"
#include "preload/wait/epoll.h"

long call_epoll_create(int size)
{
	long fd = libc_try(libc.epoll_create(size));

	epoll_born((int)fd);
	return fd;
}

long call_epoll_create1(int flags)
{
	long fd = libc_try(libc.epoll_create1(flags));

	epoll_born((int)fd);
	return fd;
}

/* A listener is the kernel's affair, as everything that is no stream and will not become one */
static struct sock *member_get(int fd)
{
	struct sock *s = sock_get(fd);

	if (s && (sock_role(s) == SOCK_NEW || sock_role(s) == SOCK_STREAM_ON))
		return s;
	sock_put(s);
	return NULL;
}

static long kernel_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	int stands = listener_proxy_stands(fd, op == EPOLL_CTL_ADD);
	struct epoll_event own;

	if (op == EPOLL_CTL_ADD && fdtab_is_ours(fd) && !fdtab_is_carried(fd))
		epoll_hint(epfd, fd);

	if (stands == fd)
		return CALL_THEIRS;
	if (stands < 0)
		return stands;
	if (op == EPOLL_CTL_DEL || user_iov_wild(event, sizeof(*event)))
		return libc_try(libc.epoll_ctl(epfd, op, stands, event));
	own = *event;
	/* The kernel has no set in a set for one waiter alone; who comes too late finds nothing */
	if (op == EPOLL_CTL_ADD)
		own.events &= ~(uint32_t)EPOLLEXCLUSIVE;
	return libc_try(libc.epoll_ctl(epfd, op, stands, &own));
}

long call_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct sock *s = member_get(fd);
	struct epset *inner = s ? NULL : epoll_get(fd);
	long err;

	if (s)
		err = epoll_sock_ctl(epfd, op, fd, s, event);
	else if (inner)
		err = epoll_nest_ctl(epfd, op, fd, inner, event);
	else
		err = kernel_ctl(epfd, op, fd, event);
	sock_put(s);
	epoll_put(inner);
	return err;
}

static long wait_for(int epfd, const struct epoll_wait *w)
{
	struct epset *set = epoll_get(epfd);
	struct mask_hold hold;
	long n;

	if (!set)
		return CALL_THEIRS;
	n = mask_begin(&hold, w->mask);
	if (!n) {
		n = epoll_set_wait(set, w);
		mask_end(&hold, n == -EINTR);
	}
	epoll_put(set);
	return n;
}

long call_epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	return call_epoll_pwait(epfd, events, max, timeout, NULL);
}

long call_epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout,
		      const sigset_t *mask)
{
	struct epoll_wait w = { events, max, base_deadline_ms(timeout), mask };

	return wait_for(epfd, &w);
}

long call_epoll_pwait2(int epfd, struct epoll_event *events, int max,
		       const struct timespec *timeout, const sigset_t *mask)
{
	struct epoll_wait w = { events, max, 0, mask };

	if (base_timespec_bad(timeout))
		return CALL_THEIRS;
	w.deadline = base_deadline_timespec(timeout);
	return wait_for(epfd, &w);
}
