/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The attendant: a thread of our own for streams that nobody may call for.
 *
 * Closed streams still have the rest of their octets to send, DISCONNECT and the FIN, and to read
 * what arrives until the peer's FIN, since to close with input unread, or to be sent something
 * after the close, resets the connection. A stream whose connect() did not wait has a Reply to
 * take in while its program may sleep elsewhere, on the other end perhaps. And what a full kernel
 * did not take of something accepted must leave when there is room, also if the program never
 * calls again; since it mostly does, that one is left alone for a moment.
 *
 * The thread is started by the first stream that needs it, blocks all signals, and sleeps when
 * there is nothing. At exit the caller attends the closed ones itself, and is content with an
 * acknowledgement of all that was sent (stream/end.c says why that is enough).
 *
 * A stream whose peer turns out to speak plain TCP goes back to the kernel here (fallback.c), since
 * its program may wait for what the peer makes of octets that are held. That takes locks which come
 * before ours, so it is noted, and done with ours free; `busy` is who does it.
 */
#include "preload/sock/attend.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/map.h"
#include "base/point.h"
#include "base/sockutil.h"
#include "preload/guard/edge.h"
#include "preload/guard/sandbox.h"
#include "preload/rules/report.h"
#include "preload/sock/fallback.h"
#include "preload/table/internal.h"
#include "preload/table/life.h"

#define BATCH 64
#define STACK (128 * 1024u)
/* More of them than one poll takes, or one that nothing wakes for, are looked at so often */
#define LOOK_AGAIN (100 * BASE_NS_PER_MS)
/* So long the program is given to call by itself */
#define LEFT_ALONE BASE_NS_PER_MS
/* And so long, who has accepted, to fork for what it has */
#define FORK_TIME BASE_NS_PER_S

struct charge {
	struct base_list node;
	struct sock *sock;
	bool closed;
	bool safe; /* closed: all that was sent is acknowledged */
	bool plain, busy;
	uint64_t begin;	   /* not to be touched before */
	uint64_t deadline; /* closed: given up then */
};

static struct {
	pthread_mutex_t lock;
	struct base_list list;
	unsigned int closed;
	bool thread;
	bool stop;    /* the thread is to end */
	bool retired; /* and nobody waits for it */
	bool apart;
	pthread_t id;
	int bell;
} charges = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.list = BASE_LIST_INIT(charges.list),
	.bell = -1,
};

void attend_expired(unsigned int n)
{
	base_warn("%u connections: %s", n, config_reason_text(CONFIG_REASON_LINGER_EXPIRED));
	report_reason(CONFIG_REASON_LINGER_EXPIRED, n);
}

static void charge_end(struct charge *c)
{
	base_list_remove(&c->node);
	/* Threads that are not here may have held what a socket is given back by */
	if (charges.apart) {
		charges.closed -= c->closed;
		base_fd_close(stream_fd(c->sock->stream));
		return;
	}
	BASE_POINT(preload_attend_ended);
	__atomic_store_n(&c->sock->attended, false, __ATOMIC_RELEASE);
	charges.closed -= c->closed;
	sock_put(c->sock);
	base_map_destroy(c, sizeof(*c));
}

static int charge_more(struct charge *c)
{
	struct stream *stream = c->sock->stream;

	return c->closed ? stream->ops->close_more(stream, &c->safe)
			 : stream->ops->progress(stream);
}

static bool charge_expired(const struct charge *c)
{
	if (!base_deadline_passed(c->deadline, base_now()))
		return false;
	if (!c->safe)
		attend_expired(1);
	return true;
}

/* Is there nothing more to do for it? @content: an acknowledgement will do */
static bool charge_over(struct charge *c, bool content)
{
	struct stream *stream = c->sock->stream;
	int left = charge_more(c);

	c->plain = left == -ENOMSG;
	if (c->plain)
		return false;
	if (!left && !c->closed)
		sock_settle(c->sock);
	if (!c->closed)
		return left != -EAGAIN && !stream->ops->owes(stream) &&
		       !stream->ops->serves(stream);
	return left != -EAGAIN || (content && c->safe) || charge_expired(c);
}

