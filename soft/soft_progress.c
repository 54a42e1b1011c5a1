/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The progress thread of a device. It attends to connections while no caller does: in start-up,
 * while a frame is half written, while a peer may use memory without our program's doing, and
 * while they linger. It starts with the first connection.
 *
 * It sleeps on an epoll set in which each connection is armed for one event. When that comes and
 * a caller has attended to the connection within the last millisecond, or sleeps for one of its
 * completion queues (whose own set has the socket, too), the thread leaves it alone and looks
 * again a little later, each time twice as late; so two threads do not wake for one segment for
 * long. When no caller cares the thread does the work.
 *
 * Only the thread frees connections, after a round of events, for those carry pointers.
 *
 * From top to bottom: what to wait for (by whoever changed something, under tx), who attends, what
 * an event and what the time brings, the thread, its set-up.
 */
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "soft/soft_conn.h"
#include "soft/soft_fd.h"

#define ATTENDED_NS BASE_NS_PER_MS
#define PERIOD_MAX_NS (16 * BASE_NS_PER_MS)
#define CLOSE_WAIT_NS BASE_NS_PER_S

static struct soft_progress *progress_of(const struct soft_conn *c)
{
	return &c->dev->progress;
}

/* --- what to wait for --- */

/* Under tx: is there something that no caller may ever come for? */
static bool conn_needs(const struct soft_conn *c)
{
	switch (c->stage) {
	case SOFT_STAGE_TCP:
	case SOFT_STAGE_START:
		return !c->listener; /* that is polled itself */
	case SOFT_STAGE_OPEN:
		return c->state == WARP_CONN_CONNECTING || c->blocked || c->closing || c->watched ||
		       soft_tx_pending(&c->core) ||
		       (c->qp && __atomic_load_n(&c->qp->pd->remote, __ATOMIC_RELAXED));
	case SOFT_STAGE_LINGER:
		return true;
	default:
		return false;
	}
}

static uint64_t conn_due(const struct soft_conn *c)
{
	uint64_t due = __atomic_load_n(&c->start_by, __ATOMIC_RELAXED); /* set in soft_stage.c */
	uint64_t retry = __atomic_load_n(&c->write_retry_at, __ATOMIC_RELAXED);
	uint64_t linger = __atomic_load_n(&c->linger_by, __ATOMIC_RELAXED);

	due = base_min(due, retry);
	due = base_min(due, linger);
	return base_min(due, c->watch_at);
}

static void conn_arm(struct soft_conn *c)
{
	int epoll = progress_of(c)->epoll;
	uint32_t events = EPOLLONESHOT;

	if (c->fd < 0 || !conn_needs(c))
		return;
	events |= (uint32_t)soft_stage_events(c);
	if (soft_fd_watch(epoll, EPOLL_CTL_MOD, c->fd, events, c))
		soft_fd_watch(epoll, EPOLL_CTL_ADD, c->fd, events, c);
}

void soft_progress_unwatch(struct soft_conn *c)
{
	soft_fd_watch(progress_of(c)->epoll, EPOLL_CTL_DEL, c->fd, 0, NULL);
}

/* Under progress.lock */
static void due_set(struct soft_progress *p, struct soft_conn *c)
{
	c->due = conn_due(c);
	if (c->due >= p->next_due)
		return;
	p->next_due = c->due;
	base_eventfd_notify(p->wake);
}

/* Under progress.lock: the program has let it go, and so has the protocol */
static void dead_take(struct soft_progress *p, struct soft_conn *c)
{
	if (!c->zombie || c->stage != SOFT_STAGE_DONE || c->dead)
		return;
	c->dead = true;
	base_list_remove(&c->link);
	base_list_push_back(&p->dead, &c->link);
	base_eventfd_notify(p->wake);
}

void soft_progress_update(struct soft_conn *c)
{
	struct soft_progress *p = progress_of(c);

	pthread_mutex_lock(&p->lock);
	if (c->watch_at == BASE_NEVER)
		conn_arm(c);
	due_set(p, c);
	dead_take(p, c);
	pthread_mutex_unlock(&p->lock);
}

void soft_progress_update_all(struct soft_device *d)
{
	struct soft_progress *p = &d->progress;

	pthread_mutex_lock(&p->lock);
	p->changed = true;
	base_eventfd_notify(p->wake);
	pthread_mutex_unlock(&p->lock);
}

