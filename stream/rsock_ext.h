/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is due; start-up; what only two Warpsock ends have: octets in messages, user messages,
 * one-sided operations; mappings; and what waiters know.
 * Part of stream/rsock.h.
 */
#ifndef STREAM_RSOCK_EXT_H
#define STREAM_RSOCK_EXT_H

/* --- push.c: tx lock --- */

/* Up to RSOCK_BATCH pairs of Write and message. How many operations were accepted, -errno */
int rsock_post(struct rsock *s, const struct rnic_stream_wr *wr, unsigned int n);
/* Sends what is due, in order: 0 nothing is left, -EAGAIN, -errno */
int rsock_push(struct rsock *s);
/* The same before something new is sent; -EPIPE: the end has gone */
int rsock_push_first(struct rsock *s);
bool rsock_push_wanted(const struct rsock *s); /* no lock */
bool rsock_grant_due(const struct rsock *s);
/* No lock. What is due and may go: a window waits for the peer's first word */
static inline uint32_t rsock_due(const struct rsock *s)
{
	uint32_t due = rsock_load(&s->state->tx.due);

	return rsock_load(&s->state->may_send) ? due : due & ~(uint32_t)STREAM_DUE_GRANT;
}
/* One message of four octets and a body of @len: 0, -EAGAIN, -errno */
int rsock_body_post(struct rsock *s, uint32_t msg, void *body, uint32_t len);

/* --- send.c --- */

/* Octets of a Send's FPDU behind the message's four */
uint32_t rsock_segment(const struct rsock *s);
/* INLINE: octets that the peer has room for */
uint64_t rsock_window_room(const struct rsock *s);

/* rsock.c: what @fn says, under both locks */
int rsock_with_both(struct rsock *s, int (*fn)(struct rsock *s));

/* --- start.c: both locks for the first two; the others take what they need --- */

int rsock_start(struct rsock *s);

/* --- undecided.c: both locks for those of start-up; the others take what they need --- */

/* Start-up begins: the times of this connection are counted from now on */
void rsock_undecided_begin(struct rsock *s);
/* The peer's frame is not whole yet. True: look again, octets may have come since the last look */
bool rsock_undecided_again(struct rsock *s);
/* The same: -EAGAIN, or what start-up has come to because of the time or our own end */
int rsock_undecided_look(struct rsock *s);
/* Start-up is over: nothing is waited for any more */
void rsock_undecided_end(struct rsock *s);
/* No lock. The program has closed it: its peer is not waited for as long as it was */
void rsock_undecided_hurry(struct rsock *s);
/* No lock. The levels of a connection whose start-up is under way */
unsigned int rsock_undecided_levels(const struct rsock *s, uint32_t ends);

/* Are writes taken before the connection can send? When TCP is connected, as the kernel does */
static inline bool rsock_holds(const struct rsock *s)
{
	return rsock_load(&s->state->hold) && rsock_load(&s->state->stage) != STREAM_CONNECTING;
}

/* And has the hold room? */
static inline bool rsock_hold_room(const struct rsock *s)
{
	return rsock_holds(s) && rsock_load(&s->state->tx.hold_end) < STREAM_HOLD;
}

/* A peer that such a device does not reach may be there by TCP, and that is not to be late */
static inline bool rsock_is_apart(const struct rsock *s)
{
	return s->initiator && s->mem.native && s->mem.native->apart;
}

/* How long an initiator waits for an answer; 0: without a limit */
uint64_t rsock_start_limit(const struct rsock *s);
/* It came to this process, and it goes, while the Reply may be waited for */
void rsock_start_join(struct rsock *s);
void rsock_start_leave(struct rsock *s);

/* --- single_flight.c: both locks --- */

/* May the Request go out? 0, -EAGAIN, -ENOMSG, as rsock_start() */
int rsock_single_flight(struct rsock *s);

/* --- again.c: both locks. As rsock_start() --- */

/* When the stream is made */
void rsock_again_init(struct rsock *s, const struct stream_param *param);
/* The probe came to @error, and its connection is dropped; an answer was due at @due */
int rsock_again_begin(struct rsock *s, int error, uint64_t due);
int rsock_again_go(struct rsock *s);

/* --- user.c */

/* tx lock: 0 or -EAGAIN, -errno: the rest of a message that was accepted */
int rsock_message_push(struct rsock *s);
/* One that was accepted has not gone wholly. No lock. */
static inline bool rsock_message_left(const struct rsock *s)
{
	return rsock_load(&s->state->tx.message_end);
}

/* rx lock. Parts of a message as they come: 0, -EPROTO */
int rsock_message_begin(struct rsock *s);
int rsock_message_end(struct rsock *s);
/* rx lock. Octets before the next message, of those delivered */
uint64_t rsock_message_limit(const struct rsock *s);
/* rx lock. Is a message what comes next? Its length */
bool rsock_message_next(struct rsock *s, size_t *len);

/* --- onesided.c */

void rsock_onesided_uninit(struct rsock *s);
/* Its operations, or its device, are another process's */
bool rsock_is_anothers(const struct rsock *s);
/* So it is, or it was closed here: nothing may be done */
bool rsock_is_foreign(const struct rsock *s);
/* tx lock. Sends what may be sent: 0, -EAGAIN, -errno */
int rsock_jobs_push(struct rsock *s);
/* Something may be sent / has not been sent. No lock. */
bool rsock_jobs_due(const struct rsock *s);
bool rsock_jobs_left(const struct rsock *s);
/* Is the oldest one over? No lock. */
bool rsock_jobs_over(const struct rsock *s);
/* No lock. The program goes, and its memory: nothing reaches that any more */
void rsock_onesided_close(struct rsock *s);
/* rx lock: rnic_sink.done */
void rsock_job_done(struct rsock *s, uint64_t cookie, uint64_t value);
/* No lock. It is open, @can use them without ONESIDED, and they are this process's: 0, -errno */
int rsock_onesided_ready(struct rsock *s, bool can);
/* Both locks: a region more, and one less */
int rsock_region_enter(struct rsock *s, void *addr, size_t len, unsigned int access,
		       uint32_t *stag);
int rsock_region_strike(struct rsock *s, uint32_t stag);
uint64_t rsock_jobs_count(const struct rsock *s);

/* --- iomap.c --- */

/* rx lock. The peer's mappings: octets @off.. of the slots; slot @i; and its message: 0, -errno */
int rsock_slot_write(struct rsock *s, uint64_t off, const uint8_t *p, size_t len);
int rsock_slot_landed(struct rsock *s, uint32_t i);
int rsock_slot_take(struct rsock *s, uint32_t i);
/* No lock. Makes of a mapped Write one that names STag and offset: 0, -ENXIO */
int rsock_mapping_find(struct rsock *s, struct stream_job *job);
void rsock_maps_uninit(struct rsock *s);

/* --- level.c --- */

/*
 * No lock. Is the transport full? A device says of operations that they have left when its queue is
 * looked at, which others may have done since somebody found it full: so its room counts
 */
bool rsock_is_blocked(const struct rsock *s);

/* --- end.c --- */

/* --- recv.c --- */

/* No lock. rsock_pump() behind the peer's end, whose last words are to be heard, and finite */
void rsock_pump_end(struct rsock *s);

/* --- write_retry.c --- */

/* Both locks. It is open, and the first word is ours */
void rsock_write_retry_begin(struct rsock *s);
/* No lock */
void rsock_write_retry_look(struct rsock *s);
/* May one become due? */
bool rsock_write_retry_waits(const struct rsock *s);

#include "stream/rsock_urgent.h"

#endif
