/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Times that a connection keeps by itself: who waits for it sleeps in its epoll set.
 */
#include "verbs/verbs_timer.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"

static int timer_create_in(int *timer, int set)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = timer };
	int err, fd = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	/* Before it enters the set, which knows it by its number, too, and gives it up by that */
	fd = base_fd_keep(fd);
	if (syscall(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, &event)) {
		err = -errno;
		base_fd_drop(fd);
		base_fd_close(fd);
		return err;
	}
	*timer = fd;
	return 0;
}

int verbs_timer_set(int *timer, int set, uint64_t ns)
{
	struct itimerspec when = { .it_value = { (time_t)(ns / BASE_NS_PER_S),
						 (long)(ns % BASE_NS_PER_S) } };
	int err = *timer < 0 ? timer_create_in(timer, set) : 0;

	if (err)
		return err;
	return syscall(SYS_timerfd_settime, *timer, 0, &when, NULL) ? -errno : 0;
}

/* A child may have the timer too, and then the set would keep it */
void verbs_timer_end(int *timer, int set)
{
	if (*timer < 0)
		return;
	syscall(SYS_epoll_ctl, set, EPOLL_CTL_DEL, *timer, NULL);
	base_fd_drop(*timer);
	base_fd_close(*timer);
	*timer = -1;
}
