/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waiting for a set.
 *
 * One with members of ours sleeps on its shadow, then tells what stands in the list (epoll_list.c).
 * A set without sleeps on the latter; when a
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
#include "preload/guard/intr_sleep.h"
#include "preload/sock/fallback.h"
#include "preload/sock/others.h"
#include "preload/table/user_iov.h"
#include "preload/wait/wait.h"

#define COLLECT_MAX 64
/* The kernel's limit */
#define EVENTS_MAX ((int)(INT_MAX / sizeof(struct epoll_event)))

/* --- the kernel's side --- */

static int kernel_wait(int epfd, struct epoll_event *events, int max, uint64_t deadline,
		       const sigset_t *mask, struct spin_place *place)
{
	if (!deadline)
		return intr_sleep_epoll_now(epfd, events, max);
	return intr_sleep_epoll(epfd, events, max, deadline, mask, place);
}

static unsigned int load(const unsigned int *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

/* Events, 0, -errno, or -ENOMSG: members of ours have come */
static int native_wait(struct epset *set, const struct epoll_wait *w)
{
	struct spin_place *place = sock_config.tcp_spin ? &set->place : NULL;
	int n = -ENOMSG, kept;

	epset_native_waiter_enter(set);
	if (!load(&set->ours))
		n = kernel_wait(epset_fd(set), w->events, w->max, w->deadline, w->mask, place);
	epset_native_waiter_leave(set);
	if (n <= 0)
		return n;
	kept = epset_wakes_drop(set, w->events, n);
	return kept ? kept : -ENOMSG;
}

/* --- the shadow's --- */

/* set->lock. What the shadow says of members, in its order; true: other processes say something */
static bool collect_sort(struct epset *set, const struct epoll_event *got, int n)
{
	bool others = false;

	for (int i = 0; i < n; i++) {
		struct epset_reg *r = got[i].data.ptr;

		if (got[i].data.ptr == &set->heard)
			others = true;
		else if (got[i].data.ptr != set && r->set == set) { /* else it was freed since */
			if (got[i].events & (EPOLLERR | EPOLLHUP))
				__atomic_store_n(&r->broken, true, __ATOMIC_RELEASE);
			spin_place_of(&set->place, r->kfd);
			epset_hear_of(r);
		}
	}
	return others;
}

/*
 * set->lock. All that the shadow has to say, of which @n came with @got: what is left there would
 * come behind members that this wait tells of. A busy member is told of again and again, so no
 * more often than there are members.
 */
static bool collect_all(struct epset *set, struct epoll_event *got, int n)
{
	bool others = collect_sort(set, got, n);

	for (unsigned int i = load(&set->ours) / COLLECT_MAX; n == COLLECT_MAX && i; i--) {
		n = intr_sleep_epoll_now(epset_shadow(set), got, COLLECT_MAX);
		others |= collect_sort(set, got, n);
	}
	return others;
}

/*
 * Asks the shadow, and sleeps there until @deadline unless a member is on the ready list, or
 * another thread has left candidates since the count of that was @left. How much it said, or -errno
 */
static int collect_ready(struct epset *set, const struct epoll_wait *w, uint64_t deadline,
			 unsigned int left)
{
	struct epoll_event got[COLLECT_MAX];
	bool others;
	int n;

	__atomic_add_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
	if (epset_has_ready(set) || load(&set->left) != left)
		deadline = 0;
	n = kernel_wait(epset_shadow(set), got, COLLECT_MAX, deadline, w->mask, &set->place);
	__atomic_sub_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
	if (n <= 0)
		return n;
	pthread_mutex_lock(&set->lock);
	others = collect_all(set, got, n);
	pthread_mutex_unlock(&set->lock);
	if (others)
		others_heard();
	return n;
}

/* The sets that this one is in find nothing in its shadow any more */
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
	return sock_role(r->sock) == SOCK_STREAM_ON ? stream_wait_deadline(r->sock->stream)
						    : BASE_NEVER;
}

/*
 * The first time at which one of its members is overdue; with @rouse, those that have become ready
 */
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
			epset_reg_mark_ready(r);
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
	bool ready;

	pthread_mutex_lock(&set->lock);
	ready = epset_peek(set, &look);
	pthread_mutex_unlock(&set->lock);
	epset_look_end(&look);
	return ready;
}

static int take(struct epset *set, const struct epoll_wait *w)
{
	struct epset_look look = { NULL };
	bool more;
	int n;

	pthread_mutex_lock(&set->lock);
	n = epset_collect(set, w->events, w->max, &look);
	more = !base_list_empty(&set->candidates);
	pthread_mutex_unlock(&set->lock);
	if (more && load(&set->sleepers))
		base_eventfd_notify(set->wakeup);
	epset_look_end(&look);
	return n;
}

