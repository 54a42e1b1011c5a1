/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams that the worker thread attends to.
 *
 * An entry is part of its socket, so to enter one takes no memory, and to take one out no search.
 * The thread sleeps on an epoll set in which each is armed for one event: so a look costs what is
 * ready, not what is there, and an entry that is left in the set by mistake speaks once. Where
 * there is no set (a filter, no descriptors) all are looked at by rounds. Closed ones whose peers
 * have everything, or will have it by TCP's doing, may be many, and stay for as long as their peers
 * do: they stand in a list of their own, and nobody walks over them.
 *
 * The lock is not held while a thread works on an entry: `busy` says that one does, and only that
 * one ends it. Who must have all of them at rest waits for those (work_list_lock()).
 *
 * A stream whose peer turns out to speak plain TCP goes back to the kernel (fallback.c), since its
 * program may wait for what the peer makes of octets that are held.
 */
#include "preload/sock/work_item.h"

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
#include "preload/sock/info.h"
#include "preload/sock/single_flight.h"
#include "preload/sock/sock.h"
#include "preload/sock/urgent.h"
#include "preload/sock/worker.h"

#define BATCH 64
/* What wakes nobody is looked at so often: acknowledgements, and what other processes do */
#define ACKED_POLL (100 * BASE_NS_PER_MS)
/* A closed one stays for so long at least, if its peer has not closed, and there is room for it */
#define STAY_LEAST BASE_NS_PER_S
/* Who looks for one that may go looks at so many */
#define TRIES 16
/* Who waits for others to be at rest looks so often */
#define REST_LOOK (100 * BASE_NS_PER_US)
/* Connections of a process that may be undecided */
#define UNDECIDED_MAX 4096

struct work_list work_list = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.list = BASE_LIST_INIT(work_list.list),
	.quiet = BASE_LIST_INIT(work_list.quiet),
	.set = -1,
	.wakeup = -1,
};

struct sock *work_item_sock(struct work_item *c)
{
	return base_container_of(c, struct sock, work);
}

void work_list_expired(unsigned int n)
{
	base_warn("%u connections: %s", n, config_reason_text(CONFIG_REASON_LINGER_EXPIRED));
	report_reason(CONFIG_REASON_LINGER_EXPIRED, n);
}

void work_list_crowded(void)
{
	base_warn("a closed connection: %s", config_reason_text(CONFIG_REASON_LINGER_CROWDED));
	report_reason(CONFIG_REASON_LINGER_CROWDED, 1);
}

/* --- the set --- */

static int set_ctl(int op, int fd, short events, struct work_item *c)
{
	struct epoll_event event = { .events = (uint32_t)events | EPOLLONESHOT, .data.ptr = c };
	int saved = errno, err = 0;

	if (syscall(SYS_epoll_ctl, work_list.set, op, fd, &event) < 0)
		err = -errno;
	errno = saved;
	return err;
}

static void work_item_unwatch(struct work_item *c)
{
	if (c->watched >= 0 && work_list.set >= 0)
		set_ctl(EPOLL_CTL_DEL, c->watched, 0, NULL);
	c->watched = -1;
}

static int work_item_watch(struct work_item *c, int fd, short events)
{
	int err;

	if (work_list.set < 0)
		return -ENOSYS;
	if (c->watched == fd)
		return set_ctl(EPOLL_CTL_MOD, fd, events, c);
	work_item_unwatch(c);
	err = set_ctl(EPOLL_CTL_ADD, fd, events, c);
	/* A registration of the file's that stands under this number, and of nobody's knowing */
	if (err == -EEXIST)
		err = set_ctl(EPOLL_CTL_MOD, fd, events, c);
	if (!err)
		c->watched = fd;
	return err;
}

/* To be looked at, or armed */
static void list_put(struct work_item *c)
{
	base_list_remove(&c->node);
	base_list_push_back(&work_list.list, &c->node);
}

/* As TCP keeps what is closed at one end alone: not for ever, if the peer has all */
static void stay(struct work_item *c)
{
	c->let_go = base_deadline(base_now(), base_max(sock_config.linger, STAY_LEAST));
}

/* All stay for as long, so the order of coming is that of their times, or nearly */
static void quiet_put(struct work_item *c)
{
	c->look = c->let_go;
	base_list_remove(&c->node);
	base_list_push_back(&work_list.quiet, &c->node);
}

