/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a waiter may know: levels computed from the state, and what to ask the kernel for so
 * that they can change.
 *
 * The kernel's own idea of the socket is of no use here: input may be grants alone, its room is
 * not the ring's, a SHUTDOWN is no FIN. It only wakes. No lock is taken: a level may be out of
 * date when it is told, as it may be with any socket.
 */
#include "stream/life/life.h"

#include <poll.h>

#include "base/bits.h"

static unsigned int stage_levels(const struct stream *s, uint32_t ends)
{
	switch (base_load(&s->state->stage)) {
	case STREAM_OPEN:
		return STREAM_STARTED | stream_open_levels(s, ends);
	case STREAM_FAILED:
		return STREAM_STARTED | STREAM_READABLE | STREAM_WRITABLE | STREAM_RDHUP |
		       STREAM_HUP;
	default:
		return stream_undecided_levels(s, ends);
	}
}

unsigned int stream_levels(struct stream *s, struct stream_edges *edges)
{
	struct stream_state *st = s->state;
	unsigned int levels;

	/* Edges first: what comes up after this look has a later number */
	if (edges)
		*edges = (struct stream_edges){ base_load(&st->in_edge), base_load(&st->out_edge) };
	levels = stage_levels(s, base_load(&st->ends));
	/* Whom each call refuses must not sleep for what only the owner will ever hear of */
	if (base_load(&st->error) || stream_is_anothers(s))
		levels |= STREAM_ERROR | STREAM_READABLE | STREAM_WRITABLE;
	return levels;
}

size_t stream_lowat(struct stream *s)
{
	return base_min(base_load(&s->state->lowat), stream_half(s));
}

/* Never more than can be there while nothing is read: the half that is granted */
void stream_set_lowat(struct stream *s, size_t octets)
{
	uint64_t before = stream_edges(s);
	size_t lowat = base_max((size_t)1, base_min(octets, (size_t)stream_half(s)));

	base_store(&s->state->lowat, (uint32_t)lowat);
	__atomic_add_fetch(&s->state->in_edge, 1, __ATOMIC_ACQ_REL);
	stream_tell(s, before);
}

/* Nothing, before anybody has looked */
static short start_wait(const struct stream *s)
{
	short events = base_load(&s->state->start_events) & (POLLIN | POLLOUT);

	return events ? events : POLLIN;
}

int stream_wait_fd(const struct stream *s)
{
	return s->carrier >= 0 ? s->carrier : stream_fd(s);
}

struct pollfd stream_pollfd(struct stream *s, unsigned int wanted)
{
	short events = stream_wait_events(s, wanted);

	return (struct pollfd){ events ? stream_wait_fd(s) : -1, events, 0 };
}

/* A device's descriptor is readable, whatever happens; to others it says nothing */
static short native_wait(const struct stream *s)
{
	return base_load(&s->state->ends) & STREAM_DRY || stream_is_foreign(s) ? 0 : POLLIN;
}

short stream_wait_events(struct stream *s, unsigned int wanted)
{
	const struct stream_state *st = s->state;

	if (s->mem.native)
		return native_wait(s);
	if (!stream_is_open(s) && base_load(&st->late) && wanted & STREAM_WRITABLE)
		return POLLIN | POLLOUT;
	if (base_load(&st->stage) == STREAM_AGAIN)
		return (short)(base_load(&st->start_events) & (POLLIN | POLLOUT));
	if (!stream_is_open(s))
		return start_wait(s);
	if (base_load(&st->ends) & STREAM_DRY)
		return 0;
	return base_load(&st->tx.blocked) ? POLLIN | POLLOUT : POLLIN;
}
