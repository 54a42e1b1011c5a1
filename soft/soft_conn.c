/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections as the program sees them: how they begin, what it asks of them, and how it lets
 * them go.
 *
 * The program's handle and the connection part when it is destroyed: what must still leave,
 * leaves by the progress thread, which then frees it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/heap.h"
#include "base/sockutil.h"
#include "llp/mapper.h"
#include "soft/soft_conn.h"
#include "soft/soft_fd.h"

#define IN_CAP (2 * SOFT_FPDU_MAX)
#define MAPPER_NS (3 * BASE_NS_PER_S)

void soft_conn_free(struct soft_conn *c)
{
	base_fd_close(c->fd);
	base_fd_close(c->event);
	pthread_mutex_destroy(&c->rx);
	pthread_mutex_destroy(&c->tx);
	free(c->memory);
	free(c);
}

static int conn_fd_take(struct soft_conn *c, int fd)
{
	socklen_t len = sizeof(c->local);
	int err = base_fd_set_nonblock(fd, true);

	c->fd = fd;
	if (c->dev->progress.uring)
		llp_uring_conn_init(&c->carrier, fd);
	else
		llp_tcp_init(&c->carrier.llp, fd);
	getsockname(fd, (struct sockaddr *)&c->local, &len);
	len = sizeof(c->peer);
	getpeername(fd, (struct sockaddr *)&c->peer, &len);
	if (!err)
		err = base_eventfd_create(&c->event);
	return err;
}

static void conn_core_init(struct soft_conn *c, enum mpa_role role,
			   const struct warp_conn_param *param)
{
	struct mpa_config config = soft_attr_config(param, role);

	soft_core_init(&c->core, role, &config, 2 * SOFT_DEPTH_MAX, SOFT_DEPTH_MAX);
	c->io = (struct soft_io){
		.core = &c->core,
		.llp = &c->carrier.llp,
		.slots = RDMAP_SLOTS(c->in_slots, c->out_slots),
		.in = c->memory,
		.in_cap = IN_CAP,
		.pd_at = IN_CAP,
		.rest = c->memory + IN_CAP + MPA_PD_MAX,
	};
	c->held = c->io.rest + SOFT_FPDU_MAX;
	c->start_by = base_deadline(base_now(), rnic_start_ns(param));
	c->write_retry_at = c->linger_by = c->watch_at = c->due = BASE_NEVER;
	c->period = BASE_NS_PER_MS;
}

static int conn_pd_keep(struct soft_conn *c, const struct warp_conn_param *param)
{
	if (!param || !param->private_data_len)
		return 0;
	if (param->private_data_len > sizeof(c->start_pd))
		return -EMSGSIZE;
	memcpy(c->start_pd, param->private_data, param->private_data_len);
	c->start_pd_len = (__u16)param->private_data_len;
	return 0;
}

int soft_conn_create(struct soft_device *d, int fd, enum mpa_role role, enum soft_stage stage,
		     const struct warp_conn_param *param, struct soft_conn **out)
{
	struct soft_conn *c = base_heap_array(1, sizeof(*c));
	int err = -ENOMEM;

	if (!c) {
		base_fd_close(fd);
		return err;
	}
	c->fd = fd;
	c->event = -1;
	c->conn.dev = &d->dev;
	c->dev = d;
	c->stage = stage;
	base_list_init(&c->queued);
	base_list_init(&c->link);
	pthread_mutex_init(&c->rx, NULL);
	pthread_mutex_init(&c->tx, NULL);
	/* Pages of it that are never used cost nothing */
	c->memory = base_heap_get(IN_CAP + MPA_PD_MAX + SOFT_FPDU_MAX + SOFT_HELD);
	if (c->memory) {
		conn_core_init(c, role, param);
		err = conn_fd_take(c, fd);
	}
	if (!err)
		err = conn_pd_keep(c, param);
	if (err) {
		soft_conn_free(c);
		return err;
	}
	*out = c;
	return 0;
}

/* --- a queue pair and its connection --- */

