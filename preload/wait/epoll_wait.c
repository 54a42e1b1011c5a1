/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for a set.
 *
 * One with members of ours sleeps on its engine, then asks both sides: our registrations, and, when
 * the engine says so, the program's own descriptor. A set without sleeps on the latter; when a
 * first member comes, who sleeps there is woken by an event that is none of the program's.
 *
 * A thread that leaves something behind (there was no room for it, or it is a level that holds)
 * wakes the next sleeper, as the kernel does.
 */
#include "preload/wait/epset.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/sockutil.h"
#include "preload/guard/nap.h"
#include "preload/sock/fallback.h"
#include "preload/sock/others.h"
#include "preload/table/pieces.h"

#define HARVEST 64
/* The kernel's limit */
#define EVENTS_MAX ((int)(INT_MAX / sizeof(struct epoll_event)))

/* --- the kernel's side --- */

static int kernel_wait(int epfd, struct epoll_event *events, int max, uint64_t deadline,
		       const sigset_t *mask)
{
	if (!deadline)
		return nap_epoll_now(epfd, events, max);
	return nap_epoll(epfd, events, max, deadline, mask);
}

/* Without those that only say that the set has members of ours now */
static int kicks_drop(const struct epset *set, struct epoll_event *events, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (events[i].data.ptr != set)
			events[kept++] = events[i];
	return kept;
}

static unsigned int load(const unsigned int *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

/* Events, 0, -errno, or -ENOMSG: members of ours have come */
static int stranger_wait(struct epset *set, const struct epoll_wait *w)
{
	int n = -ENOMSG, kept;

	epset_stranger_enter(set);
	if (!load(&set->ours))
		n = kernel_wait(epset_fd(set), w->events, w->max, w->deadline, w->mask);
	epset_stranger_leave(set);
	if (n <= 0)
		return n;
	kept = kicks_drop(set, w->events, n);
	return kept ? kept : -ENOMSG;
}

/* --- the engine's --- */

/*
 * Under the set's lock: what the engine says of ours; true: the program's descriptor is ready.
 * *@others: other processes have something to say
 */
static bool harvest_sort(struct epset *set, const struct epoll_event *got, int n, bool *others)
{
	bool kernel = false;

	for (int i = 0; i < n; i++) {
		struct epset_reg *r = got[i].data.ptr;

		if (got[i].data.ptr == &set->fd)
			kernel = true;
		else if (got[i].data.ptr == &set->heard)
			*others = true;
		else if (got[i].data.ptr != set && r->set == set) { /* else it was freed since */
			if (got[i].events & (EPOLLERR | EPOLLHUP))
				__atomic_store_n(&r->broken, true, __ATOMIC_RELEASE);
			epset_reg_speak(r);
		}
	}
	return kernel;
}

/*
 * Asks the engine, and sleeps there until @deadline unless a member is hot, or another thread has
 * left candidates since the count of that was @left. How much it said, or -errno
 */
static int harvest(struct epset *set, const struct epoll_wait *w, uint64_t deadline,
		   unsigned int left, bool *kernel)
{
	struct epoll_event got[HARVEST];
	bool others = false;
	int n;

	__atomic_add_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&set->stack, __ATOMIC_SEQ_CST) || load(&set->left) != left)
		deadline = 0;
	n = kernel_wait(epset_engine(set), got, HARVEST, deadline, w->mask);
	__atomic_sub_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
	if (n <= 0)
		return n;
	pthread_mutex_lock(&set->lock);
	*kernel |= harvest_sort(set, got, n, &others);
	pthread_mutex_unlock(&set->lock);
	if (others)
		others_heard();
	return n;
}

/* The sets that this one is in find nothing in its engine any more */
static void outer_tell(struct epset *set)
{
	struct base_list *node, *next;

	if (!load(&set->nested))
		return;
	pthread_mutex_lock(&epset_nest);
	base_list_foreach(node, next, &set->watches) {
		struct epset_reg *r = base_list_entry(node, struct epset_reg, watch.node);

		__atomic_store_n(&r->drain, true, __ATOMIC_RELEASE);
		epset_reg_push(r, false);
	}
	pthread_mutex_unlock(&epset_nest);
}

static uint64_t starting_look(struct epset *set, bool rouse);

/* When it is to be looked at again, whatever happens; of a set, the first of its members */
static uint64_t starting_limit(const struct epset_reg *r)
{
	if (r->inner)
		return starting_look(r->inner, false);
	return sock_role(r->sock) == SOCK_STREAM_ON
		       ? r->sock->stream->ops->wait_deadline(r->sock->stream)
		       : BASE_NEVER;
}

/* The first time at which one of its members is overdue; with @rouse, those that are become hot */
static uint64_t starting_look(struct epset *set, bool rouse)
{
	struct base_list *node, *next;
	uint64_t first = BASE_NEVER, limit;

	if (!stream_starting())
		return first;
	pthread_mutex_lock(&set->lock);
	base_list_foreach(node, next, &set->starting) {
		struct epset_reg *r = base_list_entry(node, struct epset_reg, starting);

		limit = starting_limit(r);
		if (rouse && base_deadline_passed(limit, base_now()))
			epset_reg_speak(r);
		first = base_min(first, limit);
	}
	pthread_mutex_unlock(&set->lock);
	return first;
}

