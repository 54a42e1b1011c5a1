/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection by the connection manager's events.
 *
 *	active                                      passive
 *	rdma_resolve_addr                           CONNECT_REQUEST: REQUEST
 *	ADDR_RESOLVED:  rdma_resolve_route          rdma_accept: CONNECTING
 *	ROUTE_RESOLVED: rdma_connect                ESTABLISHED
 *	CONNECT_RESPONSE (not iWARP): rdma_establish
 *	ESTABLISHED
 *
 * With iWARP the device moves the queue pair itself; with InfiniBand and RoCE we do. Who waits
 * for the connection, or for one of its completion queues, takes the events in; in start-up also
 * the thread of verbs_progress.c, for the program may be waiting for something else.
 */
#include <errno.h>
#include <string.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "rnic/write_retry.h"
#include "verbs/verbs_conn.h"

#define BROKEN_NS (BASE_NS_PER_S / 2)
#define FOLLOW_NS (10 * BASE_NS_PER_S)
#define RESOLVE_MS 100
#define RESOLVE_MAX_MS 2000
/*
 * How long nothing is heard before the first, each waits twice as long as that before it; and until
 * when after its beginning a connection's first word may be one to be overlooked
 */
#define WRITE_RETRY_LAST BASE_NS_PER_S

struct rdma_cm_event *verbs_cm_next(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *e;

	return verbs_call(rdma_get_cm_event)(channel, &e) ? NULL : e;
}

void verbs_cm_state(struct verbs_conn *c, enum warp_conn_state state, int error)
{
	c->error = error;
	__atomic_store_n(&c->state, state, __ATOMIC_RELEASE); /* pairs with verbs_conn_state() */
	base_eventfd_notify(c->event);
}

void verbs_cm_end(struct verbs_conn *c, enum warp_conn_state state, int error)
{
	if (verbs_conn_ended(c))
		return;
	verbs_cm_state(c, state, error);
	if (!c->qp)
		return;
	pthread_mutex_lock(&c->qp->lock);
	verbs_qp_retire(c->qp);
	pthread_mutex_unlock(&c->qp->lock);
	for (unsigned int i = 0; i < c->qp->halves; i++)
		verbs_cq_ring(c->qp->half[i].cq);
}

static void fail(struct verbs_conn *c, int err)
{
	verbs_cm_end(c, WARP_CONN_ERROR, err);
}

/* --- what the events bring ---------------------------------------------------------------- */

/*
 * How many Reads each side may have outstanding is said from the receiver's point of view. There
 * are drivers that say their own: then our ORD, which they have made fit, is what is known of the
 * peer's IRD, and the other way round
 */
static void peer_depths(struct verbs_conn *c, const struct rdma_conn_param *param)
{
	bool turned = c->active && c->dev->own_in_reply;

	if (!c->active && c->dev->own_in_request)
		return;
	c->peer_ord = turned ? param->initiator_depth : param->responder_resources;
	c->peer_ird = turned ? param->responder_resources : param->initiator_depth;
	c->ord = (uint8_t)base_min((uint16_t)c->ord, c->peer_ird);
}

void verbs_cm_peer_param(struct verbs_conn *c, const struct rdma_conn_param *param)
{
	peer_depths(c, param);
	c->peer_pd_len = param->private_data ? param->private_data_len : 0;
	if (c->peer_pd_len)
		memcpy(c->peer_pd, param->private_data, c->peer_pd_len);
}

void verbs_cm_addresses(struct verbs_conn *c)
{
	memcpy(&c->local, &c->id->route.addr.src_storage, sizeof(c->local));
	memcpy(&c->peer, &c->id->route.addr.dst_storage, sizeof(c->peer));
}

/* The route decides about the device, and may lead over another one than the program's */
static bool is_on_device(const struct verbs_conn *c)
{
	return c->id->verbs && !strcmp(verbs_call(ibv_get_device_name)(c->id->verbs->device),
				       verbs_device_name(c->dev));
}

