/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A probe's turn.
 *
 * Connections to one peer may begin at once, and of a peer that nobody knows one Request is enough
 * to know it. Who made the stream says which one asks; the others wait here, connected and with
 * nothing sent, until that is answered: then they ask too, or are plain TCP over the connection
 * that they have.
 *
 * A peer that speaks meanwhile has not waited for a Request, so it is plain. Whoever holds writes
 * does not wait: its listener is in its own process, and may come to that connection first.
 */
#include "stream/life/life.h"

#include <errno.h>
#include <poll.h>

#include "base/sockutil.h"

/* A device's connection does not exist before its Request */
static bool peer_speaks(const struct stream *s)
{
	return !s->mem.native && base_sock_ready(stream_fd(s), POLLIN);
}

static int wait_until(struct stream *s, uint64_t when)
{
	base_store(&s->state->start_events, POLLIN);
	base_store(&s->state->start_deadline, when);
	stream_start_join(s);
	return -EAGAIN;
}

int stream_single_flight(struct stream *s)
{
	uint64_t when;
	int err;

	/* Apart: its peer is asked by TCP next, and this says nothing of that */
	if (!s->probe || !s->may_probe || s->state->hold || stream_is_apart(s))
		return 0;
	err = s->may_probe(s->ctx, stream_start_limit(s), &when);
	if (err == -EAGAIN && !peer_speaks(s))
		return wait_until(s, when);
	stream_undecided_end(s);
	return err == -EAGAIN ? -ENOMSG : err;
}
