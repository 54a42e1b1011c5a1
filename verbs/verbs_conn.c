/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections as the program sees them: how they begin, what it asks of them, and how it lets
 * them go.
 */
#include "verbs/verbs_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/sockutil.h"

#define LINGER_NS (2 * BASE_NS_PER_S)

/* A connection is how the device makes it: what can only be wished for may come to nothing */
#define FLAGS_REFUSED (WARP_CONN_MARKERS | WARP_CONN_REV1)

void verbs_conn_free(struct verbs_conn *c)
{
	if (c->id)
		verbs_call(rdma_destroy_id)(c->id);
	if (c->channel)
		verbs_call(rdma_destroy_event_channel)(c->channel);
	base_fd_close(c->epoll);
	base_fd_close(c->event);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

int verbs_conn_create(struct verbs_device *d, enum warp_conn_state state, struct verbs_conn **out)
{
	struct verbs_conn *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->conn.dev = &d->dev;
	c->dev = d;
	c->state = state;
	c->event = c->epoll = -1;
	c->peer_ird = c->peer_ord = WARP_DEPTH_NONE;
	base_list_init(&c->progress_link);
	pthread_mutex_init(&c->lock, NULL);
	errno = 0;
	c->channel = verbs_call(rdma_create_event_channel)();
	err = c->channel ? base_fd_set_nonblock(c->channel->fd, true) : verbs_error();
	if (!err)
		err = base_eventfd_create(&c->event);
	if (err) {
		verbs_conn_free(c);
		return err;
	}
	*out = c;
	return 0;
}

static int param_take(struct verbs_conn *c, const struct warp_conn_param *param)
{
	if (param->flags & FLAGS_REFUSED)
		return -EOPNOTSUPP;
	if (param->private_data_len > verbs_attr_private_data(c->dev))
		return -EMSGSIZE;
	c->start_pd_len = (uint8_t)param->private_data_len;
	if (c->start_pd_len)
		memcpy(c->start_pd, param->private_data, c->start_pd_len);
	c->ird = verbs_attr_ird(c->dev, param->ird);
	c->ord = verbs_attr_ord(c->dev, param->ord);
	c->start_by = base_deadline(base_now(), rnic_start_ns(param));
	return 0;
}

/* --- a queue pair and its connection --- */

/* The connection's events wake who sleeps for the queues */
static int queues_join(struct verbs_conn *c, struct verbs_qp *q)
{
	int err = verbs_cq_join(q->half[0].cq, c, c->channel->fd);

	if (!err && q->halves == 2) {
		err = verbs_cq_join(q->half[1].cq, c, c->channel->fd);
		if (err)
			verbs_cq_leave(q->half[0].cq, c->channel->fd);
	}
	return err;
}

static void qp_set(struct verbs_conn *c, struct verbs_qp *q, bool on)
{
	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&q->lock);
	q->conn = on ? c : NULL;
	c->qp = on ? q : NULL;
	pthread_mutex_unlock(&q->lock);
	pthread_mutex_unlock(&c->lock);
}

/* In this order: who drives the queue finds connections by their queue pairs, too */
static void qp_detach(struct verbs_conn *c, struct verbs_qp *q)
{
	qp_set(c, q, false);
	for (unsigned int i = 0; i < q->halves; i++)
		verbs_cq_leave(q->half[i].cq, c->channel->fd);
}

/* No lock of the connection's is held yet. Two threads may want to accept the same one. */
static int qp_attach(struct verbs_conn *c, struct verbs_qp *q)
{
	int err = 0;

	pthread_mutex_lock(&c->lock);
	pthread_mutex_lock(&q->lock);
	if (q->conn) {
		err = -EISCONN;
	} else if (c->qp) {
		err = -EINVAL;
	} else {
		q->conn = c;
		c->qp = q;
	}
	pthread_mutex_unlock(&q->lock);
	pthread_mutex_unlock(&c->lock);
	if (!err) {
		err = queues_join(c, q);
		if (err)
			qp_set(c, q, false);
	}
	return err;
}

/* --- beginnings --- */

static int resolve(struct verbs_conn *c, const struct sockaddr *addr, socklen_t len,
		   const struct warp_conn_param *param)
{
	int err = param_take(c, param);

	if (err)
		return err;
	c->active = true;
	memcpy(&c->peer, addr, base_min(len, (socklen_t)sizeof(c->peer)));
	errno = 0;
	if (verbs_call(rdma_create_id)(c->channel, &c->id, c, RDMA_PS_TCP))
		return verbs_error();
	return verbs_cm_resolve(c);
}

