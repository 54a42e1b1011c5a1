/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The send queue: work requests become frames in the order in which they were posted.
 *
 * Sends and Writes are done when TCP has their bytes; Reads and Atomics when their answer is
 * here (RFC 5040 section 5.5). They leave their completions strictly in posting order, so one
 * that is done waits behind one that is not. What a batch has built counts only as far as TCP
 * took it: cur and off move then.
 *
 * The memory of a work request is looked up when it is posted, and again when its first byte is
 * built: a region that was deregistered in between is not touched. The table is held from there
 * until TCP has copied the bytes.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"
#include "soft/soft_conn.h"

#define RUN_OCTETS (4 * 1024 * 1024)

static const struct {
	__u8 op, solicited; /* enum rdmap_opcode */
	__u8 wc;
	__u8 access; /* what the pieces must allow */
	bool answered;
} rows[] = {
	[WARP_WR_SEND] = { RDMAP_SEND, RDMAP_SEND_SE, WARP_WC_SEND, 0, false },
	[WARP_WR_SEND_INVALIDATE] = { RDMAP_SEND_INV, RDMAP_SEND_SE_INV, WARP_WC_SEND, 0, false },
	[WARP_WR_WRITE] = { RDMAP_WRITE, RDMAP_WRITE, WARP_WC_WRITE, 0, false },
	[WARP_WR_READ] = { RDMAP_READ_REQ, 0, WARP_WC_READ, DDP_LOCAL_WRITE, true },
	[WARP_WR_IMMEDIATE] = { RDMAP_IMM, RDMAP_IMM_SE, WARP_WC_SEND, 0, false },
	[WARP_WR_FETCH_ADD] = { RDMAP_ATOMIC_REQ, 0, WARP_WC_ATOMIC, DDP_LOCAL_WRITE, true },
	[WARP_WR_CMP_SWAP] = { RDMAP_ATOMIC_REQ, 0, WARP_WC_ATOMIC, DDP_LOCAL_WRITE, true },
	[WARP_WR_LOCAL_INVALIDATE] = { 0, 0, WARP_WC_LOCAL_INVALIDATE, 0, false },
};

static struct soft_wqe *wqe_at(const struct soft_sq *sq, __u32 index)
{
	return &sq->ring[index & sq->mask];
}

int soft_sq_init(struct soft_sq *sq, __u32 depth, __u32 sge, __u32 copy)
{
	__u32 size = soft_ring_size(depth);

	sq->depth = depth;
	sq->mask = size - 1;
	sq->ring = base_heap_array(size, sizeof(*sq->ring));
	sq->iov = base_heap_array((size_t)size * sge, sizeof(*sq->iov));
	sq->stags = base_heap_array((size_t)size * sge, sizeof(*sq->stags));
	sq->copy = base_heap_get((size_t)size * copy + 1);
	if (!sq->ring || !sq->iov || !sq->stags || !sq->copy)
		return -ENOMEM;
	for (__u32 i = 0; i < size; i++) {
		sq->ring[i].iov = sq->iov + (size_t)i * sge;
		sq->ring[i].stags = sq->stags + (size_t)i * sge;
		sq->ring[i].copy = sq->copy + (size_t)i * copy;
	}
	return 0;
}

void soft_sq_uninit(struct soft_sq *sq)
{
	free(sq->ring);
	free(sq->iov);
	free(sq->stags);
	free(sq->copy);
}

bool soft_sq_idle(const struct soft_conn *c)
{
	return !c->qp || c->qp->sq.head == c->qp->sq.tail;
}

/* --- posting --- */

static int pieces_take(const struct soft_conn *c, struct soft_wqe *w, const struct warp_send_wr *wr)
{
	bool covered;

	for (unsigned int i = 0; i < wr->num_sge; i++) {
		w->iov[i] = (struct iovec){ wr->sg[i].addr, wr->sg[i].length };
		w->stags[i] = wr->sg[i].stag;
		w->wr.len += wr->sg[i].length;
	}
	w->wr.sg = w->iov;
	w->wr.nsg = wr->num_sge;
	pthread_rwlock_rdlock(&c->dev->stag_lock);
	covered = soft_mr_covers(c->dev, c->pd, w->iov, w->stags, wr->num_sge,
				 rows[wr->opcode].access);
	pthread_rwlock_unlock(&c->dev->stag_lock);
	return covered ? 0 : -EACCES;
}

