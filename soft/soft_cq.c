/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completion queues.
 *
 * Who polls an empty queue drives its connections first: there is no thread between the socket
 * and the caller. Who sleeps for it sleeps on an epoll set of the sockets themselves and one
 * event descriptor, rung by completions that another thread made while the queue was armed; so
 * input wakes the sleeper without a detour.
 *
 * A full queue drops the newest completion and says so once.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/heap.h"
#include "base/sockutil.h"
#include "soft/soft_conn.h"
#include "soft/soft_fd.h"

static int cq_fds_open(struct soft_cq *cq)
{
	int err = base_eventfd_create(&cq->event);

	if (err)
		return err;
	cq->epoll = err = soft_fd_epoll();
	if (err >= 0)
		err = soft_fd_watch(cq->epoll, EPOLL_CTL_ADD, cq->event, EPOLLIN, NULL);
	if (err) {
		base_fd_close(cq->event);
		base_fd_close(cq->epoll);
	}
	return err;
}

int soft_cq_create(struct warp_device *dev, unsigned int entries, struct warp_cq **out)
{
	struct soft_cq *cq;
	int err = -ENOMEM;

	if (entries > SOFT_CQE_MAX)
		return -EINVAL;
	cq = base_heap_array(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	base_ring_init(&cq->ring, soft_ring_size(entries));
	cq->wc = base_heap_array(cq->ring.mask + 1, sizeof(*cq->wc));
	if (!cq->wc)
		goto err_free_cq;
	err = cq_fds_open(cq);
	if (err)
		goto err_free_wc;
	cq->cq.dev = dev;
	if (soft_device_of(dev)->progress.uring)
		cq->uring = soft_batch_ring();
	base_list_init(&cq->members);
	pthread_mutex_init(&cq->drive, NULL);
	pthread_mutex_init(&cq->lock, NULL);
	soft_device_get(soft_device_of(dev));
	*out = &cq->cq;
	return 0;

err_free_wc:
	free(cq->wc);
err_free_cq:
	free(cq);
	return err;
}

int soft_cq_destroy(struct warp_cq *wcq)
{
	struct soft_cq *cq = soft_cq_of(wcq);

	if (__atomic_load_n(&cq->users, __ATOMIC_ACQUIRE)) /* pairs with soft_qp_destroy() */
		return -EBUSY;
	soft_device_put(soft_device_of(wcq->dev));
	llp_uring_destroy(cq->uring);
	base_fd_close(cq->epoll);
	base_fd_close(cq->event);
	pthread_mutex_destroy(&cq->drive);
	pthread_mutex_destroy(&cq->lock);
	free(cq->wc);
	free(cq);
	return 0;
}

/* --- completions in and out --- */

static bool wc_wakes(const struct soft_cq *cq, const struct warp_wc *wc)
{
	if (cq->armed != SOFT_ARMED_SOLICITED)
		return cq->armed == SOFT_ARMED;
	return wc->status != WARP_WC_SUCCESS || (wc->flags & WARP_WC_SOLICITED);
}

void soft_cq_push(struct soft_cq *cq, const struct warp_wc *wc)
{
	pthread_mutex_lock(&cq->lock);
	if (base_ring_full(&cq->ring))
		cq->overflow = true;
	else
		cq->wc[base_ring_push(&cq->ring)] = *wc;
	if (wc_wakes(cq, wc)) {
		cq->armed = SOFT_UNARMED;
		base_eventfd_notify(cq->event);
	}
	pthread_mutex_unlock(&cq->lock);
}

void soft_cq_forget(struct soft_cq *cq, const struct warp_qp *qp)
{
	__u32 n, kept = 0;

	pthread_mutex_lock(&cq->lock);
	n = base_ring_count(&cq->ring);
	for (__u32 i = 0; i < n; i++) {
		const struct warp_wc *wc = &cq->wc[base_ring_at(&cq->ring, i)];

		if (wc->qp != qp)
			cq->wc[base_ring_at(&cq->ring, kept++)] = *wc;
	}
	cq->ring.tail = cq->ring.head + kept;
	pthread_mutex_unlock(&cq->lock);
}

static int cq_take(struct soft_cq *cq, struct warp_wc *wc, int n)
{
	int got = 0;

	pthread_mutex_lock(&cq->lock);
	while (got < n && !base_ring_empty(&cq->ring))
		wc[got++] = cq->wc[base_ring_pop(&cq->ring)];
	if (!got && cq->overflow) {
		cq->overflow = false;
		got = -EOVERFLOW;
	}
	pthread_mutex_unlock(&cq->lock);
	return got;
}

/*
 * Under cq.drive, without which no connection leaves the queue. Only those are looked at for which
 * their sockets ask, of one connection, too: a receive takes the socket's lock, for which the
 * kernel waits when it delivers what the peer sends meanwhile. The question takes none.
 */
static void members_attend(struct soft_cq *cq)
{
	struct base_list *first = base_list_first(&cq->members);
	struct soft_conn *conns[SOFT_EVENTS];
	struct epoll_event ev[SOFT_EVENTS];
	unsigned int there = 0;
	int n;

	n = first ? soft_fd_events(cq->epoll, ev, SOFT_EVENTS, 0) : 0;
	for (int i = 0; i < n; i++)
		if (ev[i].data.ptr)
			conns[there++] = ev[i].data.ptr;
	soft_batch_attend(cq->uring, conns, there);
}

static void cq_drive(struct soft_cq *cq)
{
	if (pthread_mutex_trylock(&cq->drive))
		return;
	__atomic_store_n(&cq->attended, base_now(), __ATOMIC_RELAXED); /* read by the thread */
	members_attend(cq);
	pthread_mutex_unlock(&cq->drive);
}

int soft_cq_poll(struct warp_cq *wcq, struct warp_wc *wc, int n)
{
	struct soft_cq *cq = soft_cq_of(wcq);
	int got = cq_take(cq, wc, n);

	if (got)
		return got;
	cq_drive(cq);
	return cq_take(cq, wc, n);
}

/* --- sleeping --- */

int soft_cq_arm(struct warp_cq *wcq, bool solicited_only)
{
	struct soft_cq *cq = soft_cq_of(wcq);

	pthread_mutex_lock(&cq->lock);
	if (!solicited_only)
		cq->armed = SOFT_ARMED;
	else if (cq->armed == SOFT_UNARMED)
		cq->armed = SOFT_ARMED_SOLICITED;
	pthread_mutex_unlock(&cq->lock);
	return 0;
}

int soft_cq_fd(struct warp_cq *cq)
{
	return soft_cq_of(cq)->epoll;
}

/* The event is also what callers of soft_cq_wait() sleep for */
int soft_cq_ack(struct warp_cq *wcq)
{
	struct soft_cq *cq = soft_cq_of(wcq);
	int err = 0;

	pthread_mutex_lock(&cq->lock);
	if (!cq->waiters)
		err = base_eventfd_drain(cq->event);
	pthread_mutex_unlock(&cq->lock);
	return err;
}

/*
 * Are there completions? If not, the next one rings the event. It is left readable while there
 * are, for another waiter may have been woken by it and not have got up yet.
 */
static bool cq_has(struct soft_cq *cq)
{
	bool has;

	pthread_mutex_lock(&cq->lock);
	has = !base_ring_empty(&cq->ring) || cq->overflow;
	if (!has) {
		base_eventfd_drain(cq->event);
		cq->armed = SOFT_ARMED;
	}
	pthread_mutex_unlock(&cq->lock);
	return has;
}

static void waiters_add(struct soft_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->lock);
	__atomic_store_n(&cq->waiters, cq->waiters + n, __ATOMIC_RELAXED); /* read by the thread */
	pthread_mutex_unlock(&cq->lock);
}

static int wait_until(struct soft_cq *cq, uint64_t deadline)
{
	struct pollfd pfd = { .fd = cq->epoll, .events = POLLIN };
	int err = 0;

	for (;;) {
		if (cq_has(cq))
			return 0;
		cq_drive(cq);
		if (cq_has(cq))
			return 0;
		if (err)
			return err;
		err = base_poll_until(&pfd, 1, deadline);
	}
}

int soft_cq_wait(struct warp_cq *wcq, int timeout_ms)
{
	struct soft_cq *cq = soft_cq_of(wcq);
	uint64_t deadline = base_deadline_ms(timeout_ms);
	int err;

	waiters_add(cq, 1);
	err = wait_until(cq, deadline);
	waiters_add(cq, -1u);
	return err;
}
