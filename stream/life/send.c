/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes of a program: before the connection is open to the hold, then to the transport. A program
 * that only writes has to hear of grants and of the peer's end, and so a write looks for input.
 */
#include "stream/life/life.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/point.h"
#include "stream/cursor.h"

/* tx lock */
static ssize_t octets_send(struct stream *s, const struct iovec *iov, int n, bool urgent)
{
	int err;

	/* What is held by then goes over another connection, and nothing may go behind it */
	if (base_load(&s->state->stage) == STREAM_PLAIN)
		return -ENOMSG;
	if (urgent && stream_is_open(s) && !stream_has(s, STREAM_FEATURE_URGENT))
		return -EOPNOTSUPP;
	if (!stream_is_open(s) || !base_load(&s->state->may_send))
		return stream_holds(s) ? stream_data_hold(s, iov, n, urgent) : -EAGAIN;
	err = stream_push_first(s);
	if (!err && stream_jobs_left(s))
		err = -EAGAIN; /* what is sent later comes later */
	return err ? err : stream_data_send(s, iov, n, urgent);
}

/* Would a first write find the peer gone, and not know it, if this were TCP? */
static bool finds_out(const struct stream *s)
{
	const uint32_t telling = STREAM_LEFT | STREAM_LOST | STREAM_SHUT_WR;

	return (base_load(&s->state->ends) & telling) == STREAM_LEFT;
}

/*
 * TCP takes the first write behind the peer's close(), and finds out by the reset that answers it:
 * the next one fails, and poll() tells of an error. So a client that writes once to a server that
 * has gone reads the end, and is not killed by SIGPIPE. What was taken is dropped here.
 */
static bool lose(struct stream *s)
{
	if (!finds_out(s) ||
	    __atomic_fetch_or(&s->state->ends, STREAM_LOST, __ATOMIC_ACQ_REL) & STREAM_LOST)
		return false;
	base_debug("stream: what is written behind the peer's end is dropped");
	stream_give_error(s, EPIPE);
	__atomic_add_fetch(&s->state->in_edge, 1, __ATOMIC_ACQ_REL);
	__atomic_add_fetch(&s->state->out_edge, 1, __ATOMIC_ACQ_REL);
	return true;
}

static ssize_t ended(struct stream *s)
{
	int err = stream_take_error(s);

	return err ? -err : -EPIPE;
}

/* The end is looked for under the lock: shutdown() says it there, and nothing may go behind it */
static ssize_t send_once(struct stream *s, const struct iovec *iov, int n, bool urgent)
{
	ssize_t sent;

	stream_tx_lock(s);
	/* -EPIPE, or what ended() says, which says it once */
	sent = stream_out_ended(s) ? -EPIPE : octets_send(s, iov, n, urgent);
	if (sent > 0) {
		base_store(&s->state->tx.octets, s->state->tx.octets + (uint64_t)sent);
		BASE_POINT(stream_send_counted);
		base_store(&s->state->tx.want, 0);
	}
	stream_tx_unlock(s);
	return sent;
}

/*
 * A program that only writes must hear of the peer's end: a write looks for input once in this
 * time. A program that reads has looked already: that costs each answer of a server a system call
 */
#define INPUT_POLL BASE_NS_PER_MS

static void look(struct stream *s)
{
	uint64_t now = base_now();
	bool drained = __atomic_load_n(&s->drained, __ATOMIC_RELAXED);

	if (!drained && now - base_load(&s->looked) < INPUT_POLL)
		return;
	/* Somebody receives at this moment, and may sleep in it */
	drained |= base_load(&s->state->rx_lock.word) != 0;
	base_store(&s->looked, now);
	if (!drained)
		stream_pump(s);
	__atomic_store_n(&s->drained, false, __ATOMIC_RELAXED);
}

/* May it leave now, after input? */
static bool may_go(const struct stream *s, bool urgent)
{
	return (urgent || stream_may_data(s)) && !stream_is_blocked(s);
}

static bool is_end(ssize_t err)
{
	return err < 0 && err != -EAGAIN && err != -ENOMSG && err != -EOPNOTSUPP;
}

static ssize_t send_any(struct stream *s, const struct iovec *iov, int n, bool urgent)
{
	uint64_t before = stream_edges(s);
	ssize_t sent;
	int err = stream_is_open(s) ? 0 : stream_progress(s);

	if (err && err != -EAGAIN)
		return err == -ENOMSG ? err : ended(s);
	if (!stream_iov_len(iov, n))
		return stream_out_ended(s) && !finds_out(s) ? ended(s) : 0;
	if (stream_is_foreign(s))
		return -EXDEV;
	if (stream_is_open(s))
		look(s);
	sent = send_once(s, iov, n, urgent);
	if (sent == -EAGAIN && stream_is_open(s)) {
		/* Credits and room come as input */
		stream_pump(s);
		if (may_go(s, urgent))
			sent = send_once(s, iov, n, urgent);
	}
	if (is_end(sent)) {
		/* The peer's last words say why, and count more than a reset */
		stream_pump_end(s);
		sent = lose(s) ? (ssize_t)stream_iov_len(iov, n) : ended(s);
	}
	stream_tell(s, before);
	return sent;
}

ssize_t stream_send(struct stream *s, const struct iovec *iov, int n)
{
	return send_any(s, iov, n, false);
}

ssize_t stream_urgent_send(struct stream *s, const struct iovec *iov, int n)
{
	return send_any(s, iov, n, true);
}

size_t stream_held(struct stream *s, const void **out, size_t *urgent)
{
	size_t len = base_min(base_load(&s->state->tx.hold_end), STREAM_HOLD);

	*out = stream_hold(s);
	*urgent = base_min((size_t)base_load(&s->state->urgent.held), len);
	return base_load(&s->state->stage) == STREAM_PLAIN ? len : 0;
}