static int pieces_copy(const struct soft_conn *c, struct soft_wqe *w, const struct warp_send_wr *wr)
{
	for (unsigned int i = 0; i < wr->num_sge; i++) {
		__u32 n = wr->sg[i].length;

		if (n > c->qp->max_inline - w->wr.len)
			return -EINVAL;
		if (n)
			memcpy(w->copy + w->wr.len, wr->sg[i].addr, n);
		w->wr.len += n;
	}
	w->inlined = true;
	w->iov[0] = (struct iovec){ w->copy, w->wr.len };
	w->wr.sg = w->iov;
	w->wr.nsg = w->wr.len ? 1 : 0;
	return 0;
}

/* What the opcode needs beside its pieces */
static void wr_translate(struct soft_wqe *w, const struct warp_send_wr *wr, __u32 index)
{
	struct rdmap_wr *r = &w->wr;

	r->op = wr->flags & WARP_SEND_SOLICITED ? rows[wr->opcode].solicited : rows[wr->opcode].op;
	r->fence = wr->flags & WARP_SEND_FENCE;
	r->inv_stag = wr->inv_stag;
	r->stag = wr->remote_stag;
	r->to = wr->remote_to;
	r->imm = wr->immediate;
	r->data = wr->swap_add;
	r->mask = wr->mask;
	r->compare = wr->compare;
	r->compare_mask = wr->compare_mask;
	r->aop = wr->opcode == WARP_WR_CMP_SWAP ? RDMAP_CMP_SWAP : RDMAP_FETCH_ADD;
	r->cookie = index;
	if (wr->opcode == WARP_WR_READ && wr->num_sge) {
		r->sink_stag = wr->sg[0].stag;
		r->sink_to = (uintptr_t)wr->sg[0].addr;
	}
}

int soft_sq_add(struct soft_conn *c, const struct warp_send_wr *wr)
{
	struct soft_sq *sq = &c->qp->sq;
	struct soft_wqe *w = wqe_at(sq, sq->tail);
	int err;

	if (sq->tail - sq->head >= sq->depth)
		return -ENOMEM;
	if ((unsigned int)wr->opcode >= base_array_size(rows) || wr->num_sge > c->qp->max_send_sge)
		return -EINVAL;
	if (rows[wr->opcode].answered && !c->core.rdmap.ddp.mpa.ord)
		return -EINVAL;
	memset(&w->wr, 0, sizeof(w->wr));
	w->wr_id = wr->wr_id;
	w->opcode = (__u8)wr->opcode;
	w->state = SOFT_WQE_QUEUED;
	w->status = WARP_WC_SUCCESS;
	w->signaled = c->qp->signal_all || (wr->flags & WARP_SEND_SIGNALED);
	w->inlined = false;
	err = wr->flags & WARP_SEND_INLINE ? pieces_copy(c, w, wr) : pieces_take(c, w, wr);
	if (err)
		return err;
	w->byte_len = rows[wr->opcode].answered ? w->wr.len : 0;
	wr_translate(w, wr, sq->tail);
	sq->tail++;
	return 0;
}

/* --- completing --- */

static void complete(struct soft_conn *c, const struct soft_wqe *w, enum warp_wc_status status)
{
	struct warp_wc wc = {
		.wr_id = w->wr_id,
		.qp = &c->qp->qp,
		.status = status,
		.opcode = rows[w->opcode].wc,
		.byte_len = status == WARP_WC_SUCCESS ? w->byte_len : 0,
	};

	if (w->signaled || status != WARP_WC_SUCCESS)
		soft_cq_push(c->qp->send_cq, &wc);
}

static void reap(struct soft_conn *c)
{
	struct soft_sq *sq = &c->qp->sq;

	while (sq->head != sq->cur && wqe_at(sq, sq->head)->state == SOFT_WQE_DONE) {
		complete(c, wqe_at(sq, sq->head), wqe_at(sq, sq->head)->status);
		sq->head++;
	}
}

