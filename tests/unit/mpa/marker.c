/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Markers: FPDUs of many lengths at each of the 128 phases, compared with the encoder of
 * mpa_test.h and received again. Conformance cases 35 and 46 to 53.
 */
#include "mpa_test.h"

#define FLAGS (MPA_F_CRC | MPA_F_TX_MARKERS | MPA_F_RX_MARKERS)
#define HDR 18

static struct test_out o;
static uint8_t want[TEST_FPDU_MAX];
static uint8_t data[MPA_ULPDU_MAX];

/* Sends @len octets cut in pieces that get longer; the header may be longer than the ULPDU */
static size_t send_pieces(struct mpa_conn *c, uint32_t len)
{
	struct iovec pl[TEST_PIECES];
	uint32_t hdr = base_min(len, (uint32_t)HDR), at = hdr, n = 0;

	for (; n + 1 < base_array_size(pl) && at < len; at += pl[n++].iov_len)
		pl[n] = (struct iovec){ data + at, base_min(len - at, n * n * 3) };
	pl[n++] = (struct iovec){ data + at, len - at };
	test_out_reset(&o);
	cr_assert_eq(mpa_tx_fpdu(c, &o.v, data, hdr, pl, n), 0);
	return test_out_flatten(&o);
}

static void round_trip(uint32_t len, uint16_t phase)
{
	struct mpa_conn c = test_conn(FLAGS, phase);
	size_t n = send_pieces(&c, len);
	struct mpa_fpdu f;

	cr_assert_eq(test_encode(phase, true, true, data, len, want), n, "%u at %u", len, phase);
	cr_assert_eq(memcmp(o.wire, want, n), 0, "%u at %u", len, phase);
	cr_assert_eq(c.tx_phase, (phase + n) % 512);
	cr_assert_eq(mpa_rx_fpdu(&c, o.wire, n - 1, &f), -EAGAIN, "%u at %u", len, phase);
	cr_assert_eq(f.used, n, "%u at %u", len, phase);
	cr_assert_eq(mpa_rx_fpdu(&c, o.wire, n, &f), 0, "%u at %u", len, phase);
	cr_assert(f.used == n && f.len == len);
	cr_assert_eq(memcmp(f.ulpdu, data, len), 0, "%u at %u", len, phase);
	cr_assert_eq(c.rx_phase, c.tx_phase);
}

Test(marker, every_phase_and_short_lengths)
{
	test_pattern(data, sizeof(data));
	for (uint32_t len = 0; len <= 1100; len += len < 20 || len > 480 ? 1 : 7) {
		for (uint16_t phase = 0; phase < 512; phase += 4)
			round_trip(len, phase);
	}
}

Test(marker, every_phase_and_long_lengths)
{
	static const uint32_t lens[] = { 1442, 2026, 8870, 8882, 64765, 64766, 64767, 64768 };

	test_pattern(data, sizeof(data));
	for (size_t i = 0; i < base_array_size(lens); i++) {
		for (uint16_t phase = 0; phase < 512; phase += 4)
			round_trip(lens[i], phase);
	}
}

/* A peer may send more than we may: the reference encoder does, and its last markers wrap */
Test(marker, the_longest_length_is_received)
{
	static const struct {
		uint16_t phase;
		uint32_t len;
	} rows[] = { { 0, 65535 }, { 4, 65535 }, { 256, 65534 }, { 508, 65533 } };

	test_pattern(data, sizeof(data));
	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct mpa_conn c = test_conn(FLAGS, rows[i].phase);
		size_t n = test_encode(rows[i].phase, true, true, data, rows[i].len, want);
		struct mpa_fpdu f;

		cr_assert_eq(mpa_rx_fpdu(&c, want, n, &f), 0, "row %zu", i);
		cr_assert_eq(f.len, rows[i].len);
		cr_assert_eq(memcmp(f.ulpdu, data, f.len), 0, "row %zu", i);
	}
}

