/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The allocator of regions: blocks do not overlap, all memory comes back, wrong addresses are
 * refused.
 */
#include "active/heap.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct active_heap *heap_of(uint64_t size)
{
	struct active_heap *heap = NULL;

	cr_assert_not(active_heap_create(size, &heap));
	return heap;
}

static uint64_t take(struct active_heap *heap, uint64_t size)
{
	uint64_t at, got;

	cr_assert_not(active_heap_alloc(heap, size, &at, &got));
	cr_assert(got >= size && got >= ACTIVE_HEAP_UNIT && !(at % got));
	return at;
}

Test(active_heap, sizes)
{
	static const struct {
		uint64_t size, got;
	} rows[] = { { 0, 64 },	   { 1, 64 },	 { 64, 64 },	 { 65, 128 },
		     { 128, 128 }, { 129, 256 }, { 4096, 4096 }, { 4097, 8192 } };
	struct active_heap *heap = heap_of(1 << 16);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t at, got, back;

		cr_assert_not(active_heap_alloc(heap, rows[i].size, &at, &got));
		cr_assert_eq(got, rows[i].got);
		cr_assert_eq(got, active_heap_block(rows[i].size));
		cr_assert_eq(active_heap_used(heap), got);
		cr_assert_not(active_heap_free(heap, at, &back));
		cr_assert_eq(back, got);
	}
	cr_assert_eq(active_heap_used(heap), 0);
	cr_assert_eq(active_heap_block(UINT64_MAX), UINT64_MAX);
	active_heap_destroy(heap);
	active_heap_destroy(NULL);
}

Test(active_heap, all_of_it_and_no_more)
{
	struct active_heap *heap = heap_of(1 << 16);
	uint64_t at, got;

	cr_assert_eq(active_heap_alloc(heap, (1 << 16) + 1, &at, &got), -ENOMEM);
	cr_assert_eq(active_heap_alloc(heap, UINT64_MAX, &at, &got), -ENOMEM);
	cr_assert_eq(take(heap, 1 << 16), 0);
	cr_assert_eq(active_heap_alloc(heap, 1, &at, &got), -ENOMEM);
	cr_assert_not(active_heap_free(heap, 0, &got));
	for (int i = 0; i < 1024; i++)
		take(heap, 64);
	cr_assert_eq(active_heap_alloc(heap, 1, &at, &got), -ENOMEM);
	for (uint64_t i = 0; i < 1024; i++)
		cr_assert_not(active_heap_free(heap, (i * 7 % 1024) * 64, &got));
	cr_assert_eq(take(heap, 1 << 16), 0);
	active_heap_destroy(heap);
}

/* A size that is no power of two is used to its last unit */
Test(active_heap, odd_sizes)
{
	struct active_heap *heap = heap_of(64 * 11 + 63), *none;
	uint64_t at, got;

	for (int i = 0; i < 11; i++)
		cr_assert_lt(take(heap, 64), 64 * 11);
	cr_assert_eq(active_heap_alloc(heap, 1, &at, &got), -ENOMEM);
	for (uint64_t i = 0; i < 11; i++)
		cr_assert_not(active_heap_free(heap, i * 64, &got));
	cr_assert_eq(take(heap, 512), 0);
	cr_assert_eq(take(heap, 128), 512);
	cr_assert_eq(take(heap, 64), 640);
	active_heap_destroy(heap);
	cr_assert_eq(active_heap_create(63, &none), -EINVAL);
	cr_assert_eq(active_heap_create(UINT64_MAX, &none), -EINVAL);
}

Test(active_heap, wrong_addresses)
{
	struct active_heap *heap = heap_of(1 << 12);
	uint64_t block = take(heap, 256), got;
	static const uint64_t wrong[] = { 1, 63, 64, 128, 256, 1 << 12, 1ull << 40, UINT64_MAX };

	cr_assert_eq(block, 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_assert_eq(active_heap_free(heap, wrong[i], &got), -EINVAL);
	cr_assert_not(active_heap_free(heap, block, &got));
	cr_assert_eq(active_heap_free(heap, block, &got), -EINVAL);
	cr_assert_eq(active_heap_used(heap), 0);
	active_heap_destroy(heap);
}

/* Random blocks, each filled with its own byte: nobody else may have been there */
Test(active_heap, blocks_do_not_overlap)
{
	enum { SIZE = 1 << 18, BLOCKS = 400, STEPS = 60000 };
	static uint8_t memory[SIZE];
	static struct {
		uint64_t at, got;
		uint8_t byte;
	} block[BLOCKS];
	struct active_heap *heap = heap_of(SIZE);
	unsigned int seed = 1;
	uint64_t got, used = 0;

	for (int step = 0; step < STEPS; step++) {
		int i = rand_r(&seed) % BLOCKS;

		if (block[i].got) {
			for (uint64_t j = 0; j < block[i].got; j++)
				cr_assert_eq(memory[block[i].at + j], block[i].byte);
			cr_assert_not(active_heap_free(heap, block[i].at, &got));
			cr_assert_eq(got, block[i].got);
			used -= got;
			block[i].got = 0;
		} else if (!active_heap_alloc(heap, (uint64_t)rand_r(&seed) % 3000, &block[i].at,
					      &block[i].got)) {
			cr_assert_leq(block[i].at + block[i].got, SIZE);
			block[i].byte = (uint8_t)step;
			memset(memory + block[i].at, block[i].byte, block[i].got);
			used += block[i].got;
		}
		cr_assert_eq(active_heap_used(heap), used);
	}
	for (int i = 0; i < BLOCKS; i++)
		if (block[i].got)
			cr_assert_not(active_heap_free(heap, block[i].at, &got));
	cr_assert_eq(take(heap, SIZE), 0);
	active_heap_destroy(heap);
}
