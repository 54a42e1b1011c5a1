/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes out: each operation's are copied to memory that the device knows, for they are the
 * program's again when the call returns, and lie there until the device says that they have left.
 *
 * The memory is a ring of bytes, whole pages. tx moves its head, rx its tail; what a completion
 * gives back is all up to the end of its operation, for a queue pair ends operations in their
 * order.
 */
#include <errno.h>
#include <string.h>

#include "verbs/verbs_stream.h"

#define BATCH 16u
#define PIECES 2 /* of the ring: before and behind its end */

struct batch {
	unsigned int n;
	uint64_t at; /* of the ring */
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH][PIECES];
};

static unsigned int sends_left(const struct verbs_stream *s)
{
	return VERBS_STREAM_SENDS - (s->posted - verbs_load(&s->done));
}

static uint64_t octets_left(const struct verbs_stream *s, uint64_t at)
{
	return VERBS_STREAM_OUT - (at - verbs_load(&s->out_done));
}

static void ring_put(struct verbs_stream *s, uint64_t at, const struct rnic_stream_wr *wr)
{
	for (unsigned int i = 0; i < wr->niov; i++) {
		const char *from = wr->iov[i].iov_base;
		size_t left = wr->iov[i].iov_len;

		while (left) {
			size_t off = at % VERBS_STREAM_OUT;
			size_t n = base_min(left, VERBS_STREAM_OUT - off);

			memcpy((char *)s->out.p + off, from, n);
			from += n;
			left -= n;
			at += n;
		}
	}
}

/* Where @len bytes from @at on lie: how many pieces */
static int ring_pieces(const struct verbs_stream *s, uint64_t at, uint32_t len,
		       struct ibv_sge sge[PIECES])
{
	size_t off = at % VERBS_STREAM_OUT;
	uint32_t first = (uint32_t)base_min((size_t)len, VERBS_STREAM_OUT - off);
	uint32_t key = s->out.mr->lkey;

	sge[0] = (struct ibv_sge){ (uintptr_t)s->out.p + off, first, key };
	sge[1] = (struct ibv_sge){ (uintptr_t)s->out.p, len - first, key };
	return len > first ? 2 : 1;
}

/* False: there is no room for it */
static bool batch_add(struct verbs_stream *s, struct batch *b, const struct rnic_stream_wr *wr)
{
	struct ibv_send_wr *w = &b->wr[b->n];
	uint64_t at = b->at;

	if (b->n == base_min(BATCH, sends_left(s)) || wr->len > octets_left(s, at))
		return false;
	ring_put(s, at, wr);
	*w = (struct ibv_send_wr){
		.wr_id = verbs_stream_id(false, at + wr->len),
		.sg_list = b->sge[b->n],
		.num_sge = ring_pieces(s, at, wr->len, b->sge[b->n]),
		.opcode = wr->stag ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (wr->len <= s->small ? IBV_SEND_INLINE : 0),
	};
	w->wr.rdma.remote_addr = wr->to;
	w->wr.rdma.rkey = wr->stag;
	if (b->n)
		b->wr[b->n - 1].next = w;
	b->at = at + wr->len;
	b->n++;
	return true;
}

/* Of the peer's memory that is known */
static void window_note(struct verbs_stream *s, const struct rnic_stream_wr *wr)
{
	if (!wr->stag || s->window_key)
		return;
	s->window_to = wr->to;
	verbs_store(&s->window_key, wr->stag);
}

/* How many the device took */
static int batch_post(struct verbs_stream *s, struct batch *b)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(s->id->qp, b->wr, &bad);
	unsigned int done = err && bad ? (unsigned int)(bad - b->wr) : err ? 0 : b->n;

	if (!done)
		return err == ENOMEM ? -EAGAIN : -ECONNRESET;
	verbs_store(&s->out_at, b->wr[done - 1].wr_id >> 1);
	verbs_store(&s->posted, s->posted + done);
	return (int)done;
}

int verbs_stream_send(const struct rnic_stream_mem *mem, int fd, const struct rnic_stream_wr *wr,
		      unsigned int n)
{
	struct verbs_stream *s = verbs_stream_of(mem);
	struct batch b = { .at = s->out_at };

	if (verbs_load(&s->phase) != VERBS_OPEN)
		return verbs_load(&s->phase) < VERBS_OPEN ? -EAGAIN : -ECONNRESET;
	for (unsigned int i = 0; i < n && batch_add(s, &b, &wr[i]); i++)
		window_note(s, &wr[i]);
	return b.n ? batch_post(s, &b) : -EAGAIN;
}

bool verbs_stream_room(const struct rnic_stream_mem *mem, int fd)
{
	const struct verbs_stream *s = verbs_stream_of(mem);

	return sends_left(s) >= VERBS_STREAM_SENDS / 4 &&
	       octets_left(s, verbs_load(&s->out_at)) >= VERBS_STREAM_OUT / 4;
}

bool verbs_stream_idle(const struct verbs_stream *s)
{
	return verbs_load(&s->done) == verbs_load(&s->posted);
}
