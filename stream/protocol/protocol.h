/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stream protocol: rsockets' own, and what two Warpsock ends add to it (docs/stream-wire.md).
 * The files of this folder make no system call, take no lock and have no memory but a stream's:
 * their caller holds the lock that is named, and host.h has what they ask for. One file is one noun
 * or one direction, and uses those above it in this list:
 *	extension.c  what two Warpsock ends tell each other at the start
 *	hello.c    the private data of start-up
 *	credit.c   what each end may send
 *	post.c     operations to the provider
 *	span.c     bytes that wait where they were received
 *	message.c  user messages
 *	urgent.c   urgent bytes
 *	jobs.c     one-sided operations
 *	mapping.c  the same by rsockets' means
 *	input.c    what the peer's Writes and messages say
 *	rx.c       bytes in: drained, handed over
 *	data.c     bytes out: Write and DATA
 *	push.c     what is due: grants, ends
 *	levels.c   what a waiter may know
 */
#ifndef STREAM_PROTOCOL_PROTOCOL_H
#define STREAM_PROTOCOL_PROTOCOL_H

#include <sys/types.h>

#include "stream/cursor.h"
#include "stream/job.h"
#include "stream/protocol/extension.h"
#include "stream/state/host.h"

/* Our windows: for the peer's SGEs and mappings; the ring */
enum stream_own_window { STREAM_SGL_WINDOW, STREAM_RING_WINDOW };
/* Tagged offsets of our own; any would do, and a device has its own */
#define STREAM_SGL_TO 0x10000ull
#define STREAM_RING_TO 0x100000ull

/* --- hello.c --- */

#define STREAM_HELLO_MAX (RS_CONN_DATA_LEN + STREAM_EXT_MAX)

/* Our private data into @pd: its length */
size_t stream_hello_put(const struct stream *s, uint8_t pd[STREAM_HELLO_MAX]);
/* Both locks. The one place where the peer's is judged: 0, -EPROTO, -EPROTONOSUPPORT */
int stream_hello_take(struct stream *s, const uint8_t *pd, size_t len);

/* --- credit.c --- */

/* INLINE: bytes that the peer has room for */
uint64_t stream_window_room(const struct stream *s);
/* The same for bytes of which the last one is urgent, or not */
uint64_t stream_urgent_room(const struct stream *s, bool urgent);
/* Bytes of a Send's FPDU behind the message's four */
uint32_t stream_segment(const struct stream *s);
/* tx lock. Credits and room for DATA? */
bool stream_may_data(const struct stream *s);
/* tx lock. A credit for a message that is neither DATA nor a grant? */
bool stream_may_message(const struct stream *s);
/* rx lock. A message that counts has come: 0, -EPROTO */
int stream_credit_take(struct stream *s);
/* Is what the peer may send of half of our ring or less; of so few messages? */
bool stream_ring_due(const struct stream *s);
/* Is the peer to be told of more? */
bool stream_grant_due(const struct stream *s);
/* Does it get grants at all? */
bool stream_grants(const struct stream *s);

/* --- post.c: tx lock --- */

/*
 * No lock. Is the transport full? A device says of operations that they have left when its queue is
 * looked at, which others may have done since somebody found it full: so its room counts
 */
bool stream_is_blocked(const struct stream *s);
/* That it is full, or not any more */
void stream_blocked_note(struct stream *s, bool blocked);
/* How many operations were accepted, or -errno */
int stream_wr_post(struct stream *s, const struct rnic_stream_wr *wr, unsigned int n);
/* One message of four bytes and a body of @len: 0, -EAGAIN, -errno */
int stream_body_post(struct stream *s, uint32_t msg, void *body, uint32_t len);

/* --- span.c: rx lock --- */

/* Bytes from @at on wait at @p. False: they cannot, for that is not where they stay */
bool stream_span_put(struct stream *s, uint64_t at, const uint8_t *p, size_t len);
/* Those that wait there are copied to chunks */
void stream_spans_settle(struct stream *s);
/* As stream_chunks_get() and stream_chunks_drop() have them, wherever bytes are */
void stream_bytes_get(struct stream *s, uint64_t at, void *p, size_t len);
void stream_bytes_drop(struct stream *s, uint64_t from, uint64_t to);

/* --- message.c --- */

