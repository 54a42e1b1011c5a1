/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream front, outward: a batch of operations, of which each is in the transport or has not
 * happened. One that is cut is gone on with by the next call.
 *
 * Nearly every call brings Sends of one FPDU each, and nothing goes before them: these have a way
 * of their own (soft_tx_single.c).
 */
#include "soft/soft_view.h"

#define FLUSH_TURNS 16

typedef int flush_fn(const struct soft_io *io, const struct rdmap_source *src, bool between);

/* The rest and what is owed. Copies of what the peer reads have room again with each turn. */
static int view_flush(struct soft_view *v, flush_fn *flush)
{
	int err, turns = v->regions ? FLUSH_TURNS : 1;

	do {
		if (v->regions)
			v->regions->held_used = 0;
		err = flush(&v->io, &v->source, !v->st->tx_off);
	} while (!err && --turns && soft_tx_pending(&v->st->core));
	return err;
}

/* Does nothing go before what the caller sends? */
static bool is_clear(const struct soft_core *c)
{
	return !base_once(c->tx_error) && !soft_tx_pending(c) &&
	       rdmap_state_of(&c->rdmap) == RDMAP_OPEN;
}

/* Can a batch begin? What was begun before goes first */
static int send_ready(struct soft_view *v, const struct rnic_stream_wr *wr)
{
	struct soft_stream *st = v->st;
	int err;

	if (st->core.phase != SOFT_OPEN)
		return -ENOTCONN;
	if (st->tx_off &&
	    (wr->len != st->tx_len || wr->stag != st->tx_stag || (wr->stag && wr->to != st->tx_to)))
		return -EINVAL;
	err = is_clear(&st->core) ? 0 : view_flush(v, soft_tx_flush_more);
	if (err)
		return err;
	return st->core.tx_end ? -EPIPE : 0;
}

/* Where a batch stands: the next byte to be built */
struct cursor {
	unsigned int op;
	__u32 off;
};

static void onesided_wr(struct rdmap_wr *w, const struct rnic_onesided *op, __u32 sink_stag)
{
	static const __u8 aops[] = {
		[RNIC_FETCH_ADD] = RDMAP_FETCH_ADD,
		[RNIC_CMP_SWAP] = RDMAP_CMP_SWAP,
	};

	w->op = op->opcode == RNIC_READ ? RDMAP_READ_REQ : RDMAP_ATOMIC_REQ;
	w->aop = op->opcode == RNIC_READ ? 0 : aops[op->opcode];
	w->sink_stag = sink_stag;
	w->sink_to = op->sink_to;
	w->cookie = op->cookie;
	w->data = op->data;
	w->mask = op->mask;
	w->compare = op->compare;
	w->compare_mask = op->compare_mask;
}

/* Bytes that a message brings with it */
static __u32 payload_len(const struct rnic_stream_wr *wr)
{
	return wr->op ? 0 : wr->len;
}

/* One FPDU: 1, or 0 when no more can be built now, or -errno */
static int frame_build(struct soft_tx *t, struct soft_view *v, const struct rnic_stream_wr *wr,
		       struct cursor *at)
{
	struct rdmap_wr w = {
		.op = wr->stag ? RDMAP_WRITE : RDMAP_SEND,
		.sg = wr->iov,
		.nsg = wr->niov,
		.len = wr->len,
		.stag = wr->stag,
		.to = wr->to,
	};
	bool last = false;
	ssize_t n;

	if (wr->op && !v->regions)
		return -EINVAL;
	if (wr->op)
		onesided_wr(&w, wr->op, v->regions->regions.sink_stag);
	n = rdmap_tx_wr(&v->st->core.rdmap, &v->io.slots, &t->v, &w, at->off, &last);
	if (n == -ENOBUFS || n == -EAGAIN)
		return 0;
	if (n < 0)
		return (int)n;
	soft_tx_note(t, at->op, at->off + (__u32)n, last);
	at->off = last ? 0 : at->off + (__u32)n;
	at->op += last;
	return 1;
}

