/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Bytes in: from the transport to a reader's buffer, or to where they wait for one.
 *
 * Draining takes in all that the transport has; it never waits for the program to read, for the
 * peer's grants come the same way. Bytes are bounded by the ring. What brings none is not: so a
 * look ends behind a MiB or a thousand FPDUs, and rx.more says that it did. A peer that sends
 * nothing else, and a lot of it, is ended (STREAM_FLOODED). When a reader waits and no older
 * bytes do, new ones are copied once, into its buffer. Those among them that no DATA message
 * has told of by the end of the drain are not the program's yet and go back to chunks: the next
 * call may bring another buffer.
 *
 * Grants are sent after draining, never before (docs/streams.md, close): not while more is
 * there, for the peer's end may be among it.
 */
#include "stream/protocol/protocol.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/bits.h"
#include "base/point.h"
#include "stream/cursor.h"

/* Of what a reader's buffer took, only what DATA has told of is delivered */
static void target_settle(struct stream *s, struct stream_cursor c, struct stream_target *t)
{
	struct stream_rx *rx = &s->state->rx;
	size_t told = base_min(t->filled, rx->delivered - rx->consumed);
	uint64_t at = rx->consumed + told;
	size_t left = t->filled - told, len;
	char *p;

	stream_cursor_skip(&c, told);
	for (; left && (len = stream_cursor_next(&c, left, &p)); left -= len, at += len)
		stream_chunks_put(s, at, p, len);
	t->filled = told;
	BASE_POINT(stream_recv_settled);
	base_store(&rx->consumed, rx->consumed + told);
}

/* What the program is told: TCP's time-outs for what they are, anything else is a reset */
static int error_told(int err)
{
	switch (-err) {
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return -err;
	default:
		return ECONNRESET;
	}
}

/*
 * A device says nothing of how it ended, and what its program was told has left may not have: so no
 * end without a message is a clean one where either end is a device's. Of the features such a peer
 * has not INLINE; rsockets, which has none, ends without a message where its program ends so
 */
static bool may_be_cut(const struct stream *s)
{
	return s->mem.native ||
	       (base_load(&s->state->features) && !stream_has(s, STREAM_FEATURE_INLINE));
}

/*
 * A peer that ends in order has said DISCONNECT. One that was killed may have taken bytes of its
 * program's, which it held until it could send: so it says when they have gone, or that there are
 * none. Of an older peer only this is known: before its first message it may have held some
 */
static bool may_have_held(const struct stream *s)
{
	if (stream_has(s, STREAM_FEATURE_HELD))
		return !s->state->rx.settled;
	return !s->initiator && !base_load(&s->state->may_send);
}

/* The transport's end: a Write without its DATA, or an end in the middle, is a broken connection */
static int transport_ended(struct stream *s, int err)
{
	struct stream_state *st = s->state;
	bool cut = st->rx.placed != st->rx.delivered;

	if (base_load(&st->ends) & STREAM_DRY)
		return err ? err : -ENOTCONN;
	/* It may end so when DISCONNECT was said */
	if (!err && (may_be_cut(s) || may_have_held(s)) &&
	    !(base_load(&st->ends) & (STREAM_IN_ENDED | STREAM_SAID)))
		err = -ECONNRESET;
	/* The kernel has no SIGBUS to fear where it receives to */
	stream_memory_judge(s, err == -EFAULT ? -ENOSPC : err);
	if (err || cut) {
		stream_break(s, error_told(err));
		if (!err)
			base_store(&st->broken, STREAM_CUT);
	} else {
		stream_end(s, STREAM_IN_ENDED | STREAM_OUT_ENDED | STREAM_DRY | STREAM_LEFT);
	}
	return err ? err : -ENOTCONN;
}

/* A reader takes in so often what brings it nothing */
#define TURNS 16

/*
 * Bytes from the transport, or what receive() says. Who only waits has to know that the socket
 * is empty; a reader that got something comes back, and is spared the question. *@info: behind it
 */
static ssize_t intake(struct stream *s, struct rnic_sink *sink, bool reader,
		      struct rnic_stream_info *info)
{
	const struct stream_rx *rx = &s->state->rx;
	ssize_t got, sum = 0;
	int turns = TURNS;

	do {
		got = s->rnic->receive(&s->mem, stream_fd(s), sink, reader ? SIZE_MAX : 0);
		sink->sleep = NULL;
		sum += base_max(got, 0);
		s->rnic->info(&s->mem, info);
	} while (got > 0 && reader && !info->more && --turns && rx->delivered == rx->consumed);
	base_store(&s->state->rx.more, got > 0 && (info->more || !turns));
	return sum ? sum : got;
}

/* So many messages that bring nothing, one after the other and in so short a time, are a flood */
#define IDLE_MAX 16384
#define IDLE_TIME 1000000000ull

/*
 * rx lock. What the peer may say for ever, and nobody is served by. Grants are paid for by bytes
 * that have left; and a row that lasts is no flood.
 */
