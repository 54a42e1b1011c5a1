/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams that the worker thread attends to.
 *
 * An entry is part of its socket, so to enter one takes no memory, and to take one out no search.
 * The thread sleeps on an epoll set in which each is armed for one event: so a look costs what is
 * ready, not what is there, and an entry that is left in the set by mistake speaks once. Where
 * there is no set (a filter, no descriptors) all are looked at by rounds.
 *
 * A stream whose peer turns out to speak plain TCP goes back to the kernel (fallback.c), since its
 * program may wait for what the peer makes of octets that are held. That takes locks which come
 * before this one, so it is noted, and done with this one free; `busy` is who does it.
 */
#include "preload/sock/charge.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/rules/report.h"
#include "preload/sock/attend.h"
#include "preload/sock/fallback.h"
#include "preload/sock/info.h"
#include "preload/sock/sock.h"
#include "preload/sock/urgent.h"

#define BATCH 64
/* What wakes nobody is looked at so often: acknowledgements, and what other processes do */
#define LOOK_AGAIN (100 * BASE_NS_PER_MS)
/* Connections of a process that may be undecided */
#define UNDECIDED_MAX 4096

struct charges charges = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.list = BASE_LIST_INIT(charges.list),
	.set = -1,
	.bell = -1,
};

struct sock *charge_sock(struct charge *c)
{
	return base_container_of(c, struct sock, charge);
}

void charges_expired(unsigned int n)
{
	base_warn("%u connections: %s", n, config_reason_text(CONFIG_REASON_LINGER_EXPIRED));
	report_reason(CONFIG_REASON_LINGER_EXPIRED, n);
}

/* --- the set --- */

static int set_ctl(int op, int fd, short events, struct charge *c)
{
	struct epoll_event event = { .events = (uint32_t)events | EPOLLONESHOT, .data.ptr = c };
	int saved = errno, err = 0;

	if (syscall(SYS_epoll_ctl, charges.set, op, fd, &event) < 0)
		err = -errno;
	errno = saved;
	return err;
}

void charge_unwatch(struct charge *c)
{
	if (c->watched >= 0 && charges.set >= 0)
		set_ctl(EPOLL_CTL_DEL, c->watched, 0, NULL);
	c->watched = -1;
}

static int charge_watch(struct charge *c, int fd, short events)
{
	int err;

	if (charges.set < 0)
		return -ENOSYS;
	if (c->watched == fd)
		return set_ctl(EPOLL_CTL_MOD, fd, events, c);
	charge_unwatch(c);
	err = set_ctl(EPOLL_CTL_ADD, fd, events, c);
	/* A registration of the file's that stands under this number, and of nobody's knowing */
	if (err == -EEXIST)
		err = set_ctl(EPOLL_CTL_MOD, fd, events, c);
	if (!err)
		c->watched = fd;
	return err;
}

void charges_hear(void)
{
	struct epoll_event got[BATCH];
	int saved = errno, n = -1;

	if (charges.set >= 0)
		n = (int)syscall(SYS_epoll_pwait, charges.set, got, BATCH, 0, NULL, 0);
	errno = saved;
	for (int i = 0; i < n; i++) {
		struct charge *c = got[i].data.ptr;

		c->ready = c->listed; /* else it has ended since */
	}
}

/* --- the list --- */

void charge_end(struct charge *c)
{
	struct sock *s = charge_sock(c);

	charge_unwatch(c);
	base_list_remove(&c->node);
	c->listed = false;
	charges.closed -= c->closed;
	charges.undecided -= c->undecided;
	c->closed = c->undecided = false;
	/* Threads that are not here may have held what a socket is given back by */
	if (charges.apart) {
		base_fd_close(stream_fd(s->stream));
		return;
	}
	BASE_POINT(preload_attend_ended);
	__atomic_store_n(&s->attended, false, __ATOMIC_RELEASE);
	sock_put(s);
}

/* The oldest makes room: in mode on it is reset, in auto it waits for its program's calls */
static void undecided_drop(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);
		struct sock *s = charge_sock(c);

		if (!c->undecided || c->busy)
			continue;
		if (s->mode == CONFIG_USE_DDP)
			base_sock_abort(stream_fd(s->stream));
		charge_end(c);
		return;
	}
}

static void closed_note(struct charge *c)
{
	c->closed = true;
	c->safe = false;
	c->deadline = base_deadline(base_now(), sock_config.linger);
	charges.closed++;
}

static void wake_for(uint64_t when)
{
	int bell = __atomic_load_n(&charges.bell, __ATOMIC_ACQUIRE);

	if (bell >= 0 && when < charges.asleep)
		base_eventfd_ring(bell);
}

void charge_add(struct sock *s, bool closed, bool undecided, uint64_t begin)
{
	struct charge *c = &s->charge;
	bool before = c->listed;

	if (undecided && charges.undecided >= UNDECIDED_MAX)
		undecided_drop();
	if (!before) {
		*c = (struct charge){ .listed = true, .watched = -1, .undecided = undecided };
		charges.undecided += undecided;
		base_list_push_back(&charges.list, &c->node);
	}
	c->ready = true;
	c->begin = begin;
	if (closed && !c->closed)
		closed_note(c);
	__atomic_store_n(&s->attended, true, __ATOMIC_RELEASE);
	BASE_POINT(preload_attend_charged);
	wake_for(begin);
	if (before)
		sock_put(s);
}

