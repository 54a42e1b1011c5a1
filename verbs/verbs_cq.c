/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues.
 *
 * A program's queue stands for one queue of the device for each of its queue pairs, each with
 * room for all that can be posted, and one channel by which the device wakes. Who polls looks at
 * each of them. Who sleeps does so on an epoll set of that channel, of the connections' event
 * channels, so that their ends are seen, and of an event of ours for completions that the device
 * knows nothing of.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/sockutil.h"
#include "verbs/verbs_conn.h"

#define EVENTS 32
#define DRIVE_NS BASE_NS_PER_MS
#define HELD_NS (10 * BASE_NS_PER_MS)

static int watch(struct verbs_cq *cq, int op, int fd, struct verbs_conn *c)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };

	return syscall(SYS_epoll_ctl, cq->epoll, op, fd, &ev) ? -errno : 0;
}

static void cq_free(struct verbs_cq *cq)
{
	if (cq->channel)
		verbs_call(ibv_destroy_comp_channel)(cq->channel);
	base_fd_close(cq->epoll);
	base_fd_close(cq->event);
	pthread_mutex_destroy(&cq->lock);
	pthread_mutex_destroy(&cq->drive);
	free(cq);
}

static int cq_fds_open(struct verbs_cq *cq, struct ibv_context *ctx)
{
	int err = base_eventfd_create(&cq->event);

	if (err)
		return err;
	errno = 0;
	cq->epoll = (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC);
	if (cq->epoll < 0)
		return verbs_error();
	cq->channel = verbs_call(ibv_create_comp_channel)(ctx);
	if (!cq->channel)
		return verbs_error();
	err = base_fd_set_nonblock(cq->channel->fd, true);
	if (!err)
		err = watch(cq, EPOLL_CTL_ADD, cq->channel->fd, NULL);
	return err ? err : watch(cq, EPOLL_CTL_ADD, cq->event, NULL);
}

int verbs_cq_create(struct warp_device *dev, unsigned int entries, struct warp_cq **out)
{
	struct verbs_device *d = verbs_device_of(dev);
	struct verbs_cq *cq;
	int err;

	if (entries > (unsigned int)d->attr.max_cqe)
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->cq.dev = dev;
	cq->event = cq->epoll = -1;
	base_list_init(&cq->halves);
	pthread_mutex_init(&cq->lock, NULL);
	pthread_mutex_init(&cq->drive, NULL);
	err = cq_fds_open(cq, d->ctx);
	if (err) {
		cq_free(cq);
		return err;
	}
	verbs_device_get(d);
	*out = &cq->cq;
	return 0;
}

int verbs_cq_destroy(struct warp_cq *wcq)
{
	struct verbs_device *d = verbs_device_of(wcq->dev);
	struct verbs_cq *cq = verbs_cq_of(wcq);

	if (__atomic_load_n(&cq->users, __ATOMIC_ACQUIRE)) /* pairs with verbs_qp_destroy() */
		return -EBUSY;
	cq_free(cq);
	verbs_device_put(d);
	return 0;
}

/* --- connections of its queue pairs --- */

int verbs_cq_join(struct verbs_cq *cq, struct verbs_conn *c, int fd)
{
	int err;

	pthread_mutex_lock(&cq->drive);
	err = watch(cq, EPOLL_CTL_ADD, fd, c);
	pthread_mutex_unlock(&cq->drive);
	return err;
}

/* When it returns nobody attends to the connection on the queue's behalf */
void verbs_cq_leave(struct verbs_cq *cq, int fd)
{
	pthread_mutex_lock(&cq->drive);
	watch(cq, EPOLL_CTL_DEL, fd, NULL);
	pthread_mutex_unlock(&cq->drive);
}

/* Those of which something has failed and the end is not known: some, if they are many */
static unsigned int held_conns(struct verbs_cq *cq, struct verbs_conn **out)
{
	struct base_list *at, *next;
	unsigned int n = 0;

	pthread_mutex_lock(&cq->lock);
	base_list_foreach(at, next, &cq->halves) {
		struct verbs_half *h = base_list_entry(at, struct verbs_half, link);

		pthread_mutex_lock(&h->qp->lock);
		if (n < EVENTS && verbs_half_held(h))
			out[n++] = h->qp->conn;
		pthread_mutex_unlock(&h->qp->lock);
	}
	pthread_mutex_unlock(&cq->lock);
	return n;
}

static void attend(struct verbs_conn *c)
{
	pthread_mutex_lock(&c->lock);
	verbs_cm_attend(c);
	pthread_mutex_unlock(&c->lock);
}

/* Under cq.drive no connection leaves, so none is freed */
static void cq_drive(struct verbs_cq *cq)
{
	struct verbs_conn *held[EVENTS];
	struct epoll_event ev[EVENTS];
	unsigned int waiting;
	long n;

	if (pthread_mutex_trylock(&cq->drive))
		return;
	__atomic_store_n(&cq->driven, base_now(), __ATOMIC_RELAXED); /* read by cq_drive_due() */
	n = syscall(SYS_epoll_pwait, cq->epoll, ev, EVENTS, 0, NULL, 0);
	for (long i = 0; i < n; i++)
		if (ev[i].data.ptr)
			attend(ev[i].data.ptr);
	waiting = held_conns(cq, held);
	for (unsigned int i = 0; i < waiting; i++)
		attend(held[i]);
	pthread_mutex_unlock(&cq->drive);
}