static int left_ms(const struct verbs_conn *c)
{
	int ms = base_deadline_poll_ms(c->start_by, base_now());

	return base_max(ms, 1);
}

int verbs_cm_resolve(struct verbs_conn *c)
{
	c->resolve_ms = c->resolve_ms ? base_min(2 * c->resolve_ms, RESOLVE_MAX_MS) : RESOLVE_MS;
	errno = 0;
	if (!verbs_call(rdma_resolve_addr)(c->id, NULL, (struct sockaddr *)&c->peer,
					   base_min(left_ms(c), c->resolve_ms)))
		return 0;
	return errno == ENODEV ? -EHOSTUNREACH : verbs_error();
}

static void on_no_address(struct verbs_conn *c, int err)
{
	if (err == -ETIMEDOUT && !base_deadline_passed(c->start_by, base_now()))
		err = verbs_cm_resolve(c);
	if (err)
		fail(c, err);
}

static void on_address(struct verbs_conn *c)
{
	if (!is_on_device(c)) {
		base_info("verbs: the route to the peer does not lead over %s",
			  verbs_device_name(c->dev));
		fail(c, -EHOSTUNREACH);
		return;
	}
	errno = 0;
	if (verbs_call(rdma_resolve_route)(c->id, left_ms(c)))
		fail(c, verbs_error());
}

static struct rdma_conn_param param_of(const struct verbs_conn *c)
{
	return (struct rdma_conn_param){
		.private_data = c->start_pd,
		.private_data_len = c->start_pd_len,
		.responder_resources = c->ird,
		.initiator_depth = c->ord,
		.retry_count = 7,
		.rnr_retry_count = 0, /* as iWARP: a Send without a receive ends the connection */
		.qp_num = c->qp->ibv->qp_num,
	};
}

static void on_route(struct verbs_conn *c)
{
	struct rdma_conn_param param;
	int err;

	verbs_cm_addresses(c);
	pthread_mutex_lock(&c->qp->lock);
	err = verbs_qp_ready(c->qp);
	if (!err && !c->dev->iwarp)
		err = verbs_qp_move(c->qp, c->id, IBV_QPS_INIT, 0, 0);
	pthread_mutex_unlock(&c->qp->lock);
	if (!err) {
		param = param_of(c);
		errno = 0;
		if (verbs_call(rdma_connect)(c->id, &param))
			err = verbs_error();
	}
	if (err)
		fail(c, err);
}

/* InfiniBand and RoCE */
static int qp_connect(struct verbs_conn *c)
{
	int err;

	pthread_mutex_lock(&c->qp->lock);
	err = verbs_qp_move(c->qp, c->id, IBV_QPS_RTR, c->ird, 0);
	if (!err)
		err = verbs_qp_move(c->qp, c->id, IBV_QPS_RTS, 0, c->ord);
	pthread_mutex_unlock(&c->qp->lock);
	return err;
}

static void on_response(struct verbs_conn *c)
{
	int err = qp_connect(c);

	errno = 0;
	if (!err && verbs_call(rdma_establish)(c->id))
		err = verbs_error();
	if (err)
		fail(c, err);
	else
		verbs_cm_state(c, WARP_CONN_ESTABLISHED, 0);
}

static void on_established(struct verbs_conn *c)
{
	verbs_cm_addresses(c);
	if (verbs_conn_state(c) != WARP_CONN_CONNECTING)
		return;
	pthread_mutex_lock(&c->qp->lock);
	c->posted = c->qp->sq.ring.tail;
	pthread_mutex_unlock(&c->qp->lock);
	if (c->active && c->dev->iwarp)
		c->write_retry_until = base_deadline(base_now(), WRITE_RETRY_LAST);
	verbs_cm_state(c, WARP_CONN_ESTABLISHED, 0);
}

