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

struct rsock_slab;

enum rsock_window { RSOCK_SGL, RSOCK_RING };
/* What we have to offer to another Warpsock end */
#define RSOCK_FEATURES                                                               \
	(STREAM_FEATURE_CUT | STREAM_FEATURE_ABORT | STREAM_FEATURE_INLINE |         \
	 STREAM_FEATURE_MESSAGES | STREAM_FEATURE_ONESIDED | STREAM_FEATURE_URGENT | \
	 STREAM_FEATURE_HELD)
#define RSOCK_DEPTH 16
#define RSOCK_ERROR_MAX 4095u
/* Tagged offsets of our own; any would do, and a device has its own */
#define RSOCK_SGL_TO 0x10000ull
#define RSOCK_RING_TO 0x100000ull

struct rsock {
	struct stream base;
	const struct rnic_stream_ops *rnic;
	const char *provider;
	struct rsock_slab *slab;
	uint32_t cell; /* which of its states it is */
	struct stream_state *state;
	struct rnic_stream_mem mem;
	uint8_t *chunks;	   /* rx: of the block in use */
	uint32_t rx;		   /* rx: which that is */
	bool starved;		   /* rx: bytes are lost, for there was no memory for them */
	uint8_t *hold;		   /* tx */
	bool is_file;		   /* other processes can find it */
	bool spent;		   /* the state is for no other connection */
	struct stream_place place; /* of the file */
	/* As it was made */
	bool initiator, only, probe, detour, no_crc, markers;
	unsigned int start_rtts, decide_rtts;
	uint16_t credits;
	uint32_t ring, chunk; /* octets; powers of two */
	uint32_t offered;     /* features */
	uint32_t slots;	      /* for mappings of the peer's */
	uint64_t start_limit, apart_limit;
	uint64_t decide_limit, decide_max;
	/* What this process saw, and did */
	bool disowned, left;
	bool failed, last, counted; /* atomic: never came up; ends it; is among those that start */
	uint64_t looked;	    /* atomic: when a writer looked for input, and */
	bool drained;		    /* atomic: whether a reader has since */
	int probe_error;	    /* atomic */
	uint32_t start_error;	    /* atomic */
	int slot;		    /* atomic: its own place among the holders; -1: none */
	struct rsock_jobs *jobs;    /* NULL: there have never been any */
	struct rsock_maps *maps;    /* the same */
	unsigned int regions;	    /* atomic */
	bool resting, shut;	    /* atomic: no thread of this process goes on; works any more */
	bool looked_behind;	  /* atomic: what opened it has found that nothing else is there */
	struct rsock_spare spare; /* rx */
	uint32_t pair;		  /* atomic: of ports; 0: unknown */
	unsigned int sends;	  /* tx: while it is unknown */
	void (*changed)(void *ctx), (*probed)(void *ctx), (*urgent)(void *ctx), *ctx;
	int (*may_probe)(void *ctx, uint64_t limit, uint64_t *when);
};

static inline struct rsock *rsock_of(struct stream *s)
{
	return (struct rsock *)s;
}

/* --- rsock.c --- */

/*
 * A lock. Is the descriptor of this process closed, or about to be? Another process may go on with
 * the connection, and a thread here that comes late is not to end it
 */
static inline bool rsock_is_shut_here(const struct rsock *s)
{
	return !s->mem.native && __atomic_load_n(&s->shut, __ATOMIC_ACQUIRE);
}

#define rsock_load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define rsock_store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

/* Edges as they were, to see whether a call has moved them */
static inline uint64_t rsock_edges(const struct rsock *s)
{
	return (uint64_t)rsock_load(&s->state->in_edge) << 32 | rsock_load(&s->state->out_edge);
}

/* Tells the waiters when @before is history; no lock may be held */
void rsock_tell(struct rsock *s, uint64_t before);
/* The connection is over by @err (positive) */
void rsock_break(struct rsock *s, int err);
void rsock_end(struct rsock *s, uint32_t ends);

static inline bool rsock_has(const struct rsock *s, uint32_t feature)
{
	return rsock_load(&s->state->features) & feature;
}

static inline uint32_t rsock_half(const struct rsock *s)
{
	return s->ring / 2;
}

static inline bool rsock_is_open(const struct rsock *s)
{
	return rsock_load(&s->state->stage) == STREAM_OPEN;
}

/* Does nothing more leave, by our word or the peer's? */
static inline bool rsock_out_ended(const struct rsock *s)
{
	return rsock_load(&s->state->ends) & (STREAM_OUT_ENDED | STREAM_SHUT_WR);
}

/* --- message.c: rx lock --- */

/* Where octets go that a reader waits for */
struct rsock_target {
	struct stream_cursor cursor;
	size_t len;
	size_t filled;
};

struct rsock_drain {
	struct rsock *s;
	struct rsock_target *target;
	struct base_recv_sleep *sleep;
};
/* What the peer did is against the protocol: -EPROTO */
int rsock_refuse(const char *why);
/* A message that counts has come: 0, -EPROTO */
int rsock_credit_take(struct rsock *s);

struct rnic_sink rsock_sink(struct rsock_drain *drain);

/* --- recv.c --- */

/* rx lock. Takes in what is there, up to a bound: 0, or -errno when the transport has ended */
int rsock_drain(struct rsock *s, struct rsock_target *target);
/* No lock. Drains and sends what became due */
void rsock_pump(struct rsock *s);

/* --- send.c --- */

/* tx lock. Credits and room for DATA? */
bool rsock_may_data(const struct rsock *s);
/* tx lock. Octets that left, -EAGAIN or -errno; @urgent: the last one is */
ssize_t rsock_send_data(struct rsock *s, const struct iovec *iov, int n, bool urgent);

#include "stream/rsock_bytes.h"
#include "stream/rsock_ext.h"
#include "stream/rsock_lock.h"
#include "stream/rsock_share.h"
#include "stream/slab.h"

#endif
