/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_EXAMPLES_POOL_CODE_H
#define APPS_EXAMPLES_POOL_CODE_H

/*
 * An allocator in a region, for clients and for the programs that they send (place.h): blocks of
 * POOL_CLASSES sizes. A block's number is its offset in units of 64 bytes.
 *
 * The region begins with the offset of memory that was never used, and for each size the list of
 * free blocks: the number of the first in the lower half, and in the upper one how often a block
 * was taken, for one may come back while somebody else takes it. A free block begins with the
 * number of the next. All is changed by compare-and-swap, so a client that dies costs one block at
 * most.
 */

#include "place.h"

enum { POOL_CLASSES = 7, POOL_BLOCK_MIN = 128, POOL_TRIES = 100 };
enum { POOL_BLOCK_MAX = POOL_BLOCK_MIN << (POOL_CLASSES - 1) };
enum { POOL_FREE_AT = 0, POOL_LISTS_AT = 8 };

static inline unsigned long pool_size(unsigned int class)
{
	return (unsigned long)POOL_BLOCK_MIN << class;
}

/* The smallest that has room, or POOL_CLASSES */
static inline unsigned int pool_class(unsigned long size)
{
	unsigned int class = 0;

	while (class < POOL_CLASSES && pool_size(class) < size)
		class ++;
	return class;
}

/* From the region's beginning; what stands above the number's 32 bits does not count */
static inline unsigned long pool_block_addr(unsigned long block)
{
	return (block & 0xffffffff) * 64;
}

/* 1: *block is a free one, 0: there is none; or an error */
static inline int pool_list_take(struct place *place, unsigned long pool, unsigned long size,
				 unsigned int class, unsigned long *block)
{
	unsigned long list = pool + POOL_LISTS_AT + class * 8, head, next, seen;
	int ret = place_load(place, list, &head);

	for (int i = 0; i < POOL_TRIES && !ret; i++) {
		unsigned long at = pool_block_addr(head);

		if (!at)
			return 0;
		if (at > size || size - at < pool_size(class))
			return PLACE_DAMAGED;
		ret = place_load(place, pool + at, &next);
		seen = head;
		if (!ret)
			ret = place_swap(place, list, &head,
					 (next & 0xffffffff) | ((head >> 32) + 1) << 32);
		if (!ret && head == seen) {
			*block = seen & 0xffffffff;
			return 1;
		}
	}
	return ret ? ret : PLACE_AGAIN;
}

/* Memory that was never used */
static inline int pool_new_take(struct place *place, unsigned long pool, unsigned long size,
				unsigned int class, unsigned long *block)
{
	unsigned long offset, seen;
	int ret = place_load(place, pool + POOL_FREE_AT, &offset);

	for (int i = 0; i < POOL_TRIES && !ret; i++) {
		if (offset > size || size - offset < pool_size(class))
			return PLACE_FULL;
		seen = offset;
		ret = place_swap(place, pool + POOL_FREE_AT, &offset, offset + pool_size(class));
		if (!ret && offset == seen) {
			*block = offset / 64;
			return 0;
		}
	}
	return ret ? ret : PLACE_AGAIN;
}

/* Of the pool of @size bytes at @pool */
static inline int pool_take(struct place *place, unsigned long pool, unsigned long size,
			    unsigned int class, unsigned long *block)
{
	int ret;

	*block = 0;
	ret = pool_list_take(place, pool, size, class, block);
	if (ret)
		return ret < 0 ? ret : 0;
	return pool_new_take(place, pool, size, class, block);
}

static inline int pool_give(struct place *place, unsigned long pool, unsigned int class,
			    unsigned long block)
{
	unsigned long list = pool + POOL_LISTS_AT + class * 8, head, next, seen;
	int ret = place_load(place, list, &head);

	for (int i = 0; i < POOL_TRIES && !ret; i++) {
		next = head & 0xffffffff;
		seen = head;
		ret = place_store(place, pool + pool_block_addr(block), &next, sizeof(next));
		if (!ret)
			ret = place_swap(place, list, &head,
					 (block & 0xffffffff) | (head >> 32) << 32);
		if (!ret && head == seen)
			return 0;
	}
	return ret ? ret : PLACE_AGAIN;
}

#endif