static void members_change(struct soft_conn *c, struct soft_cq *cq, struct soft_member *m, bool add)
{
	pthread_mutex_lock(&cq->drive);
	if (add) {
		m->conn = c;
		base_list_push_back(&cq->members, &m->link);
	} else {
		base_list_remove(&m->link);
	}
	pthread_mutex_unlock(&cq->drive);
}

static void members_set(struct soft_conn *c, const struct soft_qp *q, bool add)
{
	members_change(c, q->send_cq, &c->send_member, add);
	if (q->recv_cq != q->send_cq)
		members_change(c, q->recv_cq, &c->recv_member, add);
}

/* No lock of the connection's is held yet. Two threads may want to accept the same one. */
static int qp_attach(struct soft_conn *c, struct soft_qp *q)
{
	int err = 0;

	pthread_mutex_lock(&q->lock);
	pthread_mutex_lock(&c->rx);
	pthread_mutex_lock(&c->tx);
	if (q->conn) {
		err = -EISCONN;
	} else if (c->qp) {
		err = -EINVAL;
	} else {
		q->conn = c;
		c->qp = q;
		c->pd = q->pd->id;
	}
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_unlock(&c->rx);
	pthread_mutex_unlock(&q->lock);
	if (!err)
		members_set(c, q, true);
	return err;
}

static void qp_detach(struct soft_conn *c, struct soft_qp *q)
{
	members_set(c, q, false);
	pthread_mutex_lock(&q->lock);
	pthread_mutex_lock(&c->rx);
	pthread_mutex_lock(&c->tx);
	q->conn = NULL;
	c->qp = NULL;
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_unlock(&c->rx);
	pthread_mutex_unlock(&q->lock);
}

/* --- beginnings --- */

/* From here on the thread knows it, too */
static int conn_begin(struct soft_conn *c)
{
	int err = soft_progress_add(c);

	if (err)
		return err;
	soft_stage_attend_caller(c);
	pthread_mutex_lock(&c->tx);
	soft_progress_update(c);
	pthread_mutex_unlock(&c->tx);
	soft_device_get(c->dev);
	return 0;
}

static int initiator_begin(struct soft_qp *q, struct soft_conn *c, struct warp_conn **out)
{
	int err = qp_attach(c, q);

	if (err)
		goto err_free_conn;
	err = conn_begin(c);
	if (err)
		goto err_detach_qp;
	*out = &c->conn;
	return 0;

err_detach_qp:
	qp_detach(c, q);
err_free_conn:
	soft_conn_free(c);
	return err;
}

int soft_connect(struct warp_qp *qp, const struct sockaddr *addr, socklen_t len,
		 const struct warp_conn_param *param, struct warp_conn **out)
{
	struct sockaddr_storage peer = { 0 };
	struct soft_qp *q = soft_qp_of(qp);
	struct soft_conn *c;
	int err, fd;

	if (len > sizeof(peer))
		return -EINVAL;
	memcpy(&peer, addr, len);
	fd = soft_fd_socket(addr->sa_family);
	if (fd < 0)
		return fd;
	if (param->flags & WARP_CONN_PORT_MAPPER)
		llp_mapper_move(fd, &peer, len, MAPPER_NS);
	if (connect(fd, (struct sockaddr *)&peer, len) && errno != EINPROGRESS) {
		err = -errno;
		base_fd_close(fd);
		return err;
	}
	err = soft_conn_create(q->dev, fd, MPA_INITIATOR, SOFT_STAGE_TCP, param, &c);
	if (err)
		return err;
	c->peer = peer;
	return initiator_begin(q, c, out);
}

int soft_connect_fd(struct warp_qp *qp, int fd, const struct warp_conn_param *param,
		    struct warp_conn **out)
{
	struct soft_qp *q = soft_qp_of(qp);
	struct soft_conn *c;
	int err = soft_conn_create(q->dev, fd, MPA_INITIATOR, SOFT_STAGE_START, param, &c);

	return err ? err : initiator_begin(q, c, out);
}