/* Under the lock: one of which the peer is plain, for the caller alone; NULL */
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

/* Under the lock, which is free meanwhile */
static void plain_go(void)
{
	struct charge *c;

	while ((c = plain_find())) {
		c->busy = true;
		pthread_mutex_unlock(&charges.lock);
		sock_fall_back(c->sock);
		pthread_mutex_lock(&charges.lock);
		charge_end(c);
	}
}

/* Under the lock */
static void charges_go(bool content)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		if (!c->plain && base_deadline_passed(c->begin, base_now()) &&
		    charge_over(c, content))
			charge_end(c);
	}
	plain_go();
}

/*
 * Input of an open stream is its program's, and only room is waited for here; unless the peer may
 * use memory of ours, whatever the program does
 */
static short charge_events(const struct charge *c)
{
	struct stream *stream = c->sock->stream;
	short events = stream->ops->wait_events(stream, 0);

	return events & POLLOUT && !c->closed && !stream->ops->serves(stream) ? POLLOUT : events;
}

/* What has nothing to be polled for would say for ever that it has ended */
static unsigned int charge_poll(const struct charge *c, struct pollfd *out, uint64_t *limit)
{
	struct stream *stream = c->sock->stream;
	short events = c->plain ? 0 : charge_events(c);

	if (!c->plain)
		*limit = base_min(*limit, stream->ops->wait_deadline(stream));
	*out = (struct pollfd){ .fd = stream_wait_fd(stream), .events = events };
	return events != 0;
}

/* Under the lock: what to poll for the first of them, and until when */
static unsigned int charges_poll_list(struct pollfd *fds, uint64_t *limit)
{
	struct base_list *node, *next;
	uint64_t now = base_now();
	unsigned int n = 0;

	*limit = base_list_empty(&charges.list) ? BASE_NEVER : base_deadline(now, LOOK_AGAIN);
	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		if (n == BATCH)
			break;
		if (base_deadline_passed(c->begin, now))
			n += charge_poll(c, &fds[n], limit);
		else
			*limit = base_min(*limit, c->begin);
	}
	return n;
}

static void *attendant(void *arg)
{
	struct pollfd fds[BATCH + 1];
	uint64_t limit;
	unsigned int n;

	/* It never leaves: a device's libraries call libc by names that are ours, under the lock */
	edge_enter(false);
	for (;;) {
		pthread_mutex_lock(&charges.lock);
		if (charges.stop)
			break;
		charges_go(false);
		n = charges_poll_list(fds, &limit);
		pthread_mutex_unlock(&charges.lock);
		fds[n] = (struct pollfd){ .fd = charges.bell, .events = POLLIN };
		base_poll(fds, n + 1, limit);
		base_eventfd_drain(charges.bell);
	}
	if (charges.retired)
		pthread_detach(pthread_self());
	pthread_mutex_unlock(&charges.lock);
	return arg;
}

