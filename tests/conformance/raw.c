/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The formats, written out octet by octet: start-up frames (RFC 5044 section 7.1.1, RFC
 * 6581 section 9), FPDUs with markers and CRC (RFC 5044 section 4), DDP and RDMAP
 * headers (RFC 5041 section 4, RFC 5040 section 4, RFC 7306 sections 5 and 6). Nothing
 * here is fast.
 */
#include <string.h>

#include "suite.h"

const uint8_t raw_req_key[16] = { 0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
				  0x65, 0x71, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65 };
const uint8_t raw_rep_key[16] = { 0x4d, 0x50, 0x41, 0x20, 0x49, 0x44, 0x20, 0x52,
				  0x65, 0x70, 0x20, 0x46, 0x72, 0x61, 0x6d, 0x65 };

uint64_t raw_get(const uint8_t *p, unsigned int octets)
{
	uint64_t v = 0;

	while (octets--)
		v = v << 8 | *p++;
	return v;
}

void raw_put(uint8_t *p, unsigned int octets, uint64_t v)
{
	for (; octets; v >>= 8)
		p[--octets] = (uint8_t)v;
}

/* --- start-up frames ---------------------------------------------------------------------- */

size_t raw_frame(uint8_t *out, const uint8_t *key, uint8_t flags, uint8_t rev, const void *pd,
		 size_t pd_len)
{
	memcpy(out, key, 16);
	out[16] = flags;
	out[17] = rev;
	raw_put(out + 18, 2, pd_len);
	if (pd_len)
		memcpy(out + 20, pd, pd_len);
	return 20 + pd_len;
}

void raw_enhanced(uint8_t out[4], uint16_t ird_bits, uint16_t ird, uint16_t ord_bits, uint16_t ord)
{
	raw_put(out, 2, ird_bits | ird);
	raw_put(out + 2, 2, ord_bits | ord);
}

/* --- FPDUs -------------------------------------------------------------------------------- */

uint32_t raw_crc32c(const uint8_t *p, size_t n)
{
	uint32_t crc = ~0u;

	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

struct writer {
	struct peer *p;
	uint8_t *out;
	size_t n;
	size_t start; /* of ULPDU_Length */
};

/* A marker, if its place is here; @between: the FPDU has not begun */
static void put_marker(struct writer *w, bool between)
{
	size_t ptr = between ? 0 : w->n - w->start;

	if (!w->p->tx_marked || (w->p->tx_pos + w->n) % 512)
		return;
	ptr = (ptr + w->p->ptr_wrong) | w->p->ptr_low;
	raw_put(w->out + w->n, 4, ptr);
	w->n += 4;
}

size_t raw_fpdu(struct peer *p, uint8_t *out, const uint8_t *ulpdu, size_t n)
{
	static uint8_t body[ULPDU_ROOM + 8];
	size_t len = (2 + n + 3) / 4 * 4;
	struct writer w = { .p = p, .out = out };
	uint32_t crc = 0;

	raw_put(body, 2, n);
	memcpy(body + 2, ulpdu, n);
	memset(body + 2 + n, p->pad, len - 2 - n);
	put_marker(&w, true);
	w.start = w.n;
	for (size_t at = 0; at < len; at += 4) {
		if (at)
			put_marker(&w, false);
		memcpy(out + w.n, body + at, 4);
		w.n += 4;
	}
	put_marker(&w, false);
	if (p->crc)
		crc = raw_crc32c(out, w.n);
	crc ^= p->crc_change;
	for (int i = 0; i < 4; i++)
		out[w.n++] = (uint8_t)(crc >> 8 * i);
	p->tx_pos += w.n;
	p->pad = p->ptr_low = 0;
	p->ptr_wrong = 0;
	p->crc_change = 0;
	return w.n;
}

/* --- headers ------------------------------------------------------------------------------ */

size_t raw_tagged(uint8_t *out, uint8_t ctl, uint8_t ulp, uint32_t stag, uint64_t to)
{
	out[0] = ctl;
	out[1] = ulp;
	raw_put(out + 2, 4, stag);
	raw_put(out + 6, 8, to);
	return 14;
}

size_t raw_untagged(uint8_t *out, uint8_t ctl, uint8_t ulp, uint32_t inv, uint32_t qn, uint32_t msn,
		    uint32_t mo)
{
	out[0] = ctl;
	out[1] = ulp;
	raw_put(out + 2, 4, inv);
	raw_put(out + 6, 4, qn);
	raw_put(out + 10, 4, msn);
	raw_put(out + 14, 4, mo);
	return 18;
}

size_t raw_read_req(uint8_t *out, uint32_t sink_stag, uint64_t sink_to, uint32_t size,
		    uint32_t src_stag, uint64_t src_to)
{
	raw_put(out, 4, sink_stag);
	raw_put(out + 4, 8, sink_to);
	raw_put(out + 12, 4, size);
	raw_put(out + 16, 4, src_stag);
	raw_put(out + 20, 8, src_to);
	return 28;
}

size_t raw_atomic_req(uint8_t *out, const struct atomic *a)
{
	raw_put(out, 4, a->aop);
	raw_put(out + 4, 4, a->id);
	raw_put(out + 8, 4, a->stag);
	raw_put(out + 12, 8, a->to);
	raw_put(out + 20, 8, a->data);
	raw_put(out + 28, 8, a->mask);
	raw_put(out + 36, 8, a->compare);
	raw_put(out + 44, 8, a->compare_mask);
	return 52;
}