/* --- the thread --- */

static bool cq_attended(const struct soft_cq *cq, uint64_t now)
{
	return __atomic_load_n(&cq->attended, __ATOMIC_RELAXED) + ATTENDED_NS > now ||
	       __atomic_load_n(&cq->waiters, __ATOMIC_RELAXED);
}

/* Is a caller at work on it, or about to be woken for it? */
static bool conn_attended(const struct soft_conn *c, uint64_t now)
{
	if (c->stage != SOFT_STAGE_OPEN)
		return false;
	if (__atomic_load_n(&c->attended, __ATOMIC_RELAXED) + ATTENDED_NS > now)
		return true;
	return c->qp && (cq_attended(c->qp->send_cq, now) || cq_attended(c->qp->recv_cq, now));
}

/* An event may be older than the connection's end */
static bool conn_dead(struct soft_progress *p, const struct soft_conn *c)
{
	bool dead;

	pthread_mutex_lock(&p->lock);
	dead = c->dead;
	pthread_mutex_unlock(&p->lock);
	return dead;
}

/* When a caller attends to it, the next look is later; false: nobody does */
static bool leave_to_caller(struct soft_progress *p, struct soft_conn *c)
{
	uint64_t now = base_now();
	bool attended;

	pthread_mutex_lock(&c->tx);
	attended = conn_attended(c, now);
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_lock(&p->lock);
	if (attended) {
		c->watch_at = base_deadline(now, c->period);
		c->period = base_min(2 * c->period, PERIOD_MAX_NS);
		due_set(p, c);
	} else {
		c->period = ATTENDED_NS;
	}
	pthread_mutex_unlock(&p->lock);
	return attended;
}

/* The thread was woken for these; those without a connection are for itself */
static void events_take(struct soft_progress *p, const struct epoll_event *ev, int n)
{
	struct soft_conn *conns[SOFT_EVENTS];
	unsigned int there = 0;

	for (int i = 0; i < n; i++) {
		struct soft_conn *c = ev[i].data.ptr;

		if (!c)
			base_eventfd_drain(p->wake);
		else if (!conn_dead(p, c) && !leave_to_caller(p, c))
			conns[there++] = c;
	}
	soft_batch_attend(p->uring, conns, there);
	for (unsigned int i = 0; i < there; i++) {
		pthread_mutex_lock(&conns[i]->tx);
		soft_progress_update(conns[i]);
		pthread_mutex_unlock(&conns[i]->tx);
	}
}

/* Takes up to @max connections that are due; next_due is then right for the others */
static unsigned int due_take(struct soft_progress *p, uint64_t now, struct soft_conn **out,
			     unsigned int max)
{
	struct base_list *at, *next;
	unsigned int n = 0;

	p->next_due = BASE_NEVER;
	base_list_foreach(at, next, &p->conns) {
		struct soft_conn *c = base_list_entry(at, struct soft_conn, link);

		if (n < max && base_deadline_passed(c->due, now)) {
			c->due = BASE_NEVER;
			if (base_deadline_passed(c->watch_at, now))
				c->watch_at = BASE_NEVER;
			out[n++] = c;
		} else {
			p->next_due = base_min(p->next_due, c->due);
		}
	}
	return n;
}

static void timers_run(struct soft_progress *p)
{
	struct soft_conn *due[SOFT_EVENTS];
	uint64_t now = base_now();
	unsigned int n = 0;

	pthread_mutex_lock(&p->lock);
	if (base_deadline_passed(p->next_due, now))
		n = due_take(p, now, due, SOFT_EVENTS);
	pthread_mutex_unlock(&p->lock);
	for (unsigned int i = 0; i < n; i++)
		soft_stage_timer(due[i], now);
}

/*
 * All connections, one after the other; nobody else frees them, and new ones are added at the
 * front
 */