/* --- at the edges --------------------------------------------------------------------------- */

/* 4 + 504 + 4 octets: the next marker is the next FPDU's, and its CRC covers it */
Test(marker, between_two_fpdus)
{
	struct mpa_conn c = test_conn(FLAGS, 0);

	cr_assert_eq(send_pieces(&c, 502), 512);
	cr_expect_eq(c.tx_phase, 0);
	cr_assert_eq(send_pieces(&c, 18), 28);
	cr_expect_eq(base_get_be32(o.wire), 0);
	cr_expect_eq(base_get_be16(o.wire + 4), 18);
	cr_expect_eq(base_get_le32(o.wire + 24),
		     base_crc32c_final(base_crc32c(BASE_CRC32C_INIT, o.wire, 24)));
}

Test(marker, between_pad_and_crc)
{
	struct mpa_conn c = test_conn(FLAGS, 0);

	cr_assert_eq(send_pieces(&c, 506), 520);
	cr_expect_eq(base_get_be32(o.wire + 512), 508);
	cr_expect_eq(base_get_le32(o.wire + 516),
		     base_crc32c_final(base_crc32c(BASE_CRC32C_INIT, o.wire, 516)));
}

/* An FPDU that ends at a marker position is whole before that marker has come */
Test(marker, behind_the_crc_is_not_waited_for)
{
	struct mpa_conn c = test_conn(FLAGS, 0);
	struct mpa_fpdu f;

	test_pattern(data, sizeof(data));
	cr_assert_eq(test_encode(0, true, true, data, 502, want), 512);
	cr_expect_eq(mpa_rx_fpdu(&c, want, 512, &f), 0);
	cr_expect_eq(f.used, 512);
	cr_expect_eq(c.rx_phase, 0);
	cr_expect_eq(mpa_rx_fpdu(&c, want, 0, &f), -EAGAIN);
	cr_expect_eq(f.used, 12, "marker, length, pad and CRC");
}

Test(marker, one_direction_alone)
{
	struct mpa_conn c = test_conn(MPA_F_CRC | MPA_F_RX_MARKERS, 0);
	struct mpa_fpdu f;

	test_pattern(data, sizeof(data));
	cr_expect_eq(send_pieces(&c, 18), 24);
	cr_assert_eq(test_encode(0, true, true, data, 18, want), 28);
	cr_expect_eq(mpa_rx_fpdu(&c, want, 28, &f), 0);
	c = test_conn(MPA_F_CRC | MPA_F_TX_MARKERS, 0);
	cr_expect_eq(send_pieces(&c, 18), 28);
	cr_assert_eq(test_encode(0, false, true, data, 18, want), 24);
	cr_expect_eq(mpa_rx_fpdu(&c, want, 24, &f), 0);
}

/* --- a stream ------------------------------------------------------------------------------- */

Test(marker, a_stream_of_fpdus)
{
	static uint8_t stream[2 << 20];
	struct mpa_conn c = test_conn(FLAGS, 0);
	struct mpa_fpdu f;
	size_t end = 0, at = 0;
	uint32_t len;

	test_pattern(data, sizeof(data));
	for (len = 0; len < 1500; len++) {
		size_t n = send_pieces(&c, len);

		memcpy(stream + end, o.wire, n);
		end += n;
	}
	for (size_t pos = 0; pos < end; pos += 512)
		cr_assert_eq(base_get_be16(stream + pos), 0, "a marker at each 512th octet");
	for (len = 0; at < end; len++, at += f.used) {
		cr_assert_eq(mpa_rx_fpdu(&c, stream + at, end - at, &f), 0, "FPDU %u", len);
		cr_assert_eq(f.len, len);
		cr_assert_eq(memcmp(f.ulpdu, data, len), 0, "FPDU %u", len);
	}
	cr_expect_eq(len, 1500);
	cr_expect_eq(c.rx_fpdus, c.tx_fpdus);
	cr_expect_eq(c.rx_octets, c.tx_octets);
	cr_expect_eq(c.rx_octets, end);
}

