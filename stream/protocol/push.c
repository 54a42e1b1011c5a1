/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is due, in this order: the rest of a cut frame, a message whose Write has gone alone,
 * bytes held since before the connection was open, the rest of a user message, grants, one-sided
 * operations, SHUTDOWN, DISCONNECT, ABORT, the FIN.
 * Whoever finds something due may push it; what the transport does not take stays due.
 *
 * A grant of ring is a Write of an SGE to the peer's next slot and an SGL message with the
 * credit limit; it is due when a whole half has been read, or for the first time at once; with
 * INLINE it is one message, and due when half of the window is used up. The
 * limit alone is due when half the credits are used up.
 */
#include "stream/protocol/protocol.h"

#include <errno.h>

#include "base/bits.h"
#include "base/point.h"

static int push_owed(struct stream *s)
{
	struct stream_tx *tx = &s->state->tx;
	uint32_t owed = base_once(tx->owed);
	int err = owed ? stream_body_post(s, owed, NULL, 0) : 0;

	if (!err)
		base_store(&tx->owed, 0);
	return err;
}

static int push_held(struct stream *s)
{
	struct stream_tx *tx = &s->state->tx;

	uint32_t at = base_once(tx->hold_at), end = base_min(base_once(tx->hold_end), STREAM_HOLD);
	uint32_t urgent = base_min(base_once(s->state->urgent.held), end);

	/* Before the peer's first FPDU more may be written behind it */
	if (!base_load(&s->state->may_send))
		return at < end ? -EAGAIN : 0;
	stream_tx_need(s);
	while (at < end) {
		uint32_t to = at < urgent ? urgent : end;
		struct iovec iov = { s->hold + at, to - at };
		ssize_t sent = stream_data_send(s, &iov, 1, to == urgent);

		if (sent < 0)
			return (int)sent;
		at += (uint32_t)sent;
		tx->hold_at = at;
		if (tx->owed)
			return -EAGAIN;
	}
	/* The peer is told so */
	if (end && stream_has(s, STREAM_FEATURE_HELD))
		__atomic_or_fetch(&tx->due, STREAM_DUE_GRANT, __ATOMIC_ACQ_REL);
	tx->hold_at = 0;
	base_store(&tx->hold_end, 0);
	base_store(&s->state->urgent.held, 0);
	base_store(&s->state->hold, 0);
	return 0;
}

/* The SGE of the next half into the peer's next slot, and the message: 0, -EAGAIN, -errno */
static int ring_grant(struct stream *s, uint16_t limit)
{
	struct stream_state *st = s->state;
	struct stream_tx *tx = &st->tx;
	uint32_t half = stream_half(s), entries = base_once(st->peer.sgl_entries);
	uint64_t slot = tx->granted / half % (entries ? entries : 1);
	struct rs_sge sge = {
		.addr = htole64(st->ring_to + tx->granted % s->ring),
		.key = htole32(st->ring_stag),
		.length = htole32(half),
	};
	uint8_t msg[RS_MSG_LEN];
	struct iovec iov[2] = { { &sge, sizeof(sge) }, { msg, sizeof(msg) } };
	struct rnic_stream_wr wr[2] = {
		{ st->peer.sgl_stag, st->peer.sgl_to + slot * sizeof(sge), &iov[0], 1, sizeof(sge),
		  NULL, false },
		{ .iov = &iov[1], .niov = 1, .len = sizeof(msg) },
	};
	int done;

	base_put_le32(msg, rs_msg(RS_OP_SGL, limit));
	base_store(&tx->granted, tx->granted + half);
	done = stream_wr_post(s, wr, 2);
	if (done <= 0)
		base_store(&tx->granted, tx->granted - half);
	if (done == 1)
		__atomic_or_fetch(&tx->due, STREAM_DUE_GRANT, __ATOMIC_ACQ_REL);
	return done == 2 ? 0 : done < 0 ? done : -EAGAIN;
}

/*
 * All the ring that is free, if enough is; who has only to say what is held grants nothing by it,
 * for each grant wakes the peer's writers: 0, -EAGAIN, -errno
 */
