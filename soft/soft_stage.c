/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection's way from stage to stage, and what each stage does when somebody attends to it.
 *
 * Whoever comes first does the work: a caller who polls, posts or waits, or the progress thread.
 * Input is one thread's at a time; another one who comes meanwhile goes away, for what it would
 * do is being done.
 *
 * Receiving is under rx alone, for what it brings may complete a work request, which takes tx. What
 * it came to is then settled under both.
 *
 * A connection ends once: its state is set, then its queues are flushed, then it lingers: what is
 * left of a frame and a Terminate are sent, then our FIN; what arrives is thrown away until the
 * peer's FIN, for a socket closed with bytes unread would reset the connection and might take
 * the Terminate with it.
 */
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/log.h"
#include "base/sockutil.h"
#include "rnic/write_retry.h"
#include "soft/soft_conn.h"
#include "soft/soft_fd.h"

#define RX_BUDGET (256 * 1024)
#define LAST_LOOKS 64
#define LINGER_NS (2 * BASE_NS_PER_S)
#define CLOSE_NS (30 * BASE_NS_PER_S)

static void time_set(uint64_t *at, uint64_t when)
{
	__atomic_store_n(at, when, __ATOMIC_RELAXED); /* read by the progress thread */
}

static void state_set(struct soft_conn *c, enum warp_conn_state state)
{
	__atomic_store_n(&c->state, state, __ATOMIC_RELEASE); /* pairs with soft_conn_state() */
	base_eventfd_notify(c->event);
}

/* --- what is waited for --- */

short soft_stage_events(const struct soft_conn *c)
{
	switch (c->stage) {
	case SOFT_STAGE_TCP:
		return POLLOUT;
	case SOFT_STAGE_START:
		return c->events ? c->events : POLLIN;
	case SOFT_STAGE_OPEN:
	case SOFT_STAGE_LINGER:
		return POLLIN | (c->blocked ? POLLOUT : 0);
	default:
		return 0;
	}
}

static int cq_watch(struct soft_conn *c, int op)
{
	uint32_t events = EPOLLIN | (c->blocked ? EPOLLOUT : 0);
	int err;

	if (!c->qp)
		return 0;
	c->out_armed = c->blocked;
	err = soft_fd_watch(c->qp->send_cq->epoll, op, c->fd, events, c);
	if (!err && c->qp->recv_cq != c->qp->send_cq)
		err = soft_fd_watch(c->qp->recv_cq->epoll, op, c->fd, events, c);
	return err;
}

void soft_stage_send(struct soft_conn *c)
{
	soft_sq_run(c);
	if (c->closing && !c->blocked && !c->core.tx_end && soft_sq_idle(c)) {
		soft_tx_shutdown(&c->io);
		time_set(&c->linger_by, base_deadline(base_now(), CLOSE_NS));
		soft_progress_update(c);
	}
	if (!c->write_retry_set && c->core.rdmap.ddp.mpa.tx_fpdus) {
		c->write_retry_set = true;
		if (!__atomic_load_n(&c->heard, __ATOMIC_RELAXED))
			time_set(&c->write_retry_at,
				 base_deadline(base_now(), rnic_write_retry_ns(0)));
		soft_progress_update(c);
	}
	if (c->blocked != c->out_armed) {
		cq_watch(c, EPOLL_CTL_MOD);
		soft_progress_update(c);
	}
}

/* --- ends --- */

static enum warp_wc_status fault_status(__u32 fault)
{
	if (IWARP_FAULT_LAYER(fault) == IWARP_L_LLP)
		return WARP_WC_TRANSPORT;
	switch (IWARP_FAULT_ETYPE(fault)) {
	case 1:
		return WARP_WC_REMOTE_ACCESS;
	case 2:
		return WARP_WC_REMOTE_OPERATION;
	default:
		return WARP_WC_GENERAL;
	}
}