void epset_look_end(struct epset_look *look)
{
	if (look->plain)
		sock_fall_back(look->plain);
	sock_put(look->plain);
	look->plain = NULL;
}

static bool is_hot(struct epset *set)
{
	struct epset_look look = { NULL };
	bool hot;

	pthread_mutex_lock(&set->lock);
	hot = epset_peek(set, &look);
	pthread_mutex_unlock(&set->lock);
	epset_look_end(&look);
	return hot;
}

static int kernel_take(struct epset *set, struct epoll_event *events, int max)
{
	int n = max > 0 ? nap_epoll_now(epset_fd(set), events, max) : 0;

	return n > 0 ? kicks_drop(set, events, n) : 0;
}

static int ours_take(struct epset *set, struct epoll_event *events, int max)
{
	struct epset_look look = { NULL };
	bool more;
	int n;

	pthread_mutex_lock(&set->lock);
	n = epset_collect(set, events, max, &look);
	more = !base_list_empty(&set->candidates);
	pthread_mutex_unlock(&set->lock);
	if (more && load(&set->sleepers))
		base_eventfd_ring(set->bell);
	epset_look_end(&look);
	return n;
}

/* When ours have filled the program's array, the kernel's go first the next time */
static int take(struct epset *set, const struct epoll_wait *w, bool kernel)
{
	bool first = kernel && __atomic_load_n(&set->kernel_first, __ATOMIC_RELAXED);
	int n = first ? kernel_take(set, w->events, w->max) : 0;

	n += ours_take(set, w->events + n, w->max - n);
	__atomic_store_n(&set->kernel_first, kernel && !first && n == w->max, __ATOMIC_RELAXED);
	if (kernel && !first)
		n += kernel_take(set, w->events + n, w->max - n);
	return n;
}

/* Before the look at members: until when other processes allow to sleep */
static uint64_t look_begin(struct epset *set)
{
	starting_look(set, true);
	if (!others_any())
		return BASE_NEVER;
	others_await_all();
	epset_hear(set);
	return others_limit();
}

static int engine_wait(struct epset *set, const struct epoll_wait *w)
{
	for (;;) {
		unsigned int left = load(&set->left);
		uint64_t limit = base_min(w->deadline, look_begin(set));
		bool hot = is_hot(set), kernel = false;
		int n;

		/* The look may have set new times */
		limit = base_min(limit, starting_look(set, false));
		n = harvest(set, w, hot ? 0 : limit, left, &kernel);
		if (n > 0)
			outer_tell(set);
		if (n < 0 && !hot)
			return n;
		n = take(set, w, kernel);
		if (n || base_deadline_passed(w->deadline, base_now()))
			return n;
	}
}

int epoll_set_wait(struct epset *set, const struct epoll_wait *w)
{
	int n = -ENOMSG;

	if (w->max <= 0 || w->max > EVENTS_MAX)
		return -EINVAL;
	if (pieces_wild(w->events, sizeof(*w->events)))
		return -EFAULT;
	while (n == -ENOMSG) {
		if (!load(&set->ours)) {
			n = stranger_wait(set, w);
			continue;
		}
		n = epset_engage(set);
		if (!n)
			n = engine_wait(set, w);
	}
	return n;
}

/* --- a set that is looked at from outside --- */

bool epset_is_ready(struct epset *set, struct epset_look *look)
{
	static const struct epoll_wait now;
	bool kernel = false, hot;

	if (!epset_has_engine(set))
		return base_sock_ready(epset_fd(set), POLLIN) & POLLIN;
	starting_look(set, true);
	harvest(set, &now, 0, 0, &kernel);
	pthread_mutex_lock(&set->lock);
	hot = epset_peek(set, look);
	pthread_mutex_unlock(&set->lock);
	hot = hot || base_sock_ready(epset_fd(set), POLLIN) & POLLIN;
	/* What woke this one is gone from the engine */
	if (hot && load(&set->sleepers) + load(&set->nested) > 1)
		base_eventfd_ring(set->bell);
	return hot;
}

void epoll_poll_begin(struct epset *set)
{
	__atomic_add_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
	epset_stranger_enter(set);
}

void epoll_poll_end(struct epset *set)
{
	epset_stranger_leave(set);
	__atomic_sub_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
}

uint64_t epoll_poll_limit(struct epset *set)
{
	return starting_look(set, false);
}

bool epoll_poll_look(struct epset *set, int *fd)
{
	struct epset_look look = { NULL };
	bool ready;

	if (epset_has_engine(set))
		epset_engage(set);
	ready = epset_is_ready(set, &look);
	epset_look_end(&look);
	*fd = epset_has_engine(set) ? epset_engine(set) : epset_fd(set);
	return ready;
}
