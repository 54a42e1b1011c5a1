/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ACTIVE_HEAP_H
#define ACTIVE_HEAP_H

/*
 * Memory for programs inside of a region. What the allocator knows stands outside of it: whatever
 * clients write to the region, the allocator stays whole. All calls may be made by any thread.
 */

#include <stddef.h>
#include <stdint.h>

/* Blocks are of this size times a power of two, and aligned to it from the heap's beginning */
enum { ACTIVE_HEAP_UNIT = 64 };

struct active_heap;

/* For @size bytes; what is less than a unit at the end is not used. -EINVAL: less than a unit */
int active_heap_create(uint64_t size, struct active_heap **out);
void active_heap_destroy(struct active_heap *heap);
/* How many bytes a block for @size bytes has; UINT64_MAX: there is none so large */
uint64_t active_heap_block(uint64_t size);
/* The offset of @size bytes into *@at, and how many the block has into *@got. -ENOMEM */
int active_heap_alloc(struct active_heap *heap, uint64_t size, uint64_t *at, uint64_t *got);
/* -EINVAL: no block begins there that was allocated. *@got: its size */
int active_heap_free(struct active_heap *heap, uint64_t at, uint64_t *got);
uint64_t active_heap_used(struct active_heap *heap);

#endif
