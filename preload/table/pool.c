/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Pools of objects, from mappings of their own: an intercepted call must not allocate by the
 * program's malloc, which may be what called it.
 */
#include "preload/table/pool.h"

#include <pthread.h>
#include <stdint.h>

#include "base/map.h"
#include "preload/table/fork_gen.h"

/* Of all of them: it is held for a moment, and fork() has one to take */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t block_count(const struct pool *p, unsigned int i)
{
	return p->first << i;
}

static void **link_of(const struct pool *p, void *object)
{
	return (void **)(void *)((char *)object + p->link);
}

static void free_push(struct pool *p, void *object)
{
	*link_of(p, object) = p->free;
	p->free = object;
}

/* Under the lock */
static void grow(struct pool *p)
{
	unsigned int i = 0;
	void *block;

	while (i < POOL_BLOCKS && p->block[i])
		i++;
	if (i == POOL_BLOCKS || base_map_create(block_count(p, i) * p->size, &block))
		return;
	for (size_t k = block_count(p, i); k-- > 0;)
		free_push(p, (char *)block + k * p->size);
	__atomic_store_n(&p->block[i], block, __ATOMIC_RELEASE); /* pairs with pool_owns() */
}

void *pool_get(struct pool *p)
{
	void *object;

	pthread_mutex_lock(&lock);
	if (!p->free)
		grow(p);
	object = p->free;
	if (object)
		p->free = *link_of(p, object);
	pthread_mutex_unlock(&lock);
	return object;
}

void pool_put(struct pool *p, void *object)
{
	pthread_mutex_lock(&lock);
	free_push(p, object);
	pthread_mutex_unlock(&lock);
}

bool pool_ready(struct pool *p)
{
	bool ready;

	pthread_mutex_lock(&lock);
	if (!p->free)
		grow(p);
	ready = p->free;
	pthread_mutex_unlock(&lock);
	return ready;
}

bool pool_owns(const struct pool *p, const void *object)
{
	for (unsigned int i = 0; i < POOL_BLOCKS; i++) {
		const char *block = __atomic_load_n(&p->block[i], __ATOMIC_ACQUIRE);
		uintptr_t at = (uintptr_t)object - (uintptr_t)block;

		if (!block)
			return false;
		if (at < block_count(p, i) * p->size)
			return at % p->size == 0;
	}
	return false;
}

void pool_each(const struct pool *p, void (*fn)(void *object))
{
	char *block;

	for (unsigned int i = 0; i < POOL_BLOCKS; i++) {
		block = __atomic_load_n(&p->block[i], __ATOMIC_ACQUIRE);
		for (size_t k = 0; block && k < block_count(p, i); k++)
			fn(block + k * p->size);
	}
}

void pool_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void pool_after_fork(bool child)
{
	fork_gen_lock_drop(&lock, child);
}
