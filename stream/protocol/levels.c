/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the state of an open connection says to somebody who waits. No lock is taken: a level may be
 * out of date when it is told, as it may be with any socket.
 */
#include "stream/protocol/protocol.h"

#include "base/bits.h"

/*
 * Whoever waits to send may have a message that needs more room than there is. And programs that
 * do not give their sockets O_NONBLOCK rely on TCP's promise that some KiB will not block: room
 * for a quarter of the peer's window comes up in any case.
 */
static bool may_send(const struct stream *s)
{
	uint64_t enough = base_max(base_load(&s->state->tx.want), s->state->first_window / 4);

	if (!stream_may_data(s) || stream_jobs_left(s) || stream_message_left(s))
		return false;
	return !stream_has(s, STREAM_FEATURE_INLINE) || stream_window_room(s) >= enough;
}

unsigned int stream_open_levels(const struct stream *s, uint32_t ends)
{
	const struct stream_state *st = s->state;
	uint64_t consumed = base_load(&st->rx.consumed);
	uint64_t there = base_load(&st->rx.delivered) - consumed;
	bool over = ends & (STREAM_IN_ENDED | STREAM_SHUT_RD);
	unsigned int levels = 0;
	uint64_t all = there;

	if (base_load(&st->urgent.octet))
		levels |= stream_urgent_levels(s, &there);
	if (there >= base_min(base_load(&st->lowat), stream_half(s)) || over ||
	    base_load(&st->rx.message_first) != STREAM_NO_MESSAGE)
		levels |= STREAM_READABLE;
	else if (all)
		levels |= STREAM_SOME;
	if (base_load(&st->rx.message_first) != STREAM_NO_MESSAGE)
		levels |= STREAM_BOUND;
	if (ends & (STREAM_OUT_ENDED | STREAM_SHUT_WR))
		levels |= STREAM_WRITABLE;
	else if (base_load(&st->may_send) ? !stream_is_blocked(s) && may_send(s)
					  : stream_hold_room(s))
		levels |= STREAM_WRITABLE;
	if (stream_jobs_over(s))
		levels |= STREAM_ERROR;
	if (ends & (STREAM_IN_ENDED | STREAM_SHUT_RD))
		levels |= STREAM_RDHUP;
	/*
	 * The peer's DISCONNECT is what a FIN is to a TCP socket: no hang-up while our side is
	 * open, for programs that wait for input take that for an error and leave the bytes
	 * unread.
	 */
	if (ends & (STREAM_IN_ENDED | STREAM_SHUT_RD) &&
	    (ends & (STREAM_SHUT_WR | STREAM_LOST) || base_load(&st->broken)))
		levels |= STREAM_HUP;
	return levels;
}

/* Another process's look may have stopped; a process that may not look is not told */
bool stream_has_more(const struct stream *s)
{
	return base_load(&s->state->rx.more) && !(base_load(&s->state->ends) & STREAM_DRY) &&
	       !stream_is_foreign(s);
}
