/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User messages: Sends with boundaries, in the order of the stream (docs/stream-wire.md).
 *
 * Out: a message is copied to the hold and leaves in parts of one FPDU each. It is accepted when
 * the window has room for all of it and its first part has gone; what the transport does not take
 * at once goes before all later bytes. In: the bytes stand in the ring like others, behind a
 * header that we write there ourselves when the message is whole, and that names the next one. So
 * there may be any number of messages, bounded by the window, in which each counts for its header
 * too. The header lies in memory that processes share and is judged like input.
 */
#include "stream/protocol/protocol.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bits.h"

struct header {
	uint64_t next; /* the place of the next message, or STREAM_NO_MESSAGE */
	uint32_t len;
	uint32_t pad;
};
_Static_assert(sizeof(struct header) == STREAM_MESSAGE_COST, "a message's header");

/* --- out --- */

/* One part: 0 gone, -EAGAIN, -errno */
static int part_push(struct stream *s)
{
	struct stream_tx *tx = &s->state->tx;
	uint32_t end = base_min(base_once(tx->message_end), STREAM_HOLD),
		 at = base_min(tx->message_at, end), len = base_min(end - at, stream_segment(s)),
		 more = at + len < end ? STREAM_MESSAGE_MORE : 0;
	int err;

	stream_tx_need(s);
	if (tx->message_none)
		len = more = 0;
	err = stream_body_post(s, rs_msg(RS_OP_MESSAGE, len | more), s->hold + at, len);
	if (err)
		return err;
	tx->message_at = at + len;
	if (!more)
		base_store(&tx->message_end, 0);
	return 0;
}

int stream_message_push(struct stream *s)
{
	int err = 0;

	while (!err && stream_message_left(s))
		err = part_push(s);
	return err;
}

/* tx lock. Room for messages up to half of the peer's window comes up in any case */
int stream_message_fits(struct stream *s, size_t len)
{
	struct stream_tx *tx = &s->state->tx;

	if (len > STREAM_HOLD || len + STREAM_MESSAGE_COST > s->state->first_window / 2)
		return -EMSGSIZE;
	if (stream_window_room(s) >= len + STREAM_MESSAGE_COST)
		return 0;
	base_store(&tx->want, (uint32_t)len + STREAM_MESSAGE_COST);
	return -EAGAIN;
}

static void message_hold(struct stream *s, const void *p, size_t len)
{
	struct stream_tx *tx = &s->state->tx;

	if (len)
		memcpy(s->hold, p, len);
	tx->message_at = 0;
	tx->message_none = !len;
	base_store(&tx->message_end, (uint32_t)base_max(len, 1u));
	base_store(&tx->placed, tx->placed + len + STREAM_MESSAGE_COST);
}

/* tx lock */
int stream_message_accept(struct stream *s, const void *p, size_t len)
{
	struct stream_tx *tx = &s->state->tx;
	int err;

	stream_tx_need(s);
	if (stream_reserve(s, s->hold, len))
		return -EAGAIN;
	message_hold(s, p, len);
	err = stream_message_push(s);
	if (err && !tx->message_at) {
		base_store(&tx->message_end, 0);
		base_store(&tx->placed, tx->placed - len - STREAM_MESSAGE_COST);
		return err;
	}
	base_store(&tx->want, 0);
	base_store(&tx->octets, tx->octets + len);
	base_store(&tx->messages, tx->messages + 1);
	return 0;
}

/* --- in --- */

static bool closed(const struct stream *s)
{
	return base_load(&s->state->ends) & STREAM_CLOSED;
}

int stream_message_begin(struct stream *s)
{
	struct stream_rx *rx = &s->state->rx;

	if (rx->message_open)
		return 0;
	if (base_load(&s->state->tx.granted) - rx->placed < STREAM_MESSAGE_COST)
		return -EPROTO;
	rx->message_at = rx->placed;
	rx->placed += STREAM_MESSAGE_COST;
	rx->message_open = 1;
	return 0;
}

/* The message before this one, if it is not read yet, names it */
static void message_link(struct stream *s)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t at = rx->message_at;

	if (base_load(&rx->message_first) == STREAM_NO_MESSAGE)
		base_store(&rx->message_first, at);
	else
		stream_chunks_put(s, rx->message_last, &at, sizeof(at));
	rx->message_last = at;
}

int stream_message_end(struct stream *s)
{
	struct stream_rx *rx = &s->state->rx;
	struct header h = { .next = STREAM_NO_MESSAGE };

	h.len = (uint32_t)(rx->placed - rx->message_at - STREAM_MESSAGE_COST);
	rx->message_open = 0;
	rx->message_part = 0;
	base_store(&rx->messages, rx->messages + 1);
	if (!closed(s)) {
		stream_chunks_put(s, rx->message_at, &h, sizeof(h));
		message_link(s);
	}
	base_store(&rx->delivered, rx->placed);
	__atomic_add_fetch(&s->state->in_edge, 1, __ATOMIC_ACQ_REL);
	return 0;
}

uint64_t stream_message_limit(const struct stream *s)
{
	const struct stream_rx *rx = &s->state->rx;
	uint64_t first = base_load(&rx->message_first), consumed = base_load(&rx->consumed);
	uint64_t left = base_min(base_load(&rx->delivered) - consumed, s->ring);

	return first == STREAM_NO_MESSAGE ? left : base_min(left, first - consumed);
}

/* The header of the message at hand; false: it makes no sense, and the connection is over */
static bool header_get(struct stream *s, struct header *h)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t at = base_once(rx->message_first), end, delivered = base_once(rx->delivered);

	stream_bytes_get(s, at, h, sizeof(*h));
	end = at + STREAM_MESSAGE_COST + h->len;
	if (h->len <= s->ring && end <= delivered &&
	    (h->next == STREAM_NO_MESSAGE || (h->next >= end && h->next < delivered)))
		return true;
	stream_spoilt(s, STREAM_DAMAGED);
	return false;
}

bool stream_message_next(struct stream *s, size_t *len)
{
	struct stream_rx *rx = &s->state->rx;
	struct header h;

	if (base_load(&rx->message_first) != rx->consumed || !header_get(s, &h))
		return false;
	*len = h.len;
	return true;
}

static void message_drop(struct stream *s, const struct header *h)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t consumed = base_once(rx->consumed), end = consumed + STREAM_MESSAGE_COST + h->len;

	stream_bytes_drop(s, consumed, end);
	base_store(&rx->message_first, h->next);
	base_store(&rx->consumed, end);
	base_store(&rx->headers, rx->headers + STREAM_MESSAGE_COST);
}

/* rx lock: bytes given, or -ENODATA */
ssize_t stream_message_get(struct stream *s, const struct iovec *iov, int n, int flags, size_t *len)
{
	struct stream_rx *rx = &s->state->rx;
	struct stream_cursor c = { iov, n, 0 };
	size_t given = 0, left, step;
	struct header h;
	char *p;

	if (base_load(&rx->message_first) != rx->consumed || !header_get(s, &h))
		return -ENODATA;
	for (left = h.len; left && (step = stream_cursor_next(&c, left, &p)); left -= step) {
		stream_bytes_get(s, rx->consumed + STREAM_MESSAGE_COST + given, p, step);
		given += step;
	}
	*len = h.len;
	if (!(flags & MSG_PEEK))
		message_drop(s, &h);
	return (ssize_t)given;
}
