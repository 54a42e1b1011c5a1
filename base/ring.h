/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

/*
 * The indices of a ring of 2^n slots; the slots themselves belong to the user. head and tail run
 * freely and wrap at 2^32, so that their difference is the fill and no slot is wasted.
 * For one thread, or under its user's lock.
 */
struct base_ring {
	uint32_t head; /* next slot to take */
	uint32_t tail; /* next slot to fill */
	uint32_t mask;
};

/* -EINVAL when size is no power of two. */
static inline int base_ring_init(struct base_ring *ring, uint32_t size)
{
	if (!base_is_pow2(size))
		return -EINVAL;
	ring->head = 0;
	ring->tail = 0;
	ring->mask = size - 1;
	return 0;
}

static inline uint32_t base_ring_count(const struct base_ring *ring)
{
	return ring->tail - ring->head;
}

static inline uint32_t base_ring_space(const struct base_ring *ring)
{
	return ring->mask + 1 - base_ring_count(ring);
}

static inline bool base_ring_empty(const struct base_ring *ring)
{
	return ring->head == ring->tail;
}

static inline bool base_ring_full(const struct base_ring *ring)
{
	return base_ring_space(ring) == 0;
}

/* The slot to fill; the ring must not be full. */
static inline uint32_t base_ring_push(struct base_ring *ring)
{
	return ring->tail++ & ring->mask;
}

/* The slot to empty; the ring must not be empty. */
static inline uint32_t base_ring_pop(struct base_ring *ring)
{
	return ring->head++ & ring->mask;
}

/* The slot i places behind the oldest; i is less than the count. */
static inline uint32_t base_ring_at(const struct base_ring *ring, uint32_t i)
{
	return (ring->head + i) & ring->mask;
}

#endif
