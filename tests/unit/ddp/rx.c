/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What DDP makes of segments received: parsing, the order of the checks, the books.
 */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "ddp/ddp.h"

#define F(layer, type, code) ((enum iwarp_fault)IWARP_FAULT(layer, type, code))
#define NOT_KNOWN UINT64_MAX

static const __u8 untagged[] = { 0x41, 0x43, 0x11, 0x12, 0x13, 0x14, 0x00, 0x00, 0x00, 0x00,
				 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 'h',  'i' };
static const __u8 tagged[] = { 0x81, 0x40, 0xaa, 0xbb, 0xcc, 0xdd, 0x01, 0x02,
			       0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 'y' };

Test(ddp_rx, parse_untagged)
{
	struct ddp_seg seg;

	cr_assert_eq(ddp_rx_parse(untagged, sizeof(untagged), &seg), IWARP_OK);
	cr_expect_not(seg.tagged);
	cr_expect(seg.last);
	cr_expect_eq(seg.rsvdulp, 0x43);
	cr_expect_eq(seg.rsvdulp32, 0x11121314);
	cr_expect_eq(seg.qn, 0);
	cr_expect_eq(seg.msn, 1);
	cr_expect_eq(seg.mo, 0);
	cr_expect_eq(seg.hdr_len, 18);
	cr_expect_eq(seg.hdr, untagged);
	cr_expect_eq(seg.payload, untagged + 18);
	cr_expect_eq(seg.len, 2);
}

Test(ddp_rx, parse_untagged_numbers)
{
	static const __u8 p[] = { 0x01, 0xff, 0,    0,	  0,	0,    0xfe, 0xdc, 0xba,
				  0x98, 0x76, 0x54, 0x32, 0x10, 0x89, 0xab, 0xcd, 0xef };
	struct ddp_seg seg;

	cr_assert_eq(ddp_rx_parse(p, sizeof(p), &seg), IWARP_OK);
	cr_expect_not(seg.last);
	cr_expect_eq(seg.qn, 0xfedcba98);
	cr_expect_eq(seg.msn, 0x76543210);
	cr_expect_eq(seg.mo, 0x89abcdef);
	cr_expect_eq(seg.len, 0);
}

Test(ddp_rx, parse_tagged)
{
	struct ddp_seg seg;

	cr_assert_eq(ddp_rx_parse(tagged, sizeof(tagged), &seg), IWARP_OK);
	cr_expect(seg.tagged);
	cr_expect_not(seg.last);
	cr_expect_eq(seg.rsvdulp, 0x40);
	cr_expect_eq(seg.stag, 0xaabbccdd);
	cr_expect_eq(seg.to, 0x0102030405060708);
	cr_expect_eq(seg.hdr_len, 14);
	cr_expect_eq(seg.payload, tagged + 14);
	cr_expect_eq(seg.len, 1);
}

/* Every control octet: only T, L and DV mean anything */
Test(ddp_rx, control_octet)
{
	__u8 p[32] = { 0 };

	for (unsigned int ctl = 0; ctl < 256; ctl++) {
		struct ddp_seg seg;
		bool t = ctl & 0x80;
		enum iwarp_fault want = (ctl & 3) == 1 ? IWARP_OK : t ? F(1, 1, 4) : F(1, 2, 6);

		p[0] = (__u8)ctl;
		cr_expect_eq(ddp_rx_parse(p, sizeof(p), &seg), want, "%#x", ctl);
		cr_expect_eq(seg.tagged, t, "%#x", ctl);
		cr_expect_eq(seg.last, !!(ctl & 0x40), "%#x", ctl);
		cr_expect_eq(seg.hdr_len, t ? 14 : 18, "%#x", ctl);
		cr_expect_eq(seg.len, sizeof(p) - (t ? 14 : 18), "%#x", ctl);
	}
}

Test(ddp_rx, every_length_too_short)
{
	struct ddp_seg seg;
	__u8 bad[1] = { 0xc2 };

	for (size_t n = 0; n < 18; n++) {
		/* a copy without slack, so that a sanitizer sees a read beyond the end */
		__u8 *p = malloc(n + !n);

		memcpy(p, untagged, n);
		cr_expect_eq(ddp_rx_parse(p, n, &seg), F(1, 0, 0), "untagged %zu", n);
		cr_expect_eq(seg.hdr_len, 0);
		cr_expect_eq(seg.len, 0);
		memcpy(p, tagged, base_min(n, sizeof(tagged)));
		if (n < 14)
			cr_expect_eq(ddp_rx_parse(p, n, &seg), F(1, 0, 0), "tagged %zu", n);
		free(p);
	}
	cr_expect_eq(ddp_rx_parse(bad, 1, &seg), F(1, 1, 4), "the version is judged first");
	cr_expect_eq(seg.hdr_len, 0);
}

