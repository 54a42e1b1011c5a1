/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The receive queue, and where a connection's input goes: into registered memory and posted
 * receives.
 *
 * Called under conn.rx. Bytes are copied while dev.stags is held, so a region that is
 * deregistered is not written to any more; that holds for the pieces of posted receives as well.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "soft/soft_conn.h"

static struct soft_rwqe *rwqe_at(const struct soft_rq *rq, __u32 index)
{
	return &rq->ring[index & rq->mask];
}

int soft_rq_init(struct soft_rq *rq, __u32 depth, __u32 sge)
{
	__u32 size = soft_ring_size(depth);

	rq->depth = depth;
	rq->mask = size - 1;
	rq->ring = base_heap_array(size, sizeof(*rq->ring));
	rq->iov = base_heap_array((size_t)size * sge, sizeof(*rq->iov));
	rq->stags = base_heap_array((size_t)size * sge, sizeof(*rq->stags));
	pthread_mutex_init(&rq->lock, NULL);
	if (!rq->ring || !rq->iov || !rq->stags)
		return -ENOMEM;
	for (__u32 i = 0; i < size; i++) {
		rq->ring[i].iov = rq->iov + (size_t)i * sge;
		rq->ring[i].stags = rq->stags + (size_t)i * sge;
	}
	return 0;
}

void soft_rq_uninit(struct soft_rq *rq)
{
	pthread_mutex_destroy(&rq->lock);
	free(rq->ring);
	free(rq->iov);
	free(rq->stags);
}

/* Under rq.lock */
static int rwqe_fill(struct soft_qp *qp, struct soft_rwqe *w, const struct warp_recv_wr *wr)
{
	bool covered;

	w->wr_id = wr->wr_id;
	w->nsg = wr->num_sge;
	w->len = 0;
	for (unsigned int i = 0; i < wr->num_sge; i++) {
		w->iov[i] = (struct iovec){ wr->sg[i].addr, wr->sg[i].length };
		w->stags[i] = wr->sg[i].stag;
		w->len += wr->sg[i].length;
	}
	covered = soft_mr_covers(qp->dev, qp->pd->id, w->iov, w->stags, w->nsg, DDP_LOCAL_WRITE);
	return covered ? 0 : -EACCES;
}

int soft_rq_add(struct soft_qp *qp, const struct warp_recv_wr *wr)
{
	struct soft_rq *rq = &qp->rq;
	int err = -ENOMEM;

	if (wr->num_sge > qp->max_recv_sge)
		return -EINVAL;
	pthread_rwlock_rdlock(&qp->dev->stag_lock);
	pthread_mutex_lock(&rq->lock);
	if (rq->tail - rq->head < rq->depth)
		err = rwqe_fill(qp, rwqe_at(rq, rq->tail), wr);
	if (!err)
		rq->tail++;
	pthread_mutex_unlock(&rq->lock);
	pthread_rwlock_unlock(&qp->dev->stag_lock);
	return err;
}

static void complete(struct soft_qp *qp, struct warp_wc *wc)
{
	wc->qp = &qp->qp;
	wc->opcode = WARP_WC_RECV;
	soft_cq_push(qp->recv_cq, wc);
}

void soft_rq_flush(struct soft_qp *qp, enum warp_wc_status cause)
{
	struct soft_rq *rq = &qp->rq;

	pthread_mutex_lock(&rq->lock);
	for (; rq->head != rq->tail; rq->head++) {
		struct warp_wc wc = { .wr_id = rwqe_at(rq, rq->head)->wr_id, .status = cause };

		complete(qp, &wc);
		cause = WARP_WC_FLUSHED;
	}
	pthread_mutex_unlock(&rq->lock);
}

/* --- the sink --- */

static enum iwarp_fault sink_place(void *ctx, const struct ddp_seg *seg, unsigned int access)
{
	struct soft_conn *c = ctx;
	enum ddp_stag_error e;
	__u8 *addr;

