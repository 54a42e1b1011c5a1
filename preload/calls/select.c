/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * select() is poll() in other clothes. The sets may be longer than an fd_set: Linux takes any
 * length, and some programs make use of it.
 */
#include <errno.h>
#include <limits.h>
#include <sys/resource.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/map.h"
#include "preload/guard/mask.h"
#include "preload/table/fdtab.h"
#include "preload/table/libc.h"
#include "preload/table/user_iov.h"
#include "preload/wait/polling.h"

#define WORD_BITS (sizeof(unsigned long) * CHAR_BIT)
#define US_PER_S 1000000

struct sets {
	fd_set *in, *out, *except;
};

static unsigned long *word_of(fd_set *set, int fd)
{
	return (unsigned long *)(void *)set + (unsigned int)fd / WORD_BITS;
}

static unsigned long bit_of(int fd)
{
	return 1ul << ((unsigned int)fd % WORD_BITS);
}

static bool is_in(int fd, fd_set *set)
{
	return set && *word_of(set, fd) & bit_of(fd);
}

static short wanted_events(const struct sets *sets, int fd)
{
	return (short)((is_in(fd, sets->in) ? POLLIN | POLLRDHUP : 0) |
		       (is_in(fd, sets->out) ? POLLOUT : 0) |
		       (is_in(fd, sets->except) ? POLLPRI : 0));
}

/* How many are in one of the sets; their list at @fds, which may be NULL */
static unsigned int sets_list(const struct sets *sets, int n, struct pollfd *fds, bool *ours)
{
	unsigned int k = 0;

	*ours = false;
	for (int fd = 0; fd < n; fd++) {
		short events = wanted_events(sets, fd);

		if (!events)
			continue;
		if (fds)
			fds[k] = (struct pollfd){ .fd = fd, .events = events };
		k++;
		*ours |= fdtab_is_ours(fd);
	}
	return k;
}

/* As the kernel maps what poll() says: an error is readable and writable, a hang-up readable */
static int set_answer(fd_set *set, const struct pollfd *p, short asked, short counts)
{
	if (!set || !(p->events & asked))
		return 0;
	if (p->revents & counts)
		return 1;
	*word_of(set, p->fd) &= ~bit_of(p->fd);
	return 0;
}

static int sets_answer(const struct sets *sets, const struct pollfd *fds, unsigned int k)
{
	int bits = 0;

	for (unsigned int i = 0; i < k; i++) {
		bits += set_answer(sets->in, &fds[i], POLLIN, POLLIN | POLLHUP | POLLERR);
		bits += set_answer(sets->out, &fds[i], POLLOUT, POLLOUT | POLLERR);
		bits += set_answer(sets->except, &fds[i], POLLPRI, POLLPRI);
	}
	return bits;
}

static bool invalid_among(const struct pollfd *fds, unsigned int k)
{
	for (unsigned int i = 0; i < k; i++)
		if (fds[i].revents & POLLNVAL)
			return true;
	return false;
}

/* Of what poll() said, what select() counts: as the kernel maps it */
static bool counts(const struct pollfd *p)
{
	return (p->events & POLLIN && p->revents & (POLLIN | POLLHUP | POLLERR)) ||
	       (p->events & POLLOUT && p->revents & (POLLOUT | POLLERR)) ||
	       p->revents & (POLLPRI | POLLNVAL);
}

/*
 * poll() always tells of errors and hang-ups, select() sleeps on where only other things were
 * asked for. Such descriptors are left out (~fd, which poll() passes over). True: and nothing
 * else is ready.
 */
static bool leave_out(struct pollfd *fds, unsigned int k)
{
	for (unsigned int i = 0; i < k; i++)
		if (fds[i].revents && counts(&fds[i]))
			return false;
	for (unsigned int i = 0; i < k; i++)
		if (fds[i].revents)
			fds[i].fd = ~fds[i].fd;
	return true;
}

