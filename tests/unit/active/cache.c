/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cache of objects: one for each hash, kept while it is used, dropped when memory is short;
 * objects of ten thousand clients do not fill it; many threads at once.
 */
#include "active/cache.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/run.h"

enum { FILE_MAX = 1 << 17 };

static uint8_t *file;
static size_t file_len;

static void file_read(void)
{
	FILE *f = fopen(BPF_PROGRAMS "/wild.object", "r");

	file = malloc(FILE_MAX);
	cr_assert(f && file);
	file_len = fread(file, 1, FILE_MAX - 8, f);
	fclose(f);
}

/* The same object with another number behind it, so another hash */
static int load(struct active_cache *cache, uint64_t number, struct active_object **out,
		uint8_t hash[BASE_SHA256_SIZE])
{
	uint8_t copy[FILE_MAX];
	struct ebpf_error err;

	memcpy(copy, file, file_len);
	memcpy(copy + file_len, &number, 8);
	base_sha256(copy, file_len + 8, hash);
	return active_cache_load(cache, hash, copy, file_len + 8, out, &err);
}

static struct active_cache_stats stats_of(struct active_cache *cache)
{
	struct active_cache_stats stats;

	active_cache_query(cache, &stats);
	return stats;
}

Test(active_cache, an_object_is_there_once, .init = file_read)
{
	struct active_cache *cache;
	struct active_object *a, *b, *c;
	uint8_t hash[BASE_SHA256_SIZE];

	cr_assert_not(active_cache_create(1 << 20, NULL, &cache));
	cr_assert_not(load(cache, 1, &a, hash));
	cr_assert_null(active_cache_get(cache, (const uint8_t[BASE_SHA256_SIZE]){ 1 }));
	b = active_cache_get(cache, hash);
	cr_assert_not(load(cache, 1, &c, hash));
	cr_assert(a == b && b == c);
	cr_assert_eq(stats_of(cache).objects, 1);
	active_cache_put(cache, a);
	active_cache_put(cache, b);
	active_cache_put(cache, c);
	cr_assert_eq(active_cache_get(cache, hash), a);
	active_cache_put(cache, a);
	active_cache_destroy(cache);
	active_cache_destroy(NULL);
}

Test(active_cache, what_is_refused_is_not_kept, .init = file_read)
{
	uint8_t hash[BASE_SHA256_SIZE] = { 0 };
	struct active_object *object = NULL;
	struct active_cache *cache;
	struct ebpf_error err;

	cr_assert_not(active_cache_create(1 << 20, NULL, &cache));
	cr_assert_eq(active_cache_load(cache, hash, file, file_len, &object, &err), -EBADMSG);
	base_sha256("no object", 9, hash);
	cr_assert_eq(active_cache_load(cache, hash, "no object", 9, &object, &err), -ENOEXEC);
	cr_assert_null(object);
	cr_assert_eq(stats_of(cache).objects, 0);
	active_cache_destroy(cache);
}

Test(active_cache, objects_of_ten_thousand_clients, .init = file_read, .timeout = 60)
{
	enum { CLIENTS = 10000, MOST = 1 << 20 };
	uint8_t hash[BASE_SHA256_SIZE], kept[BASE_SHA256_SIZE];
	struct active_object *object, *used;
	struct active_cache_stats stats;
	struct active_cache *cache;

	cr_assert_not(active_cache_create(MOST, NULL, &cache));
	cr_assert_not(load(cache, 0, &used, kept));
	for (uint64_t i = 1; i <= CLIENTS; i++) {
		cr_assert_not(load(cache, i, &object, hash));
		active_cache_put(cache, object);
		cr_assert_leq(stats_of(cache).bytes, MOST + 2 * FILE_MAX);
	}
	stats = stats_of(cache);
	cr_assert_eq(stats.objects + stats.evicted, CLIENTS + 1);
	cr_assert_gt(stats.objects, 10);
	/* the last is there, the first is not, and what is in use was never dropped */
	cr_assert_eq(active_cache_get(cache, hash), object);
	active_cache_put(cache, object);
	cr_assert_eq(active_cache_get(cache, kept), used);
	active_cache_put(cache, used);
	active_cache_put(cache, used);
	cr_assert_not(load(cache, 1, &object, hash));
	cr_assert_eq(stats_of(cache).objects + stats_of(cache).evicted, CLIENTS + 2);
	active_cache_put(cache, object);
	active_cache_destroy(cache);
}