static void work_item_rouse(struct work_item *c)
{
	work_item_unwatch(c);
	c->ready = true;
	if (!c->busy)
		list_put(c);
}

void work_list_lock(void)
{
	struct base_list *node;

	pthread_mutex_lock(&work_list.lock);
	work_list.waiting++;
	while (work_list.working) {
		pthread_mutex_unlock(&work_list.lock);
		base_poll(NULL, 0, base_deadline(base_now(), REST_LOOK));
		pthread_mutex_lock(&work_list.lock);
	}
	work_list.waiting--;
	while ((node = base_list_first(&work_list.quiet)))
		list_put(base_list_entry(node, struct work_item, node));
}

void work_list_hear(void)
{
	struct epoll_event got[BATCH];
	int saved = errno, n = -1;

	if (work_list.set >= 0)
		n = (int)syscall(SYS_epoll_pwait, work_list.set, got, BATCH, 0, NULL, 0);
	errno = saved;
	for (int i = 0; i < n; i++) {
		struct work_item *c = got[i].data.ptr;

		c->ready = c->listed; /* else it has ended since */
		if (c->ready && !c->busy)
			list_put(c);
	}
}

/* --- the list --- */

void work_item_end(struct work_item *c)
{
	struct sock *s = work_item_sock(c);

	work_item_unwatch(c);
	base_list_remove(&c->node);
	c->dropped = false;
	__atomic_store_n(&c->listed, false, __ATOMIC_RELEASE);
	work_list.closed -= c->closed;
	work_list.undecided -= c->undecided;
	c->closed = c->undecided = false;
	/* Threads that are not here may have held what a socket is given back by */
	if (work_list.in_helper) {
		base_fd_close(stream_fd(s->stream));
		return;
	}
	BASE_POINT(preload_worker_ended);
	sock_put(s);
}

void work_item_drop(struct work_item *c)
{
	if (c->busy)
		c->dropped = true;
	else
		work_item_end(c);
}

/* The oldest makes room: in mode on it is reset, in auto it waits for its program's calls */
static void undecided_drop(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);
		struct sock *s = work_item_sock(c);

		if (!c->undecided || c->busy)
			continue;
		if (s->opts.mode == CONFIG_USE_DDP)
			base_sock_abort(stream_fd(s->stream));
		work_item_end(c);
		return;
	}
}

static void closed_note(struct work_item *c)
{
	c->closed = true;
	stay(c);
	work_list.closed++;
}

void work_list_wake(void)
{
	int wakeup = __atomic_load_n(&work_list.wakeup, __ATOMIC_ACQUIRE);

	if (wakeup >= 0)
		base_eventfd_notify(wakeup);
}

static void wake_for(uint64_t when)
{
	if (when < work_list.asleep)
		work_list_wake();
}

/* But for `listed`, which others look at without the lock: it is false here */
static void item_renew(struct work_item *c, bool undecided)
{
	c->undecided = undecided;
	c->closed = c->plain = c->busy = c->dropped = c->ready = false;
	c->watched = -1;
	c->begin = c->look = c->let_go = 0;
}

void work_item_add(struct sock *s, bool closed, bool undecided, uint64_t begin)
{
	struct work_item *c = &s->work;
	bool before = c->listed;

	if (undecided && work_list.undecided >= UNDECIDED_MAX)
		undecided_drop();
	if (!before) {
		item_renew(c, undecided);
		work_list.undecided += undecided;
		base_list_push_back(&work_list.list, &c->node);
	}
	c->ready = true;
	c->dropped = false;
	c->begin = begin;
	if (!c->busy)
		list_put(c);
	if (closed && !c->closed)
		closed_note(c);
	__atomic_store_n(&c->listed, true, __ATOMIC_RELEASE);
	BASE_POINT(preload_worker_charged);
	wake_for(begin);
	if (before)
		sock_put(s);
}

void work_item_moved(struct sock *s)
{
	pthread_mutex_lock(&work_list.lock);
	if (s->work.listed) {
		work_item_rouse(&s->work);
		work_list_wake();
	}
	pthread_mutex_unlock(&work_list.lock);
}

/* --- looking --- */

void work_item_decided(struct work_item *c)
{
	work_list.undecided -= c->undecided;
	c->undecided = false;
}

/*
 * No lock. What is left to do for a closed one: -EAGAIN, -ENOMSG, 0. Its time alone ends nothing:
 * as long as TCP has something to deliver, it has all of it
 */
