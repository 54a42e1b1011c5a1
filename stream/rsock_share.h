/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What several processes share a stream by. Part of stream/rsock.h.
 */
#ifndef STREAM_RSOCK_SHARE_H
#define STREAM_RSOCK_SHARE_H

/* --- rsock.c --- */

/* What of @s does not depend on its memory */
void stream_init(struct stream *s, int fd, const struct stream_param *param);
/* No lock. This process has it no more, once; true: it was the last one, and is to end it */
bool stream_leave(struct stream *s);

/*
 * It is over for what stands in its memory, where another process has written, or because there is
 * no memory
 */
void stream_spoilt(struct stream *s, enum stream_broken how);
/* Is that why the provider failed with @err? Then it is over at once, for both ends */
void stream_memory_judge(struct stream *s, int err);
/* rx lock. Do the numbers of what has come agree? Else it is spoilt */
bool stream_rx_agrees(struct stream *s);
/* Takes memory of the mapping that is to be written to: 0, -ENOSPC */
int stream_reserve(struct stream *s, void *p, size_t len);

/* --- memory.c --- */

/* As stream_attach() and stream_adopt() */
int stream_memory_create(int fd, const struct stream_param *param, struct stream **out);
int stream_memory_adopt(int fd, const struct stream_param *param, struct stream **out);
/* Nobody finds it any more, the memory stays */
void stream_memory_unname(struct stream *s);
/* This process has left it; @last: and nobody else has it */
void stream_memory_leave(struct stream *s, bool last);
/* @s is no more; @last: nobody else has the connection */
void stream_memory_destroy(struct stream *s, bool last);

/* --- holder.c --- */

/* This process is one */
void stream_holder_enter(struct stream *s);
/* Its place is free again */
void stream_holder_leave(struct stream *s);
/* Others live that have it, or will */
bool stream_holder_others(struct stream *s);
/* Has nobody it but who is yet to receive a message with it? */
bool stream_holder_flight(struct stream *s);
/* base_lock_may_fn, of a stream_state */
bool stream_holder_may(const void *ctx, uint32_t space);
/* Does anybody live of those whose table this is? */
bool stream_holder_any(struct stream_state *st);
/* The same of a table of STREAM_HOLDERS in a file of any version, which is not changed */
bool stream_holder_lives(struct stream_holder *holders);
/* A flight that came to nothing lands */
void stream_holder_drop(struct stream_state *st, enum stream_holder_kind kind);

/* --- sleep.c --- */

#endif
