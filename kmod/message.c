/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages received, in the memory that their FPDUs came in.
 *
 * The chunk of an FPDU becomes the message's own where it holds all of the message or most of its
 * chunk; else its octets go to the room of the last chunk, so that a message of many small segments
 * takes no more than some three times its octets. What is needed for one FPDU is there before it is
 * looked at (conn_message_prepare), for nothing can be refused then.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "kmod/conn.h"
#include "kmod/op.h"
#include "kmod/region.h"

#define CHUNK_ROOM 2048 /* of chunks that gather small segments */
#define CHUNK_OWN 1024	/* octets from which on a segment keeps its chunk */

struct conn_chunk *conn_chunk_get(size_t cap, gfp_t gfp)
{
	struct conn_chunk *chunk = kvmalloc(struct_size(chunk, data, cap), gfp);

	if (!chunk)
		return NULL;
	INIT_LIST_HEAD(&chunk->list);
	chunk->off = chunk->len = 0;
	chunk->cap = cap;
	return chunk;
}

int conn_message_prepare(struct conn_rx *rx, gfp_t gfp)
{
	if (!rx->spare)
		rx->spare = conn_chunk_get(CHUNK_ROOM, gfp);
	if (!rx->spare_message)
		rx->spare_message = kmalloc(sizeof(*rx->spare_message), gfp);
	return rx->spare && rx->spare_message ? 0 : -ENOMEM;
}

void conn_message_free(struct conn_rx *rx, struct conn_message *m)
{
	struct conn_chunk *chunk, *next;

	list_for_each_entry_safe(chunk, next, &m->chunks, list)
	{
		rx->held -= sizeof(*chunk) + chunk->cap;
		kvfree(chunk);
	}
	rx->held -= sizeof(*m);
	kfree(m);
}

ssize_t conn_message_copy(const struct conn_message *m, struct msghdr *msg, size_t len)
{
	const struct conn_chunk *chunk;
	size_t done = 0;

	list_for_each_entry(chunk, &m->chunks, list)
	{
		size_t n = min_t(size_t, chunk->len, len - done);

		if (copy_to_iter(chunk->data + chunk->off, n, &msg->msg_iter) != n)
			return -EFAULT;
		done += n;
	}
	return done;
}

/* --- the sink of rdmap_rx() ------------------------------------------------------------------- */

static struct conn_message *message_get(struct conn_rx *rx)
{
	struct conn_message *m = rx->message;

	if (m)
		return m;
	m = rx->spare_message;
	rx->spare_message = NULL;
	INIT_LIST_HEAD(&m->list);
	INIT_LIST_HEAD(&m->chunks);
	m->len = 0;
	rx->held += sizeof(*m);
	rx->message = m;
	return m;
}

static void message_add(struct conn_rx *rx, struct conn_message *m, struct conn_chunk *chunk)
{
	list_add_tail(&chunk->list, &m->chunks);
	rx->held += sizeof(*chunk) + chunk->cap;
}

/* Copies to the last chunk's room, or to the spare one's */
static void message_append(struct conn_rx *rx, struct conn_message *m, const void *p, __u32 n)
{
	struct conn_chunk *last = list_empty(&m->chunks)
					  ? NULL
					  : list_last_entry(&m->chunks, struct conn_chunk, list);

	if (!last || last->cap - last->off - last->len < n) {
		last = rx->spare;
		rx->spare = NULL;
		message_add(rx, m, last);
	}
	memcpy(last->data + last->off + last->len, p, n);
	last->len += n;
	m->len += n;
}

static void sink_recv_place(void *ctx, const struct ddp_seg *seg)
{
	struct conn_rx *rx = &((struct conn *)ctx)->rx;
	struct conn_message *m = message_get(rx);
	struct conn_chunk *own = rx->chunk;

	if (!own || (seg->len < CHUNK_OWN && !(seg->last && !seg->mo))) {
		message_append(rx, m, seg->payload, seg->len);
		return;
	}
	own->off = seg->payload - own->data;
	own->len = seg->len;
	m->len += seg->len;
	message_add(rx, m, own);
	rx->chunk = NULL;
}

static unsigned int sink_recv_ready(void *ctx, __u64 *len)
{
	*len = ((struct conn *)ctx)->rx.recv_max;
	return 1; /* what cannot be held yet is not read from TCP */
}

static void sink_recv_done(void *ctx, const struct rdmap_recv *recv)
{
	struct conn *c = ctx;
	struct conn_message *m = message_get(&c->rx);
	__be64 imm = cpu_to_be64(recv->imm);

	if (recv->op == RDMAP_IMM || recv->op == RDMAP_IMM_SE)
		message_append(&c->rx, m, &imm, sizeof(imm));
	list_add_tail(&m->list, &c->rx.messages);
	c->rx.message = NULL;
	c->rx_messages++;
	c->rx_octets += m->len;
	if (c->ring)
		conn_ring_message(c->ring, c->rx_messages);
}

static enum iwarp_fault sink_place(void *ctx, const struct ddp_seg *seg, unsigned int access)
{
	struct conn *c = ctx;
	bool copy = !c->rx.early;
	enum iwarp_fault fault = conn_region_place(c, seg, access, copy);

	if (copy && !fault)
		conn_ooo_written(c, seg);
	return fault;
}

static enum ddp_stag_error sink_invalidate(void *ctx, __u32 stag)
{
	struct conn *c = ctx;

	return c->stags.slots ? ddp_stag_invalidate(&c->stags, stag, 0) : DDP_STAG_INVALID;
}

static void sink_done(void *ctx, __u64 cookie, __u64 value)
{
	conn_op_answered(ctx, (struct conn_op *)(uintptr_t)cookie, value);
}

static void sink_kick(void *ctx)
{
	conn_kick(ctx);
}

const struct rdmap_sink conn_sink = {
	.place = sink_place,
	.recv_ready = sink_recv_ready,
	.recv_place = sink_recv_place,
	.recv_done = sink_recv_done,
	.invalidate = sink_invalidate,
	.done = sink_done,
	.kick = sink_kick,
};
