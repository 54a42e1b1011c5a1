/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User messages: Sends with boundaries, in the order of the stream (docs/stream-wire.md).
 *
 * Out: a message is copied to the hold and leaves in parts of one FPDU each. It is accepted when
 * the window has room for all of it and its first part has gone; what the transport does not take
 * at once goes before all later octets. In: the octets stand in the ring like others, behind a
 * header that we write there ourselves when the message is whole, and that names the next one. So
 * there may be any number of messages, bounded by the window, in which each counts for its header
 * too. The header lies in memory that processes share and is judged like input.
 */
#include "stream/rsock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"

struct header {
	uint64_t next; /* the place of the next message, or STREAM_NO_MESSAGE */
	uint32_t len;
	uint32_t pad;
};
_Static_assert(sizeof(struct header) == STREAM_MESSAGE_COST, "a message's header");

/* --- out --- */

/* One part: 0 gone, -EAGAIN, -errno */
static int part_push(struct rsock *s)
{
	struct stream_tx *tx = &s->state->tx;
	uint32_t end = base_min(base_once(tx->message_end), STREAM_HOLD),
		 at = base_min(tx->message_at, end), len = base_min(end - at, rsock_segment(s)),
		 more = at + len < end ? STREAM_MESSAGE_MORE : 0;
	int err;

	rsock_tx_need(s);
	if (tx->message_none)
		len = more = 0;
	err = rsock_body_post(s, rs_msg(RS_OP_MESSAGE, len | more), s->hold + at, len);
	if (err)
		return err;
	tx->message_at = at + len;
	if (!more)
		rsock_store(&tx->message_end, 0);
	return 0;
}

int rsock_message_push(struct rsock *s)
{
	int err = 0;

	while (!err && rsock_message_left(s))
		err = part_push(s);
	return err;
}

/* tx lock. Room for messages up to half of the peer's window comes up in any case */
static int message_fits(struct rsock *s, size_t len)
{
	struct stream_tx *tx = &s->state->tx;

	if (len > STREAM_HOLD || len + STREAM_MESSAGE_COST > s->state->first_window / 2)
		return -EMSGSIZE;
	if (rsock_window_room(s) >= len + STREAM_MESSAGE_COST)
		return 0;
	rsock_store(&tx->want, (uint32_t)len + STREAM_MESSAGE_COST);
	return -EAGAIN;
}

static void message_hold(struct rsock *s, const void *p, size_t len)
{
	struct stream_tx *tx = &s->state->tx;

	if (len)
		memcpy(s->hold, p, len);
	tx->message_at = 0;
	tx->message_none = !len;
	rsock_store(&tx->message_end, (uint32_t)base_max(len, 1u));
	rsock_store(&tx->placed, tx->placed + len + STREAM_MESSAGE_COST);
}

/* tx lock */
static int message_accept(struct rsock *s, const void *p, size_t len)
{
	struct stream_tx *tx = &s->state->tx;
	int err = message_fits(s, len);

	if (!err)
		err = rsock_push_first(s);
	if (!err && rsock_jobs_left(s))
		err = -EAGAIN;
	if (err)
		return err;
	rsock_tx_need(s);
	if (rsock_reserve(s, s->hold, len))
		return -EAGAIN;
	message_hold(s, p, len);
	err = rsock_message_push(s);
	if (err && !tx->message_at) {
		rsock_store(&tx->message_end, 0);
		rsock_store(&tx->placed, tx->placed - len - STREAM_MESSAGE_COST);
		return err;
	}
	rsock_store(&tx->want, 0);
	rsock_store(&tx->octets, tx->octets + len);
	rsock_store(&tx->messages, tx->messages + 1);
	return 0;
}

/* As its namesake in send.c: the end is looked for under the lock */
static int send_once(struct rsock *s, const void *p, size_t len)
{
	int err = -EPIPE;

	rsock_tx_lock(s);
	if (!rsock_out_ended(s))
		err = rsock_load(&s->state->may_send) ? message_accept(s, p, len) : -EAGAIN;
	rsock_tx_unlock(s);
	return err;
}

int stream_message_send(struct stream *stream, const void *p, size_t len)
{
	struct rsock *s = rsock_of(stream);
	uint64_t before = rsock_edges(s);
	int err = rsock_is_open(s) ? 0 : stream_progress(stream);

	if (err)
		return err;
	if (!rsock_has(s, STREAM_FEATURE_MESSAGES))
		return -EOPNOTSUPP;
	if (rsock_is_foreign(s))
		return -EXDEV;
	err = send_once(s, p, len);
	if (err == -EAGAIN) {
		rsock_pump(s);
		err = send_once(s, p, len);
	}
	if (err && err != -EAGAIN && err != -EMSGSIZE) {
		rsock_pump_end(s);
		err = stream_take_error(stream);
		err = err ? -err : -EPIPE;
	}
	rsock_tell(s, before);
	return err;
}