/* How the oldest work request that is not done learns of the end */
static enum warp_wc_status send_cause(const struct soft_conn *c)
{
	const struct rdmap_stream *s = &c->core.rdmap;

	if (rdmap_state_of(s) == RDMAP_TERM_RCVD)
		return fault_status(s->peer_term.fault);
	if (rdmap_state_of(s) != RDMAP_OPEN)
		return fault_status(s->term.fault);
	if (!c->error || c->error == -ECONNABORTED)
		return WARP_WC_FLUSHED;
	return WARP_WC_TRANSPORT;
}

static enum warp_wc_status recv_cause(const struct soft_conn *c)
{
	const struct rdmap_stream *s = &c->core.rdmap;
	enum rdmap_state state = rdmap_state_of(s);

	if (c->recv_gone)
		return WARP_WC_LOCAL_PROTECTION;
	if ((state == RDMAP_FAULTED || state == RDMAP_TERM_SENT) && s->term.fault == DDP_E_U_LENGTH)
		return WARP_WC_LOCAL_LENGTH;
	return WARP_WC_FLUSHED;
}

void soft_stage_drop(struct soft_conn *c)
{
	c->stage = SOFT_STAGE_DONE;
	soft_conn_block(c, false);
	soft_progress_unwatch(c);
	base_fd_close(c->fd);
	c->fd = c->io.llp->fd = -1;
	time_set(&c->linger_by, BASE_NEVER);
	soft_progress_update(c);
}

/* Whom we have refused ends first: siw does not read a Reply that comes with a FIN */
static bool may_end_first(const struct soft_conn *c)
{
	return c->state != WARP_CONN_REJECTED || c->core.rdmap.ddp.mpa.role == MPA_INITIATOR;
}

/* What must still leave: 0 all has, -EAGAIN */
static int linger_send(struct soft_conn *c)
{
	const struct rdmap_source none = { .get = NULL };
	int err = soft_tx_flush(&c->io, &none, false);

	if (err != -EAGAIN && may_end_first(c))
		soft_tx_shutdown(&c->io);
	return err == -EAGAIN ? err : 0;
}

void soft_stage_linger(struct soft_conn *c)
{
	struct iovec iov = { c->io.in, c->io.in_cap };
	ssize_t got = c->core.rx_end ? 0 : 1;
	int err = linger_send(c);

	soft_conn_block(c, err == -EAGAIN);
	for (int i = 0; i < 16 && got > 0; i++)
		got = c->io.llp->ops->recv(c->io.llp, &iov, 1);
	if ((got == 0 && !err) || (got < 0 && got != -EAGAIN))
		soft_stage_drop(c);
}

void soft_stage_end(struct soft_conn *c, enum warp_conn_state state, int error)
{
	if (c->stage >= SOFT_STAGE_LINGER)
		return;
	base_debug("connection ends: %s, %s", warp_conn_state_text(state),
		   rdmap_fault_text(c->core.rdmap.term.fault));
	if (c->stage == SOFT_STAGE_OPEN)
		cq_watch(c, EPOLL_CTL_DEL);
	c->error = error;
	c->closing = true;
	c->stage = SOFT_STAGE_LINGER;
	state_set(c, state);
	if (c->qp) {
		soft_sq_flush(c, send_cause(c));
		soft_rq_flush(c->qp, recv_cause(c));
	}
	time_set(&c->start_by, BASE_NEVER);
	time_set(&c->write_retry_at, BASE_NEVER);
	time_set(&c->linger_by, base_deadline(base_now(), LINGER_NS));
	soft_stage_linger(c);
	if (c->listener)
		soft_listener_note(c);
	soft_progress_update(c);
}

/* --- start-up --- */

static void established(struct soft_conn *c)
{
	time_set(&c->start_by, BASE_NEVER);
	state_set(c, WARP_CONN_ESTABLISHED);
}

