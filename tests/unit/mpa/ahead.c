/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FPDUs before their turn: found at any phase, judged as in their turn, and taken by their header
 * alone with the same effect on the connection.
 */
#include "mpa_test.h"

#include "mpa/mpa_ahead.h"

#define CRC MPA_F_CRC
#define MARKED (MPA_F_CRC | MPA_F_RX_MARKERS)

static uint8_t buf[TEST_FPDU_MAX];
static uint8_t data[MPA_ULPDU_MAX];

static const uint32_t lengths[] = { 15, 16, 17, 18, 100, 490, 510, 600, 1442, 9000 };

Test(ahead, it_is_judged_as_in_its_turn)
{
	test_pattern(data, sizeof(data));
	for (uint32_t phase = 0; phase < 512; phase += 4) {
		struct mpa_conn c = test_conn(MARKED, 256), before = c;
		size_t n = test_encode(phase, true, true, data, 1000, buf);
		struct mpa_fpdu f;

		cr_assert_eq(mpa_ahead_look(&c, phase, buf, 8, &f), -EAGAIN);
		cr_assert_eq(mpa_ahead_look(&c, phase, buf, n - 1, &f), -EAGAIN);
		cr_assert_eq(f.used, n);
		cr_assert_eq(mpa_ahead_look(&c, phase, buf, n, &f), 0, "phase %u", phase);
		cr_assert_eq(f.len, 1000);
		cr_assert_eq(memcmp(f.ulpdu, data, 1000), 0);
		cr_assert_eq(memcmp(&c, &before, sizeof(c)), 0, "nothing changes");
	}
}

Test(ahead, what_is_none_is_refused_and_no_fault)
{
	struct mpa_conn c = test_conn(CRC, 0), before = c;
	size_t n = test_encode(0, false, true, data, 300, buf);
	struct mpa_fpdu f;

	buf[40] ^= 1;
	cr_expect_eq(mpa_ahead_look(&c, 0, buf, n, &f), -EPROTO);
	cr_expect_eq(memcmp(&c, &before, sizeof(c)), 0);
	c = test_conn(0, 0);
	cr_expect_eq(mpa_ahead_look(&c, 0, buf, n, &f), -EINVAL, "nothing tells without CRC");
}

/* One connection takes the FPDU whole, the other by its first octets */
static void take_both(uint8_t flags, uint32_t phase, uint32_t len, enum mpa_state state)
{
	struct mpa_conn whole = test_conn(flags, phase), ahead = test_conn(flags, phase);
	size_t n = test_encode(phase, flags & MPA_F_RX_MARKERS, true, data, len, buf);
	uint8_t head[MPA_AHEAD_HEAD];
	struct mpa_fpdu f, g;

	whole.state = ahead.state = state;
	memcpy(head, buf, sizeof(head));
	cr_assert_eq(mpa_rx_fpdu(&whole, buf, n, &f), 0);
	mpa_ahead_take(&ahead, head, n, &g);
	cr_assert_eq(memcmp(&whole, &ahead, sizeof(whole)), 0, "%u octets, phase %u", len, phase);
	cr_assert(f.len == g.len && f.used == g.used);
	cr_assert_eq(memcmp(f.ulpdu, g.ulpdu, DDP_TAGGED_LEN), 0, "%u octets, phase %u", len,
		     phase);
}

Test(ahead, taken_by_its_header_it_counts_as_the_whole)
{
	test_pattern(data, sizeof(data));
	for (size_t i = 0; i < base_array_size(lengths); i++) {
		take_both(CRC, 0, lengths[i], MPA_OPEN);
		take_both(CRC, 0, lengths[i], MPA_GATED);
		for (uint32_t phase = 0; phase < 512; phase += 4)
			take_both(MARKED, phase, lengths[i], MPA_OPEN);
	}
}

/*
 * From each marker of an FPDU the way back leads to its first octet. None begins 4 octets behind a
 * marker position: the marker would be its own.
 */
Test(ahead, a_marker_tells_where_its_fpdu_begins)
{
	test_pattern(data, sizeof(data));
	for (uint32_t phase = 0; phase < 512; phase += phase ? 4 : 8) {
		size_t n = test_encode(phase, true, true, data, 3000, buf);
		unsigned int seen = 0;

		for (size_t at = (512 - phase) % 512; at < n - 4; at += 512, seen++)
			cr_assert_eq(mpa_ahead_back(buf + at), at, "phase %u, marker at %zu", phase,
				     at);
		cr_assert_geq(seen, 5);
	}
}