static int attendant_create(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = BASE_FAILS(thread) ? EAGAIN : pthread_create(&charges.id, &attr, attendant, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

static bool attendant_claim(void)
{
	bool mine;

	pthread_mutex_lock(&charges.lock);
	mine = !charges.thread && !base_list_empty(&charges.list);
	charges.thread |= mine;
	pthread_mutex_unlock(&charges.lock);
	return mine;
}

/* What a sandbox forbids would end the process, by a hand that is not ours */
static bool thread_may_be(void)
{
	return sandbox_may(SYS_clone) && sandbox_may(SYS_clone3);
}

static int bell_create(void)
{
	int fd, err;

	if (__atomic_load_n(&charges.bell, __ATOMIC_ACQUIRE) >= 0)
		return 0;
	err = base_eventfd_create(&fd);
	if (!err)
		__atomic_store_n(&charges.bell, internal_move(fd), __ATOMIC_RELEASE);
	return err;
}

/*
 * Not under the lock: a thread takes memory of the program's malloc, which may call us. Without it
 * the closed ones wait for other calls, or the exit, and the others for their callers.
 */
static void attendant_start(void)
{
	int err;

	if (!thread_may_be() || !attendant_claim())
		return;
	err = bell_create();
	if (!err)
		err = attendant_create();
	if (!err)
		return;
	base_warn("no thread for closed connections: %s", strerror(-err));
	pthread_mutex_lock(&charges.lock);
	charges.thread = false;
	pthread_mutex_unlock(&charges.lock);
}

void attend_wake(void)
{
	int bell = __atomic_load_n(&charges.bell, __ATOMIC_ACQUIRE);

	if (bell >= 0)
		base_eventfd_ring(bell);
}

/* Under the lock */
static int charge_add(struct sock *s, bool closed, uint64_t begin)
{
	struct charge *c;
	int err = base_map_create(sizeof(*c), (void **)&c);

	if (err)
		return err;
	c->sock = s;
	c->closed = closed;
	c->begin = begin;
	c->deadline = base_deadline(base_now(), sock_config.linger);
	__atomic_store_n(&s->attended, true, __ATOMIC_RELEASE);
	base_list_push_back(&charges.list, &c->node);
	BASE_POINT(preload_attend_charged);
	charges.closed += closed;
	attend_wake();
	return 0;
}

void attend_closed(struct sock *s)
{
	int err;

	pthread_mutex_lock(&charges.lock);
	err = charge_add(s, true, 0);
	pthread_mutex_unlock(&charges.lock);
	if (err)
		sock_put(s);
	attendant_start();
}

void attend_to_end(struct sock *s)
{
	struct stream *stream = s->stream;
	uint64_t deadline = base_deadline(base_now(), sock_config.linger);
	bool safe;
	int left;

	while ((left = stream->ops->close_more(stream, &safe)) == -EAGAIN &&
	       !base_deadline_passed(deadline, base_now())) {
		struct pollfd p = stream_pollfd(stream, 0);

		base_poll(&p, 1, base_min(deadline, base_deadline(base_now(), LOOK_AGAIN)));
	}
	if (left == -ENOMSG)
		sock_fall_back(s);
}

static void attend_open(struct sock *s, uint64_t begin)
{
	pthread_mutex_lock(&charges.lock);
	if (!s->attended) {
		fdtab_hold(&s->ent);
		if (charge_add(s, false, begin))
			sock_put(s);
	}
	pthread_mutex_unlock(&charges.lock);
	attendant_start();
}

void attend_starting(struct sock *s)
{
	attend_open(s, 0);
}

void attend_accepted(struct sock *s)
{
	attend_open(s, base_deadline(base_now(), FORK_TIME));
}

/* Where there is no thread, those who come by see to what was closed */
static void closed_go(void)
{
	pthread_mutex_lock(&charges.lock);
	if (charges.closed && !charges.thread)
		charges_go(false);
	pthread_mutex_unlock(&charges.lock);
}

void attend_owing(struct sock *s)
{
	if (__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED))
		closed_go();
	if (s->stream->ops->serves(s->stream))
		attend_open(s, 0);
	else if (s->stream->ops->owes(s->stream))
		attend_open(s, base_deadline(base_now(), LEFT_ALONE));
}

void attend_forget(struct sock *s)
{
	struct base_list *node, *next;

	pthread_mutex_lock(&charges.lock);
	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		if (c->sock == s && !c->busy)
			charge_end(c);
	}
	pthread_mutex_unlock(&charges.lock);
}

unsigned int attend_finish(uint64_t deadline)
{
	struct pollfd fds[BATCH];
	unsigned int n, left;
	uint64_t limit;

	for (;;) {
		pthread_mutex_lock(&charges.lock);
		charges_go(true);
		BASE_POINT(preload_attend_finishing);
		n = charges_poll_list(fds, &limit);
		left = charges.closed;
		pthread_mutex_unlock(&charges.lock);
		if (!left || base_deadline_passed(deadline, base_now()))
			return left;
		edge_pass();
		/* An acknowledgement wakes nobody */
		base_poll(fds, n, base_deadline(base_now(), BASE_NS_PER_MS));
	}
}

