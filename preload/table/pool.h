/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_POOL_H
#define PRELOAD_POOL_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Objects of one size that stay objects of their kind for ever: memory goes back to the pool,
 * never to the kernel, so a pointer that is out of date still points at one. Blocks double,
 * which keeps their number small.
 */
#define POOL_BLOCKS 20

struct pool {
	size_t size;
	size_t first;		  /* objects of the first block */
	void *free;		  /* linked through @link of each object */
	size_t link;		  /* where a free object may be overwritten */
	char *block[POOL_BLOCKS]; /* read without the lock */
};

#define POOL_INIT(type, member, count)                                                 \
	{                                                                              \
		.size = sizeof(type), .first = (count), .link = offsetof(type, member) \
	}

/* Not zeroed; NULL: no memory */
void *pool_get(struct pool *p);
void pool_put(struct pool *p, void *object);
/* Has it one more? */
bool pool_ready(struct pool *p);
/* Is it the address of an object of the pool? */
bool pool_owns(const struct pool *p, const void *object);

/* All there are memory for, also free ones: the callback must be able to tell */
void pool_each(const struct pool *p, void (*fn)(void *object));

/* Around fork(): of all pools; in between, nobody gets or puts, nor does who forks */
void pool_before_fork(void);
void pool_after_fork(bool child);

#endif
