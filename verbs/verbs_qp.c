/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: their making and their end.
 *
 * The device's queue pair serves one connection: with iWARP no state leads back from the end of
 * one. So it is destroyed when the connection ends, what the device has not completed then is
 * flushed by us, and the next use makes another one. The program's queue pair stays.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "rnic/write_retry.h"
#include "verbs/verbs_conn.h"
#include "verbs/verbs_qp.h"

#define FLUSH_NS (20 * BASE_NS_PER_MS)

static int qp_modify(struct verbs_qp *q, struct ibv_qp_attr *attr, int mask)
{
	return -verbs_call(ibv_modify_qp)(q->ibv, attr, mask);
}

/* What a peer may do is said by the regions */
static unsigned int access_of(const struct verbs_qp *q)
{
	unsigned int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ;

	return verbs_attr_atomics(q->dev) ? all | IBV_ACCESS_REMOTE_ATOMIC : all;
}

/* Receives may be posted from here on */
static int qp_init_state(struct verbs_qp *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = q->dev->port,
				    .qp_access_flags = access_of(q) };

	return qp_modify(q, &attr,
			 IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static struct ibv_qp *device_qp(struct verbs_qp *q, uint32_t copied)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = q,
		.send_cq = q->half[0].ibv,
		.recv_cq = verbs_recv_half(q)->ibv,
		.cap = { .max_send_wr = q->attr.max_send_wr + RNIC_WRITE_RETRIES,
			 .max_recv_wr = base_max(q->attr.max_recv_wr, 1u),
			 .max_send_sge = base_max(q->attr.max_send_sge, 1u),
			 .max_recv_sge = base_max(q->attr.max_recv_sge, 1u),
			 .max_inline_data = base_max(copied, q->dev->siw ? VERBS_SMALL : 0u) },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	errno = 0;
	return verbs_call(ibv_create_qp)(q->pd->ibv, &attr);
}

/* Where inline bytes go that the device does not take itself */
static int copy_make(struct verbs_qp *q)
{
	size_t size = (size_t)(q->sq.ring.mask + 1) * q->attr.max_inline;

	q->copy = malloc(size);
	if (!q->copy)
		return -ENOMEM;
	q->copy_mr = verbs_call(ibv_reg_mr)(q->pd->ibv, q->copy, size, 0);
	return q->copy_mr ? 0 : verbs_error();
}

int verbs_qp_ready(struct verbs_qp *q)
{
	int err = 0;

	if (q->ibv)
		return 0;
	q->failure = WARP_WC_SUCCESS;
	q->fault = q->broken = q->cut = q->heard = false;
	q->ibv = device_qp(q, q->copy ? 0 : q->attr.max_inline);
	if (!q->ibv && errno == EINVAL && q->attr.max_inline && !q->copy) {
		err = copy_make(q);
		if (err)
			return err;
		q->ibv = device_qp(q, 0);
	}
	if (!q->ibv)
		return verbs_error();
	err = qp_init_state(q);
	if (err) {
		verbs_call(ibv_destroy_qp)(q->ibv);
		q->ibv = NULL;
	}
	return err;
}

static bool outstanding(const struct verbs_qp *q)
{
	return !base_ring_empty(&q->sq.ring) || !base_ring_empty(&q->rq.ring);
}

static void reap(struct verbs_qp *q)
{
	for (unsigned int i = 0; i < q->halves; i++)
		verbs_half_reap(&q->half[i]);
}

/*
 * A device completes what it flushes by itself, soon, and some drop completions together with
 * the queue pair; what siw is given after its end it keeps
 */
void verbs_qp_retire(struct verbs_qp *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	uint64_t until = base_deadline(base_now(), FLUSH_NS);

	if (!q->ibv)
		return;
	qp_modify(q, &attr, IBV_QP_STATE);
	reap(q);
	while (outstanding(q) && !base_deadline_passed(until, base_now())) {
		usleep(100);
		reap(q);
	}
	verbs_call(ibv_destroy_qp)(q->ibv);
	q->ibv = NULL;
	reap(q);
	verbs_queue_flush(&q->half[0], &q->sq);
	verbs_queue_flush(verbs_recv_half(q), &q->rq);
}