/* Connections begin and end: that is not worth a system call with each look at an empty queue */
static bool cq_drive_due(const struct verbs_cq *cq)
{
	return base_now() - __atomic_load_n(&cq->driven, __ATOMIC_RELAXED) > DRIVE_NS;
}

/* --- polling --- */

/* Under cq.lock. Each queue pair in turn is the first. */
static int cq_take(struct verbs_cq *cq, struct warp_wc *wc, int n)
{
	struct base_list *at, *next;
	int got = 0;

	base_list_foreach(at, next, &cq->halves) {
		struct verbs_half *h = base_list_entry(at, struct verbs_half, link);

		pthread_mutex_lock(&h->qp->lock);
		verbs_half_reap(h);
		got += verbs_half_take(h, wc + got, n - got);
		pthread_mutex_unlock(&h->qp->lock);
		if (n && got == n)
			break;
	}
	if (got && at != &cq->halves) {
		base_list_remove(at);
		base_list_push_back(&cq->halves, at);
	}
	return got;
}

static int cq_look(struct verbs_cq *cq, struct warp_wc *wc, int n)
{
	int got;

	pthread_mutex_lock(&cq->lock);
	got = cq_take(cq, wc, n);
	pthread_mutex_unlock(&cq->lock);
	return got;
}

int verbs_cq_poll(struct warp_cq *wcq, struct warp_wc *wc, int n)
{
	struct verbs_cq *cq = verbs_cq_of(wcq);
	int got = cq_look(cq, wc, n);

	if (got || !cq_drive_due(cq))
		return got;
	cq_drive(cq);
	return cq_look(cq, wc, n);
}

/* --- sleeping --- */

void verbs_cq_ring(struct verbs_cq *cq)
{
	base_eventfd_notify(cq->event);
}

/* Under cq.lock */
static int arm(struct verbs_cq *cq, bool solicited_only)
{
	struct base_list *at, *next;
	int err = 0;

	base_list_foreach(at, next, &cq->halves) {
		struct verbs_half *h = base_list_entry(at, struct verbs_half, link);

		if (!err)
			err = -ibv_req_notify_cq(h->ibv, solicited_only);
	}
	return err;
}

int verbs_cq_arm(struct warp_cq *wcq, bool solicited_only)
{
	struct verbs_cq *cq = verbs_cq_of(wcq);
	int err;

	pthread_mutex_lock(&cq->lock);
	err = arm(cq, solicited_only);
	pthread_mutex_unlock(&cq->lock);
	return err;
}

int verbs_cq_fd(struct warp_cq *cq)
{
	return verbs_cq_of(cq)->epoll;
}

/* Under cq.lock: no queue of the device's goes before its event is acknowledged */
static void drain(struct verbs_cq *cq)
{
	struct ibv_cq *ibv;
	void *context;

	base_eventfd_drain(cq->event);
	while (!verbs_call(ibv_get_cq_event)(cq->channel, &ibv, &context))
		verbs_call(ibv_ack_cq_events)(ibv, 1);
}

/* The events are also what callers of verbs_cq_wait() sleep for */
int verbs_cq_ack(struct warp_cq *wcq)
{
	struct verbs_cq *cq = verbs_cq_of(wcq);

	pthread_mutex_lock(&cq->lock);
	if (!cq->waiters)
		drain(cq);
	pthread_mutex_unlock(&cq->lock);
	cq_drive(cq);
	return 0;
}

/* Under cq.lock; *@held: there are some that cannot be taken yet */
static bool has(struct verbs_cq *cq, bool *held)
{
	struct base_list *at, *next;
	bool some = false;

	*held = false;
	base_list_foreach(at, next, &cq->halves) {
		struct verbs_half *h = base_list_entry(at, struct verbs_half, link);

		pthread_mutex_lock(&h->qp->lock);
		verbs_half_reap(h);
		some |= verbs_half_has(h);
		*held |= verbs_half_held(h);
		pthread_mutex_unlock(&h->qp->lock);
	}
	return some;
}

/*
 * Are there completions? If not, the next one is an event. What there is stays readable, for
 * another waiter may have been woken by it and not have got up yet.
 */
static bool cq_has(struct verbs_cq *cq, bool *held)
{
	bool some;

	pthread_mutex_lock(&cq->lock);
	some = has(cq, held);
	if (!some) {
		drain(cq);
		arm(cq, false);
		some = has(cq, held);
	}
	pthread_mutex_unlock(&cq->lock);
	return some;
}

static void waiters_add(struct verbs_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->lock);
	cq->waiters += n;
	pthread_mutex_unlock(&cq->lock);
}

/* A connection manager that says nothing of an end wakes nobody: then it is looked at by time */
static int wait_until(struct verbs_cq *cq, uint64_t deadline)
{
	struct pollfd pfd = { .fd = cq->epoll, .events = POLLIN };
	uint64_t until = deadline;
	int err = 0;
	bool held;

	for (;;) {
		if (cq_has(cq, &held))
			return 0;
		cq_drive(cq);
		if (cq_has(cq, &held))
			return 0;
		if (err && (err != -ETIMEDOUT || base_deadline_passed(deadline, base_now())))
			return err;
		if (held)
			until = base_min(deadline, base_deadline(base_now(), HELD_NS));
		else
			until = deadline;
		err = base_poll_until(&pfd, 1, until);
	}
}

int verbs_cq_wait(struct warp_cq *wcq, int timeout_ms)
{
	struct verbs_cq *cq = verbs_cq_of(wcq);
	int err;

	waiters_add(cq, 1);
	err = wait_until(cq, base_deadline_ms(timeout_ms));
	waiters_add(cq, -1u);
	return err;
}