int verbs_cm_accept(struct verbs_conn *c)
{
	struct rdma_conn_param param;
	int err;

	pthread_mutex_lock(&c->qp->lock);
	err = verbs_qp_ready(c->qp);
	if (!err && !c->dev->iwarp)
		err = verbs_qp_move(c->qp, c->id, IBV_QPS_INIT, 0, 0);
	pthread_mutex_unlock(&c->qp->lock);
	if (!err && !c->dev->iwarp)
		err = qp_connect(c);
	if (err)
		return err;
	param = param_of(c);
	errno = 0;
	return verbs_call(rdma_accept)(c->id, &param) ? verbs_error() : 0;
}

/* rnic/write_retry.h */
static void write_retry_attend(struct verbs_conn *c)
{
	struct verbs_qp *q = c->qp;
	uint64_t now = base_now();

	if (!c->write_retry_until || !q || verbs_conn_state(c) != WARP_CONN_ESTABLISHED)
		return;
	pthread_mutex_lock(&q->lock);
	for (unsigned int i = 0; i < q->halves; i++)
		verbs_half_reap(&q->half[i]);
	if (!c->write_retry_at && q->sq.ring.tail != c->posted)
		c->write_retry_at = base_deadline(now, rnic_write_retry_ns(0));
	if (q->heard || q->broken ||
	    (!c->write_retry_at && base_deadline_passed(c->write_retry_until, now))) {
		if (c->write_retry_at && !q->broken)
			verbs_qp_write_retry(q);
		c->write_retry_until = 0;
	} else if (c->write_retry_at && base_deadline_passed(c->write_retry_at, now)) {
		verbs_qp_write_retry(q);
		c->write_retry_at = base_deadline(now, rnic_write_retry_ns(++c->write_retries));
		if (c->write_retries == RNIC_WRITE_RETRIES)
			c->write_retry_until = 0;
	}
	pthread_mutex_unlock(&q->lock);
}

/* --- ends --------------------------------------------------------------------------------- */

/* What the device tells beside: which queue pairs have met a fault */
static void faults_take(struct verbs_device *d)
{
	struct ibv_async_event e;

	pthread_mutex_lock(&d->async);
	while (!verbs_call(ibv_get_async_event)(d->ctx, &e)) {
		switch (e.event_type) {
		case IBV_EVENT_QP_FATAL:
		case IBV_EVENT_QP_REQ_ERR:
		case IBV_EVENT_QP_ACCESS_ERR:
			/* It cannot go before the event is acknowledged */
			__atomic_store_n(&((struct verbs_qp *)e.element.qp->qp_context)->fault,
					 true, __ATOMIC_RELAXED);
			break;
		default:
			base_debug("verbs: event %d of %s", (int)e.event_type,
				   verbs_device_name(d));
			break;
		}
		verbs_call(ibv_ack_async_event)(&e);
	}
	pthread_mutex_unlock(&d->async);
}

/*
 * Connection managers do not tell an orderly end from a reset. That it was none is known when
 * the device has told of a fault, or a work request has failed or was under way: who ends in
 * order has waited for his own, and the peer for our Reads of it. @err: if there is no such sign
 */
static void ended(struct verbs_conn *c, int err)
{
	struct verbs_qp *q = c->qp;

	if (verbs_conn_ended(c))
		return;
	faults_take(c->dev);
	if (!c->dev->iwarp)
		verbs_call(rdma_disconnect)(c->id);
	if (!q) {
		fail(c, -ECONNRESET);
		return;
	}
	pthread_mutex_lock(&q->lock);
	verbs_qp_retire(q);
	if (__atomic_load_n(&q->fault, __ATOMIC_RELAXED))
		err = -EPROTO;
	else if (q->failure || q->cut)
		err = -ECONNRESET;
	pthread_mutex_unlock(&q->lock);
	verbs_cm_end(c, err ? WARP_CONN_ERROR : WARP_CONN_DISCONNECTED, err);
}

