/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is due; start-up; what only two Warpsock ends have: octets in messages, user messages,
 * one-sided operations; mappings; and what waiters know.
 * Part of stream/rsock.h.
 */
#ifndef STREAM_RSOCK_EXT_H
#define STREAM_RSOCK_EXT_H

/* --- push.c: tx lock --- */

/* Up to STREAM_BATCH pairs of Write and message. How many operations were accepted, -errno */
int stream_wr_post(struct stream *s, const struct rnic_stream_wr *wr, unsigned int n);
/* Sends what is due, in order: 0 nothing is left, -EAGAIN, -errno */
int stream_push(struct stream *s);
/* The same before something new is sent; -EPIPE: the end has gone */
int stream_push_first(struct stream *s);
bool stream_push_wanted(const struct stream *s); /* no lock */
bool stream_grant_due(const struct stream *s);
/* No lock. What is due and may go: a window waits for the peer's first word */
static inline uint32_t stream_due(const struct stream *s)
{
	uint32_t due = base_load(&s->state->tx.due);

	return base_load(&s->state->may_send) ? due : due & ~(uint32_t)STREAM_DUE_GRANT;
}
/* One message of four octets and a body of @len: 0, -EAGAIN, -errno */
int stream_body_post(struct stream *s, uint32_t msg, void *body, uint32_t len);

/* --- send.c --- */

/* Octets of a Send's FPDU behind the message's four */
uint32_t stream_segment(const struct stream *s);
/* INLINE: octets that the peer has room for */
uint64_t stream_window_room(const struct stream *s);

/* rsock.c: what @fn says, under both locks */
int stream_with_both(struct stream *s, int (*fn)(struct stream *s));

/* --- start.c: both locks for the first two; the others take what they need --- */

int stream_start(struct stream *s);

/* --- undecided.c: both locks for those of start-up; the others take what they need --- */

/* Start-up begins: the times of this connection are counted from now on */
void stream_undecided_begin(struct stream *s);
/* The peer's frame is not whole yet. True: look again, octets may have come since the last look */
bool stream_undecided_again(struct stream *s);
/* The same: -EAGAIN, or what start-up has come to because of the time or our own end */
int stream_undecided_look(struct stream *s);
/* Start-up is over: nothing is waited for any more */
void stream_undecided_end(struct stream *s);
/* No lock. The program has closed it: its peer is not waited for as long as it was */
void stream_undecided_hurry(struct stream *s);
/* No lock. The levels of a connection whose start-up is under way */
unsigned int stream_undecided_levels(const struct stream *s, uint32_t ends);

/* Are writes taken before the connection can send? When TCP is connected, as the kernel does */
static inline bool stream_holds(const struct stream *s)
{
	return base_load(&s->state->hold) && base_load(&s->state->stage) != STREAM_CONNECTING;
}

/* And has the hold room? */
static inline bool stream_hold_room(const struct stream *s)
{
	return stream_holds(s) && base_load(&s->state->tx.hold_end) < STREAM_HOLD;
}

/* A peer that such a device does not reach may be there by TCP, and that is not to be late */
static inline bool stream_is_apart(const struct stream *s)
{
	return s->initiator && s->mem.native && s->mem.native->apart;
}

/* How long an initiator waits for an answer; 0: without a limit */
uint64_t stream_start_limit(const struct stream *s);
/* It came to this process, and it goes, while the Reply may be waited for */
void stream_start_join(struct stream *s);
void stream_start_leave(struct stream *s);

/* --- single_flight.c: both locks --- */

/* May the Request go out? 0, -EAGAIN, -ENOMSG, as stream_start() */
int stream_single_flight(struct stream *s);

/* --- again.c: both locks. As stream_start() --- */

/* When the stream is made */
void stream_again_init(struct stream *s, const struct stream_param *param);
/* The probe came to @error, and its connection is dropped; an answer was due at @due */
int stream_again_begin(struct stream *s, int error, uint64_t due);
int stream_again_go(struct stream *s);

/* --- user.c */

/* tx lock: 0 or -EAGAIN, -errno: the rest of a message that was accepted */
int stream_message_push(struct stream *s);
/* One that was accepted has not gone wholly. No lock. */
static inline bool stream_message_left(const struct stream *s)
{
	return base_load(&s->state->tx.message_end);
}

/* rx lock. Parts of a message as they come: 0, -EPROTO */
int stream_message_begin(struct stream *s);
int stream_message_end(struct stream *s);
/* rx lock. Octets before the next message, of those delivered */
uint64_t stream_message_limit(const struct stream *s);
/* rx lock. Is a message what comes next? Its length */
bool stream_message_next(struct stream *s, size_t *len);

/* --- onesided.c */

void stream_onesided_uninit(struct stream *s);
/* Its operations, or its device, are another process's */
bool stream_is_anothers(const struct stream *s);
/* So it is, or it was closed here: nothing may be done */
bool stream_is_foreign(const struct stream *s);
/* tx lock. Sends what may be sent: 0, -EAGAIN, -errno */
int stream_jobs_push(struct stream *s);
/* Something may be sent / has not been sent. No lock. */
bool stream_jobs_due(const struct stream *s);
bool stream_jobs_left(const struct stream *s);
/* Is the oldest one over? No lock. */
bool stream_jobs_over(const struct stream *s);
/* No lock. The program goes, and its memory: nothing reaches that any more */
void stream_onesided_close(struct stream *s);
/* rx lock: rnic_sink.done */
void stream_job_done(struct stream *s, uint64_t cookie, uint64_t value);
/* No lock. It is open, @can use them without ONESIDED, and they are this process's: 0, -errno */
int stream_onesided_ready(struct stream *s, bool can);
/* Both locks: a region more, and one less */
int stream_region_enter(struct stream *s, void *addr, size_t len, unsigned int access,
			uint32_t *stag);
int stream_region_strike(struct stream *s, uint32_t stag);
uint64_t stream_jobs_count(const struct stream *s);

/* --- iomap.c --- */

/* rx lock. The peer's mappings: octets @off.. of the slots; slot @i; and its message: 0, -errno */
int stream_slot_write(struct stream *s, uint64_t off, const uint8_t *p, size_t len);
int stream_slot_landed(struct stream *s, uint32_t i);
int stream_slot_take(struct stream *s, uint32_t i);
/* No lock. Makes of a mapped Write one that names STag and offset: 0, -ENXIO */
int stream_mapping_find(struct stream *s, struct stream_job *job);
void stream_maps_uninit(struct stream *s);

/* --- level.c --- */

/*
 * No lock. Is the transport full? A device says of operations that they have left when its queue is
 * looked at, which others may have done since somebody found it full: so its room counts
 */
bool stream_is_blocked(const struct stream *s);

/* --- end.c --- */

/* --- recv.c --- */

/* No lock. stream_pump() behind the peer's end, whose last words are to be heard, and finite */
void stream_pump_end(struct stream *s);

/* --- write_retry.c --- */

/* Both locks. It is open, and the first word is ours */
void stream_write_retry_begin(struct stream *s);
/* No lock */
void stream_write_retry_look(struct stream *s);
/* May one become due? */
bool stream_write_retry_waits(const struct stream *s);

#include "stream/rsock_urgent.h"

#endif
