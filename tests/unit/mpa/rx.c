/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FPDUs in: lengths, cuts, the gate, what a missing CRC lets pass, and the end of the stream.
 * Conformance cases 33, 38, 41, 43, 44, 56 to 58 and 128.
 */
#include "mpa_test.h"

#define CRC MPA_F_CRC

static uint8_t buf[4 * TEST_FPDU_MAX];
static uint8_t data[MPA_ULPDU_MAX];

/* --- lengths -------------------------------------------------------------------------------- */

Test(rx, every_length_is_taken)
{
	test_pattern(data, sizeof(data));
	for (uint32_t len = 0; len <= MPA_ULPDU_MAX; len += len < 2100 || len > 65500 ? 1 : 97) {
		struct mpa_conn c = test_conn(CRC, 0);
		size_t n = test_encode(0, false, true, data, len, buf);
		struct mpa_fpdu f;

		cr_assert_eq(n % 4, 0);
		cr_assert_eq(mpa_rx_fpdu(&c, buf, n - 1, &f), -EAGAIN);
		cr_assert_eq(f.used, n);
		cr_assert_eq(mpa_rx_fpdu(&c, buf, n, &f), 0, "%u", len);
		cr_assert_eq(f.used, n);
		cr_assert_eq(f.len, len);
		cr_assert_eq(f.ulpdu, buf + 2, "without markers nothing is moved");
	}
}

/* What a call that has @have octets of an FPDU asks for */
static const struct {
	uint8_t flags;
	uint16_t phase;
	uint32_t len, have, need;
} needs[] = {
	{ CRC, 0, 100, 0, 8 },
	{ CRC, 0, 100, 1, 8 },
	{ CRC, 0, 100, 2, 108 },
	{ CRC, 0, 0, 2, 8 },
	{ CRC, 0, 65535, 2, 65544 },
	{ CRC | MPA_F_RX_MARKERS, 0, 100, 0, 12 },
	{ CRC | MPA_F_RX_MARKERS, 0, 100, 5, 12 },
	{ CRC | MPA_F_RX_MARKERS, 0, 100, 6, 112 },
	{ CRC | MPA_F_RX_MARKERS, 4, 100, 1, 8 },
	{ CRC | MPA_F_RX_MARKERS, 508, 100, 1, 12 },
	{ CRC | MPA_F_RX_MARKERS, 508, 100, 2, 112 },
	{ CRC | MPA_F_RX_MARKERS, 0, 65535, 6, 65544 + 130 * 4 },
};

Test(rx, asks_for_what_it_knows_to_be_missing)
{
	for (size_t i = 0; i < base_array_size(needs); i++) {
		const bool marked = needs[i].flags & MPA_F_RX_MARKERS;
		struct mpa_conn c = test_conn(needs[i].flags, needs[i].phase);
		struct mpa_fpdu f;

		test_encode(needs[i].phase, marked, true, data, needs[i].len, buf);
		cr_expect_eq(mpa_rx_fpdu(&c, buf, needs[i].have, &f), -EAGAIN);
		cr_expect_eq(f.used, needs[i].need, "row %zu: %u", i, f.used);
	}
}

Test(rx, octets_that_wait_are_not_touched)
{
	struct mpa_conn c = test_conn(CRC | MPA_F_RX_MARKERS, 256);
	static uint8_t copy[TEST_FPDU_MAX];
	size_t n = test_encode(256, true, true, data, 3000, buf);
	struct mpa_fpdu f;

	memcpy(copy, buf, n);
	for (size_t have = 0; have < n; have++)
		cr_assert_eq(mpa_rx_fpdu(&c, buf, have, &f), -EAGAIN);
	cr_expect_arr_eq(buf, copy, n);
}