/* --- by another process, when this one's program goes --- */

/* A device's connection is of use to nobody but its owner, who waits for it */
static bool is_given(const struct charge *c)
{
	return c->closed && c->sock->stream->carrier < 0;
}

int attend_next(void *ctx, int from)
{
	struct base_list *node, *next;
	int least = -1;

	base_list_foreach(node, next, &charges.list) {
		int fd = stream_fd(base_list_entry(node, struct charge, node)->sock->stream);

		if (fd >= from && (least < 0 || fd < least))
			least = fd;
	}
	return least;
}

/* Only those that it was given are its own, and nobody else is here */
void attend_begin_apart(void)
{
	struct base_list *node, *next;

	pthread_mutex_init(&charges.lock, NULL);
	charges.bell = -1;
	charges.apart = true;
	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		pthread_mutex_init(&c->sock->lock, NULL);
		base_list_init(&c->sock->watches);
		if (is_given(c))
			continue;
		base_list_remove(&c->node);
		charges.closed -= c->closed;
	}
	fallback_renew();
}

/* One that goes back to the kernel just now is its process's to finish */
static bool any_plain(void)
{
	struct base_list *node, *next;
	bool any = false;

	base_list_foreach(node, next, &charges.list) {
		any |= base_list_entry(node, struct charge, node)->plain;
	}
	return any;
}

static bool any_given(void)
{
	struct base_list *node, *next;
	bool any = false;

	base_list_foreach(node, next, &charges.list) {
		any |= is_given(base_list_entry(node, struct charge, node));
	}
	return any;
}

/* They count as this process's, which is who has closed them */
static void charges_give(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		if (!is_given(c))
			continue;
		sock_report(c->sock);
		c->sock->stream->ops->disown(c->sock->stream);
		charge_end(c);
		BASE_POINT(preload_attend_given);
	}
}

bool attend_give(int (*make)(void))
{
	bool all;
	int err = 0;

	pthread_mutex_lock(&charges.lock);
	if (any_given())
		err = any_plain() ? -EBUSY : make();
	if (!err)
		charges_give();
	all = !charges.closed;
	pthread_mutex_unlock(&charges.lock);
	return all;
}

void attend_prepare(void)
{
	bell_create();
}

void attend_stop(bool for_good)
{
	bool there;

	pthread_mutex_lock(&charges.lock);
	there = charges.thread;
	charges.stop = there || for_good;
	charges.retired |= for_good;
	pthread_mutex_unlock(&charges.lock);
	if (!there || for_good)
		return;
	base_eventfd_ring(charges.bell);
	pthread_join(charges.id, NULL);
	pthread_mutex_lock(&charges.lock);
	charges.thread = charges.stop = false;
	pthread_mutex_unlock(&charges.lock);
}

void attend_confine(void)
{
	struct base_list *node, *next;

	pthread_mutex_lock(&charges.lock);
	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		if (c->closed)
			base_fd_set_nonblock(stream_fd(c->sock->stream), true);
	}
	pthread_mutex_unlock(&charges.lock);
}

unsigned int attend_threads(void)
{
	bool there;

	pthread_mutex_lock(&charges.lock);
	there = charges.thread;
	pthread_mutex_unlock(&charges.lock);
	return there;
}

void attend_before_fork(void)
{
	pthread_mutex_lock(&charges.lock);
}

static void charges_inherit(void)
{
	struct base_list *node, *next;

	charges.thread = charges.stop = charges.retired = false;
	internal_close(charges.bell);
	charges.bell = -1;
	base_list_foreach(node, next, &charges.list) {
		struct charge *c = base_list_entry(node, struct charge, node);

		c->plain = c->busy = false;
		if (!c->closed)
			continue;
		c->sock->stream->ops->disown(c->sock->stream);
		charge_end(c);
	}
	attendant_start();
}

void attend_after_fork(bool child)
{
	life_lock_drop(&charges.lock, child);
	if (child)
		charges_inherit();
}