/* --- looking --- */

static int charge_more(struct charge *c)
{
	struct stream *stream = charge_sock(c)->stream;

	return c->closed ? stream->ops->close_more(stream, &c->safe)
			 : stream->ops->progress(stream);
}

static bool charge_expired(const struct charge *c)
{
	if (!base_deadline_passed(c->deadline, base_now()))
		return false;
	if (!c->safe)
		charges_expired(1);
	return true;
}

void charge_decided(struct charge *c)
{
	charges.undecided -= c->undecided;
	c->undecided = false;
}

bool charge_is_awaited(struct sock *s)
{
	return s->stream->ops->serves(s->stream) || urgent_is_awaited(s);
}

/* Is there nothing more to do for it? @content: an acknowledgement will do */
static bool charge_over(struct charge *c, bool content)
{
	struct sock *s = charge_sock(c);
	struct stream *stream = s->stream;
	int left = charge_more(c);

	c->plain = left == -ENOMSG;
	if (c->plain)
		return false;
	if (c->closed)
		return left != -EAGAIN || (content && c->safe) || charge_expired(c);
	if (left != -EAGAIN)
		charge_decided(c);
	if (!left)
		sock_settle(s);
	else if (left != -EAGAIN)
		info_tell(s);
	return left != -EAGAIN && !stream->ops->owes(stream) && !charge_is_awaited(s);
}

/* One of which the peer is plain, for the caller alone; NULL */
static struct charge *plain_find(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		if (c->plain && !c->busy)
			return c;
	}
	return NULL;
}

static void plain_go(void)
{
	struct charge *c;

	while ((c = plain_find())) {
		c->busy = true;
		pthread_mutex_unlock(&charges.lock);
		sock_fall_back(charge_sock(c));
		pthread_mutex_lock(&charges.lock);
		charge_end(c);
	}
}

static bool is_due(const struct charge *c, bool all, uint64_t now)
{
	if (c->plain || !base_deadline_passed(c->begin, now))
		return false;
	return all || c->ready || base_deadline_passed(c->look, now);
}

void charges_go(bool all, bool content)
{
	struct base_list *node, *next;
	bool plain = false;

	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		if (!is_due(c, all, base_now()))
			continue;
		c->ready = false;
		c->look = 0; /* it was looked at, and is to be armed */
		if (charge_over(c, content))
			charge_end(c);
		else
			plain |= c->plain;
	}
	if (plain)
		plain_go();
}

/* --- what to wait for --- */

/* Input of an open stream is its program's, unless it is awaited; only room is waited for here */
static short charge_events(const struct charge *c)
{
	struct sock *s = base_container_of(c, struct sock, charge);
	short events = s->stream->ops->wait_events(s->stream, 0);

	return events & POLLOUT && !c->closed && !charge_is_awaited(s) ? POLLOUT : events;
}

static void charge_arm(struct charge *c, uint64_t now)
{
	struct stream *stream = charge_sock(c)->stream;
	short events = charge_events(c);
	bool rounds = c->closed || stream->ops->shared(stream) || !events ||
		      charge_watch(c, stream_wait_fd(stream), events);

	c->look = stream->ops->wait_deadline(stream);
	if (rounds)
		c->look = base_min(c->look, base_deadline(now, LOOK_AGAIN));
	c->look = base_max(c->look, 1ull);
}

uint64_t charges_arm(void)
{
	struct base_list *node, *next;
	uint64_t now = base_now(), first = BASE_NEVER;

	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);
		bool begun = base_deadline_passed(c->begin, now);

		if (begun && !c->look && !c->plain)
			charge_arm(c, now);
		first = base_min(first, begun ? c->look : c->begin);
	}
	return first;
}

/* What has nothing to be polled for would say for ever that it has ended */
static unsigned int charge_poll(const struct charge *c, struct pollfd *out, uint64_t *limit)
{
	struct stream *stream = base_container_of(c, struct sock, charge)->stream;
	short events = c->plain ? 0 : charge_events(c);

	if (!c->plain)
		*limit = base_min(*limit, stream->ops->wait_deadline(stream));
	*out = (struct pollfd){ .fd = stream_wait_fd(stream), .events = events };
	return events != 0;
}

unsigned int charges_poll_list(struct pollfd *fds, unsigned int max, uint64_t *limit)
{
	struct base_list *node, *next;
	uint64_t now = base_now();
	unsigned int n = 0;

	*limit = base_list_empty(&charges.list) ? BASE_NEVER : base_deadline(now, LOOK_AGAIN);
	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		if (n == max)
			break;
		if (base_deadline_passed(c->begin, now))
			n += charge_poll(c, &fds[n], limit);
		else
			*limit = base_min(*limit, c->begin);
	}
	return n;
}
