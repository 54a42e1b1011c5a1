/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FPDUs out: the iovec entries that they become, room, limits and MULPDU. Conformance cases 39 to
 * 42, 54 and 55.
 */
#include "mpa_test.h"

#define CRC MPA_F_CRC
#define HDR 14

static struct test_out o;
static uint8_t want[TEST_FPDU_MAX];
static uint8_t data[MPA_ULPDU_MAX];

static struct iovec piece(size_t at, size_t n)
{
	return (struct iovec){ data + at, n };
}

/* --- entries -------------------------------------------------------------------------------- */

Test(tx, payload_is_referred_to_between_two_pieces_of_scratch)
{
	struct mpa_conn c = test_conn(CRC, 0);
	const struct iovec pl[] = { piece(HDR, 5), piece(0, 0), { NULL, 0 }, piece(HDR + 5, 6) };

	test_pattern(data, sizeof(data));
	test_out_reset(&o);
	cr_assert_eq(mpa_tx_fpdu(&c, &o.v, data, HDR, pl, base_array_size(pl)), 0);
	cr_assert_eq(o.v.niov, 4, "empty pieces leave no entry");
	cr_expect_eq(o.iov[0].iov_base, o.scratch);
	cr_expect_eq(o.iov[0].iov_len, 2 + HDR);
	cr_expect_eq(o.iov[1].iov_base, data + HDR);
	cr_expect_eq(o.iov[1].iov_len, 5);
	cr_expect_eq(o.iov[2].iov_base, data + HDR + 5);
	cr_expect_eq(o.iov[2].iov_len, 6);
	cr_expect_eq(o.iov[3].iov_base, o.scratch + 2 + HDR);
	cr_expect_eq(o.iov[3].iov_len, 1 + 4);
	cr_assert_eq(test_out_flatten(&o), test_encode(0, false, true, data, HDR + 11, want));
	cr_expect_arr_eq(o.wire, want, o.v.octets);
}

Test(tx, scratch_of_two_fpdus_is_one_entry)
{
	struct mpa_conn c = test_conn(CRC, 0);
	const struct iovec pl = piece(HDR, 100);
	size_t n;

	test_pattern(data, sizeof(data));
	test_out_reset(&o);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(mpa_tx_fpdu(&c, &o.v, data, HDR, &pl, 1), 0);
	cr_expect_eq(o.v.niov, 7);
	cr_expect_eq(c.tx_fpdus, 3);
	cr_expect_eq(c.tx_octets, o.v.octets);
	cr_assert_eq(test_out_flatten(&o), 3 * 120);
	n = test_encode(0, false, true, data, HDR + 100, want);
	for (int i = 0; i < 3; i++)
		cr_expect_arr_eq(o.wire + i * 120, want, n);
}

/* All of L mod 4, with and without a CRC; the header may be all or nothing of the ULPDU */
Test(tx, pads_with_zeroes)
{
	test_pattern(data, sizeof(data));
	for (uint32_t len = 0; len < 64; len++) {
		for (uint32_t hdr = 0; hdr <= len; hdr++) {
			struct mpa_conn c = test_conn(hdr % 2 ? CRC : 0, 0);
			const struct iovec pl = piece(hdr, len - hdr);
			size_t n = test_encode(0, false, hdr % 2, data, len, want);

			test_out_reset(&o);
			cr_assert_eq(mpa_tx_fpdu(&c, &o.v, hdr ? data : NULL, hdr, &pl, 1), 0);
			cr_assert_eq(test_out_flatten(&o), n);
			cr_assert_arr_eq(o.wire, want, n, "length %u, header %u", len, hdr);
		}
	}
}

/* --- limits --------------------------------------------------------------------------------- */

Test(tx, the_longest_ulpdu)
{
	static const struct {
		size_t hdr, first, second;
		int rc;
	} rows[] = {
		{ HDR, MPA_MULPDU_MAX - HDR, 0, 0 },
		{ HDR, MPA_MULPDU_MAX - HDR - 1, 1, 0 },
		{ HDR, MPA_MULPDU_MAX - HDR, 1, -EMSGSIZE },
		{ HDR, MPA_MULPDU_MAX - HDR + 1, 0, -EMSGSIZE },
		{ HDR, SIZE_MAX, SIZE_MAX, -EMSGSIZE },
		{ MPA_MULPDU_MAX + 1, 0, 0, -EMSGSIZE },
		{ SIZE_MAX, 1, 0, -EMSGSIZE },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct mpa_conn c = test_conn(CRC | MPA_F_TX_MARKERS, 0);
		const struct iovec pl[] = { piece(0, rows[i].first), piece(0, rows[i].second) };

		test_out_reset(&o);
		cr_expect_eq(mpa_tx_fpdu(&c, &o.v, data, rows[i].hdr, pl, 2), rows[i].rc, "row %zu",
			     i);
		cr_expect_eq(c.tx_fpdus, !rows[i].rc);
		cr_expect_eq(o.v.niov == 0, !!rows[i].rc);
	}
}

/* One octet or entry less than what the macros promise to be enough, down to nothing */
static void expect_no_harm(struct mpa_conn c, const struct iovec *pl, uint32_t len, uint32_t iov,
			   uint32_t scratch)
{
	const struct mpa_conn before = c;
	int rc;

	test_out_reset(&o);
	o.v.iov_cap = iov;
	o.v.scratch_cap = scratch;
	rc = mpa_tx_fpdu(&c, &o.v, data, HDR, pl, 2);
	cr_assert(o.v.niov <= iov && o.v.used <= scratch);
	if (!rc)
		return;
	cr_assert_eq(rc, -ENOBUFS);
	cr_assert(iov < MPA_TXV_IOV(2, len) || scratch < MPA_TXV_SCRATCH(len));
	cr_assert(!o.v.niov && !o.v.used && !o.v.octets);
	cr_assert_eq(memcmp(&c, &before, sizeof(c)), 0, "nothing has changed");
}

