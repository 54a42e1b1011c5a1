/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scatter lists: every offset and length of a list with empty pieces, and a cap on the pieces.
 */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "ddp/ddp.h"

static char pool[64];
/* twelve octets: "abc" "" "d" "efghijk" "" "l", apart from each other in memory */
static struct iovec list[6];
#define WHOLE "abcdefghijkl"

static void setup(void)
{
	static const size_t lens[] = { 3, 0, 1, 7, 0, 1 };
	const char *from = WHOLE;
	char *at = pool;

	memset(pool, '.', sizeof(pool));
	for (size_t i = 0; i < base_array_size(lens); i++) {
		list[i] = (struct iovec){ at, lens[i] };
		memcpy(at, from, lens[i]);
		from += lens[i];
		at += lens[i] + 2;
	}
}

TestSuite(sg, .init = setup);

Test(sg, gather_refers_to_exactly_the_octets)
{
	for (size_t off = 0; off <= 12; off++) {
		for (size_t len = 0; off + len <= 12; len++) {
			struct iovec out[6];
			char got[12];
			size_t n = 0, there = len;
			unsigned int np = ddp_gather(list, 6, off, &there, out, 6);

			for (unsigned int i = 0; i < np; i++) {
				cr_assert_gt(out[i].iov_len, 0);
				memcpy(got + n, out[i].iov_base, out[i].iov_len);
				n += out[i].iov_len;
			}
			cr_assert_eq(n, len, "%zu+%zu", off, len);
			cr_assert_arr_eq(got, &WHOLE[off], len, "%zu+%zu", off, len);
		}
	}
}

Test(sg, gather_stops_at_the_cap_and_at_the_end)
{
	static const struct {
		__u64 off;
		size_t len;
		unsigned int cap, np;
		size_t got;
	} rows[] = {
		{ 0, 12, 4, 4, 12 }, { 0, 12, 3, 3, 11 }, { 0, 12, 2, 2, 4 }, { 0, 12, 1, 1, 3 },
		{ 0, 12, 0, 0, 0 },  { 2, 3, 2, 2, 2 },	  { 2, 3, 3, 3, 3 },  { 3, 0, 4, 0, 0 },
		{ 0, 13, 6, 4, 12 }, { 12, 1, 6, 0, 0 },  { 99, 5, 6, 0, 0 }, { 11, 9, 6, 1, 1 },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct iovec out[6];
		size_t len = rows[i].len;

		cr_expect_eq(ddp_gather(list, 6, rows[i].off, &len, out, rows[i].cap), rows[i].np,
			     "row %zu", i);
		cr_expect_eq(len, rows[i].got, "row %zu: %zu", i, len);
	}
}

Test(sg, scatter_writes_exactly_the_octets)
{
	for (size_t off = 0; off <= 12; off++) {
		for (size_t len = 0; off + len <= 12; len++) {
			char want[sizeof(pool)];
			size_t at = 0;

			setup();
			memcpy(want, pool, sizeof(want));
			for (size_t i = 0; i < 6; i++) {
				for (size_t k = 0; k < list[i].iov_len; k++, at++) {
					size_t place =
						(size_t)((char *)list[i].iov_base - pool) + k;

					if (at >= off && at < off + len)
						want[place] = (char)('A' + (at - off));
				}
			}
			ddp_scatter(list, 6, off, "ABCDEFGHIJKL", len);
			cr_assert_arr_eq(pool, want, sizeof(pool), "%zu+%zu", off, len);
		}
	}
}

/* Addresses are only counted with, never followed */
Test(sg, offsets_beyond_32_bits)
{
	const uintptr_t base = 0x10000, far = 1ull << 33;
	struct iovec big[2] = { { (void *)base, far }, { (void *)(2 * far), 4 } };
	struct iovec out[2];
	size_t len = 3;

	cr_assert_eq(ddp_gather(big, 2, far - 1, &len, out, 2), 2);
	cr_expect_eq((uintptr_t)out[0].iov_base, base + far - 1);
	cr_expect_eq(out[0].iov_len, 1);
	cr_expect_eq((uintptr_t)out[1].iov_base, 2 * far);
	cr_expect_eq(out[1].iov_len, 2);
}
