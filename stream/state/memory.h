/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory of a stream: its locks, the blocks that it has under them, and how it is made and
 * found.
 */
#ifndef STREAM_STATE_MEMORY_H
#define STREAM_STATE_MEMORY_H

#include "stream/state/holder.h"
#include "stream/state/host.h"
#include "stream/state/slab.h"

/* --- ends.c --- */

/* rx lock. What waited for its reader is lost, and the next call is told of a reset */
void stream_rx_forget(struct stream *s);

/* --- lock.c --- */

/* A lock whose owner died inside ends the connection; the lock is held in any case */
void stream_lock(struct stream *s, struct base_lock *lock);
void stream_unlock(struct base_lock *lock);
/* What @fn says, under both locks */
int stream_with_both(struct stream *s, int (*fn)(struct stream *s));

/* --- block.c: under the lock that is named --- */

/* Memory for bytes is there from now on: tx: if there are any, or when they come */
void stream_rx_take(struct stream *s);
void stream_tx_take(struct stream *s);
/* rnic_stream_mem.rest_take */
void *stream_tx_rest_take(const struct rnic_stream_mem *mem);
/* and is given back if nothing is in it */
void stream_rx_rest(struct stream *s);
void stream_tx_rest(struct stream *s);
/* No lock: nobody has the connection any more */
void stream_blocks_end(struct stream *s);
/* tx lock, or the rx lock with @p in no part that tx uses: memory is asked for at @p */
void stream_block_note(const struct stream *s, const void *p);
/* rx lock: @len bytes of chunk @chunk of the block @i have memory for certain */
void stream_block_reserved(struct stream_slab *slab, uint32_t i, unsigned int chunk, uint32_t len);
/* @slab goes, and its memory with it */
void stream_blocks_forget(struct stream_slab *slab);
/* Nobody has a block of @slab: it is to take little memory */
void stream_blocks_trim(struct stream_slab *slab);
/* Where bytes are that were written before the connection was open */
const uint8_t *stream_hold(const struct stream *s);
/* All chunks are free */
void stream_chunks_init(struct stream_rx *rx);

/* --- move.c --- */

/*
 * Lock of the part of a block with @p in it: it lies in memory of this process and its children, no
 * longer in a file. 0; -ENOENT: others may have the file, or it is none; -ENOMEM
 */
int stream_part_move(void *p);

/* --- spare.c --- */

/* Before a look at the transport, for stream.spare if that was empty */
struct stream_spare stream_spare_begin(const struct stream *s);

/* --- memory.c --- */

/* As stream_attach() and stream_adopt() */
int stream_memory_create(int fd, const struct stream_param *param, struct stream **out);
int stream_memory_adopt(int fd, const struct stream_param *param, struct stream **out);
/* Nobody finds it any more, the memory stays */
void stream_memory_unname(struct stream *s);
/* This process has it no more, once; true: it was the last one, and is to end it */
bool stream_memory_leave(struct stream *s);
/* @s is no more; @last: nobody else has the connection */
void stream_memory_destroy(struct stream *s, bool last);

static inline void stream_rx_lock(struct stream *s)
{
	stream_lock(s, &s->state->rx_lock);
	stream_rx_take(s);
}

static inline void stream_rx_unlock(struct stream *s)
{
	stream_rx_rest(s);
	stream_unlock(&s->state->rx_lock);
}

/*
 * Another process has the rx lock, and sleeps with it until bytes come: there is nothing now. Pairs
 * with may_sleep() in life/pump.c: who comes is a holder first, and looks then
 */
static inline bool stream_rx_sleeps(const struct stream *s)
{
	const uint32_t *asleep = &s->state->rx_lock.asleep;

	return __builtin_expect(__atomic_load_n(asleep, __ATOMIC_SEQ_CST), 0) &&
	       base_lock_sleeps(&s->state->rx_lock);
}

static inline void stream_tx_lock(struct stream *s)
{
	stream_lock(s, &s->state->tx_lock);
	stream_tx_take(s);
}

static inline void stream_tx_unlock(struct stream *s)
{
	stream_tx_rest(s);
	stream_unlock(&s->state->tx_lock);
}

#endif
