/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes out: a Write into the peer's ring and a DATA message that tells of it, in pairs; to
 * another Warpsock a message that holds the bytes.
 *
 * A pair is one FPDU of payload and one of the message, so that "accepted" means what it says:
 * what is counted lies in the kernel, but for the rest of one frame, or for a DATA message
 * whose Write has gone (tx.owed); both go before all else. A batch of pairs is entered in the
 * books before it is posted, because the peer may answer before the call returns, and what the
 * transport did not take is struck out again, in reverse.
 */
#include "stream/protocol/protocol.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/point.h"
#include "stream/cursor.h"

/* Operations of a batch. Less is less stack */
#ifndef STREAM_BATCH
#define STREAM_BATCH 24
#endif
#define BATCH STREAM_BATCH
#define PAIRS (BATCH / 2)
#define PIECES (2 * BATCH + 16)

struct batch {
	unsigned int n, pieces;
	unsigned int ops; /* operations of a pair: 2, or 1 where bytes travel in the message */
	uint32_t len[BATCH];
	bool last[BATCH]; /* the pair filled its entry */
	bool urgent;	  /* the last byte of all is */
	size_t left;	  /* bytes that are in no message yet */
	uint8_t msg[BATCH][RS_MSG_LEN];
	struct iovec msg_iov[PAIRS];
	struct iovec piece[PIECES];
	struct rnic_stream_wr wr[BATCH];
};

/* Bytes of the next pair or message, and where they lie */
static uint32_t pair_gather(struct batch *b, struct stream_cursor *c, size_t max)
{
	uint32_t len = 0;

	while (len < max && b->pieces < PIECES) {
		char *p;
		size_t n = stream_cursor_next(c, max - len, &p);

		if (!n)
			break;
		b->piece[b->pieces++] = (struct iovec){ p, n };
		len += (uint32_t)n;
	}
	return len;
}

/* Enters a pair of @len bytes in the books */
static void pair_enter(struct stream *s, struct batch *b, uint32_t len)
{
	struct stream_tx *tx = &s->state->tx;
	struct stream_entry *e = &s->state->rx.entry[tx->filled % RS_SGL_ENTRIES];

	e->to += len;
	e->room -= len;
	b->last[b->n] = !e->room;
	b->len[b->n++] = len;
	base_store(&tx->sent, (uint16_t)(tx->sent + 1));
	if (!e->room)
		base_store(&tx->filled, tx->filled + 1);
}

static void pair_strike(struct stream *s, struct batch *b)
{
	struct stream_tx *tx = &s->state->tx;
	struct stream_entry *e;
	uint32_t len = b->len[--b->n];

	if (b->last[b->n])
		base_store(&tx->filled, tx->filled - 1);
	e = &s->state->rx.entry[tx->filled % RS_SGL_ENTRIES];
	e->to -= len;
	e->room += len;
	base_store(&tx->sent, (uint16_t)(tx->sent - 1));
}

/* One pair more; false when there is nothing to send, no room or no credit */
static bool pair_add(struct stream *s, struct batch *b, struct stream_cursor *c, uint32_t segment)
{
	struct stream_entry *e =
		&s->state->rx.entry[base_load(&s->state->tx.filled) % RS_SGL_ENTRIES];
	unsigned int i = b->n, first = b->pieces;
	struct rnic_stream_wr *wr = &b->wr[2 * i];
	uint32_t len;

	if (i == PAIRS || !stream_may_data(s))
		return false;
	len = pair_gather(b, c, base_min(e->room, segment));
	if (!len)
		return false;
	base_put_le32(b->msg[i], rs_msg(RS_OP_DATA, len));
	b->msg_iov[i] = (struct iovec){ b->msg[i], RS_MSG_LEN };
	wr[0] = (struct rnic_stream_wr){ .stag = e->stag,
					 .to = e->to,
					 .iov = &b->piece[first],
					 .niov = b->pieces - first,
					 .len = len };
	wr[1] = (struct rnic_stream_wr){ .iov = &b->msg_iov[i], .niov = 1, .len = RS_MSG_LEN };
	pair_enter(s, b, len);
	return true;
}

/* One message with its bytes; false as pair_add() */
static bool inline_add(struct stream *s, struct batch *b, struct stream_cursor *c, uint32_t segment)
{
	struct stream_tx *tx = &s->state->tx;
	unsigned int i = b->n, first = b->pieces;
	uint32_t len, value;

	if (i == BATCH || first == PIECES)
		return false;
	b->piece[b->pieces++] = (struct iovec){ b->msg[i], RS_MSG_LEN };
	len = pair_gather(b, c, base_min(stream_urgent_room(s, b->urgent), segment));
	if (!len)
		return false;
	b->left -= len;
	value = b->urgent && !b->left ? len | STREAM_INLINE_URGENT : len;
	base_put_le32(b->msg[i], rs_msg(RS_OP_INLINE, value));
	b->wr[i] = (struct rnic_stream_wr){ .iov = &b->piece[first],
					    .niov = b->pieces - first,
					    .len = RS_MSG_LEN + len };
	b->len[b->n++] = len;
	base_store(&tx->placed, tx->placed + len);
	/* Here a message ends, if it goes out */
	BASE_NOTE(tx->placed);
	return true;
}

