/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the state of a stream says at a glance. No lock, but where one is named.
 */
#ifndef STREAM_STATE_FACTS_H
#define STREAM_STATE_FACTS_H

#include "base/bits.h"
#include "stream/local.h"
#include "stream/state/state.h"

/* What we have to offer to another Warpsock end */
#define STREAM_FEATURES                                                              \
	(STREAM_FEATURE_CUT | STREAM_FEATURE_ABORT | STREAM_FEATURE_INLINE |         \
	 STREAM_FEATURE_MESSAGES | STREAM_FEATURE_ONESIDED | STREAM_FEATURE_URGENT | \
	 STREAM_FEATURE_HELD)
#define STREAM_ONESIDED_DEPTH 16
#define STREAM_ERROR_MAX 4095u

/*
 * A lock. Is the descriptor of this process closed, or about to be? Another process may go on with
 * the connection, and a thread here that comes late is not to end it
 */
static inline bool stream_is_shut_here(const struct stream *s)
{
	return !s->mem.native && base_load(&s->shut);
}

/* Edges as they were, to see whether a call has moved them */
static inline uint64_t stream_edges(const struct stream *s)
{
	return (uint64_t)base_load(&s->state->in_edge) << 32 | base_load(&s->state->out_edge);
}

static inline bool stream_has(const struct stream *s, uint32_t feature)
{
	return base_load(&s->state->features) & feature;
}

static inline uint32_t stream_half(const struct stream *s)
{
	return s->ring / 2;
}

static inline bool stream_is_open(const struct stream *s)
{
	return base_load(&s->state->stage) == STREAM_OPEN;
}

/* Does nothing more leave, by our word or the peer's? */
static inline bool stream_out_ended(const struct stream *s)
{
	return base_load(&s->state->ends) & (STREAM_OUT_ENDED | STREAM_SHUT_WR);
}

/* What is due and may go: a window waits for the peer's first word */
static inline uint32_t stream_due(const struct stream *s)
{
	uint32_t due = base_load(&s->state->tx.due);

	return base_load(&s->state->may_send) ? due : due & ~(uint32_t)STREAM_DUE_GRANT;
}

/* Are writes taken before the connection can send? When TCP is connected, as the kernel does */
static inline bool stream_holds(const struct stream *s)
{
	return base_load(&s->state->hold) && base_load(&s->state->stage) != STREAM_CONNECTING;
}

/* And has the hold room? */
static inline bool stream_hold_room(const struct stream *s)
{
	return stream_holds(s) && base_load(&s->state->tx.hold_end) < STREAM_HOLD;
}

/* A peer that such a device does not reach may be there by TCP, and that is not to be late */
static inline bool stream_is_apart(const struct stream *s)
{
	return s->initiator && s->mem.native && s->mem.native->apart;
}

/* A user message that was accepted has not gone wholly */
static inline bool stream_message_left(const struct stream *s)
{
	return base_load(&s->state->tx.message_end);
}

/* rx lock. Do bytes wait where they were received? */
static inline bool stream_spans_wait(const struct stream *s)
{
	return base_once(s->state->rx.span_first) != base_once(s->state->rx.span_end);
}

#endif