int soft_accept_fd(struct warp_device *dev, int fd, const struct warp_conn_param *param,
		   struct warp_conn **out)
{
	struct soft_conn *c;
	int err = soft_conn_create(soft_device_of(dev), fd, MPA_RESPONDER, SOFT_STAGE_START, param,
				   &c);

	if (err)
		return err;
	err = conn_begin(c);
	if (err) {
		soft_conn_free(c);
		return err;
	}
	*out = &c->conn;
	return 0;
}

/* --- answers to a Request --- */

/* Under rx and tx */
static int accept_locked(struct soft_conn *c, const struct warp_conn_param *param)
{
	int err;

	c->core.rdmap.ddp.mpa.config = soft_attr_config(param, MPA_RESPONDER);
	err = soft_start_accept(&c->io, param->private_data, param->private_data_len);
	if (err == -EMSGSIZE)
		return err;
	c->start_by = base_deadline(base_now(), rnic_start_ns(param));
	if (err) {
		soft_stage_end(c, WARP_CONN_ERROR, err);
		return err;
	}
	__atomic_store_n(&c->state, WARP_CONN_CONNECTING, __ATOMIC_RELEASE);
	soft_stage_open(c);
	return 0;
}

int soft_conn_accept(struct warp_conn *conn, struct warp_qp *qp,
		     const struct warp_conn_param *param)
{
	struct soft_conn *c = soft_conn_of(conn);
	struct soft_qp *q = soft_qp_of(qp);
	int err;

	if (soft_conn_state(c) != WARP_CONN_REQUEST)
		return -EINVAL;
	err = qp_attach(c, q);
	if (err)
		return err;
	pthread_mutex_lock(&c->rx);
	pthread_mutex_lock(&c->tx);
	err = c->stage == SOFT_STAGE_REQUEST ? accept_locked(c, param) : -EINVAL;
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_unlock(&c->rx);
	if (err)
		qp_detach(c, q);
	return err;
}

int soft_conn_reject(struct warp_conn *conn, const void *private_data, size_t len)
{
	struct soft_conn *c = soft_conn_of(conn);
	int err = -EINVAL;

	pthread_mutex_lock(&c->rx);
	pthread_mutex_lock(&c->tx);
	if (c->stage == SOFT_STAGE_REQUEST)
		err = soft_start_reject(&c->io, private_data, len);
	if (!err)
		soft_stage_end(c, WARP_CONN_REJECTED, -ECONNREFUSED);
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_unlock(&c->rx);
	return err;
}

/* --- looking at it --- */

static short conn_events(struct soft_conn *c, int *fd)
{
	short events;

	pthread_mutex_lock(&c->tx);
	*fd = c->fd;
	events = soft_stage_events(c);
	pthread_mutex_unlock(&c->tx);
	return events;
}

static void waiters_add(struct soft_conn *c, unsigned int n)
{
	pthread_mutex_lock(&c->tx);
	c->waiters += n;
	pthread_mutex_unlock(&c->tx);
}

/* If not, the event of its end is still to come, and any other is nobody's */
static bool start_is_over(struct soft_conn *c)
{
	bool over;

	pthread_mutex_lock(&c->tx);
	over = c->state != WARP_CONN_CONNECTING;
	if (!over)
		base_eventfd_drain(c->event);
	pthread_mutex_unlock(&c->tx);
	return over;
}

static int start_wait(struct soft_conn *c, uint64_t deadline)
{
	int err = 0;

	for (;;) {
		struct pollfd pfd[2] = { { .fd = c->event, .events = POLLIN } };

		soft_stage_attend_caller(c);
		if (start_is_over(c))
			return 0;
		if (err)
			return err;
		pfd[1].events = conn_events(c, &pfd[1].fd);
		err = base_poll_until(pfd, 2, deadline);
	}
}

