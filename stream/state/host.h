/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What stream/protocol/ asks of the place where it runs. In a process the files of this folder
 * answer it; the protocol itself has no system call, no clock and no memory of its own.
 */
#ifndef STREAM_STATE_HOST_H
#define STREAM_STATE_HOST_H

#include <stddef.h>

#include "stream/state/facts.h"

/* --- ends.c --- */

/* Ends have come, enum stream_end: waiters are told by the edges */
void stream_end(struct stream *s, uint32_t ends);
/* The connection is over by @err (positive) */
void stream_break(struct stream *s, int err);
/*
 * It is over for what stands in its memory, where another process has written, or because there is
 * no memory
 */
void stream_spoilt(struct stream *s, enum stream_broken how);
/* Is that why the provider failed with @err? Then it is over at once, for both ends */
void stream_memory_judge(struct stream *s, int err);
/* rx lock. Do the numbers of what has come agree? Else it is spoilt */
bool stream_rx_agrees(struct stream *s);
/* tx lock. The transport takes no more: @err */
int stream_post_failed(struct stream *s, int err);
/* What the peer did is against the protocol: -EPROTO */
int stream_refuse(const char *why);

/* --- chunk.c: rx lock. @at counts bytes of the ring, ever, and is within it --- */

void stream_chunks_put(struct stream *s, uint64_t at, const void *p, size_t len);
void stream_chunks_get(struct stream *s, uint64_t at, void *p, size_t len);
/* Bytes before @to are read; the first of them is @from, and the last in a chunk is before @end */
void stream_chunks_drop(struct stream *s, uint64_t from, uint64_t to, uint64_t end);

/* --- block.c --- */

/* tx lock. @s->hold and @s->mem.rest are there */
void stream_tx_need(struct stream *s);
/* Takes memory of the mapping that is to be written to: 0, -ENOSPC */
int stream_reserve(struct stream *s, void *p, size_t len);

/* --- holder.c --- */

/* Its operations, or its device, are another process's, or it was closed here: do nothing */
bool stream_is_foreign(const struct stream *s);

/* --- spare.c --- */

/* tx lock. It has sent something */
void stream_spare_sent(struct stream *s);
/* rx lock. A reader that got @taken bytes need not ask the transport; once */
bool stream_spare_take(struct stream *s, size_t taken);

/* --- host.c --- */

/* rx lock. What the peer has mapped: STREAM_SLOTS of them */
struct stream_mapping *stream_mappings(const struct stream *s);
/* rx lock. Whoever was sending when this is called has noted what came of it when it returns */
void stream_senders_pass(struct stream *s);
/* As base_now() */
uint64_t stream_now(void);

#endif
