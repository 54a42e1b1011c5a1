/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ring indices: slots follow each other also where the index wraps.
 */
#include "rdmap/ring.h"

#include <criterion/criterion.h>

Test(rdmap_ring, slots_have_no_jump)
{
	static const __u16 sizes[] = { 1, 2, 3, 6, 7, 128, 1000, 65535 };

	for (unsigned int k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		__u16 size = sizes[k];
		__u32 i = rdmap_ring_span(size) - 3, head = i, slot = i % size;

		cr_assert_gt(rdmap_ring_span(size), ~0u - 65536);
		for (__u32 n = 0; n < 10; n++) {
			cr_assert_eq(i % size, slot, "size %u", size);
			cr_assert_eq(rdmap_ring_count(head, i, size), n, "size %u", size);
			i = rdmap_ring_next(i, size);
			slot = (slot + 1) % size;
		}
		cr_assert_lt(i, 10);
	}
}

Test(rdmap_ring, a_tail_that_is_behind_counts_as_much)
{
	cr_assert_gt(rdmap_ring_count(5, 4, 6), 6);
	cr_assert_gt(rdmap_ring_count(0, rdmap_ring_span(6) - 1, 6), 6);
}

Test(rdmap_ring, no_slots)
{
	cr_assert_eq(rdmap_ring_next(0, 0), 0);
	cr_assert_eq(rdmap_ring_count(0, 0, 0), 0);
}