Test(rx, several_fpdus_in_one_buffer)
{
	struct mpa_conn c = test_conn(CRC, 0);
	struct mpa_fpdu f;
	size_t n = 0, at = 0;

	test_pattern(data, sizeof(data));
	for (uint32_t len = 0; len < 300; len++)
		n += test_encode(0, false, true, data, len, buf + n);
	for (uint32_t len = 0; len < 300; len++, at += f.used) {
		cr_assert_eq(mpa_rx_fpdu(&c, buf + at, n - at, &f), 0);
		cr_assert_eq(f.len, len);
		cr_assert_eq(memcmp(f.ulpdu, data, len), 0);
	}
	cr_expect_eq(at, n);
	cr_expect_eq(c.rx_fpdus, 300);
	cr_expect_eq(c.rx_octets, n);
	cr_expect_eq(mpa_rx_end(&c, n - at), 0);
}

/* --- CRC ------------------------------------------------------------------------------------ */

Test(rx, without_crc_the_field_is_not_looked_at)
{
	for (int bit = 0; bit < 32; bit++) {
		struct mpa_conn c = test_conn(0, 0);
		struct mpa_fpdu f;
		size_t n = test_encode(0, false, false, data, 30, buf);

		base_put_be32(buf + n - 4, 1u << bit);
		cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), 0);
	}
}

Test(rx, pad_need_not_be_zero)
{
	for (uint32_t len = 27; len < 30; len++) {
		struct mpa_conn c = test_conn(CRC, 0);
		struct mpa_fpdu f;
		size_t n = test_encode(0, false, true, data, len, buf);

		memset(buf + 2 + len, 0xEE, n - 4 - 2 - len);
		base_put_le32(buf + n - 4,
			      base_crc32c_final(base_crc32c(BASE_CRC32C_INIT, buf, n - 4)));
		cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), 0, "%u", len);
		buf[2 + len]++;
		cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), -EPROTO, "the CRC covers it, %u", len);
		cr_expect_eq(c.fault, MPA_E_CRC);
	}
}

/* Big-endian, as every other field is: a sender that got the one exception wrong */
Test(rx, a_crc_in_the_wrong_order_is_an_error)
{
	struct mpa_conn c = test_conn(CRC, 0);
	struct mpa_fpdu f;
	size_t n = test_encode(0, false, true, data, 30, buf);

	base_put_be32(buf + n - 4, base_get_le32(buf + n - 4));
	cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), -EPROTO);
	cr_expect_eq(c.fault, MPA_E_CRC);
}

Test(rx, nothing_is_handed_up_after_an_error)
{
	struct mpa_conn c = test_conn(CRC, 0);
	struct mpa_fpdu f = { 0 };
	size_t n = test_encode(0, false, true, data, 30, buf);

	buf[10] ^= 1;
	cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), -EPROTO);
	buf[10] ^= 1;
	cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), -EPROTO);
	cr_expect_eq(mpa_rx_fpdu(&c, buf, 0, &f), -EPROTO);
	cr_expect_eq(c.fault, MPA_E_CRC);
	cr_expect_eq(c.rx_fpdus, 0);
	cr_expect_null(f.ulpdu);
	cr_expect_not(mpa_conn_may_send(&c));
}

/* --- the gate ------------------------------------------------------------------------------- */

static struct mpa_conn gated(void)
{
	struct mpa_conn c = test_conn(CRC, 0);

	c.role = MPA_RESPONDER;
	c.state = MPA_GATED;
	return c;
}

Test(rx, the_first_good_fpdu_opens_the_gate)
{
	struct mpa_conn c = gated();
	struct mpa_fpdu f;
	size_t n = test_encode(0, false, true, data, 14, buf);

	for (size_t have = 0; have < n; have++) {
		cr_expect_eq(mpa_rx_fpdu(&c, buf, have, &f), -EAGAIN);
		cr_expect_not(mpa_conn_may_send(&c), "not by part of one");
	}
	cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), 0);
	cr_expect_eq(c.state, MPA_OPEN);
	cr_expect(mpa_conn_may_send(&c));
}

Test(rx, a_bad_fpdu_does_not_open_the_gate)
{
	struct mpa_conn c = gated();
	struct mpa_fpdu f;
	size_t n = test_encode(0, false, true, data, 14, buf);

	buf[n - 1] ^= 0x80;
	cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), -EPROTO);
	cr_expect_eq(c.state, MPA_FAILED);
	cr_expect_not(mpa_conn_may_send(&c));
}

