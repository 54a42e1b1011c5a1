/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The one way to sleep inside a call.
 *
 * The kernel takes the time of a sleep from the thread's record when it begins. A signal's note,
 * and pthread_cancel(), set that to nothing: come they before the kernel has read it, there is
 * no sleep; come they later, they interrupt it. So a sleep needs no mask of its own and cannot
 * miss what it is to wake for.
 */
#include "preload/guard/intr_sleep.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/select.h"
#include "base/sockutil.h"
#include "preload/guard/call.h"
#include "preload/guard/signals.h"
#include "preload/table/fork_gen.h"

#define CHORE_AGAIN (2 * BASE_NS_PER_MS)

/* In parts that fit a time_t of any width */
static struct timespec intr_sleep_length(uint64_t deadline)
{
	uint64_t left;

	if (deadline == BASE_NEVER)
		return (struct timespec){ .tv_sec = INT_MAX };
	left = deadline ? base_deadline_left(deadline, base_now()) : 0;
	return (struct timespec){ (time_t)(left / BASE_NS_PER_S), (long)(left % BASE_NS_PER_S) };
}

/*
 * False: something waits for the call to come back. Pairs with note() in signals.c
 * and intr_sleep_end() in preload/guard/call.c
 */
static bool intr_sleep_begin(struct call *e, struct timespec left)
{
	__atomic_store_n(&e->sleep_left.tv_sec, left.tv_sec, __ATOMIC_RELAXED);
	__atomic_store_n(&e->sleep_left.tv_nsec, left.tv_nsec, __ATOMIC_RELAXED);
	__atomic_store_n(&e->sleeping, true, __ATOMIC_SEQ_CST);
	return !call_wanted(e);
}

struct intr_sleep {
	struct pollfd *fds; /* or of an epoll set: */
	unsigned int n;
	int epfd;
	struct epoll_event *events;
	int max;
	/* It sleeps by this; NULL: by ppoll() */
	bool (*receive)(void *ctx, struct base_recv_sleep *sleep);
	void *ctx;
	const sigset_t *mask;
	struct spin_place *place; /* NULL: it never spins */
	bool exact;		  /* the kernel's bound of a list counts */
	bool final;		  /* the call is never restarted */
};

static long intr_sleep_kernel(const struct intr_sleep *want, struct timespec *left)
{
	long n;

	if (want->fds) {
		n = base_ppoll(want->fds, want->n, left, want->mask);
		if (n != -EINVAL || want->exact)
			return n;
		return base_select(want->fds, want->n, left, want->mask);
	}
	n = syscall(SYS_epoll_pwait2, want->epfd, want->events, want->max, left, want->mask,
		    _NSIG / 8);
	return n < 0 ? -errno : n;
}

/*
 * Interrupted, and nothing noted: by a handler that we do not know of, one of libc's own, or, of an
 * epoll set, by a stop and SIGCONT. Linux ends the calls that it never restarts. A thread that was
 * cancelled, and does not want to be, was woken by that
 */
static bool counts(const struct call *e, const struct intr_sleep *want)
{
	return want->final && !__atomic_load_n(&e->canceled, __ATOMIC_SEQ_CST);
}

/*
 * For a signal that came before the sleep, or while the kernel looked at a long list. Linux looks
 * before it says EINTR: what was ready before the signal goes first
 */
static int look(const struct intr_sleep *want)
{
	struct pollfd set = { .fd = want->epfd, .events = POLLIN };
	struct timespec none = { 0 };
	int n;

	/* With the mask, for others that it lets through come together with the first */
	n = base_ppoll(want->fds ? want->fds : &set, want->fds ? want->n : 1, &none, want->mask);
	if (n > 0 && !want->fds)
		n = intr_sleep_epoll_now(want->epfd, want->events, want->max);
	return n > 0 ? n : -EINTR;
}

static bool receive_may(struct base_recv_sleep *sleep)
{
	return !call_wanted(base_container_of(sleep, struct call, sleep));
}

/*
 * 1: the caller is to look at what came, if anything has; a signal is looked for behind that, since
 * bytes that were there before it go first. Where it cannot sleep so, it polls
 */
static long receive(struct call *e, const struct intr_sleep *want)
{
	e->sleep.may = receive_may;
	if (!want->receive(want->ctx, &e->sleep))
		return intr_sleep_kernel(want, &e->sleep_left);
	want->fds->revents = POLLIN;
	return 1;
}

/* -EAGAIN: an interruption that was not meant for the call, once more */
static long intr_sleep_once(struct call *e, const struct intr_sleep *want, uint64_t deadline)
{
	struct timespec left = intr_sleep_length(deadline);
	long n = -EINTR;

	if (!e)
		return intr_sleep_kernel(want, &left);
	if (intr_sleep_begin(e, left))
		n = want->receive && deadline == BASE_NEVER
			    ? receive(e, want)
			    : intr_sleep_kernel(want, &e->sleep_left);
	if (n == -EINTR && e->noted & ~e->muted)
		n = look(want);
	__atomic_store_n(&e->sleeping, false, __ATOMIC_RELEASE);
	if (n > 0 || (n < 0 && n != -EINTR))
		return n;
	if (!n)
		return call_wanted(e) ? -EINTR : 0;
	return call_wanted(e) || counts(e, want) ? -EINTR : -EAGAIN;
}

/* With the call's mask: a signal that it lets through must not wait until the sleep */
static long turn(const struct intr_sleep *want)
{
	struct timespec none = { 0 };
	long n;

	if (want->fds)
		return base_ppoll(want->fds, want->n, &none, want->mask);
	n = syscall(SYS_epoll_pwait, want->epfd, want->events, want->max, 0, want->mask, _NSIG / 8);
	return n < 0 ? -errno : n;
}

