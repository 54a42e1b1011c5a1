/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: their making, and posting to them.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "soft/soft_conn.h"

static bool attr_valid(const struct warp_qp_attr *a)
{
	return a->max_send_wr <= SOFT_WR_MAX && a->max_recv_wr <= SOFT_WR_MAX &&
	       a->max_send_sge <= SOFT_SGE_MAX && a->max_recv_sge <= SOFT_SGE_MAX &&
	       a->max_inline <= SOFT_INLINE_MAX;
}

static void qp_free(struct soft_qp *q)
{
	soft_sq_uninit(&q->sq);
	soft_rq_uninit(&q->rq);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static void qp_users_add(const struct soft_qp *q, unsigned int n)
{
	/* Pairs with the look of each object's destroy */
	__atomic_add_fetch(&q->pd->users, n, __ATOMIC_RELEASE);
	__atomic_add_fetch(&q->send_cq->users, n, __ATOMIC_RELEASE);
	__atomic_add_fetch(&q->recv_cq->users, n, __ATOMIC_RELEASE);
}

int soft_qp_create(struct warp_pd *pd, const struct warp_qp_attr *attr, struct warp_qp **out)
{
	struct soft_qp *q;
	int err;

	if (!attr_valid(attr))
		return -EINVAL;
	q = base_heap_array(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->qp.pd = pd;
	q->qp.context = attr->context;
	q->dev = soft_device_of(pd->dev);
	q->pd = soft_pd_of(pd);
	q->send_cq = soft_cq_of(attr->send_cq);
	q->recv_cq = soft_cq_of(attr->recv_cq);
	q->signal_all = attr->signal_all;
	q->max_send_sge = base_max(attr->max_send_sge, 1u);
	q->max_recv_sge = base_max(attr->max_recv_sge, 1u);
	q->max_inline = attr->max_inline;
	pthread_mutex_init(&q->lock, NULL);
	err = soft_sq_init(&q->sq, attr->max_send_wr, q->max_send_sge, q->max_inline);
	if (!err)
		err = soft_rq_init(&q->rq, attr->max_recv_wr, q->max_recv_sge);
	if (err) {
		qp_free(q);
		return err;
	}
	qp_users_add(q, 1);
	*out = &q->qp;
	return 0;
}

int soft_qp_destroy(struct warp_qp *qp)
{
	struct soft_qp *q = soft_qp_of(qp);
	bool busy;

	pthread_mutex_lock(&q->lock);
	busy = q->conn;
	pthread_mutex_unlock(&q->lock);
	if (busy)
		return -EBUSY;
	soft_cq_forget(q->send_cq, qp);
	soft_cq_forget(q->recv_cq, qp);
	qp_users_add(q, -1u);
	qp_free(q);
	return 0;
}

static int post_send(struct soft_conn *c, const struct warp_send_wr *wr, unsigned int n)
{
	unsigned int done = 0;
	int err = -ENOTCONN;

	pthread_mutex_lock(&c->tx);
	if (c->state == WARP_CONN_ESTABLISHED && !c->closing) {
		for (err = 0; done < n && !err; done += !err)
			err = soft_sq_add(c, &wr[done]);
		if (done)
			soft_stage_send(c);
	}
	pthread_mutex_unlock(&c->tx);
	return done ? (int)done : err;
}

int soft_qp_post_send(struct warp_qp *qp, const struct warp_send_wr *wr, unsigned int n)
{
	struct soft_qp *q = soft_qp_of(qp);
	int got = -ENOTCONN;

	pthread_mutex_lock(&q->lock);
	if (q->conn)
		got = post_send(q->conn, wr, n);
	pthread_mutex_unlock(&q->lock);
	return got;
}

/* Under qp.lock */
static bool ended(const struct soft_qp *q)
{
	return q->conn && soft_conn_state(q->conn) > WARP_CONN_ESTABLISHED;
}

int soft_qp_post_recv(struct warp_qp *qp, const struct warp_recv_wr *wr, unsigned int n)
{
	struct soft_qp *q = soft_qp_of(qp);
	unsigned int done = 0;
	int err;

	pthread_mutex_lock(&q->lock);
	err = ended(q) ? -ENOTCONN : 0;
	for (; done < n && !err; done += !err)
		err = soft_rq_add(q, &wr[done]);
	/* It may have ended meanwhile, and its queue been flushed before the last ones came */
	if (done && ended(q))
		soft_rq_flush(q, WARP_WC_FLUSHED);
	pthread_mutex_unlock(&q->lock);
	return done ? (int)done : err;
}
