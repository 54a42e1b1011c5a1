/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads of a program: what waits for it, and what the transport has.
 */
#include "stream/life/life.h"

#include <errno.h>

#include "stream/cursor.h"

/*
 * Nothing was there: will there ever be? Somebody else may have taken in the last bytes since, and
 * the end behind them
 */
static ssize_t nothing(struct stream *s)
{
	const struct stream_rx *rx = &s->state->rx;
	uint32_t there = base_load(&s->state->error);
	int err = there && there != EPIPE ? stream_take_error(s) : 0;
	bool over = base_load(&s->state->ends) & (STREAM_IN_ENDED | STREAM_SHUT_RD);
	uint64_t left = base_load(&rx->delivered) - base_load(&rx->consumed);

	if (err)
		return -err;
	/* A look that passed over an urgent byte has not taken it */
	if (left)
		stream_urgent_levels(s, &left);
	return over && !left ? 0 : -EAGAIN;
}

ssize_t stream_recv(struct stream *s, const struct iovec *iov, int n, int flags)
{
	uint64_t before = stream_edges(s);
	size_t taken, len;
	bool message, mark;
	int err = stream_is_open(s) ? 0 : stream_progress(s);

	if (err == -EAGAIN && base_load(&s->state->ends) & STREAM_SHUT_RD)
		return 0;
	if (err)
		return err == -EAGAIN || err == -ENOMSG ? err : nothing(s);
	if (stream_is_foreign(s))
		return -EXDEV;
	if (stream_rx_sleeps(s))
		return nothing(s);
	stream_rx_lock(s);
	taken = stream_rx_agrees(s) ? stream_bytes_take(s, iov, n, flags) : 0;
	/* The peer's end may be among what the transport still has: then nothing is granted */
	if (stream_grant_due(s))
		stream_drain(s, NULL, NULL);
	message = !taken && stream_message_next(s, &len);
	mark = !taken && flags & STREAM_STOP && stream_urgent_next(s);
	stream_rx_unlock(s);
	stream_push_due(s);
	stream_tell(s, before);
	if (message)
		return -EBADMSG;
	if (mark && stream_iov_len(iov, n))
		return -ESTALE;
	return taken || !stream_iov_len(iov, n) ? (ssize_t)taken : nothing(s);
}

size_t stream_readable(struct stream *s)
{
	bool in_line = base_load(&s->state->urgent.in_line);
	uint32_t over;
	size_t len;

	if (in_line && base_load(&s->state->rx.message_first) == STREAM_NO_MESSAGE)
		return stream_message_limit(s);
	if (base_load(&s->state->rx.message_first) == STREAM_NO_MESSAGE || stream_rx_sleeps(s))
		return stream_urgent_reach(s, true, &over);
	stream_rx_lock(s);
	if (!stream_message_next(s, &len))
		len = in_line ? stream_message_limit(s) : stream_urgent_reach(s, true, &over);
	stream_rx_unlock(s);
	return len;
}
