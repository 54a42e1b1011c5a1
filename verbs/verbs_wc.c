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
 * The device's mark of a work request (wr_id) is its slot, and the direction. The program hears of
 * them in the order of posting. siw completes a Send that is behind a Read when it is sent, and the
 * Read when its Response has come: what is complete waits for what is before it.
 */
#include <errno.h>
#include <stdlib.h>

#include "rnic/write_retry.h"
#include "verbs/verbs_conn.h"

#define BATCH 16

int verbs_queue_init(struct verbs_queue *queue, uint32_t depth)
{
	uint32_t size = 1;

	while (size < depth + RNIC_WRITE_RETRIES)
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

static void push(struct verbs_half *h, const struct verbs_slot *slot)
{
	struct warp_wc *wc = &h->wc[base_ring_push(&h->ring)];

	*wc = (struct warp_wc){
		.wr_id = slot->wr_id,
		.qp = &h->qp->qp,
		.status = slot->status,
		.opcode = slot->opcode,
	};
	if (slot->status != WARP_WC_SUCCESS)
		return;
	wc->byte_len = slot->byte_len;
	wc->flags = slot->flags;
	wc->inv_stag = slot->inv_stag;
}

/* Those that are complete, up to the first that is not */
static void deliver(struct verbs_half *h, struct verbs_queue *queue)
{
	while (!base_ring_empty(&queue->ring)) {
		const struct verbs_slot *slot = &queue->slot[base_ring_at(&queue->ring, 0)];

		if (!slot->done)
			break;
		base_ring_pop(&queue->ring);
		if (slot->own)
			continue;
		if (slot->status == WARP_WC_SUCCESS && !slot->signaled)
			queue->used--;
		else
			push(h, slot);
	}
}

static void done(struct verbs_half *h, const struct verbs_queue *queue, struct verbs_slot *slot,
		 enum warp_wc_status status)
{
	slot->done = true;
	slot->status = (uint8_t)status;
	if (slot->own)
		return;
	h->qp->heard |= status == WARP_WC_SUCCESS && slot->answer;
	h->qp->broken |= status != WARP_WC_SUCCESS;
	h->qp->cut |= status == WARP_WC_FLUSHED && queue == &h->qp->sq;
	if (status != WARP_WC_SUCCESS && status != WARP_WC_FLUSHED && !h->qp->failure)
		h->qp->failure = status;
}

static void received(struct verbs_slot *slot, const struct ibv_wc *in)
{
	slot->byte_len = in->byte_len;
	if (in->wc_flags & IBV_WC_WITH_INV) {
		slot->flags = WARP_WC_WITH_INVALIDATE;
		slot->inv_stag = in->invalidated_rkey;
	}
}

static void complete(struct verbs_half *h, const struct ibv_wc *in)
{
	struct verbs_queue *queue = in->wr_id & VERBS_MARK_RECV ? &h->qp->rq : &h->qp->sq;
	uint32_t at = (uint32_t)(in->wr_id >> 1) & queue->ring.mask;
	struct verbs_slot *slot = &queue->slot[at];

	/* Not one of those that the device has */
	if (((at - queue->ring.head) & queue->ring.mask) >= base_ring_count(&queue->ring) ||
	    slot->done)
		return;
	if (slot->opcode == WARP_WC_RECV && in->status == IBV_WC_SUCCESS)
		received(slot, in);
	done(h, queue, slot, status_of(in->status));
	deliver(h, queue);
}

void verbs_half_reap(struct verbs_half *h)
{
	struct ibv_wc wc[BATCH];
	int n;

	do {
		n = ibv_poll_cq(h->ibv, BATCH, wc);
		for (int i = 0; i < n; i++)
			complete(h, &wc[i]);
	} while (n == BATCH);
}

void verbs_queue_flush(struct verbs_half *h, struct verbs_queue *queue)
{
	for (uint32_t i = 0; i < base_ring_count(&queue->ring); i++) {
		struct verbs_slot *slot = &queue->slot[base_ring_at(&queue->ring, i)];

		if (!slot->done)
			done(h, queue, slot, WARP_WC_FLUSHED);
	}
	deliver(h, queue);
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
