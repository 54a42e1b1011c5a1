/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of MPA share: vectors in hex, connections in full operation, and an encoder of
 * FPDUs that is written after the words of RFC 5044 and shares nothing with mpa/ but its CRC.
 */
#ifndef TESTS_UNIT_MPA_MPA_TEST_H
#define TESTS_UNIT_MPA_MPA_TEST_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/crc32c.h"
#include "mpa/mpa.h"

/* An FPDU with markers and the longest ULPDU that the length field can say */
#define TEST_FPDU_MAX (MPA_ULPDU_MAX + 1024)
#define TEST_PIECES 16

/* Octets from hex digits; blanks are for the reader */
static inline size_t test_hex(const char *s, uint8_t *out)
{
	size_t n = 0;

	for (; *s; s++) {
		if (*s == ' ')
			continue;
		out[n++] = strtoul((char[]){ s[0], s[1], 0 }, NULL, 16);
		s++;
	}
	return n;
}

/* Octets that repeat late and are not all alike */
static inline void test_pattern(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = i * 7 + i / 251 + 1;
}

/* A connection in full operation, @phase octets behind a marker position both ways */
static inline struct mpa_conn test_conn(uint8_t flags, uint16_t phase)
{
	struct mpa_conn c;

	mpa_conn_init(&c, MPA_INITIATOR, &(struct mpa_config){ .rev = 1 });
	c.state = MPA_OPEN;
	c.flags = flags;
	c.tx_phase = phase;
	c.rx_phase = phase;
	return c;
}

/* --- a txv with its arrays, and what came into it as one piece ----------------------------- */

struct test_out {
	struct mpa_txv v;
	struct iovec iov[MPA_TXV_IOV(TEST_PIECES, MPA_MULPDU_MAX)];
	uint8_t scratch[MPA_TXV_SCRATCH(MPA_MULPDU_MAX)];
	uint8_t wire[TEST_FPDU_MAX];
};

static inline void test_out_reset(struct test_out *o)
{
	o->v = (struct mpa_txv){
		.iov = o->iov,
		.scratch = o->scratch,
		.iov_cap = base_array_size(o->iov),
		.scratch_cap = sizeof(o->scratch),
	};
	memset(o->scratch, 0xA5, sizeof(o->scratch));
}

static inline size_t test_out_flatten(struct test_out *o)
{
	size_t n = 0;

	for (uint32_t i = 0; i < o->v.niov; i++) {
		memcpy(o->wire + n, o->iov[i].iov_base, o->iov[i].iov_len);
		n += o->iov[i].iov_len;
	}
	cr_assert_eq(n, o->v.octets);
	return n;
}

/* --- the encoder to compare with ----------------------------------------------------------- */

/* Word by word, as RFC 5044 section 4.3 tells it; @pos counts octets since start-up */
static inline size_t test_encode(uint64_t pos, bool markers, bool crc, const uint8_t *ulpdu,
				 uint32_t len, uint8_t *out)
{
	const uint32_t body = (2 + len + 3) / 4 * 4;
	uint8_t plain[MPA_ULPDU_MAX + 8] = { len >> 8, len & 0xFF };
	size_t n = 0, start;

	memcpy(plain + 2, ulpdu, len);
	if (markers && pos % 512 == 0)
		n += test_hex("00000000", out);
	start = n;
	for (uint32_t w = 0; w <= body; w += 4) {
		if (w && markers && (pos + n) % 512 == 0) {
			base_put_be32(out + n, (n - start) & 0xFFFF);
			n += 4;
		}
		if (w < body) {
			memcpy(out + n, plain + w, 4);
			n += 4;
		}
	}
	base_put_le32(out + n, crc ? base_crc32c_final(base_crc32c(BASE_CRC32C_INIT, out, n)) : 0);
	return n + 4;
}

/* --- receiving ------------------------------------------------------------------------------ */

/* Feeds @n octets at @p that end @step octets later each time; expects one FPDU at the end */
static inline void test_rx_in_steps(struct mpa_conn *c, uint8_t *p, size_t n, size_t step,
				    struct mpa_fpdu *f)
{
	size_t have = 0;
	uint32_t asked = 0;

	for (; have < n; have = base_min(have + step, n)) {
		cr_assert_eq(mpa_rx_fpdu(c, p, have, f), -EAGAIN, "%zu of %zu", have, n);
		cr_assert_gt(f->used, have);
		cr_assert_leq(f->used, n);
		cr_assert_geq(f->used, asked, "a need never shrinks");
		asked = f->used;
	}
	cr_assert_eq(mpa_rx_fpdu(c, p, n, f), 0);
	cr_assert_eq(f->used, n);
}

#endif