static int window_grant(struct stream *s)
{
	struct stream_tx *tx = &s->state->tx;
	uint64_t before = tx->granted;
	uint64_t limit = stream_ring_due(s) ? base_load(&s->state->rx.consumed) + s->ring : before;
	struct stream_window w = { htole64(limit) };
	bool held = stream_has(s, STREAM_FEATURE_HELD) && base_load(&tx->hold_end);
	uint32_t msg = rs_msg(RS_OP_WINDOW, held ? STREAM_WINDOW_HELD : 0);
	int err;

	base_store(&tx->granted, limit);
	BASE_POINT(stream_push_granted);
	err = stream_body_post(s, msg, &w, sizeof(w));
	if (err)
		base_store(&tx->granted, before);
	return err;
}

/* Ring, or credit, or both */
static int sgl_grant(struct stream *s)
{
	struct stream_tx *tx = &s->state->tx;
	uint16_t before = tx->limit, limit = (uint16_t)(base_load(&s->state->rx.got) + s->credits);
	bool sge = stream_ring_due(s) && !(base_load(&tx->due) & STREAM_DUE_GRANT);
	int err;

	base_store(&tx->limit, limit);
	err = sge ? ring_grant(s, limit) : stream_body_post(s, rs_msg(RS_OP_SGL, limit), NULL, 0);
	if (err)
		base_store(&tx->limit, before);
	return err;
}

/*
 * A grant stands in the books before it is sent, for the peer may be quick. Should its maker die
 * between, nobody would grant what seems to be granted, nor take the lock for it, and the peer
 * wait for ever: so it counts as due until it has gone.
 */
static int grant_once(struct stream *s)
{
	uint32_t over = STREAM_DUE_GRANTING, *due = &s->state->tx.due;
	int err;

	__atomic_or_fetch(due, STREAM_DUE_GRANTING, __ATOMIC_ACQ_REL);
	err = stream_has(s, STREAM_FEATURE_INLINE) ? window_grant(s) : sgl_grant(s);
	if (!err)
		over |= STREAM_DUE_GRANT;
	__atomic_and_fetch(due, ~over, __ATOMIC_ACQ_REL);
	return err;
}

/* Is a window due for what it says of bytes that are held? The peer may have ended its side */
static bool word_due(const struct stream *s)
{
	return stream_has(s, STREAM_FEATURE_HELD) &&
	       base_load(&s->state->tx.due) & STREAM_DUE_GRANT &&
	       !(base_load(&s->state->ends) & STREAM_CLOSED);
}

static bool grants(const struct stream *s)
{
	bool due = base_load(&s->state->tx.due) & STREAM_DUE_GRANT;

	return word_due(s) || (stream_grants(s) && (due || stream_grant_due(s)));
}

static int push_grants(struct stream *s)
{
	int err = 0;

	/* The peer's end may be among what is still there, and then it would answer with a reset */
	while (!err && !stream_has_more(s) && grants(s))
		err = grant_once(s);
	return err;
}

/*
 * What is held waits for the peer's room. A peer that holds more than our ring waits for ours: it
 * gets what room there is
 */
static void push_around(struct stream *s)
{
	const struct stream_tx *tx = &s->state->tx;

	if (base_load(&tx->hold_end) && !base_once(tx->owed) && !s->rnic->owes(&s->mem) &&
	    !(base_load(&s->state->ends) & STREAM_OUT_ENDED) && stream_grant_due(s))
		push_grants(s);
}

/* Our last word; the FIN goes in the same segment */
static int last_post(struct stream *s, uint32_t msg)
{
	uint8_t octets[RS_MSG_LEN];
	struct iovec iov = { octets, sizeof(octets) };
	struct rnic_stream_wr wr = { .iov = &iov, .niov = 1, .len = RS_MSG_LEN, .final = true };
	int done;

	base_put_le32(octets, msg);
	done = stream_wr_post(s, &wr, 1);
	return done > 0 ? 0 : done < 0 ? done : -EAGAIN;
}