void soft_stage_open(struct soft_conn *c)
{
	const struct mpa_conn *m = &c->core.rdmap.ddp.mpa;

	int err;

	c->stage = SOFT_STAGE_OPEN;
	err = cq_watch(c, EPOLL_CTL_ADD);
	if (err) {
		/* Who sleeps for the queue would never hear of it */
		base_err("a connection cannot be watched: %s", strerror(-err));
		soft_stage_end(c, WARP_CONN_ERROR, err);
		return;
	}
	if (m->role == MPA_INITIATOR) {
		established(c);
	} else {
		/* The peer's first message is its program's, which may take its time */
		c->write_retry_set = true;
		if (!(m->flags & MPA_F_P2P))
			time_set(&c->start_by, BASE_NEVER);
	}
	soft_stage_send(c);
	soft_progress_update(c);
}

static int start_step(struct soft_conn *c)
{
	if (c->core.rdmap.ddp.mpa.role == MPA_INITIATOR)
		return soft_start_initiator(&c->io, c->start_pd, c->start_pd_len, &c->events);
	return soft_start_responder(&c->io, 0, &c->events);
}

/* Under rx and tx, as the following ones */
static void attend_start(struct soft_conn *c)
{
	int err = start_step(c);

	if (err == -EAGAIN)
		return;
	if (err == -ECONNREFUSED) {
		soft_stage_end(c, WARP_CONN_REJECTED, err);
	} else if (err) {
		soft_stage_end(c, WARP_CONN_ERROR, err);
	} else if (c->core.rdmap.ddp.mpa.role == MPA_INITIATOR) {
		soft_stage_open(c);
	} else {
		c->stage = SOFT_STAGE_REQUEST;
		time_set(&c->start_by, BASE_NEVER);
		state_set(c, WARP_CONN_REQUEST);
		if (c->listener)
			soft_listener_note(c);
	}
}

static void attend_tcp(struct soft_conn *c)
{
	struct pollfd pfd = { .fd = c->fd, .events = POLLOUT };
	int err = 0;
	socklen_t len = sizeof(err);

	if (base_poll_until(&pfd, 1, 0))
		return;
	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (err) {
		soft_stage_end(c, WARP_CONN_ERROR, -err);
		return;
	}
	len = sizeof(c->local);
	getsockname(c->fd, (struct sockaddr *)&c->local, &len);
	c->stage = SOFT_STAGE_START;
	attend_start(c);
}

/* --- the open connection --- */

static int stream_error(const struct soft_conn *c, ssize_t got)
{
	switch (rdmap_state_of(&c->core.rdmap)) {
	case RDMAP_OPEN:
		return got < 0 && got != -EAGAIN ? (int)got : c->core.tx_error;
	case RDMAP_TERM_RCVD:
		return -ECONNRESET;
	default:
		return -EPROTO;
	}
}

/* Under rx and tx: where input came from and nothing is broken */
static void open_send(struct soft_conn *c)
{
	if (c->state == WARP_CONN_CONNECTING && c->core.rdmap.ddp.mpa.rx_fpdus)
		established(c);
	soft_stage_send(c);
}

/* Under rx and tx; @got: what receiving came to */
static void open_end(struct soft_conn *c, ssize_t got)
{
	int err = stream_error(c, got);

	if (err)
		soft_stage_end(c, WARP_CONN_ERROR, err);
	else if (got == 0 && c->state == WARP_CONN_CONNECTING)
		soft_stage_end(c, WARP_CONN_ERROR, -ECONNRESET);
	else if (got == 0)
		soft_stage_end(c, WARP_CONN_DISCONNECTED, 0);
}

/* Is there no reason to take tx? */
static bool open_is_quiet(const struct soft_conn *c, ssize_t got)
{
	if (got == 0 || (got < 0 && got != -EAGAIN) || c->kicked)
		return false;
	if (got > 0 && c->state == WARP_CONN_CONNECTING)
		return false;
	return !__atomic_load_n(&c->blocked, __ATOMIC_RELAXED) && !soft_tx_pending(&c->core) &&
	       !__atomic_load_n(&c->core.tx_error, __ATOMIC_RELAXED);
}