/* What the atomic found belongs into its sink, if that is still there */
static void atomic_store(struct soft_conn *c, struct soft_wqe *w, __u64 value)
{
	pthread_rwlock_rdlock(&c->dev->stag_lock);
	if (soft_mr_covers(c->dev, c->pd, w->iov, w->stags, 1, DDP_LOCAL_WRITE))
		memcpy(w->iov[0].iov_base, &value, sizeof(value));
	else
		w->status = WARP_WC_LOCAL_PROTECTION;
	pthread_rwlock_unlock(&c->dev->stag_lock);
}

void soft_sq_done(struct soft_conn *c, __u32 index, __u64 value)
{
	struct soft_wqe *w;

	if (!c->qp)
		return;
	w = wqe_at(&c->qp->sq, index);
	if (rows[w->opcode].wc == WARP_WC_ATOMIC)
		atomic_store(c, w, value);
	w->state = SOFT_WQE_DONE;
	reap(c);
}

void soft_sq_flush(struct soft_conn *c, enum warp_wc_status cause)
{
	struct soft_sq *sq = &c->qp->sq;

	for (; sq->head != sq->tail; sq->head++) {
		struct soft_wqe *w = wqe_at(sq, sq->head);

		if (w->state == SOFT_WQE_DONE) {
			complete(c, w, w->status);
			continue;
		}
		complete(c, w, w->status ? w->status : cause);
		cause = WARP_WC_FLUSHED;
	}
	sq->cur = sq->tail;
	sq->off = 0;
}

/* --- sending --- */

static enum ddp_stag_error source_get(void *ctx, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	const struct soft_conn *c = ctx;

	return ddp_stag_check(&c->dev->stags, stag, c->pd, to, len, access, addr);
}

/*
 * What a peer reads may be written to at the same time: a copy of it leaves, or the CRC might be
 * that of other bytes
 */
static const __u8 *source_hold(void *ctx, const __u8 *addr, size_t len)
{
	struct soft_conn *c = ctx;
	__u8 *copy = c->held + c->held_used;

	if (len > SOFT_HELD - c->held_used)
		return NULL;
	c->held_used += len;
	return memcpy(copy, addr, len);
}

/* Where the next frame comes from */
struct cursor {
	__u32 index, off;
	bool answer_next;
};

static bool wqe_memory_good(struct soft_conn *c, struct soft_wqe *w)
{
	if (w->inlined ||
	    soft_mr_covers(c->dev, c->pd, w->iov, w->stags, w->wr.nsg, rows[w->opcode].access))
		return true;
	w->status = WARP_WC_LOCAL_PROTECTION;
	rdmap_fault(&c->core.rdmap, RDMAP_E_LOCAL);
	return false;
}

static bool frame_of_request(struct soft_conn *c, struct soft_tx *t, struct cursor *at)
{
	struct soft_wqe *w;
	bool last = false;
	ssize_t n;

	if (!c->qp || at->index == c->qp->sq.tail)
		return false;
	w = wqe_at(&c->qp->sq, at->index);
	if (w->opcode == WARP_WR_LOCAL_INVALIDATE || !wqe_memory_good(c, w))
		return false;
	n = rdmap_tx_wr(&c->core.rdmap, &c->io.slots, &t->v, &w->wr, at->off, &last);
	if (n < 0)
		return false;
	soft_tx_note(t, at->index, at->off + (__u32)n, last);
	*at = (struct cursor){
		.index = at->index + last,
		.off = last ? 0 : at->off + (__u32)n,
		.answer_next = true,
	};
	return true;
}

static bool frame_of_protocol(struct soft_conn *c, struct soft_tx *t, struct cursor *at)
{
	const struct rdmap_source src = {
		.get = source_get,
		.hold = c->core.rdmap.ddp.mpa.flags & MPA_F_CRC ? source_hold : NULL,
		.ctx = c,
	};

	if (!soft_tx_owed(t, &src, true))
		return false;
	at->answer_next = false;
	return true;
}

/*
 * One frame: false when none can be built now. Between messages, work requests and the answers to
 * the peer's take turns, so that neither side's stream of them holds up the other's.
 */