static int list_select(const struct sets *sets, struct pollfd *fds, unsigned int k,
		       uint64_t deadline, const sigset_t *mask)
{
	struct mask_hold hold;
	int ready = mask_begin(&hold, mask);

	if (ready)
		return ready;
	do {
		ready = polling_sets(fds, k, deadline, mask);
	} while (ready > 0 && leave_out(fds, k));
	mask_end(&hold, ready == -EINTR);
	for (unsigned int i = 0; i < k; i++)
		fds[i].fd = base_max(fds[i].fd, ~fds[i].fd);
	if (ready < 0)
		return ready;
	return invalid_among(fds, k) ? -EBADF : sets_answer(sets, fds, k);
}

/* As the kernel, which looks at no more than there may be descriptors, whatever is asked */
static int set_length(int n)
{
	struct rlimit limit;

	if (n <= FD_SETSIZE || getrlimit(RLIMIT_NOFILE, &limit))
		return n;
	return (int)base_min((rlim_t)n, base_max(limit.rlim_cur, (rlim_t)FD_SETSIZE));
}

static bool sets_wild(const struct sets *sets, int n)
{
	size_t len = ((size_t)n + WORD_BITS - 1) / WORD_BITS * sizeof(unsigned long);

	return (sets->in && user_iov_wild(sets->in, len)) ||
	       (sets->out && user_iov_wild(sets->out, len)) ||
	       (sets->except && user_iov_wild(sets->except, len));
}

/* A number of bits or -errno; CALL_THEIRS when none of ours is among them, or for the error */
static long select_mixed(int n, const struct sets *sets, uint64_t deadline, const sigset_t *mask)
{
	struct pollfd small[64], *fds = small;
	unsigned int k = 0;
	void *map = NULL;
	bool ours;
	int ready;

	n = set_length(n);
	if (n > 0 && !sets_wild(sets, n))
		k = sets_list(sets, n, NULL, &ours);
	if (!k || !ours)
		return CALL_THEIRS;
	if (k > base_array_size(small)) {
		ready = base_map_create(k * sizeof(*fds), &map);
		if (ready)
			return ready;
		fds = map;
	}
	k = sets_list(sets, n, fds, &ours);
	ready = list_select(sets, fds, k, deadline, mask);
	base_map_destroy(map, k * sizeof(*fds));
	return ready;
}

static void time_left(struct timeval *tv, uint64_t deadline)
{
	uint64_t left = deadline ? base_deadline_left(deadline, base_now()) : 0;

	tv->tv_sec = (time_t)(left / BASE_NS_PER_S);
	tv->tv_usec = (suseconds_t)(left % BASE_NS_PER_S / BASE_NS_PER_US);
}

/* Microseconds may be more than a second's */
static uint64_t deadline_of(const struct timeval *tv)
{
	struct timespec ts;

	if (!tv)
		return BASE_NEVER;
	ts.tv_sec = tv->tv_sec + tv->tv_usec / US_PER_S;
	ts.tv_nsec = tv->tv_usec % US_PER_S * (long)BASE_NS_PER_US;
	return base_deadline_timespec(&ts);
}

long call_select(int n, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct sets sets = { in, out, except };
	uint64_t deadline = BASE_NEVER;
	long r = CALL_THEIRS;

	if (!timeout || (timeout->tv_sec >= 0 && timeout->tv_usec >= 0)) {
		deadline = deadline_of(timeout);
		r = select_mixed(n, &sets, deadline, NULL);
	}
	if (timeout && r != CALL_THEIRS && deadline != BASE_NEVER)
		time_left(timeout, deadline);
	return r;
}

long call_pselect(int n, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,
		  const sigset_t *mask)
{
	struct sets sets = { in, out, except };
	long r = CALL_THEIRS;

	if (!base_timespec_bad(timeout))
		r = select_mixed(n, &sets, base_deadline_timespec(timeout), mask);
	return r;
}