/* A Terminate of start-up as siw sends it: CRC was agreed and is not there */
Test(rx, a_first_terminate_may_lack_its_crc)
{
	static const struct {
		const char *ulpdu;
		enum mpa_role role;
		uint8_t crc;
		uint64_t before;
		int want;
	} rows[] = {
		{ "4147 00000000 00000002 00000001 00000000 02060000", MPA_RESPONDER, 0, 0, 0 },
		{ "4147 00000000 00000002 00000001 00000000 02060000", MPA_INITIATOR, 0, 0,
		  -EPROTO },
		{ "4147 00000000 00000002 00000001 00000000 02060000", MPA_RESPONDER, 1, 0,
		  -EPROTO },
		{ "4147 00000000 00000002 00000001 00000000 02060000", MPA_RESPONDER, 0, 1,
		  -EPROTO },
		{ "4143 00000000 00000000 00000001 00000000 02060000", MPA_RESPONDER, 0, 0,
		  -EPROTO },
		{ "c140 00000001 0000000000000000 02060000", MPA_RESPONDER, 0, 0, -EPROTO },
		{ "4147 00000000 00000002 0000", MPA_RESPONDER, 0, 0, -EPROTO },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct mpa_conn c = gated();
		struct mpa_fpdu f;
		size_t n = test_hex(rows[i].ulpdu, data);

		n = test_encode(0, false, false, data, (uint32_t)n, buf);
		memset(buf + n - 4, 0, 4);
		buf[n - 1] = rows[i].crc;
		c.role = rows[i].role;
		c.rx_fpdus = rows[i].before;
		cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), rows[i].want, "row %zu", i);
	}
}

Test(rx, no_fpdu_is_taken_before_start_up_or_after_a_reject)
{
	static const enum mpa_state states[] = { MPA_START, MPA_REQUESTED, MPA_REJECTED };

	for (size_t i = 0; i < base_array_size(states); i++) {
		struct mpa_conn c = test_conn(CRC, 0);
		struct mpa_fpdu f;
		size_t n = test_encode(0, false, true, data, 14, buf);

		c.state = states[i];
		cr_expect_eq(mpa_rx_fpdu(&c, buf, n, &f), -EINVAL);
		cr_expect_eq(c.state, states[i]);
		cr_expect_eq(c.rx_fpdus, 0);
	}
}

/* --- the end of the stream ------------------------------------------------------------------ */

static const struct {
	enum mpa_state state;
	enum iwarp_fault before;
	size_t left;
	int rc;
	enum iwarp_fault after;
} ends[] = {
	{ MPA_START, 0, 0, -ECONNRESET, MPA_E_CLOSED },
	{ MPA_START, 0, 5, -ECONNRESET, MPA_E_CLOSED },
	{ MPA_REQUESTED, 0, 0, -ECONNRESET, MPA_E_CLOSED },
	{ MPA_GATED, 0, 0, 0, 0 },
	{ MPA_GATED, 0, 1, -ECONNRESET, MPA_E_CLOSED },
	{ MPA_OPEN, 0, 0, 0, 0 },
	{ MPA_OPEN, 0, 1, -ECONNRESET, MPA_E_CLOSED },
	{ MPA_REJECTED, 0, 0, 0, 0 },
	{ MPA_REJECTED, 0, 1, -ECONNRESET, MPA_E_CLOSED },
	{ MPA_FAILED, MPA_E_CRC, 0, -ECONNRESET, MPA_E_CRC },
	{ MPA_FAILED, MPA_E_MARKER, 9, -ECONNRESET, MPA_E_MARKER },
};

Test(rx, the_stream_ends)
{
	for (size_t i = 0; i < base_array_size(ends); i++) {
		struct mpa_conn c = test_conn(CRC, 0);

		c.state = ends[i].state;
		c.fault = ends[i].before;
		cr_expect_eq(mpa_rx_end(&c, ends[i].left), ends[i].rc, "row %zu", i);
		cr_expect_eq(c.fault, ends[i].after, "row %zu", i);
		cr_expect_eq(c.state, ends[i].rc ? MPA_FAILED : ends[i].state, "row %zu", i);
	}
}
