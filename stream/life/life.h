/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream in a process: locks, clocks, sockets, and the calls of stream/stream.h. One file is one
 * noun or one call, and uses those above it in this list:
 *	pump.c     a look at the transport, and what is due then
 *	undecided.c  the times of start-up
 *	single_flight.c  whether a probe's Request may go out yet
 *	again.c    back to TCP, over a connection more
 *	write_retry.c  a peer that overlooks what comes first
 *	start.c    from a TCP connection to an open stream
 *	level.c    what a waiter may know
 *	progress.c  what a waiter calls
 *	send.c recv.c message.c urgent.c onesided.c map.c info.c  calls of a program
 *	end.c      shutdown, close and what lingers
 *	attach.c   made, found again, handed over, taken down
 */
#ifndef STREAM_LIFE_LIFE_H
#define STREAM_LIFE_LIFE_H

#include "stream/protocol/protocol.h"
#include "stream/state/memory.h"
#include "stream/stream.h"

/* --- pump.c: no lock --- */

/* Tells the waiters when @before is history */
void stream_tell(struct stream *s, uint64_t before);
/* What is due goes, under the tx lock, if there is something */
void stream_push_due(struct stream *s);
/* Drains and sends what became due */
void stream_pump(struct stream *s);
/* The same behind the peer's end, whose last words are to be heard, and finite */
void stream_pump_end(struct stream *s);

/* --- undecided.c: both locks for those of start-up; the others take what they need --- */

/* How long an initiator waits for an answer; 0: without a limit */
uint64_t stream_start_limit(const struct stream *s);
/* It came to this process, and it goes, while the Reply may be waited for */
void stream_start_join(struct stream *s);
void stream_start_leave(struct stream *s);
/* Start-up begins: the times of this connection are counted from now on */
void stream_undecided_begin(struct stream *s);
/* The peer's frame is not whole yet. True: look again, bytes may have come since the last look */
bool stream_undecided_again(struct stream *s);
/* The same: -EAGAIN, or what start-up has come to because of the time or our own end */
int stream_undecided_look(struct stream *s);
/* Start-up is over: nothing is waited for any more */
void stream_undecided_end(struct stream *s);
/* No lock. The program has closed it: its peer is not waited for as long as it was */
void stream_undecided_hurry(struct stream *s);
/* No lock. The levels of a connection whose start-up is under way */
unsigned int stream_undecided_levels(const struct stream *s, uint32_t ends);

/* --- single_flight.c: both locks --- */

/* May the Request go out? 0, -EAGAIN, -ENOMSG, as stream_start() */
int stream_single_flight(struct stream *s);

/* --- again.c: both locks. As stream_start() --- */

/* When the stream is made */
void stream_again_init(struct stream *s, const struct stream_param *param);
/* The probe came to @error, and its connection is dropped; an answer was due at @due */
int stream_again_begin(struct stream *s, int error, uint64_t due);
int stream_again_go(struct stream *s);

/* --- write_retry.c --- */

/* Both locks. It is open, and the first word is ours */
void stream_write_retry_begin(struct stream *s);
/* No lock */
void stream_write_retry_look(struct stream *s);
/* May one become due? */
bool stream_write_retry_waits(const struct stream *s);

/* --- start.c: both locks --- */

int stream_start(struct stream *s);

/* --- onesided.c, map.c --- */

void stream_onesided_uninit(struct stream *s);
void stream_maps_uninit(struct stream *s);
/* No lock. The program goes, and its memory: nothing reaches that any more */
void stream_onesided_close(struct stream *s);
/* No lock. It is open, @can use them without ONESIDED, and they are this process's: 0, -errno */
int stream_onesided_ready(struct stream *s, bool can);

#endif
