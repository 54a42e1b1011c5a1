/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A buddy allocator. A block of order k has ACTIVE_HEAP_UNIT << k bytes and begins at a multiple
 * of that; two neighbours that were one are joined again when both are free.
 *
 * For each unit there are a byte, which says what begins there, and two links, which a free block
 * uses. They lie in a mapping that costs memory only where blocks begin.
 */
#include "active/heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/bits.h"

enum { ORDERS = 32, NONE = 0 };

/* What begins at a unit: nothing (0), or an order plus one, with the flag if it is in use */
enum { IN_USE = 0x80 };

struct links {
	uint32_t next, prev; /* units plus one; NONE behind the last */
};

struct active_heap {
	pthread_mutex_t lock;
	uint32_t units;
	uint64_t used;
	uint32_t first[ORDERS]; /* free blocks of each order */
	struct links *links;
	uint8_t *begins;
	size_t mapped;
};

static void list_add(struct active_heap *h, unsigned int order, uint32_t unit)
{
	uint32_t next = h->first[order];

	h->begins[unit] = (uint8_t)(order + 1);
	h->links[unit] = (struct links){ next, NONE };
	if (next)
		h->links[next - 1].prev = unit + 1;
	h->first[order] = unit + 1;
}

static void list_remove(struct active_heap *h, unsigned int order, uint32_t unit)
{
	struct links at = h->links[unit];

	h->begins[unit] = 0;
	if (at.next)
		h->links[at.next - 1].prev = at.prev;
	if (at.prev)
		h->links[at.prev - 1].next = at.next;
	else
		h->first[order] = at.next;
}

/* The largest blocks that fit, in order */
static void blocks_fill(struct active_heap *h)
{
	uint32_t unit = 0;

	while (unit < h->units) {
		uint32_t left = h->units - unit;
		unsigned int order = 31 - (unsigned int)__builtin_clz(left);

		if (unit && (unsigned int)__builtin_ctz(unit) < order)
			order = (unsigned int)__builtin_ctz(unit);
		list_add(h, order, unit);
		unit += 1u << order;
	}
}

int active_heap_create(uint64_t size, struct active_heap **out)
{
	uint64_t units = size / ACTIVE_HEAP_UNIT;
	struct active_heap *h;
	void *map;

	if (!units || units >= UINT32_MAX)
		return -EINVAL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->mapped = (size_t)units * (sizeof(*h->links) + 1);
	map = mmap(NULL, h->mapped, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED) {
		free(h);
		return -ENOMEM;
	}
	h->links = map;
	h->begins = (uint8_t *)(h->links + units);
	h->units = (uint32_t)units;
	pthread_mutex_init(&h->lock, NULL);
	blocks_fill(h);
	*out = h;
	return 0;
}

void active_heap_destroy(struct active_heap *h)
{
	if (!h)
		return;
	munmap(h->links, h->mapped);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

static unsigned int order_of(uint64_t size)
{
	uint64_t units = size / ACTIVE_HEAP_UNIT + (size % ACTIVE_HEAP_UNIT != 0);

	return units > 1 ? 64 - (unsigned int)__builtin_clzll(units - 1) : 0;
}

uint64_t active_heap_block(uint64_t size)
{
	return order_of(size) < ORDERS ? (uint64_t)ACTIVE_HEAP_UNIT << order_of(size) : UINT64_MAX;
}

/* Under the lock: takes a block of @order, cut from a larger one if there must be */
static int block_take(struct active_heap *h, unsigned int order, uint32_t *out)
{
	unsigned int from = order;
	uint32_t unit;

	while (from < ORDERS && !h->first[from])
		from++;
	if (from >= ORDERS)
		return -ENOMEM;
	unit = h->first[from] - 1;
	list_remove(h, from, unit);
	while (from-- > order)
		list_add(h, from, unit + (1u << from));
	h->begins[unit] = (uint8_t)(IN_USE | (order + 1));
	*out = unit;
	return 0;
}

int active_heap_alloc(struct active_heap *h, uint64_t size, uint64_t *at, uint64_t *got)
{
	unsigned int order;
	uint32_t unit;
	int ret;

	if (size > (uint64_t)h->units * ACTIVE_HEAP_UNIT)
		return -ENOMEM;
	order = order_of(size);
	pthread_mutex_lock(&h->lock);
	ret = block_take(h, order, &unit);
	if (!ret)
		h->used += (uint64_t)ACTIVE_HEAP_UNIT << order;
	pthread_mutex_unlock(&h->lock);
	if (ret)
		return ret;
	*at = (uint64_t)unit * ACTIVE_HEAP_UNIT;
	*got = (uint64_t)ACTIVE_HEAP_UNIT << order;
	return 0;
}

/* Under the lock: joins it with its buddy as long as that is free and whole */
static void block_give(struct active_heap *h, unsigned int order, uint32_t unit)
{
	h->begins[unit] = 0;
	while (order + 1 < ORDERS) {
		uint32_t buddy = unit ^ (1u << order);

		if (buddy >= h->units || h->begins[buddy] != order + 1)
			break;
		list_remove(h, order, buddy);
		unit &= ~(1u << order);
		order++;
	}
	list_add(h, order, unit);
}

int active_heap_free(struct active_heap *h, uint64_t at, uint64_t *got)
{
	uint64_t unit = at / ACTIVE_HEAP_UNIT;
	unsigned int order;
	int ret = -EINVAL;

	if (at % ACTIVE_HEAP_UNIT || unit >= h->units)
		return -EINVAL;
	pthread_mutex_lock(&h->lock);
	if (h->begins[unit] & IN_USE) {
		order = (h->begins[unit] & ~(unsigned int)IN_USE) - 1;
		*got = (uint64_t)ACTIVE_HEAP_UNIT << order;
		h->used -= *got;
		block_give(h, order, (uint32_t)unit);
		ret = 0;
	}
	pthread_mutex_unlock(&h->lock);
	return ret;
}

uint64_t active_heap_used(struct active_heap *h)
{
	uint64_t used;

	pthread_mutex_lock(&h->lock);
	used = h->used;
	pthread_mutex_unlock(&h->lock);
	return used;
}