	pthread_rwlock_rdlock(&c->dev->stag_lock);
	e = ddp_stag_check(&c->dev->stags, seg->stag, c->pd, seg->to, seg->len, access, &addr);
	if (!e)
		memcpy(addr, seg->payload, seg->len);
	pthread_rwlock_unlock(&c->dev->stag_lock);
	return e ? ddp_stag_fault_tagged(e) : IWARP_OK;
}

static unsigned int sink_recv_ready(void *ctx, __u64 *len)
{
	struct soft_conn *c = ctx;
	struct soft_rq *rq;
	unsigned int n;

	if (!c->qp)
		return 0;
	rq = &c->qp->rq;
	pthread_mutex_lock(&rq->lock);
	n = rq->tail - rq->head;
	if (n)
		*len = rwqe_at(rq, rq->head)->len;
	pthread_mutex_unlock(&rq->lock);
	return n;
}

/* The oldest receive is ours alone between recv_ready and recv_done: posting only adds behind it */
static void sink_recv_place(void *ctx, const struct ddp_seg *seg)
{
	struct soft_conn *c = ctx;
	const struct soft_rwqe *w = rwqe_at(&c->qp->rq, c->qp->rq.head);
	bool covered;

	pthread_rwlock_rdlock(&c->dev->stag_lock);
	covered = soft_mr_covers(c->dev, c->pd, w->iov, w->stags, w->nsg, DDP_LOCAL_WRITE);
	if (covered)
		ddp_scatter(w->iov, w->nsg, seg->mo, seg->payload, seg->len);
	pthread_rwlock_unlock(&c->dev->stag_lock);
	if (covered)
		return;
	c->recv_gone = true;
	rdmap_fault(&c->core.rdmap, RDMAP_E_LOCAL);
}

static void sink_recv_done(void *ctx, const struct rdmap_recv *recv)
{
	struct soft_conn *c = ctx;
	struct soft_rq *rq = &c->qp->rq;
	bool imm = recv->op == RDMAP_IMM || recv->op == RDMAP_IMM_SE;
	struct warp_wc wc = {
		.byte_len = imm ? 0 : (__u32)recv->len,
		.inv_stag = recv->inv_stag,
		.immediate = recv->imm,
	};

	/* Its pieces were gone: the end of the connection says what became of it */
	if (c->recv_gone)
		return;
	if (imm)
		wc.flags |= WARP_WC_WITH_IMMEDIATE;
	if (recv->invalidated)
		wc.flags |= WARP_WC_WITH_INVALIDATE;
	if (recv->solicited)
		wc.flags |= WARP_WC_SOLICITED;
	pthread_mutex_lock(&rq->lock);
	wc.wr_id = rwqe_at(rq, rq->head)->wr_id;
	rq->head++;
	pthread_mutex_unlock(&rq->lock);
	complete(c->qp, &wc);
}

static enum ddp_stag_error sink_invalidate(void *ctx, __u32 stag)
{
	struct soft_conn *c = ctx;
	enum ddp_stag_error e;

	pthread_rwlock_wrlock(&c->dev->stag_lock);
	e = ddp_stag_invalidate(&c->dev->stags, stag, c->pd);
	pthread_rwlock_unlock(&c->dev->stag_lock);
	return e;
}

static void sink_done(void *ctx, __u64 cookie, __u64 value)
{
	struct soft_conn *c = ctx;

	pthread_mutex_lock(&c->tx);
	soft_sq_done(c, (__u32)cookie, value);
	pthread_mutex_unlock(&c->tx);
}

static void sink_kick(void *ctx)
{
	struct soft_conn *c = ctx;

	c->kicked = true;
}

struct rdmap_sink soft_rq_sink(struct soft_conn *c)
{
	return (struct rdmap_sink){
		.place = sink_place,
		.recv_ready = sink_recv_ready,
		.recv_place = sink_recv_place,
		.recv_done = sink_recv_done,
		.invalidate = sink_invalidate,
		.done = sink_done,
		.kick = sink_kick,
		.ctx = c,
	};
}
