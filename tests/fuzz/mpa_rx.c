/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream of FPDUs from anybody, with and without markers and CRC. However it is cut, the same
 * ULPDUs must come out of it and the same verdict.
 *
 * The input: mode, phase, cuts, then the stream. What is random has neither a good CRC nor good
 * markers, so two modes put those right before the stream is received.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/crc32c.h"
#include "mpa/mpa.h"

enum { MODE_CRC = 1, MODE_MARKERS = 2, MODE_FIX_CRC = 4, MODE_FIX_MARKERS = 8, MODE_GATED = 16 };
enum { HEAD = 3, STREAM_MAX = 1 << 17 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

/* --- putting right -------------------------------------------------------------------------- */

/* Walks the FPDU at @at octet by octet; @n octets are there. Returns where it ends, 0: nowhere */
static size_t fix_fpdu(uint8_t mode, uint64_t phase, uint8_t *p, size_t at, size_t n)
{
	const size_t begin = at;
	size_t start = at, body = 0;

	for (size_t done = 0; done <= body; done += 4, at += 4) {
		if ((mode & MODE_MARKERS) && (phase + at) % 512 == 0) {
			if (at + 4 > n)
				return 0;
			if (mode & MODE_FIX_MARKERS)
				base_put_be16(p + at + 2, at - start);
			at += 4;
			start += done ? 0 : 4;
		}
		if (at + 4 > n)
			return 0;
		if (!done)
			body = (2 + base_get_be16(p + at) + 3) / 4 * 4;
	}
	if (mode & MODE_FIX_CRC)
		base_put_le32(p + at - 4, base_crc32c_final(base_crc32c(BASE_CRC32C_INIT, p + begin,
									at - 4 - begin)));
	return at;
}

static void fix_stream(uint8_t mode, uint64_t phase, uint8_t *p, size_t n)
{
	for (size_t at = 0; (at = fix_fpdu(mode, phase, p, at, n));)
		;
}

/* --- receiving ------------------------------------------------------------------------------ */

struct result {
	struct mpa_conn c;
	uint32_t ulpdus; /* a CRC over all of them and their lengths */
	uint64_t count;
	size_t taken;
	int rc;
};

/* Offers @n octets at an address of their own, where touching others is seen */
static int offer(struct result *r, const uint8_t *p, size_t n, uint32_t *used)
{
	uint8_t *copy = malloc(n);
	struct mpa_fpdu f = { 0 };
	int rc;

	memcpy(copy, p, n);
	rc = mpa_rx_fpdu(&r->c, copy, n, &f);
	if (rc == 0) {
		must(f.used <= n && f.ulpdu >= copy + 2 && f.ulpdu + f.len <= copy + f.used - 4);
		must(r->c.state == MPA_OPEN && mpa_conn_may_send(&r->c));
		r->ulpdus = base_crc32c(r->ulpdus, &f.len, sizeof(f.len));
		r->ulpdus = base_crc32c(r->ulpdus, f.ulpdu, f.len);
		r->count++;
	} else {
		must(memcmp(copy, p, n) == 0);
	}
	must(rc != -EAGAIN || f.used > n);
	*used = f.used;
	free(copy);
	return rc;
}

/* Takes what FPDUs the first @have octets hold */
static void take(struct result *r, const uint8_t *p, size_t have)
{
	uint32_t used;

	while (r->rc != -EPROTO) {
		r->rc = offer(r, p + r->taken, have - r->taken, &used);
		if (r->rc)
			break;
		r->taken += used;
	}
}

static struct result begin(uint8_t mode, uint8_t phase)
{
	struct result r = { .ulpdus = BASE_CRC32C_INIT };

	mpa_conn_init(&r.c, MPA_RESPONDER, &(struct mpa_config){ .rev = 1 });
	r.c.state = mode & MODE_GATED ? MPA_GATED : MPA_OPEN;
	r.c.flags = (mode & MODE_CRC ? MPA_F_CRC : 0) |
		    (mode & MODE_MARKERS ? MPA_F_RX_MARKERS : 0);
	r.c.rx_phase = phase % 128 * 4;
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t stream[STREAM_MAX];
	const size_t n = base_min(size - HEAD, sizeof(stream));
	struct result whole, cut;
	uint8_t cuts;

	if (size < HEAD)
		return 0;
	memcpy(stream, data + HEAD, n);
	whole = begin(data[0], data[1]);
	fix_stream(data[0], whole.c.rx_phase, stream, n);
	cut = whole;
	take(&whole, stream, n);
	cuts = data[2];
	for (size_t have = 0; have < n; have += 1 + cuts, cuts = cuts * 5 + 1)
		take(&cut, stream, have);
	take(&cut, stream, n);
	must(memcmp(&cut, &whole, sizeof(cut)) == 0);
	must(whole.c.rx_fpdus == whole.count && whole.c.rx_octets == whole.taken);
	if ((data[0] & MODE_FIX_CRC) && (data[0] & MODE_FIX_MARKERS))
		must(whole.rc == -EAGAIN);
	return 0;
}