/*
 * Something has failed and no end is told of: an InfiniBand connection manager knows nothing of
 * the queue pair's troubles, one of iWARP does and follows, on a busy host when it comes to it.
 * After an end of ours receives are flushed, which is no trouble
 */
static void broken_attend(struct verbs_conn *c)
{
	bool broken;

	if (!c->qp || verbs_conn_state(c) != WARP_CONN_ESTABLISHED)
		return;
	pthread_mutex_lock(&c->qp->lock);
	/* Who waits for the connection alone hears of it, too */
	for (unsigned int i = 0; i < c->qp->halves && !c->dev->iwarp; i++)
		verbs_half_reap(&c->qp->half[i]);
	broken = c->qp->broken;
	pthread_mutex_unlock(&c->qp->lock);
	if (!broken)
		return;
	if (!c->end_by)
		c->end_by = base_deadline(base_now(), c->dev->iwarp ? FOLLOW_NS : BROKEN_NS);
	if (base_deadline_passed(c->end_by, base_now()))
		ended(c, c->shut ? 0 : -ECONNRESET);
}

void verbs_cm_shut(struct verbs_conn *c)
{
	bool idle;

	if (c->shut || verbs_conn_ended(c))
		return;
	pthread_mutex_lock(&c->qp->lock);
	verbs_half_reap(&c->qp->half[0]);
	idle = base_ring_empty(&c->qp->sq.ring);
	pthread_mutex_unlock(&c->qp->lock);
	if (!idle)
		return;
	c->shut = true;
	verbs_call(rdma_disconnect)(c->id);
}

/* --- */

/* Numbers that connection managers give are negative errnos, or not errnos at all */
static int error_of(const struct rdma_cm_event *e, int other)
{
	return e->status < 0 && e->status > -4096 ? e->status : other;
}

static void handle(struct verbs_conn *c, enum rdma_cm_event_type what, int err)
{
	switch (what) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		on_address(c);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		on_route(c);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		on_response(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		on_established(c);
		break;
	case RDMA_CM_EVENT_REJECTED:
		verbs_cm_end(c, WARP_CONN_REJECTED, -ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		ended(c, 0);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		on_no_address(c, err);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		fail(c, err);
		break;
	default:
		break;
	}
}

static int failure_of(const struct rdma_cm_event *e)
{
	switch (e->event) {
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENODEV;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return error_of(e, -ECONNRESET);
	default:
		/* No device is on the way: to the program that is no way */
		return e->status == -ENODEV ? -EHOSTUNREACH : error_of(e, -EHOSTUNREACH);
	}
}

bool verbs_cm_moves(const struct verbs_conn *c)
{
	if (verbs_conn_state(c) == WARP_CONN_CONNECTING)
		return true;
	return !verbs_conn_ended(c) && (c->write_retry_until || (c->closing && !c->shut));
}

void verbs_cm_attend(struct verbs_conn *c)
{
	struct rdma_cm_event *e;

	while ((e = verbs_cm_next(c->channel))) {
		enum rdma_cm_event_type what = e->event;
		int err = failure_of(e);

		base_debug("verbs: event %d, status %d", (int)what, e->status);
		if (what == RDMA_CM_EVENT_ESTABLISHED || what == RDMA_CM_EVENT_CONNECT_RESPONSE ||
		    what == RDMA_CM_EVENT_REJECTED)
			if (c->active)
				verbs_cm_peer_param(c, &e->param.conn);
		verbs_call(rdma_ack_cm_event)(e);
		handle(c, what, err);
	}
	if (verbs_conn_state(c) == WARP_CONN_CONNECTING &&
	    base_deadline_passed(c->start_by, base_now()))
		fail(c, -ETIMEDOUT);
	broken_attend(c);
	write_retry_attend(c);
	if (c->closing)
		verbs_cm_shut(c);
}