/* How many are ready; else the wait sleeps, which finds out the reason */
static long spin(const struct call *e, const struct intr_sleep *want, struct spin *s)
{
	uint64_t now;
	long n;

	do {
		n = turn(want);
		now = base_now();
	} while (!n && !call_wanted(e) && spin_goes_on(s, now));
	spin_end(s, n > 0, n < 0 || call_wanted(e), now);
	return base_max(n, 0L);
}

bool (*intr_sleep_chore)(void); /* atomic */
void (*intr_sleep_first)(void); /* atomic */

void intr_sleep_first_do(void)
{
	void (*first)(void) = __atomic_load_n(&intr_sleep_first, __ATOMIC_ACQUIRE);

	/* A guest would do its parent's */
	if (first && !fork_gen_is_guest() &&
	    __atomic_compare_exchange_n(&intr_sleep_first, &first, NULL, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED))
		first();
}

/* How long to sleep at once: not for long while the caller has a thread's work to do */
static uint64_t chore_do(uint64_t deadline)
{
	bool (*chore)(void) = __atomic_load_n(&intr_sleep_chore, __ATOMIC_ACQUIRE);

	if (deadline)
		intr_sleep_first_do();
	if (!deadline || !chore || !chore())
		return deadline;
	return base_min(deadline, base_deadline(base_now(), CHORE_AGAIN));
}

static long sleep_whole(struct call *e, const struct intr_sleep *want, uint64_t deadline)
{
	long n;

	do {
		n = intr_sleep_once(e, want, chore_do(deadline));
		/* A slice (also base_ppoll()'s) is no time-out */
	} while (n == -EAGAIN || (!n && !base_deadline_passed(deadline, base_now())));
	return n;
}

/* A wait that spins, or is noted, before and behind its sleep */
static long wait_whole(struct call *e, const struct intr_sleep *want, uint64_t deadline)
{
	struct spin s;
	uint64_t began;
	long n;

	if (spin_rests(want->place))
		return sleep_whole(e, want, deadline);
	began = base_now();
	if (spin_begin(&s, want->place, began, deadline)) {
		n = spin(e, want, &s);
		return n ? n : sleep_whole(e, want, deadline);
	}
	n = sleep_whole(e, want, deadline);
	if (n >= 0)
		spin_note(want->place, n ? base_now() - began : BASE_NEVER);
	return n;
}

static int intr_sleep_whole(const struct intr_sleep *want, uint64_t deadline)
{
	struct call *e = call_self;
	int saved = errno;
	long n;

	if (e && e->noted & e->muted)
		signals_unmute(e);
	/* Where no wait spins, the history is still of use: sock_io.c */
	n = e && want->place && deadline ? wait_whole(e, want, deadline)
					 : sleep_whole(e, want, deadline);
	errno = saved;
	return (int)n;
}

int intr_sleep(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask,
	       struct spin_place *place)
{
	struct intr_sleep want = { .fds = fds, .n = n, .mask = mask, .place = place };

	return intr_sleep_whole(&want, deadline);
}

int intr_sleep_receive(struct pollfd *fd, struct spin_place *place,
		       bool (*receive)(void *ctx, struct base_recv_sleep *sleep), void *ctx)
{
	struct intr_sleep want = {
		.fds = fd, .n = 1, .place = place, .receive = receive, .ctx = ctx
	};

	return intr_sleep_whole(&want, BASE_NEVER);
}

int intr_sleep_final(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask,
		     struct spin_place *place)
{
	struct intr_sleep want = { .fds = fds, .n = n, .mask = mask, .place = place };

	want.final = true;
	return intr_sleep_whole(&want, deadline);
}

int intr_sleep_exact(struct pollfd *fds, unsigned int n, uint64_t deadline, const sigset_t *mask,
		     struct spin_place *place)
{
	struct intr_sleep want = {
		.fds = fds, .n = n, .mask = mask, .place = place, .final = true, .exact = true
	};

	return intr_sleep_whole(&want, deadline);
}

int intr_sleep_spin(struct pollfd *fds, unsigned int n, struct spin_place *place)
{
	struct intr_sleep want = { .fds = fds, .n = n, .place = place };
	struct call *e = call_self;
	int saved = errno;
	struct spin s;
	long got;

	if (!e || !spin_begin(&s, place, base_now(), BASE_NEVER))
		return -EAGAIN;
	got = spin(e, &want, &s);
	errno = saved;
	return !got && call_wanted(e) ? -EINTR : (int)got;
}

int intr_sleep_epoll(int epfd, struct epoll_event *events, int max, uint64_t deadline,
		     const sigset_t *mask, struct spin_place *place)
{
	struct intr_sleep want = {
		.epfd = epfd, .events = events, .max = max, .mask = mask, .place = place
	};
	struct pollfd p = { .fd = epfd, .events = POLLIN };
	int n;

	want.final = true;
	n = intr_sleep_whole(&want, deadline);
	/* Linux before 5.11, or a filter that does not know of it */
	if (n != -ENOSYS && n != -EPERM)
		return n;
	n = intr_sleep_final(&p, 1, deadline, mask, NULL);
	return n > 0 ? intr_sleep_epoll_now(epfd, events, max) : n;
}

int intr_sleep_epoll_now(int epfd, struct epoll_event *events, int max)
{
	int saved = errno;
	int n = (int)libc_try(syscall(SYS_epoll_pwait, epfd, events, max, 0, NULL, _NSIG / 8));

#ifdef SYS_epoll_wait
	if (n == -EPERM)
		n = (int)libc_try(syscall(SYS_epoll_wait, epfd, events, max, 0));
#endif
	errno = saved;
	return n;
}