static int closed_work(struct work_item *c, enum work_item_enough enough)
{
	struct stream *stream = work_item_sock(c)->stream;
	bool safe, late = base_deadline_passed(c->let_go, base_now());
	int left = stream_close_more(stream, &safe);

	if (left == -EAGAIN && safe && (enough != WORK_ITEM_PEER_ENDED || late))
		return 0;
	if (left == -EAGAIN && enough == WORK_ITEM_DATA_ACKED && stream_only_end_left(stream))
		return 0;
	if (late)
		stay(c);
	return left;
}

/* No lock. The same for an open one; 0 and worse: its program sees to it */
static int open_work(struct work_item *c)
{
	struct sock *s = work_item_sock(c);
	struct stream *stream = s->stream;
	int left = stream_progress(stream);

	if (!left)
		sock_settle(s);
	else if (left != -EAGAIN && left != -ENOMSG)
		info_tell(s);
	return left;
}

/* An open one: is there nothing more to do for it? */
static bool open_over(struct work_item *c, int left)
{
	struct sock *s = work_item_sock(c);

	if (left != -EAGAIN)
		work_item_decided(c);
	return left != -EAGAIN && !stream_owes(s->stream) && !worker_is_awaited(s);
}

/* One look, with the lock free meanwhile; is it over, and gone? */
static bool work_item_go(struct work_item *c, enum work_item_enough enough)
{
	bool closed = c->closed;
	int left;

	list_put(c);
	c->ready = false;
	c->look = 0; /* it was looked at, and is to be armed */
	c->busy = true;
	work_list.working++;
	pthread_mutex_unlock(&work_list.lock);
	left = closed ? closed_work(c, enough) : open_work(c);
	BASE_POINT(preload_charge_worked);
	pthread_mutex_lock(&work_list.lock);
	work_list.working--;
	c->busy = false;
	c->plain = left == -ENOMSG && !c->dropped;
	if (c->plain || (!c->dropped && closed != c->closed))
		return false;
	if (!c->dropped && (closed ? left == -EAGAIN : !open_over(c, left)))
		return false;
	work_item_end(c);
	return true;
}

/* One of which the peer is plain, for the caller alone; NULL */
static struct work_item *plain_find(void)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		if (c->plain && !c->busy)
			return c;
	}
	return NULL;
}

static void plain_go(void)
{
	struct work_item *c;

	while ((c = plain_find())) {
		list_put(c);
		c->busy = true;
		pthread_mutex_unlock(&work_list.lock);
		sock_ops(work_item_sock(c))->fall_back(work_item_sock(c));
		pthread_mutex_lock(&work_list.lock);
		c->busy = false;
		work_item_end(c);
	}
}

static bool is_due(const struct work_item *c, bool all, uint64_t now)
{
	if (c->plain || c->busy || !(base_deadline_passed(c->begin, now) || (all && c->closed)))
		return false;
	return all || c->ready || base_deadline_passed(c->look, now);
}

/* Those whose time has come stand in the list then */
static void quiet_wake(bool all, uint64_t now)
{
	struct base_list *node;

	while ((node = base_list_first(&work_list.quiet))) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		if (!all && !base_deadline_passed(c->look, now))
			break;
		list_put(c);
	}
}

/* Each once, though others may enter and end some meanwhile: who comes takes it out of @todo */
static void due_find(bool all, uint64_t now, struct base_list *todo)
{
	struct base_list *node, *next;

	quiet_wake(all, now);
	base_list_foreach(node, next, &work_list.list) {
		if (!is_due(base_list_entry(node, struct work_item, node), all, now))
			continue;
		base_list_remove(node);
		base_list_push_back(todo, node);
	}
}

void work_list_go(bool all, enum work_item_enough enough)
{
	struct base_list todo = BASE_LIST_INIT(todo), *node;

	due_find(all, base_now(), &todo);
	while ((node = base_list_first(&todo))) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		c->ready = true;
		if (work_list.waiting || work_list.over)
			list_put(c);
		else
			work_item_go(c, enough);
	}
	plain_go();
}

/* Each is looked at once: the thread arms it if it is not over */
static bool is_for_callers(const struct work_item *c, uint64_t begin)
{
	return c->closed && c->ready && c->begin && c->begin < begin && !c->busy && !c->plain;
}