Test(ddp_rx, check_untagged)
{
	static const struct {
		/* the stream: QN 0 */
		__u32 rx_msn, rx_mo;
		bool busy;
		unsigned int depth;
		__u64 buf_len;
		/* the segment */
		__u32 qn, msn, mo, len;
		enum iwarp_fault want;
	} rows[] = {
		{ 1, 0, false, 1, 10, 0, 1, 0, 10, IWARP_OK },
		{ 1, 0, false, 1, 10, 0, 1, 0, 0, IWARP_OK },
		{ 1, 0, false, 1, 0, 0, 1, 0, 0, IWARP_OK },
		{ 1, 0, false, 1, NOT_KNOWN, 0, 1, 0, 65535, IWARP_OK },
		{ 1, 0, false, 9, 10, 1, 1, 0, 10, IWARP_OK },
		{ 1, 0, false, 1, 10, 3, 1, 0, 10, IWARP_OK },
		/* queues */
		{ 1, 0, false, 1, 10, 4, 1, 0, 1, F(1, 2, 1) },
		{ 1, 0, false, 1, 10, 0x80000000, 1, 0, 1, F(1, 2, 1) },
		{ 1, 0, false, 1, 10, UINT32_MAX, 1, 0, 1, F(1, 2, 1) },
		/* numbers */
		{ 1, 0, false, 1, 10, 0, 0, 0, 1, F(1, 2, 3) },
		{ 1, 0, false, 1, 10, 0, 2, 0, 1, F(1, 2, 3) },
		{ 5, 0, false, 1, 10, 0, 4, 0, 1, F(1, 2, 3) },
		{ UINT32_MAX, 0, false, 1, 10, 0, UINT32_MAX, 0, 1, IWARP_OK },
		{ 0, 0, false, 1, 10, 0, 0, 0, 1, IWARP_OK },
		{ 0, 0, false, 1, 10, 0, 1, 0, 1, F(1, 2, 3) },
		/* buffers: needed when a message begins */
		{ 1, 0, false, 0, 10, 0, 1, 0, 1, F(1, 2, 2) },
		{ 1, 0, false, 0, 10, 0, 1, 0, 0, F(1, 2, 2) },
		{ 1, 4, true, 0, 10, 0, 1, 4, 1, IWARP_OK },
		/* offsets */
		{ 1, 0, false, 1, 10, 0, 1, 1, 1, F(1, 2, 4) },
		{ 1, 4, true, 1, 10, 0, 1, 0, 1, F(1, 2, 4) },
		{ 1, 4, true, 1, 10, 0, 1, 3, 1, F(1, 2, 4) },
		{ 1, 4, true, 1, 10, 0, 1, 5, 1, F(1, 2, 4) },
		{ 1, 4, true, 1, 10, 0, 1, UINT32_MAX, 1, F(1, 2, 4) },
		/* lengths */
		{ 1, 0, false, 1, 10, 0, 1, 0, 11, F(1, 2, 5) },
		{ 1, 4, true, 1, 10, 0, 1, 4, 6, IWARP_OK },
		{ 1, 4, true, 1, 10, 0, 1, 4, 7, F(1, 2, 5) },
		{ 1, 0, false, 1, 0, 0, 1, 0, 1, F(1, 2, 5) },
		/* MO next to 2^32 */
		{ 1, 0xFFFFFFF0, true, 1, NOT_KNOWN, 0, 1, 0xFFFFFFF0, 15, IWARP_OK },
		{ 1, 0xFFFFFFF0, true, 1, NOT_KNOWN, 0, 1, 0xFFFFFFF0, 16, F(1, 2, 5) },
		{ 1, 0xFFFFFFF0, true, 1, NOT_KNOWN, 0, 1, 0xFFFFFFF0, 65535, F(1, 2, 5) },
		{ 1, 0xFFFFFFF0, true, 1, 0xFFFFFFFF, 0, 1, 0xFFFFFFF0, 15, IWARP_OK },
		{ 1, 0xFFFFFFF0, true, 1, 10, 0, 1, 0xFFFFFFF0, 32, F(1, 2, 5) },
		/* which of several: queue, number, buffer, offset, length */
		{ 1, 0, false, 0, 1, 4, 9, 9, 9, F(1, 2, 1) },
		{ 1, 0, false, 0, 1, 0, 9, 9, 9, F(1, 2, 3) },
		{ 1, 0, false, 0, 1, 0, 1, 9, 9, F(1, 2, 2) },
		{ 1, 0, false, 1, 1, 0, 1, 9, 9, F(1, 2, 4) },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct ddp_stream s = { .rx_msn = { rows[i].rx_msn, 1, 1, 1 },
					.rx_mo = { rows[i].rx_mo },
					.rx_untagged = rows[i].busy };
		struct ddp_seg seg = {
			.qn = rows[i].qn, .msn = rows[i].msn, .mo = rows[i].mo, .len = rows[i].len
		};
		struct ddp_stream before = s;

		cr_expect_eq(ddp_rx_check_untagged(&s, &seg, rows[i].depth, rows[i].buf_len),
			     rows[i].want, "row %zu", i);
		cr_expect_arr_eq(&s, &before, sizeof(s), "row %zu changed the stream", i);
	}
}