int soft_conn_wait(struct warp_conn *conn, int timeout_ms)
{
	struct soft_conn *c = soft_conn_of(conn);
	uint64_t deadline = base_deadline_ms(timeout_ms);
	enum warp_conn_state state;
	int err;

	waiters_add(c, 1);
	err = start_wait(c, deadline);
	waiters_add(c, -1u);
	state = soft_conn_state(c);
	return state == WARP_CONN_REJECTED || state == WARP_CONN_ERROR ? c->error : err;
}

int soft_conn_fd(struct warp_conn *conn)
{
	struct soft_conn *c = soft_conn_of(conn);

	pthread_mutex_lock(&c->tx);
	c->watched = true;
	soft_progress_update(c);
	pthread_mutex_unlock(&c->tx);
	return c->event;
}

/* Under rx and tx */
static void info_fill(const struct soft_conn *c, struct warp_conn_info *info)
{
	const struct rdmap_stream *s = &c->core.rdmap;
	const struct mpa_conn *m = &s->ddp.mpa;

	*info = (struct warp_conn_info){
		.state = c->state,
		.error = c->error,
		.ird = m->ird,
		.ord = m->ord,
		.peer_ird = m->peer_ird,
		.peer_ord = m->peer_ord,
		.mpa_rev = m->rev,
		.crc = m->flags & MPA_F_CRC,
		.tx_markers = m->flags & MPA_F_TX_MARKERS,
		.rx_markers = m->flags & MPA_F_RX_MARKERS,
		.mulpdu = m->mulpdu,
		.term_sent = rdmap_state_of(s) == RDMAP_TERM_SENT ? s->term.fault : 0,
		.term_received = s->peer_term.fault,
		.private_data = c->io.in + c->io.pd_at,
		.private_data_len = c->core.pd_len,
		.local = c->local,
		.peer = c->peer,
		.tx_fpdus = m->tx_fpdus,
		.rx_fpdus = m->rx_fpdus,
	};
}

int soft_conn_query(struct warp_conn *conn, struct warp_conn_info *info)
{
	struct soft_conn *c = soft_conn_of(conn);

	soft_stage_attend_caller(c);
	pthread_mutex_lock(&c->rx);
	pthread_mutex_lock(&c->tx);
	/* The event is also what callers of soft_conn_wait() sleep for */
	if (!c->waiters)
		base_eventfd_drain(c->event);
	info_fill(c, info);
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_unlock(&c->rx);
	return 0;
}

/* --- endings --- */

/* Under rx and tx */
static void abort_locked(struct soft_conn *c)
{
	if (c->stage >= SOFT_STAGE_LINGER)
		return;
	c->io.llp->ops->abort(c->io.llp);
	soft_stage_end(c, WARP_CONN_ERROR, -ECONNABORTED);
}

int soft_conn_abort(struct warp_conn *conn)
{
	struct soft_conn *c = soft_conn_of(conn);

	pthread_mutex_lock(&c->rx);
	pthread_mutex_lock(&c->tx);
	abort_locked(c);
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_unlock(&c->rx);
	return 0;
}

int soft_conn_disconnect(struct warp_conn *conn)
{
	struct soft_conn *c = soft_conn_of(conn);
	int err = 0;

	pthread_mutex_lock(&c->rx);
	pthread_mutex_lock(&c->tx);
	if (c->stage < SOFT_STAGE_OPEN) {
		err = -ENOTCONN;
	} else if (c->stage == SOFT_STAGE_OPEN) {
		c->closing = true;
		soft_stage_send(c);
		soft_progress_update(c);
	}
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_unlock(&c->rx);
	return err;
}

int soft_conn_destroy(struct warp_conn *conn)
{
	struct soft_conn *c = soft_conn_of(conn);
	struct soft_qp *q;

	pthread_mutex_lock(&c->rx);
	pthread_mutex_lock(&c->tx);
	if (c->closing)
		soft_stage_end(c, WARP_CONN_DISCONNECTED, 0);
	else
		abort_locked(c);
	q = c->qp;
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_unlock(&c->rx);
	if (q)
		qp_detach(c, q);
	soft_device_put(c->dev);
	soft_progress_remove(c);
	return 0;
}
