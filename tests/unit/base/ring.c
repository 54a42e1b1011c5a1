/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ring indices: fill, wrap of the slots, and wrap of the counters themselves.
 */
#include "base/ring.h"

#include <criterion/criterion.h>

Test(ring, size_is_a_power_of_two)
{
	static const struct {
		uint32_t size;
		int want;
	} rows[] = { { 0, -EINVAL }, { 1, 0 },	      { 3, -EINVAL },
		     { 8, 0 },	     { 1u << 31, 0 }, { UINT32_MAX, -EINVAL } };
	struct base_ring ring;

	for (size_t i = 0; i < base_array_size(rows); i++)
		cr_expect_eq(base_ring_init(&ring, rows[i].size), rows[i].want, "row %zu", i);
}

Test(ring, fills_every_slot)
{
	struct base_ring ring;

	cr_assert_eq(base_ring_init(&ring, 4), 0);
	cr_assert(base_ring_empty(&ring));
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert_not(base_ring_full(&ring));
		cr_assert_eq(base_ring_space(&ring), 4 - i);
		cr_assert_eq(base_ring_push(&ring), i);
		cr_assert_eq(base_ring_count(&ring), i + 1);
	}
	cr_assert(base_ring_full(&ring));
	cr_assert_not(base_ring_empty(&ring));
}

/* Starts close to 2^32, so that head and tail wrap inside the run. */
Test(ring, slots_come_back_in_order_across_the_wrap)
{
	struct base_ring ring = { .head = UINT32_MAX - 5, .tail = UINT32_MAX - 5, .mask = 3 };
	uint32_t slots[4], in = 0, out = 0;

	while (out < 100) {
		while (!base_ring_full(&ring))
			slots[base_ring_push(&ring)] = in++;
		cr_assert_eq(base_ring_count(&ring), 4);
		for (uint32_t i = 0; i < 4; i++)
			cr_assert_eq(slots[base_ring_at(&ring, i)], out + i);
		for (uint32_t i = 0; i < 3; i++)
			cr_assert_eq(slots[base_ring_pop(&ring)], out++);
	}
	cr_assert_eq(base_ring_count(&ring), 1);
}