int verbs_connect(struct warp_qp *qp, const struct sockaddr *addr, socklen_t len,
		  const struct warp_conn_param *param, struct warp_conn **out)
{
	struct verbs_qp *q = verbs_qp_of(qp);
	struct verbs_conn *c;
	int err = verbs_conn_create(q->dev, WARP_CONN_CONNECTING, &c);

	if (err)
		return err;
	err = qp_attach(c, q);
	if (err)
		goto err_free_conn;
	err = resolve(c, addr, len, param);
	if (err)
		goto err_detach_qp;
	err = verbs_progress_add(c);
	if (err)
		goto err_detach_qp;
	verbs_device_get(c->dev);
	*out = &c->conn;
	return 0;

err_detach_qp:
	qp_detach(c, q);
err_free_conn:
	verbs_conn_free(c);
	return err;
}

/* A connection is the device's own from its first byte: no socket can become one */
int verbs_connect_fd(struct warp_qp *qp, int fd, const struct warp_conn_param *param,
		     struct warp_conn **out)
{
	base_fd_close(fd);
	return -EOPNOTSUPP;
}

int verbs_accept_fd(struct warp_device *dev, int fd, const struct warp_conn_param *param,
		    struct warp_conn **out)
{
	base_fd_close(fd);
	return -EOPNOTSUPP;
}

/* --- answers to a Request --- */

/* Under conn.lock */
static int accept_locked(struct verbs_conn *c, const struct warp_conn_param *param)
{
	int err;

	if (verbs_conn_state(c) != WARP_CONN_REQUEST)
		return -EINVAL;
	err = param_take(c, param);
	if (err)
		return err;
	/* More than the peer gives would be a fault of ours */
	if (c->peer_ird != WARP_DEPTH_NONE)
		c->ord = (uint8_t)base_min((uint16_t)c->ord, c->peer_ird);
	err = verbs_cm_accept(c);
	if (err)
		verbs_cm_end(c, WARP_CONN_ERROR, err);
	else
		verbs_cm_state(c, WARP_CONN_CONNECTING, 0);
	return err;
}

int verbs_conn_accept(struct warp_conn *conn, struct warp_qp *qp,
		      const struct warp_conn_param *param)
{
	struct verbs_conn *c = verbs_conn_of(conn);
	struct verbs_qp *q = verbs_qp_of(qp);
	int err;

	if (verbs_conn_state(c) != WARP_CONN_REQUEST)
		return -EINVAL;
	/* Else the peer would have an answer, and the caller an error */
	err = verbs_progress_begin(&c->dev->progress);
	if (!err)
		err = qp_attach(c, q);
	if (err)
		return err;
	pthread_mutex_lock(&c->lock);
	err = accept_locked(c, param);
	pthread_mutex_unlock(&c->lock);
	if (err)
		qp_detach(c, q);
	return err ? err : verbs_progress_add(c);
}

int verbs_conn_reject(struct warp_conn *conn, const void *private_data, size_t len)
{
	struct verbs_conn *c = verbs_conn_of(conn);
	int err = 0;

	if (len > verbs_attr_private_data(c->dev))
		return -EMSGSIZE;
	pthread_mutex_lock(&c->lock);
	errno = 0;
	if (verbs_conn_state(c) != WARP_CONN_REQUEST)
		err = -EINVAL;
	else if (verbs_call(rdma_reject)(c->id, private_data, (uint8_t)len))
		err = verbs_error();
	if (!err)
		verbs_cm_end(c, WARP_CONN_REJECTED, -ECONNREFUSED);
	pthread_mutex_unlock(&c->lock);
	return err;
}

/* --- looking at it --- */

/* Without a waiter's look the event is the program's, who sees it by conn_fd */
static bool start_is_over(struct verbs_conn *c)
{
	bool over;

	pthread_mutex_lock(&c->lock);
	verbs_cm_attend(c);
	over = verbs_conn_state(c) != WARP_CONN_CONNECTING;
	if (!over)
		base_eventfd_drain(c->event);
	pthread_mutex_unlock(&c->lock);
	return over;
}

static int start_wait(struct verbs_conn *c, uint64_t deadline)
{
	struct pollfd pfd[2] = { { .fd = c->event, .events = POLLIN },
				 { .fd = c->channel->fd, .events = POLLIN } };
	int err = 0;

	for (;;) {
		if (start_is_over(c))
			return 0;
		if (err)
			return err;
		err = base_poll_until(pfd, 2, base_min(deadline, c->start_by));
		if (err == -ETIMEDOUT && !base_deadline_passed(deadline, base_now()))
			err = 0; /* start_by: the next look ends it */
	}
}

static void waiters_add(struct verbs_conn *c, unsigned int n)
{
	pthread_mutex_lock(&c->lock);
	c->waiters += n;
	pthread_mutex_unlock(&c->lock);
}

int verbs_conn_wait(struct warp_conn *conn, int timeout_ms)
{
	struct verbs_conn *c = verbs_conn_of(conn);
	enum warp_conn_state state;
	int err;

	waiters_add(c, 1);
	err = start_wait(c, base_deadline_ms(timeout_ms));
	waiters_add(c, -1u);
	state = verbs_conn_state(c);
	return state == WARP_CONN_REJECTED || state == WARP_CONN_ERROR ? c->error : err;
}

