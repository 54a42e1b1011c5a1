/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Octet order at unaligned addresses, and the small arithmetic helpers.
 */
#include "base/bits.h"

#include <criterion/criterion.h>

static const uint8_t octets[] = { 0xEE, 0x01, 0x82, 0x03, 0x84, 0x05, 0x86, 0x07, 0x88 };

Test(bits, get_reads_the_wire_order)
{
	cr_expect_eq(base_get_be16(octets + 1), 0x0182);
	cr_expect_eq(base_get_be32(octets + 1), 0x01820384u);
	cr_expect_eq(base_get_be64(octets + 1), 0x0182038405860788ull);
	cr_expect_eq(base_get_le32(octets + 1), 0x84038201u);
}

Test(bits, put_is_the_inverse_and_no_wider)
{
	for (size_t width = 2; width <= 8; width *= 2) {
		uint8_t buf[10];

		memset(buf, 0xEE, sizeof(buf));
		if (width == 2)
			base_put_be16(buf + 1, 0x0182);
		else if (width == 4)
			base_put_be32(buf + 1, 0x01820384u);
		else
			base_put_be64(buf + 1, 0x0182038405860788ull);
		cr_expect_arr_eq(buf, octets, width + 1, "width %zu", width);
		cr_expect_eq(buf[width + 1], 0xEE, "width %zu", width);
	}
}

Test(bits, put_le32)
{
	uint8_t buf[6] = { 0xEE, 0, 0, 0, 0, 0xEE };

	base_put_le32(buf + 1, 0x84038201u);
	cr_expect_arr_eq(buf, octets, 5);
	cr_expect_eq(buf[5], 0xEE);
}

Test(bits, pow2)
{
	static const struct {
		uint64_t n;
		bool want;
	} rows[] = { { 0, false }, { 1, true },		 { 2, true },	       { 3, false },
		     { 4, true },  { 1ull << 63, true }, { UINT64_MAX, false } };

	for (size_t i = 0; i < base_array_size(rows); i++)
		cr_expect_eq(base_is_pow2(rows[i].n), rows[i].want, "row %zu", i);
}

Test(bits, align)
{
	static const struct {
		size_t n, align, up, down;
	} rows[] = {
		{ 0, 4, 0, 0 }, { 1, 4, 4, 0 }, { 3, 4, 4, 0 },		 { 4, 4, 4, 4 },
		{ 5, 4, 8, 4 }, { 7, 1, 7, 7 }, { 4095, 4096, 4096, 0 }, { 4097, 4096, 8192, 4096 },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		cr_expect_eq(base_align_up(rows[i].n, rows[i].align), rows[i].up, "row %zu", i);
		cr_expect_eq(base_align_down(rows[i].n, rows[i].align), rows[i].down, "row %zu", i);
	}
}

Test(bits, min_max_container)
{
	struct {
		int before;
		long member;
	} outer;
	long *inner = &outer.member;

	cr_expect_eq(base_min(2, 3), 2);
	cr_expect_eq(base_min(3, 2), 2);
	cr_expect_eq(base_max(2, 3), 3);
	cr_expect_eq(base_max(3, 2), 3);
	cr_expect_eq((void *)base_container_of(inner, __typeof__(outer), member), (void *)&outer);
}
