/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a waiter calls: start-up as far as it goes, input, and what is due.
 */
#include "stream/life/life.h"

#include <errno.h>

#include "base/point.h"

/* The transport may have room again */
static void unblock(struct stream *s)
{
	if (!base_load(&s->state->tx.blocked) || !s->rnic->carrier->room(&s->mem, stream_fd(s)))
		return;
	stream_tx_lock(s);
	stream_push(s);
	BASE_POINT(stream_rsock_unblocked);
	stream_tx_unlock(s);
}

/*
 * Who dies in sending may have entered bytes in the books that never left. No grant comes for
 * them, so who waits for room is to find that out himself
 */
static void sender_look(struct stream *s)
{
	if (!base_load(&s->state->tx_lock.word) || stream_is_foreign(s) ||
	    stream_levels(s, NULL) & STREAM_WRITABLE)
		return;
	stream_tx_lock(s);
	stream_tx_unlock(s);
}

static int start(struct stream *s)
{
	if (s->mem.native && stream_is_foreign(s))
		return -EXDEV;
	return stream_with_both(s, stream_start);
}

int stream_progress(struct stream *s)
{
	uint64_t before = stream_edges(s);
	bool open = stream_is_open(s);
	int err = open ? 0 : start(s);

	/* Another process may have opened it */
	if (base_load(&s->counted) && stream_is_open(s) && !stream_write_retry_waits(s))
		stream_start_leave(s);
	if (!err) {
		stream_pump(s);
		stream_write_retry_look(s);
		unblock(s); /* of what was sent, the input may tell */
		sender_look(s);
	}
	/* That it is open somebody may wait for, edge or not */
	stream_tell(s, !err && !open ? ~stream_edges(s) : before);
	return err;
}

bool stream_owes(struct stream *s)
{
	const struct stream_tx *tx = &s->state->tx;

	if (base_load(&tx->hold_end))
		return true;
	if (base_load(&s->state->ends) & STREAM_OUT_ENDED)
		return false;
	if (!stream_is_open(s))
		return base_load(&tx->due);
	return stream_push_wanted(s) || stream_write_retry_waits(s);
}
