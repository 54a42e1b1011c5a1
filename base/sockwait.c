/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for a socket from inside an intercepted call.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/select.h"
#include "base/sockutil.h"

/* poll() has no mask, and begins with the time as it was; so it sleeps in slices */
static long plain_poll(struct pollfd *fds, unsigned int n, const struct timespec *limit)
{
#ifdef SYS_poll
	int ms = BASE_POLL_SLICE_MS;

	if (limit && limit->tv_sec == 0)
		ms = (int)base_min((limit->tv_nsec + 999999) / 1000000, (long)BASE_POLL_SLICE_MS);
	return syscall(SYS_poll, fds, n, ms);
#else
	errno = EPERM;
	return -1;
#endif
}

int base_ppoll(struct pollfd *fds, unsigned int n, struct timespec *limit, const sigset_t *mask)
{
	int saved = errno;
	long r = syscall(SYS_ppoll, fds, n, limit, mask, _NSIG / 8);

	if (r < 0 && errno == EPERM)
		r = plain_poll(fds, n, limit);
	return (int)base_result(r, saved);
}

static int poll_once(struct pollfd *fds, unsigned int n, uint64_t deadline)
{
	uint64_t left = deadline ? base_deadline_left(deadline, base_now()) : 0;
	struct timespec ts = { (time_t)(left / BASE_NS_PER_S), (long)(left % BASE_NS_PER_S) };
	struct timespec *limit = deadline == BASE_NEVER ? NULL : &ts;
	int got = base_ppoll(fds, n, limit, NULL);

	return got == -EINVAL ? base_select(fds, n, limit, NULL) : got;
}

int base_poll(struct pollfd *fds, unsigned int n, uint64_t deadline)
{
	int got;

	do {
		got = poll_once(fds, n, deadline);
	} while (!got && deadline && !base_deadline_passed(deadline, base_now()));
	return got;
}

int base_poll_until(struct pollfd *fds, unsigned int n, uint64_t deadline)
{
	int got = base_poll(fds, n, deadline);

	return got > 0 ? 0 : got ? got : -ETIMEDOUT;
}

short base_sock_ready(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	int got = base_poll(&p, 1, 0);

	/* Who writes is told */
	if (got < 0 && got != -EINTR)
		return events & POLLOUT;
	return got > 0 ? p.revents : 0;
}

int base_sock_send_all(int fd, const void *p, size_t len, size_t urgent, uint64_t deadline)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	int saved = errno;
	long n;

	while (len) {
		/* The urgent one goes alone: of what the kernel takes in part, another is */
		size_t part = urgent > 1 ? urgent - 1 : urgent ? 1 : len;
		int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (urgent == 1 ? MSG_OOB : 0);

		n = base_result(syscall(SYS_sendto, fd, p, part, flags, NULL, 0), saved);
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			return (int)n;
		if (n < 0 && base_deadline_passed(deadline, base_now()))
			return -EAGAIN;
		if (n == -EAGAIN)
			base_poll(&room, 1, deadline);
		p = (const char *)p + base_max(n, 0L);
		len -= (size_t)base_max(n, 0L);
		urgent -= base_min(urgent, (size_t)base_max(n, 0L));
	}
	return 0;
}