/* Runs segments of three queues and the tagged side through one stream */
Test(ddp_rx, books)
{
	static const struct {
		bool tagged, last;
		__u32 qn, msn, mo, len, stag;
		__u64 to;
		__u8 ulp;
		enum iwarp_fault want;
	} rows[] = {
		{ false, false, 0, 1, 0, 100, 0, 0, 0x43, IWARP_OK },
		/* other queues and tagged segments in between */
		{ false, true, 1, 1, 0, 28, 0, 0, 0x41, IWARP_OK },
		{ true, false, 0, 0, 0, 50, 7, 1000, 0x40, IWARP_OK },
		{ false, false, 0, 1, 100, 100, 0, 0, 0x43, IWARP_OK },
		/* inside the tagged message: any place, but the same buffer and octet */
		{ true, false, 0, 0, 0, 50, 7, 1050, 0x40, IWARP_OK },
		{ true, false, 0, 0, 0, 10, 7, 5000, 0x40, IWARP_OK },
		{ true, false, 0, 0, 0, 10, 7, 10, 0x40, IWARP_OK },
		{ true, false, 0, 0, 0, 10, 8, 20, 0x40, F(1, 1, 0) },
		{ true, false, 0, 0, 0, 10, 7, 20, 0x42, F(1, 1, 0) },
		{ true, true, 0, 0, 0, 0, 8, 20, 0x40, F(1, 1, 0) },
		{ true, true, 0, 0, 0, 0, 7, 20, 0x40, IWARP_OK },
		/* it ended, so another may begin; one segment long, and again */
		{ true, true, 0, 0, 0, 10, 8, 20, 0x42, IWARP_OK },
		{ true, true, 0, 0, 0, 10, 9, 20, 0x40, IWARP_OK },
		/* the Send ends; its number is used up */
		{ false, true, 0, 1, 200, 3, 0, 0, 0x43, IWARP_OK },
		{ false, true, 0, 1, 203, 3, 0, 0, 0x43, F(1, 2, 3) },
		{ false, true, 0, 2, 203, 3, 0, 0, 0x43, F(1, 2, 4) },
		{ false, true, 0, 2, 0, 3, 0, 0, 0x43, IWARP_OK },
		{ false, true, 1, 2, 0, 28, 0, 0, 0x41, IWARP_OK },
		{ false, true, 2, 1, 0, 4, 0, 0, 0x47, IWARP_OK },
		{ false, true, 3, 2, 0, 4, 0, 0, 0x47, F(1, 2, 3) },
	};
	struct ddp_stream s = { .rx_msn = { 1, 1, 1, 1 } };

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct ddp_seg seg = { .tagged = rows[i].tagged,
				       .last = rows[i].last,
				       .qn = rows[i].qn,
				       .msn = rows[i].msn,
				       .mo = rows[i].mo,
				       .len = rows[i].len,
				       .stag = rows[i].stag,
				       .to = rows[i].to,
				       .rsvdulp = rows[i].ulp };
		enum iwarp_fault f = seg.tagged ? ddp_rx_check_tagged(&s, &seg)
						: ddp_rx_check_untagged(&s, &seg, 1, NOT_KNOWN);

		cr_expect_eq(f, rows[i].want, "row %zu: %#x", i, f);
		if (!f)
			ddp_rx_accept(&s, &seg);
	}
	cr_expect_eq(s.rx_msn[0], 3);
	cr_expect_eq(s.rx_msn[1], 3);
	cr_expect_eq(s.rx_msn[2], 2);
	cr_expect_eq(s.rx_msn[3], 1);
	cr_expect_eq(s.rx_untagged, 0);
	cr_expect_eq(s.rx_tagged, 0);
}

Test(ddp_rx, numbers_wrap)
{
	struct ddp_stream s = { .rx_msn = { UINT32_MAX - 1, 1, 1, 1 } };
	struct ddp_seg seg = { .last = true };

	for (__u32 msn = UINT32_MAX - 1; msn != 3; msn++) {
		seg.msn = msn;
		cr_assert_eq(ddp_rx_check_untagged(&s, &seg, 1, 0), IWARP_OK, "%u", msn);
		ddp_rx_accept(&s, &seg);
	}
	cr_expect_eq(s.rx_msn[0], 3);
}

Test(ddp_rx, message_length)
{
	struct ddp_seg seg = { .mo = 0xFFFFFFF0, .len = 32 };

	cr_expect_eq(ddp_seg_message_len(&seg), 0x100000010ull);
}
