/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Posting: work requests and receives in the device's form.
 */
#include <errno.h>
#include <string.h>

#include "verbs/verbs_conn.h"
#include "verbs/verbs_qp.h"

static const struct {
	int opcode; /* -1: the device has none */
	uint8_t wc;
	uint8_t access; /* what the pieces must allow */
	bool answered, invalidates, atomic;
} rows[] = {
	[WARP_WR_SEND] = { IBV_WR_SEND, WARP_WC_SEND, 0, false, false, false },
	[WARP_WR_SEND_INVALIDATE] = { IBV_WR_SEND_WITH_INV, WARP_WC_SEND, 0, false, true, false },
	[WARP_WR_WRITE] = { IBV_WR_RDMA_WRITE, WARP_WC_WRITE, 0, false, false, false },
	[WARP_WR_READ] = { IBV_WR_RDMA_READ, WARP_WC_READ, WARP_ACCESS_LOCAL_WRITE, true, false,
			   false },
	[WARP_WR_IMMEDIATE] = { -1, WARP_WC_SEND, 0, false, false, false },
	[WARP_WR_FETCH_ADD] = { IBV_WR_ATOMIC_FETCH_AND_ADD, WARP_WC_ATOMIC,
				WARP_ACCESS_LOCAL_WRITE, true, false, true },
	[WARP_WR_CMP_SWAP] = { IBV_WR_ATOMIC_CMP_AND_SWP, WARP_WC_ATOMIC, WARP_ACCESS_LOCAL_WRITE,
			       true, false, true },
	[WARP_WR_LOCAL_INVALIDATE] = { IBV_WR_LOCAL_INV, WARP_WC_LOCAL_INVALIDATE, 0, false, true,
				       false },
};

/* Verbs know atomics of one field of 64 bits; the eight bytes of an Immediate they do not know */
static bool can(const struct verbs_device *d, const struct warp_send_wr *wr)
{
	if (rows[wr->opcode].opcode < 0)
		return false;
	if (rows[wr->opcode].invalidates)
		return verbs_attr_invalidation(d);
	if (!rows[wr->opcode].atomic)
		return true;
	if (wr->opcode == WARP_WR_FETCH_ADD)
		return verbs_attr_atomics(d) && !wr->mask;
	return verbs_attr_atomics(d) && wr->mask == UINT64_MAX && wr->compare_mask == UINT64_MAX;
}

/* What the opcode needs beside its pieces */
static void wr_translate(struct ibv_send_wr *out, const struct warp_send_wr *wr)
{
	out->opcode = (enum ibv_wr_opcode)rows[wr->opcode].opcode;
	if (wr->flags & WARP_SEND_SOLICITED)
		out->send_flags |= IBV_SEND_SOLICITED;
	if (wr->flags & WARP_SEND_FENCE)
		out->send_flags |= IBV_SEND_FENCE;
	if (rows[wr->opcode].invalidates) {
		out->invalidate_rkey = wr->inv_stag;
	} else if (rows[wr->opcode].atomic) {
		bool swap = wr->opcode == WARP_WR_CMP_SWAP;

		out->wr.atomic.remote_addr = wr->remote_to;
		out->wr.atomic.rkey = wr->remote_stag;
		out->wr.atomic.compare_add = swap ? wr->compare : wr->swap_add;
		out->wr.atomic.swap = wr->swap_add;
	} else {
		out->wr.rdma.remote_addr = wr->remote_to;
		out->wr.rdma.rkey = wr->remote_stag;
	}
}

static uint64_t pieces_length(const struct warp_send_wr *wr)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < wr->num_sge; i++)
		sum += wr->sg[i].length;
	return sum;
}

/* As many pieces as have bytes: the device copies them, or we do */
static int pieces_inline(struct verbs_qp *q, struct ibv_send_wr *out, const struct warp_send_wr *wr)
{
	uint8_t *to = q->copy;
	uint64_t len = pieces_length(wr);
	int n = 0;

	if (len > q->attr.max_inline)
		return -EINVAL;
	if (!q->copy) {
		out->send_flags |= IBV_SEND_INLINE;
		for (unsigned int i = 0; i < wr->num_sge; i++)
			if (wr->sg[i].length)
				out->sg_list[n++] = (struct ibv_sge){
					.addr = (uintptr_t)wr->sg[i].addr,
					.length = wr->sg[i].length,
				};
		return n;
	}
	to += (size_t)(q->sq.ring.tail & q->sq.ring.mask) * q->attr.max_inline;
	out->sg_list[0] = (struct ibv_sge){ (uintptr_t)to, (uint32_t)len, q->copy_mr->lkey };
	for (unsigned int i = 0; i < wr->num_sge; to += wr->sg[i++].length)
		if (wr->sg[i].length)
			memcpy(to, wr->sg[i].addr, wr->sg[i].length);
	return len ? 1 : 0;
}

static bool is_small(const struct verbs_qp *q, const struct ibv_sge *sg, int n)
{
	return q->dev->siw && n == 1 && sg[0].length <= VERBS_SMALL;
}

