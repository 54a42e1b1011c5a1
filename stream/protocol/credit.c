/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What each end may send: credits for messages, the peer's ring or window for bytes.
 *
 * DATA never spends the last credits: they are for messages that credits do not count but
 * receives do (docs/stream-wire.md, receive window). Credits count messages that have arrived, not
 * those that were read: a message takes nothing of ours but its bytes, which the ring counts. After
 * the peer's end nothing is granted: a closed socket would answer with a reset.
 */
#include "stream/protocol/protocol.h"

/* --- theirs: what we may send --- */

/* Bytes of a Write's FPDU that a Send's has not: the longer header, and the message */
#define INLINE_LESS (DDP_UNTAGGED_LEN - DDP_TAGGED_LEN + RS_MSG_LEN)

/* Bytes of the window that only messages with an urgent byte may use */
#define RESERVE 16u
/* No more than this part of a small window */
#define RESERVE_PART 64

uint64_t stream_window_room(const struct stream *s)
{
	uint64_t placed = base_load(&s->state->tx.placed);

	return base_load(&s->state->rx.window) - placed;
}

uint32_t stream_segment(const struct stream *s)
{
	return s->rnic->segment(&s->mem, 0) - INLINE_LESS;
}

uint64_t stream_urgent_room(const struct stream *s, bool urgent)
{
	uint64_t room = stream_window_room(s), kept = 0;

	if (!urgent && stream_has(s, STREAM_FEATURE_URGENT))
		kept = base_min((uint64_t)RESERVE, s->state->first_window / RESERVE_PART);
	return room - base_min(room, kept);
}

static uint16_t credits_left(const struct stream *s)
{
	return (uint16_t)(base_load(&s->state->rx.limit) - base_load(&s->state->tx.sent));
}

bool stream_may_data(const struct stream *s)
{
	const struct stream_state *st = s->state;

	if (stream_has(s, STREAM_FEATURE_INLINE))
		return stream_urgent_room(s, false);
	return base_load(&st->tx.filled) != base_load(&st->rx.entries) &&
	       credits_left(s) > st->peer.reserve;
}

bool stream_may_message(const struct stream *s)
{
	return stream_has(s, STREAM_FEATURE_INLINE) || credits_left(s) > s->state->peer.reserve;
}

/* --- ours: what the peer may send --- */

int stream_credit_take(struct stream *s)
{
	struct stream_state *st = s->state;
	struct stream_rx *rx = &st->rx;

	if (rx->got == base_load(&st->tx.limit))
		return stream_refuse("sent more messages than it has credit for");
	base_store(&rx->got, (uint16_t)(rx->got + 1));
	return 0;
}

bool stream_grants(const struct stream *s)
{
	return !(base_load(&s->state->ends) & (STREAM_IN_ENDED | STREAM_CLOSED));
}

bool stream_ring_due(const struct stream *s)
{
	const struct stream_state *st = s->state;

	return base_load(&st->tx.granted) - base_load(&st->rx.consumed) <= stream_half(s);
}

static bool limit_due(const struct stream *s)
{
	const struct stream_state *st = s->state;
	uint16_t left = (uint16_t)(base_load(&st->tx.limit) - base_load(&st->rx.got));

	return left <= s->credits / 2;
}

/* Whether there is anything to grant comes first, since mostly there is nothing */
bool stream_grant_due(const struct stream *s)
{
	return (stream_ring_due(s) || (!stream_has(s, STREAM_FEATURE_INLINE) && limit_due(s))) &&
	       stream_is_open(s) && base_load(&s->state->may_send) && stream_grants(s);
}
