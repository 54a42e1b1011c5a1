/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_CACHE_H
#define ACTIVE_CACHE_H

/*
 * Loaded objects by the SHA-256 of their files. An object that two clients send is there once.
 * All calls may be made by any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sha256.h"
#include "bpf/object.h"

struct active_cache;
struct active_object;

struct active_cache_stats {
	size_t objects, bytes; /* that are kept, with what is used at the moment */
	uint64_t hits, misses, evicted;
};

/* @bytes: how much memory objects may take that nobody uses */
int active_cache_create(size_t bytes, const struct ebpf_helpers *helpers,
			struct active_cache **out);
/* All objects must have been put back */
void active_cache_destroy(struct active_cache *cache);

/* The object of this hash, with a reference for the caller; NULL if it is not there */
struct active_object *active_cache_get(struct active_cache *cache,
				       const uint8_t hash[BASE_SHA256_SIZE]);
/*
 * Loads it, unless it is there, and gives a reference. -EBADMSG: the file has another hash;
 * others as of ebpf_object_load()
 */
int active_cache_load(struct active_cache *cache, const uint8_t hash[BASE_SHA256_SIZE],
		      const void *elf, size_t len, struct active_object **out,
		      struct ebpf_error *err);
void active_cache_put(struct active_cache *cache, struct active_object *object);
const struct ebpf_object *active_object_program(const struct active_object *object);
void active_cache_query(struct active_cache *cache, struct active_cache_stats *stats);

#endif
