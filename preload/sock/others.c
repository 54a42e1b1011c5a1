/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waking each other across processes.
 *
 *	sleeper		await: "wake me, once"	look	sleep (the wakeup fd is polled, too)
 *	who moves an edge			move	look for who is to be woken	wake
 *
 * Each of the two writes before it reads what the other one has written, with a full fence in
 * between (stream/state/sleep.c), so one of them sees the other: the look finds what was moved, or
 * the wakeup fd is written to. Who is woken is not woken again before it has awaited anew, so a
 * process that is busy elsewhere costs the others one message, not one for each of their calls.
 *
 * A wakeup fd says nothing of what it is for. Who hears it awaits all of them anew, and tells the
 * watchers of those for which it was woken; that goes for each await, whoever makes it, since it
 * takes that knowledge away. Threads and epoll sets of this process are then woken as by a thread
 * of its own (sock_tell()).
 *
 * What one process has moved and died before it could ring, another one would sleep for in vain,
 * and for a lock that died with it too. So nobody sleeps for ever beside others: from time to time
 * all are looked at. Where no wakeup fd is to be had, or cannot be woken, that is all there is, and
 * happens often.
 */
#include "preload/sock/others.h"

#include "base/clock.h"
#include "preload/sock/wakeup.h"

#define SLEEPERS_POLL (500 * BASE_NS_PER_MS)
#define SLEEPERS_POLL_DEAF (20 * BASE_NS_PER_MS)
#define COUNT_EVERY 16u
#define WAKEUPS 8u

unsigned int others_age;
static unsigned int awaited; /* atomic: the age for which all were awaited */
static bool deaf;	     /* atomic: somebody could not ring here */
static uint64_t next;	     /* atomic: when all are looked at */
static unsigned int looks;   /* atomic */

static unsigned int age(void)
{
	return __atomic_load_n(&others_age, __ATOMIC_ACQUIRE);
}

/* Not 0 again, but by look() */
static void grow(void)
{
	if (!__atomic_add_fetch(&others_age, 1, __ATOMIC_ACQ_REL))
		__atomic_add_fetch(&others_age, 1, __ATOMIC_ACQ_REL);
}

void others_come(struct sock *s)
{
	sock_tenure_set(s, SOCK_SHARED);
	sock_waits_changed(s);
	grow();
	sock_tell(s);
}

static void deafen(void)
{
	if (!__atomic_exchange_n(&deaf, true, __ATOMIC_ACQ_REL))
		__atomic_store_n(&next, 0, __ATOMIC_RELEASE);
}

void others_await(struct sock *s)
{
	unsigned int was = stream_await(s->stream, wakeup_name());

	if (was & STREAM_AWAIT_DEAF)
		deafen();
	if (was & (STREAM_AWAIT_NOTIFIED | STREAM_AWAIT_NEW))
		sock_tell(s);
}

/* --- all of them --- */

/*
 * Others have it, or had it when it was looked at last: they may have gone since, but what they did
 * before is still to be told
 */
static struct sock *common_of(struct fdent *ent)
{
	struct sock *s = sock_stream_of_entry(ent) ? sock_of_entry(ent) : NULL;

	return s && sock_tenure(s) == SOCK_SHARED ? s : NULL;
}

/* Who comes to watch in this moment awaits by itself, behind that */
static bool is_watched(struct sock *s)
{
	bool watched;

	pthread_mutex_lock(&s->lock);
	watched = !base_list_empty(&s->watches);
	pthread_mutex_unlock(&s->lock);
	return watched;
}

static void await_one(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = common_of(ent);

	if (s && is_watched(s))
		others_await(s);
}

void others_await_all(void)
{
	unsigned int now = age();

	if (now && __atomic_exchange_n(&awaited, now, __ATOMIC_ACQ_REL) != now)
		fdtab_each(await_one, NULL);
}

int others_fd(void)
{
	return others_any() ? wakeup_fd() : -1;
}

void others_heard(void)
{
	if (wakeup_take())
		fdtab_each(await_one, NULL);
}

struct look {
	bool any;   /* are there streams that others have? */
	bool count; /* really: the dead are found and do not count any more */
};

static bool is_shared(struct sock *s, bool count)
{
	return stream_shared(s->stream) && !(count && stream_alone(s->stream));
}

static void look_one(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = common_of(ent);
	struct look *look = ctx;

	if (!s)
		return;
	if (is_shared(s, look->count)) {
		look->any = true;
	} else {
		sock_state_leave(&sock_tenure_moves, &s->tenure, SOCK_SHARED, SOCK_OF_ONE);
		sock_waits_changed(s);
	}
	if (!is_watched(s))
		return;
	others_await(s);
	sock_ops(s)->progress(s);
	sock_tell(s);
}

/* When there are none, nobody looks any more until some come */
static void look(void)
{
	struct look look = {
		.count = __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) % COUNT_EVERY == 0
	};
	unsigned int before = age();

	fdtab_each(look_one, &look);
	if (!look.any && __atomic_compare_exchange_n(&others_age, &before, 0, false,
						     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		__atomic_store_n(&deaf, false, __ATOMIC_RELEASE);
}

uint64_t others_limit(void)
{
	uint64_t now, limit, later;

	if (!others_any())
		return BASE_NEVER;
	now = base_now();
	limit = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
	if (!base_deadline_passed(limit, now))
		return limit;
	later = base_deadline(now, __atomic_load_n(&deaf, __ATOMIC_ACQUIRE) ? SLEEPERS_POLL_DEAF
									    : SLEEPERS_POLL);
	if (__atomic_compare_exchange_n(&next, &limit, later, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		look();
	return later;
}

/* --- telling --- */

void others_tell(struct sock *s)
{
	struct stream *stream = s->stream;
	uint64_t wakeups[WAKEUPS];
	unsigned int n;

	do {
		n = stream_sleepers(stream, wakeups, WAKEUPS);
		for (unsigned int i = 0; i < n; i++)
			if (wakeup_send(wakeups[i]))
				stream_unheard(stream, wakeups[i]);
	} while (n == WAKEUPS);
}

void others_after_fork(void)
{
	others_age = awaited = looks = 0;
	deaf = false;
	next = 0;
}