int verbs_qp_move(struct verbs_qp *q, struct rdma_cm_id *id, enum ibv_qp_state state, int ird,
		  int ord)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	errno = 0;
	if (verbs_call(rdma_init_qp_attr)(id, &attr, &mask))
		return verbs_error();
	/* Before a Request is sent a connection manager knows of no Reads, and of atomics never */
	if (mask & IBV_QP_ACCESS_FLAGS)
		attr.qp_access_flags = access_of(q);
	if (state == IBV_QPS_RTR)
		attr.max_dest_rd_atomic = (uint8_t)ird;
	if (state == IBV_QPS_RTS)
		attr.max_rd_atomic = (uint8_t)ord;
	return qp_modify(q, &attr, mask);
}

/* --- the program's ------------------------------------------------------------------------ */

static bool attr_valid(const struct verbs_device *d, const struct warp_qp_attr *a)
{
	uint32_t wr = (uint32_t)d->attr.max_qp_wr / 2, sge = verbs_attr_sge(d);

	return a->max_send_wr <= wr && a->max_recv_wr <= wr && a->max_send_sge <= sge &&
	       a->max_recv_sge <= sge && a->max_inline <= VERBS_INLINE_MAX;
}

static void users_add(struct verbs_pd *pd, const struct warp_qp_attr *attr, unsigned int n)
{
	/* Pairs with the look of each object's destroy */
	__atomic_add_fetch(&pd->users, n, __ATOMIC_RELEASE);
	__atomic_add_fetch(&verbs_cq_of(attr->send_cq)->users, n, __ATOMIC_RELEASE);
	__atomic_add_fetch(&verbs_cq_of(attr->recv_cq)->users, n, __ATOMIC_RELEASE);
}

static void qp_free(struct verbs_qp *q)
{
	for (unsigned int i = 0; i < q->halves; i++)
		verbs_half_uninit(&q->half[i]);
	if (q->copy_mr)
		verbs_call(ibv_dereg_mr)(q->copy_mr);
	free(q->copy);
	free(q->sq.slot);
	free(q->rq.slot);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static int queues_init(struct verbs_qp *q)
{
	struct verbs_cq *send_cq = verbs_cq_of(q->attr.send_cq);
	struct verbs_cq *recv_cq = verbs_cq_of(q->attr.recv_cq);
	uint32_t sends = q->attr.max_send_wr, recvs = q->attr.max_recv_wr;
	int err = verbs_queue_init(&q->sq, sends);

	if (!err)
		err = verbs_queue_init(&q->rq, recvs);
	q->halves = send_cq == recv_cq ? 1 : 2;
	if (!err)
		err = verbs_half_init(&q->half[0], q, send_cq,
				      sends + RNIC_WRITE_RETRIES + (q->halves == 1 ? recvs : 0));
	if (!err && q->halves == 2)
		err = verbs_half_init(&q->half[1], q, recv_cq, recvs);
	return err;
}

/* Polls of other threads see it from here on, or not any more */
static void halves_link(struct verbs_qp *q, bool on)
{
	for (unsigned int i = 0; i < q->halves; i++) {
		struct verbs_half *h = &q->half[i];

		pthread_mutex_lock(&h->cq->lock);
		if (on)
			base_list_push_back(&h->cq->halves, &h->link);
		else
			base_list_remove(&h->link);
		pthread_mutex_unlock(&h->cq->lock);
	}
}

int verbs_qp_create(struct warp_pd *pd, const struct warp_qp_attr *attr, struct warp_qp **out)
{
	struct verbs_device *d = verbs_device_of(pd->dev);
	struct verbs_qp *q;
	int err;

	if (!attr_valid(d, attr))
		return -EINVAL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->qp = (struct warp_qp){ .pd = pd, .context = attr->context };
	q->dev = d;
	q->pd = verbs_pd_of(pd);
	q->attr = *attr;
	pthread_mutex_init(&q->lock, NULL);
	err = queues_init(q);
	if (!err)
		err = verbs_qp_ready(q);
	if (err) {
		qp_free(q);
		return err;
	}
	halves_link(q, true);
	users_add(q->pd, attr, 1);
	*out = &q->qp;
	return 0;
}

int verbs_qp_destroy(struct warp_qp *qp)
{
	struct verbs_qp *q = verbs_qp_of(qp);
	const struct warp_qp_attr attr = q->attr;
	struct verbs_pd *pd = q->pd;
	bool busy;

	pthread_mutex_lock(&q->lock);
	busy = q->conn;
	pthread_mutex_unlock(&q->lock);
	if (busy)
		return -EBUSY;
	halves_link(q, false);
	if (q->ibv)
		verbs_call(ibv_destroy_qp)(q->ibv);
	qp_free(q);
	/* Last: who waits for it destroys the others at once */
	users_add(pd, &attr, -1u);
	return 0;
}
