/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A connection that is not decided: TCP is connected, and the start-up frames are under way.
 *
 * Two times stand in the state. Until decide_deadline the program waits for the decision. Behind
 * it the program gets what TCP gives at once: a client in mode on, whose peer's program is busy,
 * writes into the hold; a server in mode auto may speak plainly. At start_deadline start-up has
 * failed, or its next step is due (single_flight.c, again.c, write_retry.c).
 *
 *	role		writable		start-up fails
 *	initiator	from decide_deadline	at start_deadline: ETIMEDOUT
 *	responder only	at once, into the hold	at start_deadline: the peer is reset
 *	responder	from decide_deadline,	a piece of a key without more: plain TCP;
 *			plainly			a piece of a Request without more: reset
 *
 * An initiator that was made with a hold is writable at once, too.
 */
#include "stream/life/life.h"

#include <errno.h>
#include <poll.h>
#include <wire/iwarp.h>

#include "base/clock.h"
#include "base/point.h"
#include "base/sockutil.h"

/* A closed connection's peer is waited for so long: its frame may have to be sent again by TCP */
#define CLOSED_LIMIT (2 * BASE_NS_PER_S)
#define CLOSED_RTTS 4

static unsigned int starting; /* atomic */

unsigned int stream_starting(void)
{
	return base_load(&starting);
}

uint64_t stream_wait_deadline(struct stream *s)
{
	const struct stream_state *st = s->state;

	return base_min(base_load(&st->start_deadline), base_load(&st->decide_deadline));
}

void stream_start_join(struct stream *s)
{
	if (stream_wait_deadline(s) == BASE_NEVER)
		return;
	if (!__atomic_exchange_n(&s->counted, true, __ATOMIC_ACQ_REL))
		__atomic_add_fetch(&starting, 1, __ATOMIC_ACQ_REL);
}

void stream_start_leave(struct stream *s)
{
	if (__atomic_exchange_n(&s->counted, false, __ATOMIC_ACQ_REL))
		__atomic_sub_fetch(&starting, 1, __ATOMIC_ACQ_REL);
}

static uint64_t with_rtts(const struct stream *s, uint64_t limit, unsigned int rtts)
{
	return rtts ? base_max(limit, rtts * base_sock_rtt(stream_fd(s))) : limit;
}

uint64_t stream_start_limit(const struct stream *s)
{
	uint64_t limit = s->start_limit;

	if (limit && stream_is_apart(s))
		limit = base_min(limit, s->apart_limit);
	return limit ? with_rtts(s, limit, s->start_rtts) : 0;
}

static uint64_t decide_limit(const struct stream *s)
{
	uint64_t limit = s->decide_limit ? with_rtts(s, s->decide_limit, s->decide_rtts) : 0;

	return s->decide_max ? base_min(limit, s->decide_max) : limit;
}

static void start_until(struct stream *s, uint64_t limit)
{
	base_store(&s->state->start_deadline, base_deadline(base_now(), limit));
	stream_start_join(s);
}

/* A device has the Request already when its connection is accepted */
void stream_undecided_begin(struct stream *s)
{
	uint64_t start = stream_start_limit(s), decide = decide_limit(s);

	if (start && (s->initiator || (s->only && !s->mem.native)))
		start_until(s, start);
	if (decide && !base_load(&s->state->hold))
		base_store(&s->state->decide_deadline, base_deadline(base_now(), decide));
	stream_start_join(s);
}

/* A responder that may turn out to be plain, as far as anybody knows */
static bool may_be_plain(const struct stream *s)
{
	return !s->initiator && !s->only && !base_load(&s->state->heard);
}

static bool is_decidable(const struct stream *s)
{
	return base_load(&s->state->decide_deadline) == BASE_NEVER;
}

/* --- a piece of a key --- */

static void lowat_restore(struct stream *s)
{
	struct stream_state *st = s->state;

	if (st->lowat_was)
		base_sock_set_lowat(stream_fd(s), (int)st->lowat_was);
	st->lowat_was = st->lowat_now = 0;
}

static void lowat_raise(struct stream *s, uint32_t octets)
{
	struct stream_state *st = s->state;

	if (!st->lowat_was)
		st->lowat_was = (uint32_t)base_sock_lowat(stream_fd(s));
	st->lowat_now = octets;
	base_sock_set_lowat(stream_fd(s), (int)octets);
}