/* Is there anything that a look would be at? */
static bool is_queued(struct epset *set)
{
	bool queued = epset_has_ready(set);

	if (!queued) {
		pthread_mutex_lock(&set->lock);
		queued = !base_list_empty(&set->candidates);
		pthread_mutex_unlock(&set->lock);
	}
	return queued;
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

/*
 * Is there something to tell? What the shadow has is heard first: of a member that stands in the
 * list it may be the reason to stay there, and it loses its place when it is found to be not ready
 */
static bool look(struct epset *set, const struct epoll_wait *w)
{
	if (!is_queued(set))
		return false;
	if (collect_ready(set, w, 0, 0) > 0)
		outer_tell(set);
	return is_hot(set);
}

static int shadow_wait(struct epset *set, const struct epoll_wait *w)
{
	unsigned int vain = 0;
	int ends = 0;

	for (;;) {
		unsigned int left = load(&set->left);
		uint64_t limit = base_min(w->deadline, look_begin(set));
		bool ready = look(set, w);
		int n = 0;

		/* The look may have set new times */
		limit = base_min(limit, starting_look(set, false));
		if (!ready)
			n = collect_ready(set, w, limit, left);
		if (n < 0)
			return n;
		if (n > 0)
			outer_tell(set);
		n = take(set, w);
		if (n || base_deadline_passed(w->deadline, base_now()))
			return n;
		/* What has come brings nothing: that was the last look */
		if (ends)
			return ends;
		ends = wait_ends(w->deadline, w->mask, ++vain);
	}
}

int epoll_set_wait(struct epset *set, const struct epoll_wait *w)
{
	int n = -ENOMSG;

	if (w->max <= 0 || w->max > EVENTS_MAX)
		return -EINVAL;
	if (user_iov_wild(w->events, sizeof(*w->events)))
		return -EFAULT;
	while (n == -ENOMSG) {
		if (!load(&set->ours)) {
			n = native_wait(set, w);
			continue;
		}
		n = epset_engage(set);
		if (!n)
			n = shadow_wait(set, w);
	}
	return n;
}

/* --- a member that has come, or changed --- */

/*
 * Linux looks at it at once: one that is ready goes to the end of the list, another comes there
 * when it is. The shadow tells at once that a new member's socket has room, which is no arrival.
 */
void epset_settle(struct epset *set, struct epset_reg *r, bool is_new, struct epset_look *look)
{
	struct epoll_event got[COLLECT_MAX];
	int n = is_new ? intr_sleep_epoll_now(epset_shadow(set), got, COLLECT_MAX) : 0;

	/* Of other processes the shadow will speak again */
	collect_all(set, got, n);
	if (epset_place(set, r, look) && load(&set->sleepers) + load(&set->nested))
		base_eventfd_notify(set->wakeup);
}

void epset_settled(struct epset *set, struct epset_look *look)
{
	epset_look_end(look);
	outer_tell(set);
}

/* --- a set that is looked at from outside --- */

bool epset_is_ready(struct epset *set, struct epset_look *look)
{
	static const struct epoll_wait now;
	bool ready;

	if (!epset_has_shadow(set))
		return base_sock_ready(epset_fd(set), POLLIN) & POLLIN;
	starting_look(set, true);
	collect_ready(set, &now, 0, 0);
	pthread_mutex_lock(&set->lock);
	ready = epset_peek(set, look);
	pthread_mutex_unlock(&set->lock);
	/* What woke this one is gone from the shadow */
	if (ready && load(&set->sleepers) + load(&set->nested) > 1)
		base_eventfd_notify(set->wakeup);
	return ready;
}

void epoll_poll_begin(struct epset *set)
{
	__atomic_add_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
	epset_native_waiter_enter(set);
}

void epoll_poll_end(struct epset *set)
{
	epset_native_waiter_leave(set);
	__atomic_sub_fetch(&set->sleepers, 1, __ATOMIC_SEQ_CST);
}

bool epoll_poll_more(struct epset *set)
{
	return epset_has_ready(set);
}

uint64_t epoll_poll_limit(struct epset *set)
{
	return starting_look(set, false);
}

bool epoll_poll_look(struct epset *set, int *fd)
{
	struct epset_look look = { NULL };
	bool ready;

	if (epset_has_shadow(set))
		epset_engage(set);
	ready = epset_is_ready(set, &look);
	epset_look_end(&look);
	*fd = epset_has_shadow(set) ? epset_shadow(set) : epset_fd(set);
	return ready;
}