/* Each has a mapping of its own for its machine code: of these a process has not many */
Test(active_cache, small_objects_are_not_many, .init = file_read, .timeout = 60)
{
	enum { OBJECTS = 10000, MOST = 8192 };
	uint8_t hash[BASE_SHA256_SIZE];
	struct active_object *object;
	struct active_cache *cache;

	cr_assert_not(active_cache_create(1ul << 40, NULL, &cache));
	for (uint64_t i = 1; i <= OBJECTS; i++) {
		cr_assert_not(load(cache, i, &object, hash));
		active_cache_put(cache, object);
	}
	cr_assert_eq(stats_of(cache).objects, MOST);
	cr_assert_eq(stats_of(cache).evicted, OBJECTS - MOST);
	cr_assert_geq(stats_of(cache).bytes, MOST * (file_len + 4096));
	cr_assert_eq(active_cache_get(cache, hash), object);
	active_cache_put(cache, object);
	active_cache_destroy(cache);
}

/* The one that was used last is dropped last. */
Test(active_cache, what_is_used_again_stays, .init = file_read)
{
	uint8_t hash[2][BASE_SHA256_SIZE], other[BASE_SHA256_SIZE];
	struct active_object *object;
	struct active_cache *cache;
	size_t each;

	cr_assert_not(active_cache_create(1 << 24, NULL, &cache));
	cr_assert_not(load(cache, 0, &object, other));
	each = stats_of(cache).bytes;
	active_cache_put(cache, object);
	active_cache_destroy(cache);
	cr_assert_not(active_cache_create(2 * each, NULL, &cache));
	for (uint64_t i = 0; i < 2; i++) {
		cr_assert_not(load(cache, i, &object, hash[i]));
		active_cache_put(cache, object);
	}
	active_cache_put(cache, active_cache_get(cache, hash[0]));
	cr_assert_not(load(cache, 2, &object, other));
	active_cache_put(cache, object);
	cr_assert_null(active_cache_get(cache, hash[1]));
	object = active_cache_get(cache, hash[0]);
	cr_assert_not_null(object);
	active_cache_put(cache, object);
	active_cache_destroy(cache);
}

static void *use_it(void *arg)
{
	uint8_t hash[BASE_SHA256_SIZE];

	for (uint64_t i = 0; i < 300; i++) {
		struct active_object *object = NULL;
		uint32_t pc;

		if (load(arg, i % 7, &object, hash) ||
		    ebpf_object_entry(active_object_program(object), "wild", &pc))
			return arg;
		active_cache_put(arg, object);
	}
	return NULL;
}

Test(active_cache, by_many_threads, .init = file_read, .timeout = 60)
{
	struct active_cache *cache;
	pthread_t threads[4];
	void *bad;

	cr_assert_not(active_cache_create(20000, NULL, &cache));
	for (int i = 0; i < 4; i++)
		cr_assert_not(pthread_create(&threads[i], NULL, use_it, cache));
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &bad);
		cr_assert_null(bad);
	}
	cr_assert_leq(stats_of(cache).bytes, 20000);
	active_cache_destroy(cache);
}

/* Each round all threads load the same new object at once; they must get the same one. */
struct racer {
	struct active_cache *cache;
	struct active_object **got; /* of this thread, for each round */
	pthread_barrier_t *barrier;
};

enum { RACERS = 3, ROUNDS = 60 };

static void *race(void *arg)
{
	struct racer *r = arg;
	uint8_t hash[BASE_SHA256_SIZE];

	for (uint64_t i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(r->barrier);
		if (load(r->cache, i, &r->got[i], hash))
			r->got[i] = NULL;
	}
	return NULL;
}

Test(active_cache, who_loads_the_same_gets_the_same, .init = file_read, .timeout = 60)
{
	static struct active_object *got[RACERS][ROUNDS];
	struct racer racers[RACERS];
	pthread_t threads[RACERS];
	pthread_barrier_t barrier;
	struct active_cache *cache;

	cr_assert_not(active_cache_create(1 << 20, NULL, &cache));
	pthread_barrier_init(&barrier, NULL, RACERS);
	for (int i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){ cache, got[i], &barrier };
		cr_assert_not(pthread_create(&threads[i], NULL, race, &racers[i]));
	}
	for (int i = 0; i < RACERS; i++)
		pthread_join(threads[i], NULL);
	for (int j = 0; j < ROUNDS; j++)
		for (int i = 0; i < RACERS; i++) {
			cr_assert(got[i][j] && got[i][j] == got[0][j]);
			active_cache_put(cache, got[i][j]);
		}
	cr_assert_eq(stats_of(cache).objects + stats_of(cache).evicted, ROUNDS);
	active_cache_destroy(cache);
	pthread_barrier_destroy(&barrier);
}
