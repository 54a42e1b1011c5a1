/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Indices of the rings of requests. A ring has as many slots as its owner gave it, not a power
 * of two, so the indices do not wrap at 2^32 but at the last multiple of the size below: index
 * % size has no jump there.
 */
#ifndef RDMAP_RING_H
#define RDMAP_RING_H

#include <linux/types.h>

/* A ring of no slots has one index */
static inline __u32 rdmap_ring_span(__u16 size)
{
	return size ? ~0u / size * size : 1;
}

static inline __u32 rdmap_ring_next(__u32 i, __u16 size)
{
	return i + 1 < rdmap_ring_span(size) ? i + 1 : 0;
}

/* How far @tail is ahead of @head; more than @size when it is behind */
static inline __u32 rdmap_ring_count(__u32 head, __u32 tail, __u16 size)
{
	return head <= tail ? tail - head : tail + (rdmap_ring_span(size) - head);
}

#endif
