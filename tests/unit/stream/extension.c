/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The extension block: what is said, what of the peer's is taken, skipped, or refused.
 */
#include "stream/protocol/extension.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <wire/rsockets.h>

#include "base/bits.h"

#define HEAD(len) 'W', 'A', 'R', 'P', 1, 0, 0, (len)
#define FEATURES 1, 4, 0, 0, 0, 3
#define WINDOW 2, 8, 0, 0, 0, 0, 0, 1, 0, 0
#define DEPTH 3, 4, 0, 5, 0, 6

static const struct {
	const char *name;
	uint8_t octets[160];
	size_t len;
	int err;
	struct stream_ext want;
} cases[] = {
	{ .name = "nothing", .octets = { 0 }, .len = 0 },
	{ .name = "a part of the head", .octets = { HEAD(0) }, .len = 7 },
	{ .name = "no values", .octets = { HEAD(0) }, .len = 8 },
	{ .name = "other octets",
	  .octets = { 'W', 'A', 'R', 'Q', 1, 0, 0, 6, FEATURES },
	  .len = 14 },
	{ .name = "another version", .octets = { 'W', 'A', 'R', 'P', 2, 0, 0xff, 0xff }, .len = 8 },
	{ .name = "features",
	  .octets = { HEAD(6), FEATURES },
	  .len = 14,
	  .want = { .features = 3 } },
	{ .name = "all",
	  .octets = { HEAD(22), FEATURES, WINDOW, DEPTH },
	  .len = 30,
	  .want = { .features = 3, .ird = 5, .ord = 6, .window = 65536 } },
	{ .name = "another order",
	  .octets = { HEAD(22), DEPTH, WINDOW, FEATURES },
	  .len = 30,
	  .want = { .features = 3, .ird = 5, .ord = 6, .window = 65536 } },
	{ .name = "octets behind the block",
	  .octets = { HEAD(6), FEATURES, 1, 4, 1, 1 },
	  .len = 18,
	  .want = { .features = 3 } },
	{ .name = "an unknown value, empty",
	  .octets = { HEAD(8), 77, 0, FEATURES },
	  .len = 16,
	  .want = { .features = 3 } },
	{ .name = "an unknown value, twice",
	  .octets = { HEAD(14), 200, 2, 1, 1, FEATURES, 200, 2, 1, 1 },
	  .len = 22,
	  .want = { .features = 3 } },
	{ .name = "type 0",
	  .octets = { HEAD(9), 0, 1, 9, FEATURES },
	  .len = 17,
	  .want = { .features = 3 } },
	{ .name = "shorter than it says",
	  .octets = { HEAD(7), FEATURES },
	  .len = 14,
	  .err = -EPROTO },
	{ .name = "a length of 64 KiB",
	  .octets = { 'W', 'A', 'R', 'P', 1, 0, 0xff, 0xff, FEATURES },
	  .len = 14,
	  .err = -EPROTO },
	{ .name = "half a head of a value",
	  .octets = { HEAD(7), FEATURES, 2 },
	  .len = 15,
	  .err = -EPROTO },
	{ .name = "a value that is cut",
	  .octets = { HEAD(5), 1, 4, 0, 0, 0 },
	  .len = 13,
	  .err = -EPROTO },
	{ .name = "a value beyond the block, octets there",
	  .octets = { HEAD(6), 1, 5, 0, 0, 0, 3, 9 },
	  .len = 15,
	  .err = -EPROTO },
	{ .name = "features twice",
	  .octets = { HEAD(12), FEATURES, FEATURES },
	  .len = 20,
	  .err = -EPROTO },
	{ .name = "features too short",
	  .octets = { HEAD(5), 1, 3, 0, 0, 3 },
	  .len = 13,
	  .err = -EPROTO },
	{ .name = "features too long",
	  .octets = { HEAD(7), 1, 5, 0, 0, 0, 3, 0 },
	  .len = 15,
	  .err = -EPROTO },
	{ .name = "a window too short",
	  .octets = { HEAD(6), 2, 4, 0, 0, 0, 3 },
	  .len = 14,
	  .err = -EPROTO },
	{ .name = "longer than a block may be",
	  .octets = { HEAD(120), 99, 118 },
	  .len = 128,
	  .err = -EPROTO },
	{ .name = "as long as a block may be", .octets = { HEAD(119), 99, 117 }, .len = 127 },
};

Test(extension, is_judged)
{
	for (unsigned int i = 0; i < base_array_size(cases); i++) {
		struct stream_ext ext = { .features = 99 };
		int err = stream_ext_get(cases[i].octets, cases[i].len, &ext);

		cr_expect_eq(err, cases[i].err, "%s: %d", cases[i].name, err);
		cr_expect_eq(memcmp(&ext, &cases[i].want, sizeof(ext)), 0, "%s", cases[i].name);
	}
}

Test(extension, what_is_said_is_understood)
{
	struct stream_ext ext = { .features = 0x80000000 | STREAM_FEATURE_INLINE |
					      STREAM_FEATURE_ONESIDED,
				  .ird = 1,
				  .ord = 65535,
				  .window = 1ull << 40 };
	struct stream_ext got;
	uint8_t p[STREAM_EXT_MAX];
	size_t len = stream_ext_put(p, &ext);

	cr_assert_leq(len, sizeof(p));
	cr_assert_eq(stream_ext_get(p, len, &got), 0);
	cr_expect_eq(memcmp(&ext, &got, sizeof(ext)), 0);
	for (size_t cut = 8; cut < len; cut++)
		cr_expect_eq(stream_ext_get(p, cut, &got), -EPROTO, "cut at %zu", cut);
}

/* RoCE's connection managers have room for 56 octets, of which the connection data are 40 */
Test(extension, what_a_device_says_is_short)
{
	struct stream_ext ext = { .features = STREAM_FEATURE_ABORT, .ird = 1, .window = 1 }, got;
	uint8_t p[STREAM_EXT_MAX];
	size_t len = stream_ext_put(p, &ext);

	cr_assert_leq(len, 56 - sizeof(struct rs_conn_data));
	cr_assert_eq(stream_ext_get(p, len, &got), 0);
	cr_expect_eq(got.features, STREAM_FEATURE_ABORT);
	cr_expect(!got.ird && !got.window);
}