/* --- markers that are wrong, under a good CRC ----------------------------------------------- */

static const struct {
	const char *name;
	uint16_t phase;
	uint32_t len, at, marker;
	enum iwarp_fault fault;
} altered[] = {
	{ "before the FPDU, as it is", 0, 100, 0, 0x00000000, 0 },
	{ "before the FPDU, not 0", 0, 100, 0, 0x00000004, MPA_E_MARKER },
	{ "before the FPDU, low bits", 0, 100, 0, 0x00000003, 0 },
	{ "before the FPDU, reserved half", 0, 100, 0, 0xFFFF0000, 0 },
	{ "in the FPDU, as it is", 492, 42, 20, 0x00000014, 0 },
	{ "in the FPDU, low bits", 492, 42, 20, 0x00000017, 0 },
	{ "in the FPDU, reserved half", 492, 42, 20, 0x12340014, 0 },
	{ "in the FPDU, less by 4", 492, 42, 20, 0x00000010, MPA_E_MARKER },
	{ "in the FPDU, more by 4", 492, 42, 20, 0x00000018, MPA_E_MARKER },
	{ "in the FPDU, top bit", 492, 42, 20, 0x00008014, MPA_E_MARKER },
	{ "in the FPDU, 0", 492, 42, 20, 0x00000000, MPA_E_MARKER },
	{ "second of two, from the first", 492, 600, 532, 0x00000200, MPA_E_MARKER },
	{ "second of two, as it is", 492, 600, 532, 0x00000214, 0 },
	{ "before the CRC, as it is", 0, 506, 512, 0x000001FC, 0 },
	{ "before the CRC, 0", 0, 506, 512, 0x00000000, MPA_E_MARKER },
};

static void expect_altered(size_t row, bool crc)
{
	const uint16_t phase = altered[row].phase;
	struct mpa_conn c = test_conn(FLAGS & ~(crc ? 0 : MPA_F_CRC), phase);
	size_t n = test_encode(phase, true, crc, data, altered[row].len, want);
	bool good = !altered[row].fault;
	struct mpa_fpdu f;

	base_put_be32(want + altered[row].at, altered[row].marker);
	base_put_le32(want + n - 4, base_crc32c_final(base_crc32c(BASE_CRC32C_INIT, want, n - 4)));
	cr_expect_eq(mpa_rx_fpdu(&c, want, n, &f), good ? 0 : -EPROTO, "%s", altered[row].name);
	cr_expect_eq(c.fault, altered[row].fault, "%s", altered[row].name);
	cr_expect_eq(mpa_rx_fpdu(&c, want, 0, &f), good ? -EAGAIN : -EPROTO, "%s",
		     altered[row].name);
	if (good)
		cr_expect_eq(memcmp(f.ulpdu, data, altered[row].len), 0, "%s", altered[row].name);
}

Test(marker, a_pointer_that_contradicts_is_an_error)
{
	test_pattern(data, sizeof(data));
	for (size_t i = 0; i < base_array_size(altered); i++) {
		expect_altered(i, true);
		expect_altered(i, false);
	}
}

/* A phase from memory that another process may have damaged: wrong octets, but no harm */
Test(marker, a_damaged_phase_does_no_harm)
{
	test_pattern(data, sizeof(data));
	for (uint32_t phase = 0; phase <= 0xFFFF; phase += 251) {
		struct mpa_conn c = test_conn(FLAGS, phase);
		struct mpa_fpdu f;

		test_encode(0, true, true, data, 1000, want);
		send_pieces(&c, 1000);
		cr_assert_lt(c.tx_phase, 512);
		if (mpa_rx_fpdu(&c, want, 1020, &f) == 0)
			cr_assert_lt(c.rx_phase, 512);
	}
}