static int epoll_make(const struct verbs_conn *c)
{
	const int watched[] = { c->event, c->channel->fd };
	int fd = (int)syscall(SYS_epoll_create1, EPOLL_CLOEXEC);

	for (unsigned int i = 0; fd >= 0 && i < base_array_size(watched); i++) {
		struct epoll_event ev = { .events = EPOLLIN };

		if (syscall(SYS_epoll_ctl, fd, EPOLL_CTL_ADD, watched[i], &ev)) {
			base_fd_close(fd);
			fd = -1;
		}
	}
	return fd < 0 ? -errno : fd;
}

int verbs_conn_fd(struct warp_conn *conn)
{
	struct verbs_conn *c = verbs_conn_of(conn);
	int fd;

	pthread_mutex_lock(&c->lock);
	fd = c->epoll >= 0 ? c->epoll : epoll_make(c);
	if (fd >= 0)
		c->epoll = fd;
	pthread_mutex_unlock(&c->lock);
	return fd;
}

int verbs_conn_query(struct warp_conn *conn, struct warp_conn_info *info)
{
	struct verbs_conn *c = verbs_conn_of(conn);

	pthread_mutex_lock(&c->lock);
	verbs_cm_attend(c);
	/* The event is also what callers of verbs_conn_wait() sleep for */
	if (!c->waiters)
		base_eventfd_drain(c->event);
	*info = (struct warp_conn_info){
		.state = verbs_conn_state(c),
		.error = c->error,
		.ird = c->ird,
		.ord = c->ord,
		.peer_ird = c->peer_ird,
		.peer_ord = c->peer_ord,
		.private_data = c->peer_pd,
		.private_data_len = c->peer_pd_len,
		.local = c->local,
		.peer = c->peer,
	};
	pthread_mutex_unlock(&c->lock);
	return 0;
}

/* --- endings --- */

/* Under conn.lock. No connection manager has an abort: the queue pair's end is the connection's */
static void abort_locked(struct verbs_conn *c)
{
	if (verbs_conn_ended(c))
		return;
	if (verbs_conn_state(c) == WARP_CONN_REQUEST)
		verbs_call(rdma_reject)(c->id, NULL, 0);
	verbs_cm_end(c, WARP_CONN_ERROR, -ECONNABORTED);
	if (!c->dev->iwarp)
		verbs_call(rdma_disconnect)(c->id);
}

int verbs_conn_abort(struct warp_conn *conn)
{
	struct verbs_conn *c = verbs_conn_of(conn);

	pthread_mutex_lock(&c->lock);
	abort_locked(c);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int verbs_conn_disconnect(struct warp_conn *conn)
{
	struct verbs_conn *c = verbs_conn_of(conn);
	bool later = false;
	int err = 0;

	pthread_mutex_lock(&c->lock);
	verbs_cm_attend(c);
	if (verbs_conn_state(c) < WARP_CONN_ESTABLISHED) {
		err = -ENOTCONN;
	} else if (!verbs_conn_ended(c) && !c->closing) {
		__atomic_store_n(&c->closing, true, __ATOMIC_RELEASE);
		verbs_cm_shut(c);
		later = verbs_cm_moves(c);
	}
	pthread_mutex_unlock(&c->lock);
	return later ? verbs_progress_add(c) : err;
}

/* What was queued is the program's memory until it is sent: there is no leaving it behind */
static void linger(struct verbs_conn *c)
{
	uint64_t until = base_deadline(base_now(), LINGER_NS);
	struct pollfd pfd = { .fd = c->channel->fd, .events = POLLIN };
	bool over = false;

	while (!over && !base_deadline_passed(until, base_now())) {
		pthread_mutex_lock(&c->lock);
		verbs_cm_attend(c);
		over = c->shut || verbs_conn_ended(c);
		pthread_mutex_unlock(&c->lock);
		if (!over)
			base_poll_until(&pfd, 1, base_deadline(base_now(), BASE_NS_PER_MS));
	}
}

int verbs_conn_destroy(struct warp_conn *conn)
{
	struct verbs_conn *c = verbs_conn_of(conn);
	struct verbs_device *d = c->dev;

	verbs_progress_remove(c);
	if (c->closing)
		linger(c);
	pthread_mutex_lock(&c->lock);
	if (c->closing && c->shut)
		verbs_cm_end(c, WARP_CONN_DISCONNECTED, 0);
	else
		abort_locked(c);
	pthread_mutex_unlock(&c->lock);
	if (c->qp)
		qp_detach(c, c->qp);
	verbs_conn_free(c);
	verbs_device_put(d);
	return 0;
}