/* tx lock: is there room for one of @len bytes? 0, -EMSGSIZE, -EAGAIN */
int stream_message_fits(struct stream *s, size_t len);
/* tx lock: it is accepted, if its first part goes: 0, -EAGAIN, -errno */
int stream_message_accept(struct stream *s, const void *p, size_t len);
/* tx lock: 0 or -EAGAIN, -errno: the rest of a message that was accepted */
int stream_message_push(struct stream *s);
/* rx lock. Parts of a message as they come: 0, -EPROTO */
int stream_message_begin(struct stream *s);
int stream_message_end(struct stream *s);
/* rx lock. Bytes before the next message, of those delivered */
uint64_t stream_message_limit(const struct stream *s);
/* rx lock. Is a message what comes next? Its length */
bool stream_message_next(struct stream *s, size_t *len);
/* rx lock: bytes given, or -ENODATA */
ssize_t stream_message_get(struct stream *s, const struct iovec *iov, int n, int flags,
			   size_t *len);

/* --- urgent.c --- */

/* rx lock. The last byte that was placed is urgent, and about to be delivered */
void stream_urgent_arrive(struct stream *s);
/*
 * No lock. How many bytes one read may take now, behind *@over (0 or 1) that are left out. @stop:
 * it has some already, or asks: then none where the urgent one is next
 */
uint64_t stream_urgent_reach(const struct stream *s, bool stop, uint32_t *over);
bool stream_urgent_next(const struct stream *s);
/* rx lock. Bytes were read: the urgent one may be among them */
void stream_urgent_passed(struct stream *s);
/* No lock. Of *@there bytes one is taken off that does not count */
unsigned int stream_urgent_levels(const struct stream *s, uint64_t *there);
/* rx lock. It is taken: 1, -EINVAL, -ENOTCONN */
int stream_urgent_take(struct stream *s, uint8_t *byte, int flags);

/* --- jobs.c --- */

/* tx lock. Sends what may be sent: 0, -EAGAIN, -errno */
int stream_jobs_push(struct stream *s);
/* Something may be sent / has not been sent. No lock. */
bool stream_jobs_due(const struct stream *s);
bool stream_jobs_left(const struct stream *s);
/* Is the oldest one over? No lock. */
bool stream_jobs_over(const struct stream *s);
/* rx lock: rnic_sink.done */
void stream_job_done(struct stream *s, uint64_t cookie, uint64_t value);
uint64_t stream_jobs_count(const struct stream *s);

/* --- mapping.c --- */

/* rx lock. The peer's mappings: bytes @off.. of the slots; slot @i; and its message: 0, -errno */
int stream_slot_write(struct stream *s, uint64_t off, const uint8_t *p, size_t len);
int stream_slot_landed(struct stream *s, uint32_t i);
int stream_slot_take(struct stream *s, uint32_t i);

/* --- input.c: rx lock --- */

/* Where bytes go that a reader waits for */
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

struct rnic_sink stream_sink(struct stream_drain *drain);

/* --- rx.c: rx lock --- */

/*
 * Takes in what is there, up to a bound, and first to @target: 0, or -errno when the transport has
 * ended. @sleep: by which it waits for the first bytes; NULL: it does not
 */
int stream_drain(struct stream *s, struct stream_target *target, struct base_recv_sleep *sleep);
/* As much as there is, wherever it is: bytes given. MSG_PEEK, MSG_TRUNC, STREAM_STOP */
size_t stream_bytes_take(struct stream *s, const struct iovec *iov, int n, int flags);

/* --- data.c: tx lock --- */

/* Bytes that left, -EAGAIN or -errno; @urgent: the last one is */
ssize_t stream_data_send(struct stream *s, const struct iovec *iov, int n, bool urgent);
/* Bytes are kept until the connection can send: those that were, -EAGAIN, -ENOBUFS */
ssize_t stream_data_hold(struct stream *s, const struct iovec *iov, int n, bool urgent);

/* --- push.c: tx lock --- */

/* Sends what is due, in order: 0 nothing is left, -EAGAIN, -errno */
int stream_push(struct stream *s);
/* The same before something new is sent; -EPIPE: the end has gone */
int stream_push_first(struct stream *s);
bool stream_push_wanted(const struct stream *s); /* no lock */

/* --- levels.c: no lock --- */

/* enum stream_level of an open connection with these ends */
unsigned int stream_open_levels(const struct stream *s, uint32_t ends);
/* Has the last look stopped at its bound? */
bool stream_has_more(const struct stream *s);

#endif
