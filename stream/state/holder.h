/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which processes have a stream.
 */
#ifndef STREAM_STATE_HOLDER_H
#define STREAM_STATE_HOLDER_H

#include "stream/state/facts.h"
#include "stream/stream.h"

/* This process is one */
void stream_holder_enter(struct stream *s);
/* Its place is free again */
void stream_holder_leave(struct stream *s);
/* One more will have it: its place */
void stream_holder_expect(struct stream *s, enum stream_share how);
/* Others live that have it, or will */
bool stream_holder_others(struct stream *s);
/* Has nobody it but a process that is yet to receive a message with it? */
bool stream_holder_flight(struct stream *s);
/* base_lock_may_fn, of a stream_state */
bool stream_holder_may(const void *ctx, uint32_t space);
/* Does anybody live of those whose table this is? */
bool stream_holder_any(struct stream_state *st);
/* The same of a table of STREAM_HOLDERS in a file of any version, which is not changed */
bool stream_holder_lives(struct stream_holder *holders);
/* A flight that came to nothing lands */
void stream_holder_drop(struct stream_state *st, enum stream_holder_kind kind);
/* Its operations, or its device, are another process's */
bool stream_is_anothers(const struct stream *s);

#endif
