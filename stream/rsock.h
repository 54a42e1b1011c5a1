/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The parts of the rsockets stream to each other. One file is one noun or one direction:
 *	rsock.c    a stream: made, taken down, its table
 *	start.c, undecided.c  from a TCP connection to an open stream; meanwhile
 *	single_flight.c     whether a probe's Request may go out yet
 *	again.c    back to TCP, over a connection more
 *	send.c     octets out: Write and DATA
 *	push.c     what is due: grants, ends
 *	write_retry.c    a peer that overlooks what comes first
 *	recv.c     octets in: drained, handed over
 *	message.c  what the peer's Writes and messages say
 *	chunk.c    octets that wait for their reader
 *	span.c     the same where they were received
 *	extension.c  what two Warpsock ends tell each other at the start
 *	level.c    what a waiter may know
 *	memory.c   the state: made, found again, judged
 *	slab.c     files that hold states: whose cells are whose
 *	file.c     what such a file looks like, and its names
 *	block.c    memory for bytes, while there are any
 *	holder.c   which processes have it
 *	sleep.c    which of them are to be woken
 *	user.c     user messages
 *	urgent.c   urgent octets
 *	onesided.c  one-sided operations and memory for the peer's
 *	iomap.c    the same by rsockets' means
 *	end.c      shutdown, close and what lingers
 */
#ifndef STREAM_RSOCK_H
#define STREAM_RSOCK_H

#include "stream/cursor.h"
#include "stream/extension.h"
#include "stream/place.h"
#include "stream/spare.h"
#include "stream/state.h"
#include "stream/stream.h"

enum stream_own_window { STREAM_SGL_WINDOW, STREAM_RING_WINDOW };
/* What we have to offer to another Warpsock end */
#define STREAM_FEATURES                                                              \
	(STREAM_FEATURE_CUT | STREAM_FEATURE_ABORT | STREAM_FEATURE_INLINE |         \
	 STREAM_FEATURE_MESSAGES | STREAM_FEATURE_ONESIDED | STREAM_FEATURE_URGENT | \
	 STREAM_FEATURE_HELD)
#define STREAM_ONESIDED_DEPTH 16
#define STREAM_ERROR_MAX 4095u
/* Tagged offsets of our own; any would do, and a device has its own */
#define STREAM_SGL_TO 0x10000ull
#define STREAM_RING_TO 0x100000ull

/* --- rsock.c --- */

/*
 * A lock. Is the descriptor of this process closed, or about to be? Another process may go on with
 * the connection, and a thread here that comes late is not to end it
 */
static inline bool stream_is_shut_here(const struct stream *s)
{
	return !s->mem.native && __atomic_load_n(&s->shut, __ATOMIC_ACQUIRE);
}

/* Edges as they were, to see whether a call has moved them */
static inline uint64_t stream_edges(const struct stream *s)
{
	return (uint64_t)base_load(&s->state->in_edge) << 32 | base_load(&s->state->out_edge);
}

/* Tells the waiters when @before is history; no lock may be held */
void stream_tell(struct stream *s, uint64_t before);
/* The connection is over by @err (positive) */
void stream_break(struct stream *s, int err);
void stream_end(struct stream *s, uint32_t ends);

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

/* --- message.c: rx lock --- */

/* Where octets go that a reader waits for */
struct stream_target {
	struct stream_cursor cursor;
	size_t len;
	size_t filled;
};

struct stream_drain {
	struct stream *s;
	struct stream_target *target;
	struct base_recv_sleep *sleep;
};
/* What the peer did is against the protocol: -EPROTO */
int stream_refuse(const char *why);
/* A message that counts has come: 0, -EPROTO */
int stream_credit_take(struct stream *s);

struct rnic_sink stream_sink(struct stream_drain *drain);

/* --- recv.c --- */

/* rx lock. Takes in what is there, up to a bound: 0, or -errno when the transport has ended */
int stream_drain(struct stream *s, struct stream_target *target);
/* No lock. Drains and sends what became due */
void stream_pump(struct stream *s);

/* --- send.c --- */

/* tx lock. Credits and room for DATA? */
bool stream_may_data(const struct stream *s);
/* tx lock. Octets that left, -EAGAIN or -errno; @urgent: the last one is */
ssize_t stream_send_data(struct stream *s, const struct iovec *iov, int n, bool urgent);

#include "stream/rsock_bytes.h"
#include "stream/rsock_ext.h"
#include "stream/rsock_lock.h"
#include "stream/rsock_share.h"
#include "stream/slab.h"

#endif