/*
 * A key that has come in part must not make a waiter spin: the kernel is to wake it for more than
 * that. Some of the bytes that are there may have come after the last look, and then they would
 * wake nobody.
 */
bool stream_undecided_again(struct stream *s)
{
	int unread = s->initiator ? 0 : base_sock_unread(stream_fd(s));
	struct stream_state *st = s->state;

	if (unread <= 0 || !(base_load(&st->start_events) & POLLIN)) {
		lowat_restore(s);
		return false;
	}
	/* A whole key: it is taken in */
	if (unread >= MPA_KEY_LEN)
		return true;
	if (st->lowat_now == (uint32_t)unread + 1)
		return false;
	lowat_raise(s, (uint32_t)unread + 1);
	if (may_be_plain(s))
		start_until(s, decide_limit(s));
	return true;
}

/* --- what the time brings --- */

/* The first bytes of a Request are taken in: what the peer is, is known */
static void heard_note(struct stream *s)
{
	struct rnic_stream_info info;

	if (s->initiator || base_load(&s->state->heard))
		return;
	s->rnic->info(&s->mem, &info);
	if (!info.heard)
		return;
	base_store(&s->state->heard, 1);
	if (!s->only && s->start_limit)
		start_until(s, s->start_limit);
}

static void decide_look(struct stream *s)
{
	struct stream_state *st = s->state;

	if (!base_deadline_passed(base_load(&st->decide_deadline), base_now()))
		return;
	base_store(&st->decide_deadline, BASE_NEVER);
	if (s->initiator)
		base_store(&st->hold, 1);
	BASE_POINT(stream_undecided_decided);
	__atomic_add_fetch(&st->out_edge, 1, __ATOMIC_ACQ_REL);
}

/* A plain writer waits for the kernel's room, and each time something happens there may be some */
static void room_note(struct stream *s)
{
	if (base_load(&s->state->late) && base_sock_ready(stream_fd(s), POLLOUT) & POLLOUT)
		__atomic_add_fetch(&s->state->out_edge, 1, __ATOMIC_ACQ_REL);
}

/* Our end cannot be told to a peer that says nothing, unless it is taken for plain */
static bool has_ended_unheard(const struct stream *s)
{
	return may_be_plain(s) && is_decidable(s) && !s->state->lowat_now &&
	       base_load(&s->state->ends) & STREAM_SHUT_WR;
}

int stream_undecided_look(struct stream *s)
{
	if (base_load(&s->state->stage) != STREAM_STARTING)
		return -EAGAIN;
	heard_note(s);
	decide_look(s);
	if (base_deadline_passed(base_load(&s->state->start_deadline), base_now()))
		return may_be_plain(s) ? -ENOMSG : -ETIMEDOUT;
	if (has_ended_unheard(s))
		return -ENOMSG;
	room_note(s);
	return -EAGAIN;
}

void stream_undecided_end(struct stream *s)
{
	lowat_restore(s);
	base_store(&s->state->decide_deadline, BASE_NEVER);
	base_store(&s->state->start_deadline, BASE_NEVER);
	stream_start_leave(s);
}

void stream_undecided_hurry(struct stream *s)
{
	uint64_t limit;

	if (base_load(&s->state->stage) != STREAM_STARTING || base_load(&s->state->tx.hold_end))
		return;
	limit = base_deadline(base_now(), with_rtts(s, CLOSED_LIMIT, CLOSED_RTTS));
	if (base_load(&s->state->start_deadline) > limit)
		base_store(&s->state->start_deadline, limit);
	stream_start_join(s);
}

/* --- levels --- */

/* A responder's bytes are TCP's once it has spoken plainly */
static bool is_writable(const struct stream *s)
{
	if (stream_holds(s))
		return stream_hold_room(s);
	if (!may_be_plain(s))
		return false;
	if (base_load(&s->state->late))
		return base_sock_ready(stream_fd(s), POLLOUT);
	return is_decidable(s);
}

unsigned int stream_undecided_levels(const struct stream *s, uint32_t ends)
{
	unsigned int levels = ends & STREAM_SHUT_RD ? STREAM_READABLE | STREAM_RDHUP : 0;

	/* Else a connect() is under way, which waits for that level */
	if (base_load(&s->state->stage) == STREAM_STARTING && ends & STREAM_SHUT_WR)
		levels |= STREAM_WRITABLE | (ends & STREAM_SHUT_RD ? STREAM_HUP : 0);
	else if (is_writable(s))
		levels |= STREAM_WRITABLE;
	return levels;
}
