/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The FPDUs of tests/vectors: each is built and compared, then received in every cut. Conformance
 * cases 39 to 43, 46, 48, 52, 56.
 */
#include "mpa_test.h"
#include "tests/vectors/fpdu.h"

static size_t build(const struct fpdu_vector *row, struct test_out *o)
{
	struct mpa_conn c = test_conn(row->flags, row->phase);
	uint8_t ulpdu[128];
	size_t n = test_hex(row->ulpdu, ulpdu);

	test_out_reset(o);
	cr_assert_eq(mpa_tx_fpdu(&c, &o->v, ulpdu, n, NULL, 0), 0);
	n = test_out_flatten(o);
	cr_expect_eq(c.tx_fpdus, 1);
	cr_expect_eq(c.tx_octets, n);
	return n;
}

Test(vectors, are_built)
{
	static struct test_out o;

	for (size_t i = 0; i < base_array_size(fpdu_vectors); i++) {
		uint8_t want[128];
		size_t n = test_hex(fpdu_vectors[i].wire, want);

		cr_assert_eq(build(&fpdu_vectors[i], &o), n, "%s", fpdu_vectors[i].name);
		cr_expect_arr_eq(o.wire, want, n, "%s", fpdu_vectors[i].name);
		cr_expect_eq(o.v.niov, 1, "%s: scratch in one piece", fpdu_vectors[i].name);
	}
}

/* --- in every cut --------------------------------------------------------------------------- */

static void expect_ulpdu(const struct fpdu_vector *row, const struct mpa_fpdu *f)
{
	uint8_t want[128];
	size_t n = test_hex(row->ulpdu, want);

	cr_assert_eq(f->len, n, "%s", row->name);
	cr_expect_arr_eq(f->ulpdu, want, n, "%s", row->name);
}

Test(vectors, are_received_in_steps_of_any_size)
{
	for (size_t i = 0; i < base_array_size(fpdu_vectors); i++) {
		const struct fpdu_vector *row = &fpdu_vectors[i];
		uint8_t wire[128];
		size_t n = test_hex(row->wire, wire);

		for (size_t step = 1; step <= n; step++) {
			struct mpa_conn c = test_conn(row->flags, row->phase);
			struct mpa_fpdu f;

			test_hex(row->wire, wire);
			test_rx_in_steps(&c, wire, n, step, &f);
			expect_ulpdu(row, &f);
			cr_expect_eq(c.rx_fpdus, 1);
			cr_expect_eq(c.rx_octets, n);
		}
	}
}

/* The stream comes in three pieces, [0, a) [a, b) [b, n), into a buffer that holds rubbish */
static void receive_cut(const struct fpdu_vector *row, const uint8_t *wire, size_t n, size_t a,
			size_t b)
{
	struct mpa_conn c = test_conn(row->flags, row->phase);
	const size_t ends[] = { a, b, n };
	uint8_t buf[128];
	struct mpa_fpdu f;
	size_t have = 0;

	memset(buf, 0xFF, sizeof(buf));
	for (size_t i = 0; i < base_array_size(ends); i++) {
		memcpy(buf + have, wire + have, ends[i] - have);
		have = ends[i];
		cr_assert_eq(mpa_rx_fpdu(&c, buf, have, &f), have < n ? -EAGAIN : 0);
		if (have == n)
			break;
	}
	cr_assert_eq(f.used, n);
	expect_ulpdu(row, &f);
}

Test(vectors, are_received_in_every_two_cuts)
{
	for (size_t i = 0; i < base_array_size(fpdu_vectors); i++) {
		uint8_t wire[128];
		size_t n = test_hex(fpdu_vectors[i].wire, wire);

		for (size_t a = 0; a <= n; a++) {
			for (size_t b = a; b <= n; b++)
				receive_cut(&fpdu_vectors[i], wire, n, a, b);
		}
	}
}

/* --- no bit may differ ---------------------------------------------------------------------- */

/* A longer length is an error only when the octets that it asks for have come */
static void expect_flip_caught(const struct fpdu_vector *row, uint8_t *buf, size_t n, size_t bit)
{
	struct mpa_conn c = test_conn(row->flags, row->phase);
	struct mpa_fpdu f;
	int rc = mpa_rx_fpdu(&c, buf, n, &f);

	if (rc == -EAGAIN) {
		cr_assert_gt(f.used, n);
		cr_assert_leq(f.used, TEST_FPDU_MAX);
		rc = mpa_rx_fpdu(&c, buf, f.used, &f);
	}
	cr_assert_eq(rc, -EPROTO, "%s, bit %zu", row->name, bit);
	cr_expect_eq(c.fault, MPA_E_CRC, "%s, bit %zu", row->name, bit);
	cr_expect_eq(c.state, MPA_FAILED);
	cr_expect_eq(c.rx_fpdus, 0);
}

Test(vectors, a_flipped_bit_is_a_crc_error)
{
	static uint8_t buf[TEST_FPDU_MAX];

	for (size_t i = 0; i < base_array_size(fpdu_vectors); i++) {
		size_t n = test_hex(fpdu_vectors[i].wire, buf);

		for (size_t bit = 0; bit < n * 8 && (fpdu_vectors[i].flags & MPA_F_CRC); bit++) {
			buf[bit / 8] ^= 0x80 >> bit % 8;
			expect_flip_caught(&fpdu_vectors[i], buf, n, bit);
			buf[bit / 8] ^= 0x80 >> bit % 8;
		}
	}
}
