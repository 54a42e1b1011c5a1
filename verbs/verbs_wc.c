/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Completions: from the device's form to the program's.
 *
 * The device completes every work request, wanted or not, so that it is known at any time what
 * is under way. A completion goes from the device's queue to a ring of ours, and from there to the
 * program. Room in the queue of work requests comes back when the program has taken the
 * completion, or at once where it wants none; so no ring and no queue of the device can overflow.
 *
 * A device flushes before the connection manager tells of the end. A program that sees something
 * flushed asks the connection why, so such completions are held until that can answer.
 *
 * The device's mark of a work request (wr_id) is its slot, and the direction.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs/verbs_conn.h"

#define BATCH 16

int verbs_queue_init(struct verbs_queue *queue, uint32_t depth)
{
	uint32_t size = 1;

	while (size <= depth) /* and one of our own */
		size *= 2;
	base_ring_init(&queue->ring, size);
	queue->depth = depth;
	queue->used = 0;
	queue->slot = calloc(size, sizeof(*queue->slot));
	return queue->slot ? 0 : -ENOMEM;
}

/* depth: of all queues that complete there */
int verbs_half_init(struct verbs_half *h, struct verbs_qp *q, struct verbs_cq *cq, uint32_t depth)
{
	uint32_t size = 1;

	while (size < depth)
		size *= 2;
	base_list_init(&h->link);
	h->qp = q;
	h->cq = cq;
	base_ring_init(&h->ring, size);
	h->wc = calloc(size, sizeof(*h->wc));
	if (!h->wc)
		return -ENOMEM;
	errno = 0;
	h->ibv =
		verbs_call(ibv_create_cq)(q->dev->ctx, (int)base_max(depth, 1u), h, cq->channel, 0);
	return h->ibv ? 0 : verbs_error();
}

void verbs_half_uninit(struct verbs_half *h)
{
	if (h->ibv)
		verbs_call(ibv_destroy_cq)(h->ibv);
	free(h->wc);
}

static enum warp_wc_status status_of(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return WARP_WC_SUCCESS;
	case IBV_WC_WR_FLUSH_ERR:
		return WARP_WC_FLUSHED;
	case IBV_WC_LOC_LEN_ERR:
		return WARP_WC_LOCAL_LENGTH;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:
		return WARP_WC_LOCAL_PROTECTION;
	case IBV_WC_REM_ACCESS_ERR:
		return WARP_WC_REMOTE_ACCESS;
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
		return WARP_WC_REMOTE_OPERATION;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
	case IBV_WC_REM_ABORT_ERR:
		return WARP_WC_TRANSPORT;
	default:
		return WARP_WC_GENERAL;
	}
}

static void recv_fill(struct warp_wc *wc, const struct ibv_wc *in)
{
	wc->byte_len = in->byte_len;
	if (in->wc_flags & IBV_WC_WITH_INV) {
		wc->flags |= WARP_WC_WITH_INVALIDATE;
		wc->inv_stag = in->invalidated_rkey;
	}
}

static void push(struct verbs_half *h, const struct verbs_slot *slot, enum warp_wc_status status,
		 const struct ibv_wc *in)
{
	struct warp_wc *wc = &h->wc[base_ring_push(&h->ring)];

	*wc = (struct warp_wc){
		.wr_id = slot->wr_id,
		.qp = &h->qp->qp,
		.status = status,
		.opcode = slot->opcode,
		.byte_len = status == WARP_WC_SUCCESS ? slot->byte_len : 0,
	};
	if (status == WARP_WC_SUCCESS && slot->opcode == WARP_WC_RECV)
		recv_fill(wc, in);
}

/* The oldest one of its queue: what was posted first is complete first */
static void complete(struct verbs_half *h, struct verbs_queue *queue, enum warp_wc_status status,
		     const struct ibv_wc *in)
{
	const struct verbs_slot *slot;

	if (base_ring_empty(&queue->ring))
		return;
	slot = &queue->slot[base_ring_pop(&queue->ring)];
	if (slot->own)
		return;
	h->qp->heard |= status == WARP_WC_SUCCESS && slot->answer;
	h->qp->broken |= status != WARP_WC_SUCCESS;
	h->qp->cut |= status == WARP_WC_FLUSHED && queue == &h->qp->sq;
	if (status != WARP_WC_SUCCESS && status != WARP_WC_FLUSHED && !h->qp->failure)
		h->qp->failure = status;
	if (status == WARP_WC_SUCCESS && !slot->signaled)
		queue->used--;
	else
		push(h, slot, status, in);
}

void verbs_half_reap(struct verbs_half *h)
{
	struct verbs_qp *q = h->qp;
	struct ibv_wc wc[BATCH];
	int n;

	do {
		n = ibv_poll_cq(h->ibv, BATCH, wc);
		for (int i = 0; i < n; i++)
			complete(h, wc[i].wr_id ? &q->rq : &q->sq, status_of(wc[i].status), &wc[i]);
	} while (n == BATCH);
}

void verbs_queue_flush(struct verbs_half *h, struct verbs_queue *queue)
{
	while (!base_ring_empty(&queue->ring))
		complete(h, queue, WARP_WC_FLUSHED, NULL);
}

bool verbs_half_held(const struct verbs_half *h)
{
	const struct verbs_conn *c = h->qp->conn;

	return !base_ring_empty(&h->ring) && c && !verbs_conn_ended(c) &&
	       h->wc[base_ring_at(&h->ring, 0)].status != WARP_WC_SUCCESS;
}

bool verbs_half_has(const struct verbs_half *h)
{
	return !base_ring_empty(&h->ring) && !verbs_half_held(h);
}

int verbs_half_take(struct verbs_half *h, struct warp_wc *wc, int n)
{
	int got = 0;

	while (got < n && verbs_half_has(h)) {
		wc[got] = h->wc[base_ring_pop(&h->ring)];
		if (wc[got++].opcode == WARP_WC_RECV)
			h->qp->rq.used--;
		else
			h->qp->sq.used--;
	}
	return got;
}