static void update_each(struct soft_progress *p)
{
	struct base_list *at;

	pthread_mutex_lock(&p->lock);
	p->changed = false;
	for (at = p->conns.next; at != &p->conns;) {
		struct soft_conn *c = base_list_entry(at, struct soft_conn, link);
		bool dead;

		pthread_mutex_unlock(&p->lock);
		pthread_mutex_lock(&c->tx);
		soft_progress_update(c);
		pthread_mutex_unlock(&c->tx);
		pthread_mutex_lock(&p->lock);
		dead = c->dead;
		at = dead ? p->conns.next : c->link.next;
	}
	pthread_mutex_unlock(&p->lock);
}

static void dead_free(struct soft_progress *p)
{
	struct base_list *at;
	struct soft_conn *c;

	for (;;) {
		pthread_mutex_lock(&p->lock);
		at = base_list_pop_front(&p->dead);
		pthread_mutex_unlock(&p->lock);
		if (!at)
			return;
		c = base_list_entry(at, struct soft_conn, link);
		/* Who made it dead may still be in the call that lets this lock go */
		pthread_mutex_lock(&c->tx);
		pthread_mutex_unlock(&c->tx);
		soft_conn_free(c);
	}
}

static bool go_on(struct soft_progress *p, uint64_t *deadline, bool *changed, int *timeout)
{
	uint64_t now = base_now();
	bool stop;

	pthread_mutex_lock(&p->lock);
	if (p->stop && *deadline == BASE_NEVER)
		*deadline = base_deadline(now, CLOSE_WAIT_NS);
	stop = p->stop && (base_list_empty(&p->conns) || base_deadline_passed(*deadline, now));
	*changed = p->changed;
	*timeout = base_deadline_poll_ms(base_min(p->next_due, *deadline), now);
	pthread_mutex_unlock(&p->lock);
	return !stop;
}

static void *progress_run(void *arg)
{
	struct soft_progress *p = arg;
	struct epoll_event ev[SOFT_EVENTS];
	uint64_t deadline = BASE_NEVER;
	bool changed = false;
	int timeout = -1, n;

	while (go_on(p, &deadline, &changed, &timeout)) {
		if (changed)
			update_each(p);
		n = soft_fd_events(p->epoll, ev, SOFT_EVENTS, changed ? 0 : timeout);
		events_take(p, ev, n);
		timers_run(p);
		dead_free(p);
	}
	return NULL;
}

/* --- set-up --- */

int soft_progress_init(struct soft_progress *p)
{
	int err = base_eventfd_create(&p->wake);

	if (err)
		return err;
	p->epoll = err = soft_fd_epoll();
	if (err >= 0)
		err = soft_fd_watch(p->epoll, EPOLL_CTL_ADD, p->wake, EPOLLIN, NULL);
	if (err) {
		base_fd_close(p->epoll);
		base_fd_close(p->wake);
		return err;
	}
	base_list_init(&p->conns);
	base_list_init(&p->dead);
	p->next_due = BASE_NEVER;
	p->uring = soft_batch_ring();
	pthread_mutex_init(&p->lock, NULL);
	return 0;
}

void soft_progress_uninit(struct soft_progress *p)
{
	struct base_list *at;

	pthread_mutex_lock(&p->lock);
	p->stop = true;
	base_eventfd_notify(p->wake);
	pthread_mutex_unlock(&p->lock);
	if (p->running)
		pthread_join(p->thread, NULL);
	dead_free(p);
	while ((at = base_list_pop_front(&p->conns)))
		soft_conn_free(base_list_entry(at, struct soft_conn, link));
	llp_uring_destroy(p->uring);
	base_fd_close(p->epoll);
	base_fd_close(p->wake);
	pthread_mutex_destroy(&p->lock);
}

/* A program's signals are its own threads' */
static int thread_start(struct soft_progress *p)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&p->thread, NULL, progress_run, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	p->running = !err;
	if (err)
		base_err("no progress thread: %s", strerror(-err));
	return err;
}

int soft_progress_add(struct soft_conn *c)
{
	struct soft_progress *p = progress_of(c);
	int err = 0;

	pthread_mutex_lock(&p->lock);
	if (!p->running)
		err = thread_start(p);
	if (!err)
		base_list_push_front(&p->conns, &c->link);
	pthread_mutex_unlock(&p->lock);
	return err;
}

void soft_progress_remove(struct soft_conn *c)
{
	pthread_mutex_lock(&c->tx);
	c->zombie = true;
	soft_progress_update(c);
	pthread_mutex_unlock(&c->tx);
}