static bool is_flooded(struct stream *s, const struct rnic_stream_info *info)
{
	const struct stream_tx *tx = &s->state->tx;
	struct stream_idle *idle = &s->state->rx.idle;
	uint64_t moved, now;

	idle->row += info->rx_empty - idle->empty;
	idle->empty = info->rx_empty;
	if (!idle->row)
		return false;
	moved = s->state->rx.placed + base_load(&tx->octets) + base_load(&tx->messages);
	now = stream_now();
	if (moved == idle->moved && now - idle->since < IDLE_TIME)
		return idle->row > IDLE_MAX;
	*idle = (struct stream_idle){ .moved = moved, .since = now, .empty = info->rx_empty };
	return false;
}

/*
 * An end, or a reset of which a sender was told just now: it has noted that when it leaves its
 * lock
 */
static ssize_t end_confirm(struct stream *s, const struct rnic_sink *sink)
{
	stream_senders_pass(s);
	return s->rnic->receive(&s->mem, stream_fd(s), sink, 0);
}

int stream_drain(struct stream *s, struct stream_target *target, struct base_recv_sleep *sleep)
{
	struct stream_drain d = { s, target, sleep };
	struct rnic_sink sink = stream_sink(&d);
	struct rnic_stream_info info;
	ssize_t got;

	if (!stream_is_open(s) || base_load(&s->state->ends) & STREAM_DRY || stream_is_shut_here(s))
		return -ENOTCONN;
	if (!stream_rx_agrees(s))
		return -ECONNRESET;
	got = intake(s, &sink, target || sleep, &info);
	if (got > 0 || !sleep)
		__atomic_store_n(&s->drained, true, __ATOMIC_RELAXED);
	if (got == -EAGAIN)
		return 0;
	if (got == 0)
		got = end_confirm(s, &sink);
	if (got <= 0)
		return transport_ended(s, (int)got);
	if (is_flooded(s, &info)) {
		stream_spoilt(s, STREAM_FLOODED);
		return -ECONNRESET;
	}
	if (!base_load(&s->state->may_send) && info.may_send) {
		bool room = stream_hold_room(s);

		base_store(&s->state->may_send, 1);
		if (!room)
			__atomic_add_fetch(&s->state->out_edge, 1, __ATOMIC_ACQ_REL);
	}
	if (info.state != RNIC_STREAM_OPEN)
		return stream_drain(s, target, NULL);
	return 0;
}

/* rx lock. Bytes that wait for their reader */
static size_t waiting_take(struct stream *s, struct stream_cursor c, int flags)
{
	struct stream_rx *rx = &s->state->rx;
	uint64_t consumed = base_once(rx->consumed);
	size_t taken = 0, left, len;
	uint32_t over;
	char *p;

	if (base_load(&rx->delivered) == consumed)
		return 0;
	left = stream_urgent_reach(s, flags & STREAM_STOP, &over);
	for (; left && (len = stream_cursor_next(&c, left, &p)); left -= len, taken += len)
		if (!(flags & MSG_TRUNC))
			stream_bytes_get(s, consumed + over + taken, p, len);
	if (!(flags & MSG_PEEK) && over + taken) {
		stream_bytes_drop(s, consumed, consumed + over + taken);
		BASE_POINT(stream_recv_dropped);
		base_store(&rx->consumed, consumed + over + taken);
		stream_urgent_passed(s);
	}
	return taken;
}

/* What came behind that a reader's buffer was not for: an urgent byte, or one before it */
static size_t behind_take(struct stream *s, struct stream_cursor c, size_t filled, int flags)
{
	const struct stream_rx *rx = &s->state->rx;

	if (rx->delivered == rx->consumed)
		return 0;
	stream_cursor_skip(&c, filled);
	return waiting_take(s, c, filled ? flags | STREAM_STOP : flags);
}

/* rx lock. Bytes that only the transport has yet */
static size_t fresh_take(struct stream *s, struct stream_cursor c, size_t len, int flags)
{
	struct stream_target t = { c, len, 0 };

	if (flags & ~STREAM_STOP || s->state->rx.placed != s->state->rx.consumed) {
		stream_drain(s, NULL, NULL);
		return waiting_take(s, c, flags);
	}
	stream_drain(s, &t, NULL);
	BASE_POINT(stream_recv_drained);
	target_settle(s, c, &t);
	return t.filled + behind_take(s, c, t.filled, flags);
}

/*
 * rx lock. As much as there is, wherever it is: a program may take a short read for the last one
 * before the next event
 */
size_t stream_bytes_take(struct stream *s, const struct iovec *iov, int n, int flags)
{
	size_t len = stream_iov_len(iov, n), taken;
	struct stream_cursor c = { iov, n, 0 };

	if (!len)
		return 0;
	taken = waiting_take(s, c, flags);
	if (taken == len || (!(flags & ~STREAM_STOP) && stream_spare_take(s, taken)))
		return taken;
	if (flags & MSG_PEEK)
		return fresh_take(s, c, len, flags);
	/* Before an urgent byte it is over, whatever comes: a later one may take that out */
	if (taken && stream_urgent_next(s))
		return taken;
	stream_cursor_skip(&c, taken);
	if (taken)
		flags |= STREAM_STOP;
	return taken + fresh_take(s, c, len - taken, flags);
}