/* One batch from *@at on; *@at is where the next one begins */
static int batch_send(struct soft_view *v, const struct rnic_stream_wr *wr, unsigned int n,
		      struct cursor *at)
{
	struct cursor next = *at;
	const struct soft_tx_frame *f;
	struct soft_tx t;
	int got = 1;

	soft_tx_begin(&t, &v->io);
	while (got > 0 && next.op < n && soft_tx_takes(&t, payload_len(&wr[next.op]) - next.off))
		got = frame_build(&t, v, &wr[next.op], &next);
	if (!t.count)
		return got ? got : -EAGAIN;
	got = wr[n - 1].final && next.op == n ? soft_tx_push_more(&t) : soft_tx_push(&t);
	if (got <= 0)
		return got;
	f = &t.frame[got - 1];
	at->op = f->op + f->last;
	at->off = f->last ? 0 : f->off;
	return 0;
}

static void progress_keep(struct soft_stream *st, const struct rnic_stream_wr *wr,
			  const struct cursor *at)
{
	st->tx_off = at->off;
	if (!at->off)
		return;
	st->tx_len = wr[at->op].len;
	st->tx_stag = wr[at->op].stag;
	st->tx_to = wr[at->op].to;
}

/* Operations accepted, 0: none, or -errno */
static int batches_send(struct soft_view *v, const struct rnic_stream_wr *wr, unsigned int n)
{
	struct cursor at = { .off = base_once(v->st->tx_off) };
	int err = 0;

	while (!err && at.op < n) {
		err = batch_send(v, wr, n, &at);
		/* A rest means that the kernel is full */
		if (!err && v->st->core.rest_len)
			err = soft_tx_rest(&v->io);
	}
	if (at.op < n)
		progress_keep(v->st, wr, &at);
	else
		v->st->tx_off = 0;
	return at.op ? (int)at.op : err;
}

/* A Send, or a run of short ones */
static bool are_plain(const struct rnic_stream_wr *wr, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (wr[i].stag || wr[i].op || wr[i].final || (n > 1 && wr[i].len > SOFT_RUN_LEN))
			return false;
	return true;
}

int soft_stream_send(const struct rnic_stream_mem *mem, int fd, const struct rnic_stream_wr *wr,
		     unsigned int n)
{
	struct soft_view v;
	int err = soft_view_init(&v, mem, fd), done = 0;

	if (err || !n)
		return err;
	err = send_ready(&v, wr);
	if (err)
		return err;
	if (are_plain(wr, n) && !base_once(v.st->tx_off))
		done = n == 1 ? soft_tx_single(&v.io, wr->iov, wr->niov, wr->len)
			      : soft_tx_run(&v.io, wr, n);
	if (!done)
		done = batches_send(&v, wr, n);
	/* Behind all that was cut by what soft_stream_segment() had said */
	soft_tx_emss(&v.io);
	return done;
}

unsigned int soft_stream_segment(const struct rnic_stream_mem *mem, unsigned int message)
{
	const struct mpa_conn *m = &soft_stream_of(mem)->core.rdmap.ddp.mpa;
	unsigned int mulpdu = base_min(base_once(m->mulpdu), MPA_MULPDU_MAX);
	unsigned int whole = base_max(mulpdu, (unsigned int)MPA_MULPDU_MIN) - DDP_TAGGED_LEN;
	unsigned int behind = message ? mpa_fpdu_octets(DDP_UNTAGGED_LEN + message) : 0;

	return whole > 2 * behind ? whole - behind : whole;
}

int soft_stream_flush(const struct rnic_stream_mem *mem, int fd)
{
	struct soft_view v;
	int err = soft_view_init(&v, mem, fd);

	return err ? err : view_flush(&v, soft_tx_flush);
}

bool soft_stream_owes(const struct rnic_stream_mem *mem)
{
	return soft_tx_pending(&soft_stream_of(mem)->core);
}

int soft_stream_shutdown(const struct rnic_stream_mem *mem, int fd)
{
	struct soft_view v;
	int err = soft_view_init(&v, mem, fd);

	if (err)
		return err;
	err = view_flush(&v, soft_tx_flush);
	return err == -EAGAIN ? err : soft_tx_shutdown(&v.io);
}
