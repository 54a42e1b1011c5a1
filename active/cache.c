/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cache of objects. Those that nobody uses form a list, the one used last at its end; when
 * they take more memory than they may, or are too many, the first goes. What is in use is never
 * dropped: how much a client may use at once is its session's to bound.
 *
 * Clients choose the hashes, for they choose the objects. So a hash leads to a bucket by a random
 * number, and nobody fills one on purpose.
 *
 * Loading takes milliseconds and is done without the lock. If two load the same at once, the
 * second finds the first's and drops its own.
 */
#include "active/cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/list.h"
#include "base/rand.h"

/* The machine code of each object is a mapping of its own, of which a process has some 65,000 */
enum { BUCKET_BITS = 10, IDLE_MOST = 8192, PAGE = 4096 };

struct active_object {
	struct active_object *next; /* of its bucket */
	struct base_list idle;	    /* in the list while nobody uses it */
	struct ebpf_object *program;
	size_t bytes, users;
	uint8_t hash[BASE_SHA256_SIZE];
};

struct active_cache {
	pthread_mutex_t lock;
	struct active_object *buckets[1 << BUCKET_BITS];
	uint64_t key; /* odd */
	struct base_list idle;
	size_t idle_bytes, idle_most;
	unsigned int idle_count;
	struct active_cache_stats stats;
	const struct ebpf_helpers *helpers;
};

int active_cache_create(size_t bytes, const struct ebpf_helpers *helpers, struct active_cache **out)
{
	struct active_cache *cache = calloc(1, sizeof(*cache));
	int ret;

	if (!cache)
		return -ENOMEM;
	ret = base_rand_u64(&cache->key);
	if (ret) {
		free(cache);
		return ret;
	}
	cache->key |= 1;
	pthread_mutex_init(&cache->lock, NULL);
	base_list_init(&cache->idle);
	cache->idle_most = bytes;
	cache->helpers = helpers;
	*out = cache;
	return 0;
}

static struct active_object **place_of(struct active_cache *cache, const uint8_t *hash)
{
	uint64_t spread = base_get_be64(hash) * cache->key;
	struct active_object **at = &cache->buckets[spread >> (64 - BUCKET_BITS)];

	while (*at && memcmp((*at)->hash, hash, BASE_SHA256_SIZE))
		at = &(*at)->next;
	return at;
}

static void object_free(struct active_object *object)
{
	if (object)
		ebpf_object_destroy(object->program);
	free(object);
}

/* Drops idle objects until there are @count at most, with at most @bytes */
static void shrink(struct active_cache *cache, size_t bytes, unsigned int count)
{
	while (cache->idle_bytes > bytes || cache->idle_count > count) {
		struct active_object *object =
			base_container_of(cache->idle.next, struct active_object, idle);

		base_list_remove(&object->idle);
		*place_of(cache, object->hash) = object->next;
		cache->idle_bytes -= object->bytes;
		cache->idle_count--;
		cache->stats.bytes -= object->bytes;
		cache->stats.objects--;
		cache->stats.evicted++;
		object_free(object);
	}
}

void active_cache_destroy(struct active_cache *cache)
{
	if (!cache)
		return;
	shrink(cache, 0, 0);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

/* One more user of what is in the table; under the lock */
static struct active_object *use(struct active_cache *cache, struct active_object *object)
{
	if (object && !object->users++) {
		base_list_remove(&object->idle);
		cache->idle_bytes -= object->bytes;
		cache->idle_count--;
	}
	return object;
}

struct active_object *active_cache_get(struct active_cache *cache,
				       const uint8_t hash[BASE_SHA256_SIZE])
{
	struct active_object *object;

	pthread_mutex_lock(&cache->lock);
	object = use(cache, *place_of(cache, hash));
	object ? cache->stats.hits++ : cache->stats.misses++;
	pthread_mutex_unlock(&cache->lock);
	return object;
}

void active_cache_put(struct active_cache *cache, struct active_object *object)
{
	pthread_mutex_lock(&cache->lock);
	if (!--object->users) {
		base_list_push_back(&cache->idle, &object->idle);
		cache->idle_bytes += object->bytes;
		cache->idle_count++;
		shrink(cache, cache->idle_most, IDLE_MOST);
	}
	pthread_mutex_unlock(&cache->lock);
}

/*
 * Memory of a loaded object: instructions and what is noted of each, its file's data, machine
 * code
 */
static size_t memory_of(const struct ebpf_object *program, size_t file)
{
	size_t count;

	ebpf_object_insns(program, &count);
	return sizeof(struct active_object) + file + count * 32 +
	       base_align_up(ebpf_object_code_size(program), PAGE);
}

static int object_load(struct active_cache *cache, const void *elf, size_t len,
		       struct active_object **out, struct ebpf_error *err)
{
	struct active_object *object = calloc(1, sizeof(*object));
	int ret;

	if (!object)
		return -ENOMEM;
	ret = ebpf_object_load(elf, len, cache->helpers, 0, &object->program, err);
	if (ret) {
		free(object);
		return ret;
	}
	object->bytes = memory_of(object->program, len);
	object->users = 1;
	*out = object;
	return 0;
}

/* Puts it into the table, or finds that another was quicker */
static struct active_object *object_add(struct active_cache *cache, struct active_object *object)
{
	struct active_object **at;

	pthread_mutex_lock(&cache->lock);
	at = place_of(cache, object->hash);
	if (*at) {
		object_free(object);
		object = use(cache, *at);
	} else {
		*at = object;
		cache->stats.objects++;
		cache->stats.bytes += object->bytes;
	}
	pthread_mutex_unlock(&cache->lock);
	return object;
}

int active_cache_load(struct active_cache *cache, const uint8_t hash[BASE_SHA256_SIZE],
		      const void *elf, size_t len, struct active_object **out,
		      struct ebpf_error *err)
{
	struct active_object *object;
	uint8_t found[BASE_SHA256_SIZE];
	int ret;

	base_sha256(elf, len, found);
	if (memcmp(found, hash, sizeof(found)))
		return -EBADMSG;
	object = active_cache_get(cache, hash);
	if (!object) {
		ret = object_load(cache, elf, len, &object, err);
		if (ret)
			return ret;
		memcpy(object->hash, hash, sizeof(object->hash));
		object = object_add(cache, object);
	}
	*out = object;
	return 0;
}

const struct ebpf_object *active_object_program(const struct active_object *object)
{
	return object->program;
}

void active_cache_query(struct active_cache *cache, struct active_cache_stats *stats)
{
	pthread_mutex_lock(&cache->lock);
	*stats = cache->stats;
	pthread_mutex_unlock(&cache->lock);
}