static void inline_strike(struct stream *s, struct batch *b)
{
	struct stream_tx *tx = &s->state->tx;

	base_store(&tx->placed, tx->placed - b->len[--b->n]);
}

/* @done operations were accepted: the bytes that count */
static size_t batch_settle(struct stream *s, struct batch *b, unsigned int done)
{
	unsigned int begun = (done + b->ops - 1) / b->ops;
	size_t octets = 0;

	while (b->n > begun)
		b->ops == 1 ? inline_strike(s, b) : pair_strike(s, b);
	for (unsigned int i = 0; i < begun; i++)
		octets += b->len[i];
	if (done % b->ops)
		base_store(&s->state->tx.owed, b->len[begun - 1]);
	return octets;
}

/* Pieces of the program's in a message that goes by itself */
#define SINGLE_PIECES 12

/* The ordinary case: all of a write in one message. Its bytes, -EAGAIN or -errno */
static ssize_t single_send(struct stream *s, const struct iovec *iov, int n, uint32_t len)
{
	struct stream_tx *tx = &s->state->tx;
	struct iovec piece[SINGLE_PIECES + 1];
	uint8_t msg[RS_MSG_LEN];
	struct rnic_stream_wr wr = { .iov = piece,
				     .niov = (unsigned int)n + 1,
				     .len = RS_MSG_LEN + len };
	int done;

	base_put_le32(msg, rs_msg(RS_OP_INLINE, len));
	piece[0] = (struct iovec){ msg, sizeof(msg) };
	for (int i = 0; i < n; i++)
		piece[i + 1] = iov[i];
	base_store(&tx->placed, tx->placed + len);
	/* Here the message ends, if it goes out */
	BASE_NOTE(tx->placed);
	BASE_POINT(stream_send_booked);
	done = stream_wr_post(s, &wr, 1);
	BASE_POINT(stream_send_posted);
	if (done > 0)
		return (ssize_t)len;
	base_store(&tx->placed, tx->placed - len);
	return done < 0 ? done : -EAGAIN;
}

static ssize_t batches_send(struct stream *s, const struct iovec *iov, int n, bool urgent)
{
	struct stream_cursor c = { iov, n, 0 };
	bool pairs = !stream_has(s, STREAM_FEATURE_INLINE);
	uint32_t segment;
	size_t sum = 0;
	struct batch b;
	int want, done;

	b.ops = pairs ? 2 : 1;
	b.urgent = urgent && stream_has(s, STREAM_FEATURE_URGENT);
	b.left = stream_iov_len(iov, n);
	do {
		b.n = b.pieces = 0;
		segment = pairs ? s->rnic->segment(&s->mem, RS_MSG_LEN) : stream_segment(s);
		while (pairs ? pair_add(s, &b, &c, segment) : inline_add(s, &b, &c, segment))
			;
		want = (int)(b.ops * b.n);
		BASE_POINT(stream_send_booked);
		done = want ? stream_wr_post(s, b.wr, (unsigned int)want) : 0;
		BASE_POINT(stream_send_posted);
		sum += batch_settle(s, &b, (unsigned int)base_max(done, 0));
	} while (want && done == want);
	if (sum)
		return (ssize_t)sum;
	return done < 0 ? done : -EAGAIN;
}

ssize_t stream_data_send(struct stream *s, const struct iovec *iov, int n, bool urgent)
{
	if (!urgent && n <= SINGLE_PIECES && stream_has(s, STREAM_FEATURE_INLINE)) {
		size_t len = stream_iov_len(iov, n);

		if (len && len <= stream_segment(s) && len <= stream_urgent_room(s, false))
			return single_send(s, iov, n, (uint32_t)len);
	}
	return batches_send(s, iov, n, urgent);
}

/* Bytes are kept until the connection can send */
ssize_t stream_data_hold(struct stream *s, const struct iovec *iov, int n, bool urgent)
{
	struct stream_tx *tx = &s->state->tx;
	struct stream_cursor c = { iov, n, 0 };
	uint32_t end = base_once(tx->hold_end);
	size_t all = stream_iov_len(iov, n), sum = 0, len;
	char *p;

	stream_tx_need(s);
	while (end < STREAM_HOLD && (len = stream_cursor_next(&c, STREAM_HOLD - end, &p))) {
		if (stream_reserve(s, s->hold + end, len))
			return sum ? (ssize_t)sum : -ENOBUFS;
		memcpy(s->hold + end, p, len);
		end += (uint32_t)len;
		base_store(&tx->hold_end, end);
		sum += len;
	}
	if (urgent && sum == all)
		base_store(&s->state->urgent.held, end);
	return sum ? (ssize_t)sum : -EAGAIN;
}