void work_list_tidy(uint64_t begin)
{
	struct base_list *node = base_list_first(&work_list.list);

	for (int i = 0; i < TRIES && node && !work_list.waiting && !work_list.over; i++) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		if (!is_for_callers(c, begin))
			return;
		work_item_go(c, WORK_ITEM_PEER_ENDED);
		node = base_list_first(&work_list.list);
	}
}

/* The worker thread may not have come to the last ones yet */
static struct work_item *closed_first(void)
{
	struct base_list *node = base_list_first(&work_list.quiet), *next;

	if (node)
		return base_list_entry(node, struct work_item, node);
	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		if (c->closed && !c->busy && !c->plain)
			return c;
	}
	return NULL;
}

bool work_list_let_go(void)
{
	struct work_item *c;

	for (int i = 0; i < TRIES && (c = closed_first()); i++) {
		bool armed = c->look && c->watched >= 0;

		if (work_item_go(c, WORK_ITEM_DATA_ACKED))
			return true;
		/* The kernel tells of it as before */
		if (armed && c->listed && c->closed && !c->busy && !c->ready && !c->plain)
			quiet_put(c);
		else
			wake_for(0);
	}
	return false;
}

bool work_list_leave(void)
{
	struct work_item *c = closed_first();

	if (!c)
		return false;
	work_list_crowded();
	work_item_end(c);
	return true;
}

/* --- what to wait for --- */

/* Input of an open stream is its program's, unless it is awaited; only room is waited for here */
static short work_item_events(const struct work_item *c)
{
	struct sock *s = base_container_of(c, struct sock, work);
	short events = stream_wait_events(s->stream, 0);

	return events & POLLOUT && !c->closed && !worker_is_awaited(s) ? POLLOUT : events;
}

static void work_item_arm(struct work_item *c, uint64_t now)
{
	struct stream *stream = work_item_sock(c)->stream;
	short events = work_item_events(c);
	/* What an acknowledgement changes, or another process, wakes nobody; nor does a device */
	bool rounds = stream_shared(stream) || !events || (c->closed && stream->carrier >= 0) ||
		      work_item_watch(c, stream_wait_fd(stream), events);

	c->look = stream_more(stream) ? now : stream_wait_deadline(stream);
	if (rounds)
		c->look = base_min(c->look, base_deadline(now, ACKED_POLL));
	c->look = base_max(c->look, 1ull);
	if (c->closed && c->look == BASE_NEVER)
		quiet_put(c);
}

/* When it is to be looked at; 0: at once */
static uint64_t arm_time(const struct work_item *c, bool begun)
{
	if (!begun)
		return c->begin;
	if (c->plain)
		return BASE_NEVER;
	return c->ready ? 0 : c->look;
}

uint64_t work_list_arm(void)
{
	struct base_list *node, *next;
	uint64_t now = base_now(), first = BASE_NEVER;

	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);
		bool begun = base_deadline_passed(c->begin, now);

		if (c->busy)
			continue;
		if (begun && !c->ready && !c->look && !c->plain)
			work_item_arm(c, now);
		first = base_min(first, arm_time(c, begun));
	}
	node = base_list_first(&work_list.quiet);
	return node ? base_min(first, base_list_entry(node, struct work_item, node)->look) : first;
}

/* What has nothing to be polled for would say for ever that it has ended */
static unsigned int work_item_poll(const struct work_item *c, struct pollfd *out, uint64_t *limit)
{
	struct stream *stream = base_container_of(c, struct sock, work)->stream;
	short events = c->plain ? 0 : work_item_events(c);

	if (!c->plain)
		*limit = base_min(*limit, stream_wait_deadline(stream));
	*out = (struct pollfd){ .fd = stream_wait_fd(stream), .events = events };
	return events != 0;
}

unsigned int work_list_poll_list(struct pollfd *fds, unsigned int max, uint64_t *limit)
{
	struct base_list *node, *next;
	uint64_t now = base_now();
	unsigned int n = 0;

	*limit = base_list_empty(&work_list.list) ? BASE_NEVER : base_deadline(now, ACKED_POLL);
	base_list_foreach(node, next, &work_list.list) {
		struct work_item *c = base_list_entry(node, struct work_item, node);

		if (n == max)
			break;
		if (base_deadline_passed(c->begin, now))
			n += work_item_poll(c, &fds[n], limit);
		else
			*limit = base_min(*limit, c->begin);
	}
	return n;
}