/* Under qp.lock, connected */
static int send_one(struct verbs_qp *q, const struct warp_send_wr *wr)
{
	struct ibv_sge sg[VERBS_SGE_MAX];
	struct ibv_send_wr out = { .wr_id = verbs_queue_mark(&q->sq, VERBS_MARK_SEND),
				   .sg_list = sg },
			   *bad;
	struct verbs_slot *slot;
	int n;

	if (wr->num_sge > base_max(q->attr.max_send_sge, 1u))
		return -EINVAL;
	if (!can(q->dev, wr))
		return -EOPNOTSUPP;
	if (rows[wr->opcode].answered && !verbs_conn_ord(q->conn))
		return -EINVAL;
	wr_translate(&out, wr);
	if (wr->flags & WARP_SEND_INLINE)
		n = pieces_inline(q, &out, wr);
	else
		n = verbs_mr_pieces(q->dev, q->qp.pd, wr->sg, wr->num_sge, rows[wr->opcode].access,
				    sg);
	if (n < 0)
		return n;
	if (!rows[wr->opcode].answered && is_small(q, sg, n))
		out.send_flags |= IBV_SEND_INLINE;
	out.num_sge = n;
	n = ibv_post_send(q->ibv, &out, &bad);
	if (n)
		return -n;
	slot = &q->sq.slot[base_ring_push(&q->sq.ring)];
	q->sq.used++;
	*slot = (struct verbs_slot){
		.wr_id = wr->wr_id,
		.byte_len = rows[wr->opcode].answered ? (uint32_t)pieces_length(wr) : 0,
		.opcode = rows[wr->opcode].wc,
		.signaled = q->attr.signal_all || wr->flags & WARP_SEND_SIGNALED,
		.answer = rows[wr->opcode].answered,
	};
	return 0;
}

/* The device's queue has room for them beside the program's. Of the peer's STags none is known */
void verbs_qp_write_retry(struct verbs_qp *q)
{
	struct ibv_send_wr out = { .wr_id = verbs_queue_mark(&q->sq, VERBS_MARK_SEND),
				   .opcode = IBV_WR_RDMA_WRITE },
			   *bad;

	out.wr.rdma.rkey = 1;
	if (!ibv_post_send(q->ibv, &out, &bad))
		q->sq.slot[base_ring_push(&q->sq.ring)] = (struct verbs_slot){ .own = true };
}

/* Work requests that are to leave no completion make room without being polled */
static int send_room(struct verbs_qp *q)
{
	if (q->sq.used >= q->sq.depth)
		verbs_half_reap(&q->half[0]);
	return q->sq.used < q->sq.depth ? 0 : -ENOMEM;
}

int verbs_qp_post_send(struct warp_qp *qp, const struct warp_send_wr *wr, unsigned int n)
{
	struct verbs_qp *q = verbs_qp_of(qp);
	unsigned int done = 0;
	int err;

	pthread_mutex_lock(&q->lock);
	err = q->conn && q->ibv && verbs_conn_may_send(q->conn) ? 0 : -ENOTCONN;
	while (done < n && !err) {
		err = send_room(q);
		if (!err)
			err = send_one(q, &wr[done]);
		done += !err;
	}
	pthread_mutex_unlock(&q->lock);
	return done ? (int)done : err;
}

/* Under qp.lock */
static int recv_one(struct verbs_qp *q, const struct warp_recv_wr *wr)
{
	struct ibv_sge sg[VERBS_SGE_MAX];
	struct ibv_recv_wr out = { .wr_id = verbs_queue_mark(&q->rq, VERBS_MARK_RECV),
				   .sg_list = sg },
			   *bad;
	struct verbs_slot *slot;
	int n;

	if (q->rq.used >= q->rq.depth)
		return -ENOMEM;
	if (wr->num_sge > base_max(q->attr.max_recv_sge, 1u))
		return -EINVAL;
	n = verbs_mr_pieces(q->dev, q->qp.pd, wr->sg, wr->num_sge, WARP_ACCESS_LOCAL_WRITE, sg);
	if (n < 0)
		return n;
	out.num_sge = n;
	n = ibv_post_recv(q->ibv, &out, &bad);
	if (n)
		return -n;
	slot = &q->rq.slot[base_ring_push(&q->rq.ring)];
	q->rq.used++;
	*slot = (struct verbs_slot){
		.wr_id = wr->wr_id, .opcode = WARP_WC_RECV, .signaled = true, .answer = true
	};
	return 0;
}

int verbs_qp_post_recv(struct warp_qp *qp, const struct warp_recv_wr *wr, unsigned int n)
{
	struct verbs_qp *q = verbs_qp_of(qp);
	unsigned int done = 0;
	int err;

	pthread_mutex_lock(&q->lock);
	if (q->conn && verbs_conn_ended(q->conn))
		err = -ENOTCONN;
	else
		err = verbs_qp_ready(q);
	for (; done < n && !err; done += !err)
		err = recv_one(q, &wr[done]);
	pthread_mutex_unlock(&q->lock);
	return done ? (int)done : err;
}