static int push_ends(struct stream *s)
{
	static const struct {
		uint32_t due;
		uint32_t ctrl;
	} ends[] = { { STREAM_DUE_SHUTDOWN, RS_CTRL_SHUTDOWN },
		     { STREAM_DUE_DISCONNECT, RS_CTRL_DISCONNECT },
		     { STREAM_DUE_ABORT, RS_CTRL_ABORT } };
	struct stream_tx *tx = &s->state->tx;
	int err = stream_jobs_left(s) ? -EAGAIN : 0;

	for (unsigned int i = 0; i < base_array_size(ends) && !err; i++) {
		uint32_t due = base_load(&tx->due), msg = rs_msg(RS_OP_CTRL, ends[i].ctrl);
		bool last = ends[i].due == STREAM_DUE_DISCONNECT && due & STREAM_DUE_FIN &&
			    !(due & STREAM_DUE_ABORT);

		if (!(due & ends[i].due))
			continue;
		err = last ? last_post(s, msg) : stream_body_post(s, msg, NULL, 0);
		BASE_POINT(stream_push_ended);
		if (!err)
			__atomic_and_fetch(&tx->due, ~ends[i].due, __ATOMIC_ACQ_REL);
	}
	return err;
}

static int push_fin(struct stream *s)
{
	struct stream_tx *tx = &s->state->tx;
	int err;

	if (!(base_load(&tx->due) & STREAM_DUE_FIN))
		return 0;
	/* A device's end is that of both directions: the peer is to say DISCONNECT before it */
	if (s->mem.native && !(base_load(&s->state->ends) & STREAM_OUT_ENDED))
		return -EAGAIN;
	err = s->rnic->shutdown(&s->mem, stream_fd(s));
	BASE_POINT(stream_push_finished);
	if (err != -EAGAIN)
		__atomic_and_fetch(&tx->due, ~STREAM_DUE_FIN, __ATOMIC_ACQ_REL);
	return err;
}

/* An initiator's first words are its RTR and a window, and go in one segment */
static bool is_first(struct stream *s)
{
	return s->initiator && stream_has(s, STREAM_FEATURE_INLINE) &&
	       base_load(&s->state->tx.due) & STREAM_DUE_GRANT && grants(s) && !stream_has_more(s);
}

/*
 * What the protocol owes. An answer that the peer has no right to is a fault found in sending: no
 * input may come behind it to tell of the end.
 */
static int owed_flush(struct stream *s)
{
	struct rnic_stream_info info;
	int err;

	if (!s->rnic->owes(&s->mem) || is_first(s))
		return 0;
	err = s->rnic->flush(&s->mem, stream_fd(s));
	if (!stream_has(s, STREAM_FEATURE_ONESIDED))
		return err;
	s->rnic->info(&s->mem, &info);
	if (info.state == RNIC_STREAM_BROKEN && info.fault && !info.fault_by_peer)
		stream_break(s, EPROTO);
	return err;
}

int stream_push(struct stream *s)
{
	static int (*const parts[])(struct stream * s) = { push_owed,		push_held,
							   stream_message_push, push_grants,
							   stream_jobs_push,	push_ends };
	int err;

	if (!stream_is_open(s) || stream_is_foreign(s) || stream_is_shut_here(s))
		return -EAGAIN;
	err = owed_flush(s);
	stream_blocked_note(s, err == -EAGAIN);
	if (err && err != -EAGAIN)
		stream_post_failed(s, err);
	for (unsigned int i = 0; i < base_array_size(parts) && !err; i++)
		if (!(base_load(&s->state->ends) & STREAM_OUT_ENDED))
			err = parts[i](s);
	if (err == -EAGAIN)
		push_around(s); /* an error of its own has ended the sending side */
	return err == -EAGAIN ? err : push_fin(s);
}

bool stream_push_wanted(const struct stream *s)
{
	const struct stream_tx *tx = &s->state->tx;

	return base_load(&tx->hold_end) || base_load(&tx->owed) || stream_message_left(s) ||
	       stream_due(s) || stream_grant_due(s) || stream_jobs_due(s) || s->rnic->owes(&s->mem);
}

int stream_push_first(struct stream *s)
{
	int err = 0;

	if (stream_is_shut_here(s))
		return -EAGAIN;
	if (base_load(&s->state->tx.blocked) || stream_push_wanted(s))
		err = stream_push(s);
	/* The end may have gone just now */
	return !err && stream_out_ended(s) ? -EPIPE : err;
}