static bool frame_build(struct soft_conn *c, struct soft_tx *t, struct cursor *at)
{
	if (at->off)
		return frame_of_request(c, t, at);
	if (at->answer_next || c->core.rdmap.in_sent)
		return frame_of_protocol(c, t, at) || frame_of_request(c, t, at);
	return frame_of_request(c, t, at) || frame_of_protocol(c, t, at);
}

static void frames_settle(struct soft_conn *c, const struct soft_tx *t, int n)
{
	struct soft_sq *sq;

	c->answer_next = !t->frame[n - 1].owed;
	if (!c->qp)
		return;
	sq = &c->qp->sq;
	for (int i = 0; i < n; i++) {
		const struct soft_tx_frame *f = &t->frame[i];
		struct soft_wqe *w;

		if (f->owed)
			continue;
		w = wqe_at(sq, f->op);
		sq->off = f->last ? 0 : f->off;
		if (!f->last)
			continue;
		w->state = rows[w->opcode].answered ? SOFT_WQE_WAITS : SOFT_WQE_DONE;
		sq->cur = f->op + 1;
	}
	reap(c);
}

/* One batch: what it came to, 0 when there is nothing to send */
static int batch_send(struct soft_conn *c)
{
	struct cursor at = { .answer_next = c->answer_next };
	struct soft_tx t;
	int n = 0;

	if (c->qp) {
		at.index = c->qp->sq.cur;
		at.off = c->qp->sq.off;
	}
	soft_tx_emss(&c->io);
	pthread_rwlock_rdlock(&c->dev->stag_lock);
	soft_tx_begin(&t, &c->io);
	c->held_used = 0;
	while (!soft_tx_full(&t) && frame_build(c, &t, &at))
		;
	if (t.count)
		n = soft_tx_push(&t);
	pthread_rwlock_unlock(&c->dev->stag_lock);
	if (n > 0)
		frames_settle(c, &t, n);
	return n;
}

/* An invalidation of ours whose turn has come: it is no message */
static bool local_invalidate(struct soft_conn *c)
{
	struct soft_sq *sq;
	struct soft_wqe *w;

	if (!c->qp || c->qp->sq.cur == c->qp->sq.tail)
		return false;
	sq = &c->qp->sq;
	w = wqe_at(sq, sq->cur);
	if (w->opcode != WARP_WR_LOCAL_INVALIDATE ||
	    (w->wr.fence && rdmap_outstanding(&c->core.rdmap)))
		return false;
	pthread_rwlock_wrlock(&c->dev->stag_lock);
	if (ddp_stag_invalidate(&c->dev->stags, w->wr.inv_stag, c->pd))
		w->status = WARP_WC_LOCAL_PROTECTION;
	pthread_rwlock_unlock(&c->dev->stag_lock);
	w->state = SOFT_WQE_DONE;
	sq->cur++;
	reap(c);
	return true;
}

bool soft_sq_write_retry(struct soft_conn *c)
{
	const struct rdmap_wr wr = { .op = RDMAP_WRITE, .stag = 1 };
	struct soft_tx t;
	bool last;

	if (c->core.rest_len || (c->qp && c->qp->sq.off))
		return false;
	soft_tx_begin(&t, &c->io);
	if (rdmap_tx_wr(&c->core.rdmap, &c->io.slots, &t.v, &wr, 0, &last) < 0)
		return false;
	soft_tx_note(&t, 0, 0, true);
	return soft_tx_push(&t) > 0;
}

/*
 * A peer that reads without end, and takes what it reads as fast as it is sent, must not keep the
 * caller here; and who has seen a fault may hold no rx to end the connection. Both are left to the
 * next one who looks: "blocked" waits for room, and that is there.
 */
void soft_sq_run(struct soft_conn *c)
{
	const __u64 *sent = &c->core.rdmap.ddp.mpa.tx_octets, before = *sent;
	int n = 0;

	while (!c->core.tx_error && !c->core.tx_end) {
		n = soft_tx_rest(&c->io);
		if (n)
			break;
		if (local_invalidate(c))
			continue;
		n = batch_send(c);
		if (n <= 0 || *sent - before >= RUN_OCTETS)
			break;
	}
	soft_conn_block(c, n == -EAGAIN || n > 0 || c->core.tx_error ||
				   rdmap_state_of(&c->core.rdmap) != RDMAP_OPEN);
}