/* --- in --- */

static bool closed(const struct rsock *s)
{
	return rsock_load(&s->state->ends) & STREAM_CLOSED;
}

int rsock_message_begin(struct rsock *s)
{
	struct stream_rx *rx = &s->state->rx;

	if (rx->message_open)
		return 0;
	if (rsock_load(&s->state->tx.granted) - rx->placed < STREAM_MESSAGE_COST)
		return -EPROTO;
	rx->message_at = rx->placed;
	rx->placed += STREAM_MESSAGE_COST;
	rx->message_open = 1;
	return 0;
}

/* The message before this one, if it is not read yet, names it */
static void message_link(struct rsock *s)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t at = rx->message_at;

	if (rsock_load(&rx->message_first) == STREAM_NO_MESSAGE)
		rsock_store(&rx->message_first, at);
	else
		rsock_chunks_put(s, rx->message_last, &at, sizeof(at));
	rx->message_last = at;
}

int rsock_message_end(struct rsock *s)
{
	struct stream_rx *rx = &s->state->rx;
	struct header h = { .next = STREAM_NO_MESSAGE };

	h.len = (uint32_t)(rx->placed - rx->message_at - STREAM_MESSAGE_COST);
	rx->message_open = 0;
	rx->message_part = 0;
	rsock_store(&rx->messages, rx->messages + 1);
	if (!closed(s)) {
		rsock_chunks_put(s, rx->message_at, &h, sizeof(h));
		message_link(s);
	}
	rsock_store(&rx->delivered, rx->placed);
	__atomic_add_fetch(&s->state->in_edge, 1, __ATOMIC_ACQ_REL);
	return 0;
}

uint64_t rsock_message_limit(const struct rsock *s)
{
	const struct stream_rx *rx = &s->state->rx;
	uint64_t first = rsock_load(&rx->message_first), consumed = rsock_load(&rx->consumed);
	uint64_t left = base_min(rsock_load(&rx->delivered) - consumed, s->ring);

	return first == STREAM_NO_MESSAGE ? left : base_min(left, first - consumed);
}

/* The header of the message at hand; false: it makes no sense, and the connection is over */
static bool header_get(struct rsock *s, struct header *h)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t at = base_once(rx->message_first), end, delivered = base_once(rx->delivered);

	rsock_bytes_get(s, at, h, sizeof(*h));
	end = at + STREAM_MESSAGE_COST + h->len;
	if (h->len <= s->ring && end <= delivered &&
	    (h->next == STREAM_NO_MESSAGE || (h->next >= end && h->next < delivered)))
		return true;
	rsock_spoilt(s, STREAM_DAMAGED);
	return false;
}

bool rsock_message_next(struct rsock *s, size_t *len)
{
	struct stream_rx *rx = &s->state->rx;
	struct header h;

	if (rsock_load(&rx->message_first) != rx->consumed || !header_get(s, &h))
		return false;
	*len = h.len;
	return true;
}

static void message_drop(struct rsock *s, const struct header *h)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t consumed = base_once(rx->consumed), end = consumed + STREAM_MESSAGE_COST + h->len;

	rsock_bytes_drop(s, consumed, end);
	rsock_store(&rx->message_first, h->next);
	rsock_store(&rx->consumed, end);
	rsock_store(&rx->headers, rx->headers + STREAM_MESSAGE_COST);
}

/* rx lock: octets given, or -ENODATA */
static ssize_t message_take(struct rsock *s, const struct iovec *iov, int n, int flags, size_t *len)
{
	struct stream_rx *rx = &s->state->rx;
	struct stream_cursor c = { iov, n, 0 };
	size_t given = 0, left, step;
	struct header h;
	char *p;

	if (rsock_load(&rx->message_first) != rx->consumed || !header_get(s, &h))
		return -ENODATA;
	for (left = h.len; left && (step = stream_cursor_next(&c, left, &p)); left -= step) {
		rsock_bytes_get(s, rx->consumed + STREAM_MESSAGE_COST + given, p, step);
		given += step;
	}
	*len = h.len;
	if (!(flags & MSG_PEEK))
		message_drop(s, &h);
	return (ssize_t)given;
}

ssize_t stream_message_recv(struct stream *stream, const struct iovec *iov, int n, int flags,
			    size_t *len)
{
	struct rsock *s = rsock_of(stream);
	uint64_t before = rsock_edges(s);
	ssize_t got;

	if (!rsock_is_open(s) || rsock_load(&s->state->rx.message_first) == STREAM_NO_MESSAGE)
		return -ENODATA;
	if (rsock_is_foreign(s))
		return -EXDEV;
	rsock_rx_lock(s);
	got = rsock_rx_agrees(s) ? message_take(s, iov, n, flags, len) : -ENODATA;
	rsock_rx_unlock(s);
	rsock_pump(s);
	rsock_tell(s, before);
	return got;
}
