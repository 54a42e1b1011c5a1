/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Locks, and the memory for bytes that there is under them. Part of stream/rsock.h.
 */
#ifndef STREAM_RSOCK_LOCK_H
#define STREAM_RSOCK_LOCK_H

/* --- rsock.c --- */

/* A lock whose owner died inside ends the connection; the lock is held in any case */
void rsock_lock(struct rsock *s, struct base_lock *lock);
void rsock_unlock(struct base_lock *lock);

/* --- block.c: under the lock that is named --- */

/* Memory for bytes is there from now on: tx: if there are any, or when they come */
void rsock_rx_take(struct rsock *s);
void rsock_tx_take(struct rsock *s);
void rsock_tx_need(struct rsock *s);
/* rnic_stream_mem.rest_take */
void *rsock_tx_rest_take(const struct rnic_stream_mem *mem);
/* and is given back if nothing is in it */
void rsock_rx_rest(struct rsock *s);
void rsock_tx_rest(struct rsock *s);
/* No lock: nobody has the connection any more */
void rsock_blocks_end(struct rsock *s);
/*
 * Lock of the part of a block with @p in it: it lies in memory of this process and its children, no
 * longer in a file. 0; -ENOENT: others may have the file, or it is none; -ENOMEM
 */
int rsock_part_move(void *p);
/* tx lock, or the rx lock with @p in no part that tx uses: memory is asked for at @p */
void rsock_block_note(const struct rsock *s, const void *p);
/* rx lock: @len bytes of chunk @chunk of the block @i have memory for certain */
void rsock_block_reserved(struct rsock_slab *slab, uint32_t i, unsigned int chunk, uint32_t len);
/* @slab goes, and its memory with it */
void rsock_blocks_forget(struct rsock_slab *slab);
/* Nobody has a block of @slab: it is to take little memory */
void rsock_blocks_trim(struct rsock_slab *slab);
/* Where bytes are that were written before the connection was open */
const uint8_t *rsock_hold(const struct rsock *s);

static inline void rsock_rx_lock(struct rsock *s)
{
	rsock_lock(s, &s->state->rx_lock);
	rsock_rx_take(s);
}

static inline void rsock_rx_unlock(struct rsock *s)
{
	rsock_rx_rest(s);
	rsock_unlock(&s->state->rx_lock);
}

/* Another process has the rx lock, and sleeps with it until bytes come: there is nothing now */
static inline bool rsock_rx_sleeps(const struct rsock *s)
{
	return __builtin_expect(rsock_load(&s->state->rx_lock.asleep), 0) &&
	       base_lock_sleeps(&s->state->rx_lock);
}

static inline void rsock_tx_lock(struct rsock *s)
{
	rsock_lock(s, &s->state->tx_lock);
	rsock_tx_take(s);
}

static inline void rsock_tx_unlock(struct rsock *s)
{
	rsock_tx_rest(s);
	rsock_unlock(&s->state->tx_lock);
}

#endif
