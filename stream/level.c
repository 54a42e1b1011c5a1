/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a waiter may know: levels computed from the state, and what to ask the kernel for so
 * that they can change.
 *
 * The kernel's own idea of the socket is of no use here: input may be grants alone, its room is
 * not the ring's, a SHUTDOWN is no FIN. It only wakes. No lock is taken: a level may be out of
 * date when it is told, as it may be with any socket.
 */
#include "stream/rsock.h"

#include <poll.h>

#include "base/sockutil.h"

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

bool stream_is_blocked(const struct stream *s)
{
	if (!base_load(&s->state->tx.blocked))
		return false;
	return !s->mem.native || !s->rnic->carrier->room(&s->mem, stream_fd(s));
}

static unsigned int open_levels(const struct stream *s, uint32_t ends)
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
	 * open, for programs that wait for input take that for an error and leave the octets
	 * unread.
	 */
	if (ends & (STREAM_IN_ENDED | STREAM_SHUT_RD) &&
	    (ends & (STREAM_SHUT_WR | STREAM_LOST) || base_load(&st->broken)))
		levels |= STREAM_HUP;
	return levels;
}

static unsigned int stage_levels(const struct stream *s, uint32_t ends)
{
	switch (base_load(&s->state->stage)) {
	case STREAM_OPEN:
		return STREAM_STARTED | open_levels(s, ends);
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
