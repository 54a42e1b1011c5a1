/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Urgent data between two Warpsock ends (docs/stream-wire.md), as Linux has it for TCP.
 *
 * Out: the last byte of a message is urgent, which a bit of that message says: the byte and what
 * it is arrive together. Some bytes of the window are left to messages with an urgent one, so
 * that it arrives also where the reader has stopped reading. What is held before the connection
 * is open has one place for an urgent byte, since a later one would take its rank anyway.
 *
 * In: an urgent byte lies among the others. It has a copy in the state, for recv(MSG_OOB), and
 * its place stops a read once. A read that begins there passes over it, or takes it like others
 * with SO_OOBINLINE. A later one takes the rank of an earlier one, which is an ordinary byte then,
 * unless the reader stands at it. The place lies in memory that processes share: it is only ever
 * compared with what is there, and any value of it makes a read shorter at most.
 */
#include "stream/protocol/protocol.h"

#include <errno.h>
#include <sys/socket.h>

/* Bytes from @consumed on to the urgent one; more than there are: there is none */
static uint64_t ahead(const struct stream *s, uint64_t consumed)
{
	const struct stream_urgent *u = &s->state->urgent;

	return base_load(&u->octet) ? base_load(&u->at) - consumed : UINT64_MAX;
}

static bool is_inline(const struct stream *s)
{
	return base_load(&s->state->urgent.in_line);
}

bool stream_urgent_next(const struct stream *s)
{
	const struct stream_rx *rx = &s->state->rx;
	uint64_t consumed = base_load(&rx->consumed);

	return base_load(&rx->delivered) != consumed && !ahead(s, consumed);
}

/* As Linux: of two that wait, the first is left out where the reader stands at it */
static void earlier_leave(struct stream *s)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t consumed = base_once(rx->consumed);

	if (!stream_urgent_next(s) || is_inline(s))
		return;
	stream_bytes_drop(s, consumed, consumed + 1);
	base_store(&rx->consumed, consumed + 1);
}

void stream_urgent_arrive(struct stream *s)
{
	struct stream_urgent *u = &s->state->urgent;
	uint64_t at = s->state->rx.placed - 1;
	uint8_t octet;

	if (base_load(&s->state->ends) & STREAM_CLOSED)
		return;
	earlier_leave(s);
	stream_bytes_get(s, at, &octet, 1);
	base_store(&u->octet, 0);
	base_store(&u->at, at);
	base_store(&u->octet, STREAM_URGENT_WAITS | octet);
	if (s->urgent)
		s->urgent(s->ctx);
}

uint64_t stream_urgent_reach(const struct stream *s, bool stop, uint32_t *over)
{
	uint64_t left = stream_message_limit(s),
		 before = ahead(s, base_load(&s->state->rx.consumed));

	*over = 0;
	if (before >= left)
		return left;
	if (before || stop)
		return before;
	*over = !is_inline(s);
	return left - *over;
}

void stream_urgent_passed(struct stream *s)
{
	struct stream_urgent *u = &s->state->urgent;

	if (base_load(&u->octet) && base_load(&u->at) < base_load(&s->state->rx.consumed))
		base_store(&u->octet, 0);
}

unsigned int stream_urgent_levels(const struct stream *s, uint64_t *there)
{
	uint32_t octet = base_load(&s->state->urgent.octet);
	uint64_t before = ahead(s, base_load(&s->state->rx.consumed));
	unsigned int levels = octet & STREAM_URGENT_WAITS ? STREAM_URGENT : 0;

	if (before && before < *there)
		levels |= STREAM_BOUND;
	if (!before)
		levels |= STREAM_AT_MARK;
	if (!before && *there && !is_inline(s))
		--*there;
	return levels;
}

/* rx lock. As Linux: the end of the connection otherwise than in order takes it away */
int stream_urgent_take(struct stream *s, uint8_t *octet, int flags)
{
	struct stream_urgent *u = &s->state->urgent;
	uint32_t here = base_load(&u->octet);

	if (is_inline(s) || !(here & STREAM_URGENT_WAITS))
		return -EINVAL;
	if (base_load(&u->lost))
		return -ENOTCONN;
	*octet = (uint8_t)here;
	if (!(flags & MSG_PEEK))
		base_store(&u->octet, STREAM_URGENT_TAKEN);
	return 1;
}