/* Under rx. Receiving is never done under tx: the sink takes that for completions. */
static void attend_open(struct soft_conn *c)
{
	const struct rdmap_sink sink = soft_rq_sink(c);
	ssize_t got = soft_rx(&c->io, &sink, RX_BUDGET);
	bool failed;

	if (got > 0 && !c->heard)
		__atomic_store_n(&c->heard, true, __ATOMIC_RELAXED); /* read by soft_stage_send() */
	if (open_is_quiet(c, got))
		return;
	c->kicked = false;
	pthread_mutex_lock(&c->tx);
	if (!stream_error(c, got))
		open_send(c);
	failed = c->core.tx_error && rdmap_state_of(&c->core.rdmap) == RDMAP_OPEN;
	pthread_mutex_unlock(&c->tx);
	/* Where sending failed the peer may have said why, behind answers to what we asked */
	for (int i = 0; failed && i < LAST_LOOKS; i++) {
		got = soft_rx(&c->io, &sink, 0);
		if (got <= 0 || !c->core.rx_more)
			break;
	}
	pthread_mutex_lock(&c->tx);
	open_end(c, got);
	pthread_mutex_unlock(&c->tx);
}

void soft_stage_attend_held(struct soft_conn *c)
{
	if (c->stage == SOFT_STAGE_OPEN) {
		attend_open(c);
	} else {
		pthread_mutex_lock(&c->tx);
		if (c->stage == SOFT_STAGE_TCP)
			attend_tcp(c);
		else if (c->stage == SOFT_STAGE_START)
			attend_start(c);
		else if (c->stage == SOFT_STAGE_LINGER)
			soft_stage_linger(c);
		pthread_mutex_unlock(&c->tx);
	}
}

void soft_stage_attend(struct soft_conn *c)
{
	if (pthread_mutex_trylock(&c->rx))
		return;
	soft_stage_attend_held(c);
	pthread_mutex_unlock(&c->rx);
}

void soft_stage_attend_caller(struct soft_conn *c)
{
	__atomic_store_n(&c->attended, base_now(), __ATOMIC_RELAXED); /* read by the thread */
	soft_stage_attend(c);
}

/* --- time --- */

/* rnic/write_retry.h. A peer that wanted an RTR first has looked before it spoke */
static void write_retry(struct soft_conn *c)
{
	const struct mpa_conn *m = &c->core.rdmap.ddp.mpa;

	time_set(&c->write_retry_at, BASE_NEVER);
	if (c->stage != SOFT_STAGE_OPEN || c->core.tx_end || (m->rx_fpdus && m->flags & MPA_F_P2P))
		return;
	soft_sq_write_retry(c);
	if (!m->rx_fpdus && ++c->write_retries < RNIC_WRITE_RETRIES)
		time_set(&c->write_retry_at,
			 base_deadline(base_now(), rnic_write_retry_ns(c->write_retries)));
	soft_stage_send(c); /* waits for room, should it not all have gone */
}

void soft_stage_timer(struct soft_conn *c, uint64_t now)
{
	pthread_mutex_lock(&c->rx);
	pthread_mutex_lock(&c->tx);
	if (base_deadline_passed(c->start_by, now) && c->state == WARP_CONN_CONNECTING) {
		time_set(&c->start_by, BASE_NEVER);
		soft_stage_end(c, WARP_CONN_ERROR, -ETIMEDOUT);
	}
	if (base_deadline_passed(c->write_retry_at, now))
		write_retry(c);
	if (base_deadline_passed(c->linger_by, now)) {
		time_set(&c->linger_by, BASE_NEVER);
		soft_stage_end(c, WARP_CONN_DISCONNECTED, 0);
		if (c->stage == SOFT_STAGE_LINGER)
			soft_stage_drop(c);
	}
	soft_progress_update(c);
	pthread_mutex_unlock(&c->tx);
	pthread_mutex_unlock(&c->rx);
}