Test(tx, without_room_nothing_changes)
{
	static const uint16_t phases[] = { 0, 4, 256, 496, 508 };

	for (size_t i = 0; i < base_array_size(phases) * 2; i++) {
		for (uint32_t len = HDR; len < 1500; len += 371) {
			struct mpa_conn c =
				test_conn(i % 2 ? CRC | MPA_F_TX_MARKERS : CRC, phases[i / 2]);
			const struct iovec pl[] = { piece(0, len - HDR), piece(0, 0) };

			for (uint32_t n = 0; n <= MPA_TXV_IOV(2, len); n++)
				expect_no_harm(c, pl, len, n, MPA_TXV_SCRATCH(len));
			for (uint32_t n = 0; n <= MPA_TXV_SCRATCH(len); n++)
				expect_no_harm(c, pl, len, MPA_TXV_IOV(2, len), n);
		}
	}
}

/* A txv that has taken FPDUs must refuse by what is left, not by what it had */
Test(tx, room_is_what_is_left)
{
	struct mpa_conn c = test_conn(CRC, 0);
	const struct iovec pl = piece(0, 10);

	test_out_reset(&o);
	o.v.iov_cap = 5;
	cr_expect_eq(mpa_tx_fpdu(&c, &o.v, data, HDR, &pl, 1), 0);
	cr_expect_eq(mpa_tx_fpdu(&c, &o.v, data, HDR, &pl, 1), -ENOBUFS);
	cr_expect_eq(o.v.niov, 3);
	o.v.iov_cap = 6;
	o.v.scratch_cap = o.v.used + 2 + HDR + 2 + 3;
	cr_expect_eq(mpa_tx_fpdu(&c, &o.v, data, HDR, &pl, 1), -ENOBUFS);
	o.v.scratch_cap++;
	cr_expect_eq(mpa_tx_fpdu(&c, &o.v, data, HDR, &pl, 1), 0);
	cr_expect_eq(o.v.niov, 5);
	cr_expect_eq(c.tx_fpdus, 2);
}

/* --- MULPDU --------------------------------------------------------------------------------- */

static const struct {
	unsigned int emss;
	uint16_t plain, marked;
} mulpdus[] = {
	{ 0, 128, 128 },	 { 1, 128, 128 },
	{ 133, 128, 128 },	 { 136, 130, 128 },
	{ 140, 134, 130 },	 { 536, 530, 522 },
	{ 1220, 1214, 1202 },	 { 1388, 1382, 1370 },
	{ 1440, 1434, 1422 },	 { 1448, 1442, 1430 },
	{ 1449, 1442, 1430 },	 { 1451, 1442, 1430 },
	{ 1460, 1454, 1442 },	 { 2048, 2042, 2026 },
	{ 8948, 8942, 8870 },	 { 8960, 8954, 8882 },
	{ 64774, 64766, 64258 }, { 64776, 64768, 64262 },
	{ 65483, 64768, 64768 }, { 65535, 64768, 64768 },
	{ 65536, 64768, 64768 }, { 1u << 31, 64768, 64768 },
	{ ~0u, 64768, 64768 },
};

Test(tx, mulpdu_is_as_the_rfc_has_it)
{
	for (size_t i = 0; i < base_array_size(mulpdus); i++) {
		struct mpa_conn c = test_conn(0, 0);
		const unsigned int emss = mulpdus[i].emss;

		cr_expect_eq(mpa_mulpdu(emss, false), mulpdus[i].plain, "%u", emss);
		cr_expect_eq(mpa_mulpdu(emss, true), mulpdus[i].marked, "%u", emss);
		mpa_conn_set_emss(&c, emss);
		cr_expect_eq(c.emss, base_min(emss, 65535u));
		cr_expect_eq(c.mulpdu, mulpdus[i].plain);
		c.flags = MPA_F_RX_MARKERS;
		mpa_conn_set_emss(&c, emss);
		cr_expect_eq(c.mulpdu, mulpdus[i].plain, "what the peer sends does not count");
		c.flags = MPA_F_TX_MARKERS;
		mpa_conn_set_emss(&c, emss);
		cr_expect_eq(c.mulpdu, mulpdus[i].marked);
	}
}

/* The longest FPDU over all phases: never more than the EMSS, and for most an EMSS just that */
static size_t longest_fpdu(uint16_t mulpdu)
{
	const struct iovec pl = piece(0, mulpdu);
	size_t most = 0;

	for (int phase = 0; phase < 512; phase += 4) {
		struct mpa_conn c = test_conn(MPA_F_TX_MARKERS, phase);

		test_out_reset(&o);
		cr_assert_eq(mpa_tx_fpdu(&c, &o.v, NULL, 0, &pl, 1), 0);
		most = base_max(most, o.v.octets);
	}
	return most;
}

Test(tx, an_fpdu_fits_the_emss_at_every_phase)
{
	static const unsigned int emsses[] = { 148, 512, 536, 1024, 1448, 1451, 8948, 9000 };

	for (unsigned int emss = 148; emss < 1600; emss++)
		cr_assert_leq(longest_fpdu(mpa_mulpdu(emss, true)), emss, "%u", emss);
	for (size_t i = 0; i < base_array_size(emsses); i++)
		cr_expect_eq(longest_fpdu(mpa_mulpdu(emsses[i], true)), emsses[i] & ~3u, "%u",
			     emsses[i]);
}
