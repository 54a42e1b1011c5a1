/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How messages are cut: segments as they stand in the FPDUs that go out.
 */
#include <errno.h>

#include <criterion/criterion.h>

#include "base/bits.h"
#include "ddp/ddp.h"

#define PAYLOAD 8192

static __u8 payload[PAYLOAD];
static struct ddp_stream stream;

/* The FPDUs built, as octets */
static __u8 wire[2 * PAYLOAD];
static size_t wire_len;

static void setup(void)
{
	struct mpa_config config = { .rev = 1 };

	for (size_t i = 0; i < PAYLOAD; i++)
		payload[i] = (__u8)(i * 7 + i / 256);
	ddp_stream_init(&stream, MPA_INITIATOR, &config);
	stream.mpa.state = MPA_OPEN;
	stream.mpa.mulpdu = 1500;
	wire_len = 0;
}

TestSuite(ddp_tx, .init = setup);

/* One segment into wire[]; with few entries for pieces or little scratch if the caller says so */
static ssize_t segment_within(const struct ddp_tx_msg *m, __u32 off, bool *last, __u32 iov_cap,
			      __u32 scratch_cap)
{
	struct iovec iov[256];
	__u8 scratch[2048];
	struct mpa_txv v = {
		.iov = iov, .scratch = scratch, .iov_cap = iov_cap, .scratch_cap = scratch_cap
	};
	ssize_t n = ddp_tx_segment(&stream, &v, m, off, last);

	for (__u32 i = 0; i < v.niov; i++) {
		memcpy(wire + wire_len, iov[i].iov_base, iov[i].iov_len);
		wire_len += iov[i].iov_len;
	}
	return n;
}

static ssize_t segment(const struct ddp_tx_msg *m, __u32 off, bool *last)
{
	return segment_within(m, off, last, 256, 2048);
}

/* The ULPDU of the FPDU at @at of wire[]; 0 at the end. CRC is off and there are no markers. */
static size_t ulpdu(size_t *at, const __u8 **p)
{
	size_t len;

	if (*at == wire_len)
		return 0;
	len = base_get_be16(wire + *at);
	*p = wire + *at + 2;
	*at += base_align_up(2 + len, 4) + 4;
	cr_assert_leq(*at, wire_len);
	return len;
}

/* The whole message; returns the number of segments */
static unsigned int message(const struct ddp_tx_msg *m)
{
	unsigned int n = 0;
	bool last = false;
	__u32 off = 0;

	while (!last) {
		ssize_t got = segment(m, off, &last);

		cr_assert_geq(got, 0, "at %u: %zd", off, got);
		cr_assert(got || !m->len, "no progress at %u", off);
		off += (__u32)got;
		n++;
	}
	cr_assert_eq(off, m->len);
	return n;
}

/* The example of RFC 5041 section 5.2 and its neighbours */
Test(ddp_tx, segment_sizes)
{
	static const struct {
		bool tagged;
		__u16 mulpdu;
		__u32 len, n;
		__u32 sizes[5];
	} rows[] = {
		{ false, 1500, 2048, 2, { 1482, 566 } },
		{ true, 1500, 2048, 2, { 1486, 562 } },
		{ false, 1500, 0, 1, { 0 } },
		{ true, 1500, 0, 1, { 0 } },
		{ false, 1500, 1, 1, { 1 } },
		{ false, 1500, 1482, 1, { 1482 } },
		{ false, 1500, 1483, 2, { 1482, 1 } },
		{ true, 1500, 1486, 1, { 1486 } },
		{ true, 1500, 1487, 2, { 1486, 1 } },
		{ false, 128, 330, 3, { 110, 110, 110 } },
		{ true, 128, 343, 4, { 114, 114, 114, 1 } },
		{ true, 1442, 5712, 4, { 1428, 1428, 1428, 1428 } },
		/* one octet at least, whatever MULPDU says */
		{ false, 18, 2, 2, { 1, 1 } },
		{ true, 0, 3, 3, { 1, 1, 1 } },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct iovec sg = { payload, rows[i].len };
		struct ddp_tx_msg m = {
			.tagged = rows[i].tagged, .len = rows[i].len, .sg = &sg, .nsg = 1
		};
		size_t hdr = rows[i].tagged ? 14 : 18, at = 0;
		const __u8 *p;

		setup();
		stream.mpa.mulpdu = rows[i].mulpdu;
		cr_expect_eq(message(&m), rows[i].n, "row %zu", i);
		for (__u32 k = 0; k < rows[i].n; k++) {
			size_t n = ulpdu(&at, &p);

			cr_expect_eq(n, hdr + rows[i].sizes[k], "row %zu segment %u", i, k);
			cr_expect_eq(!!(p[0] & 0x40), k + 1 == rows[i].n, "row %zu segment %u", i,
				     k);
		}
		cr_expect_eq(at, wire_len);
	}
}

Test(ddp_tx, untagged_header)
{
	static const __u8 want[2][18] = {
		{ 0x01, 0x46, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0 },
		{ 0x41, 0x46, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 5, 0xca },
	};
	struct iovec sg = { payload, 1500 };
	struct ddp_tx_msg m = {
		.rsvdulp = 0x46, .rsvdulp32 = 0x11223344, .qn = 3, .len = 1500, .sg = &sg, .nsg = 1
	};
	size_t at = 0;
	const __u8 *p;

	cr_assert_eq(message(&m), 2);
	for (int i = 0; i < 2; i++) {
		size_t n = ulpdu(&at, &p);

		cr_expect_arr_eq(p, want[i], 18, "segment %d", i);
		cr_expect_arr_eq(p + 18, payload + (i ? 1482 : 0), n - 18, "segment %d", i);
	}
}

Test(ddp_tx, tagged_header)
{
	static const __u8 want[2][14] = {
		{ 0x81, 0x40, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff },
		{ 0xc1, 0x40, 0xaa, 0xbb, 0xcc, 0xdd, 0, 0, 0, 1, 0, 0, 5, 0xcd },
	};
	struct iovec sg = { payload, 1500 };
	struct ddp_tx_msg m = { .tagged = true,
				.rsvdulp = 0x40,
				.stag = 0xaabbccdd,
				.to = 0xffffffff,
				.len = 1500,
				.sg = &sg,
				.nsg = 1 };
	size_t at = 0;
	const __u8 *p;

	cr_assert_eq(message(&m), 2);
	for (int i = 0; i < 2; i++) {
		size_t n = ulpdu(&at, &p);

		cr_expect_arr_eq(p, want[i], 14, "segment %d", i);
		cr_expect_arr_eq(p + 14, payload + (i ? 1486 : 0), n - 14, "segment %d", i);
	}
}

Test(ddp_tx, ulp_header_is_payload)
{
	static const __u8 hdr[] = { 1, 2, 3, 4 };
	struct iovec sg = { payload, 2000 };
	struct ddp_tx_msg m = { .rsvdulp = 0x47,
				.qn = 2,
				.ulp_hdr = hdr,
				.ulp_hdr_len = 4,
				.len = 8,
				.sg = &sg,
				.nsg = 1 };
	size_t at = 0;
	const __u8 *p;
	bool last;

	cr_assert_eq(segment(&m, 0, &last), 8);
	cr_expect(last);
	cr_expect_eq(ulpdu(&at, &p), 18 + 4 + 8);
	cr_expect_eq(base_get_be32(p + 14), 0, "MO");
	cr_expect_arr_eq(p + 18, hdr, 4);
	cr_expect_arr_eq(p + 22, payload, 8);

	/* exactly one segment, or none */
	m.len = 1500 - 18 - 4;
	cr_expect_eq(segment(&m, 0, &last), 1478);
	m.len++;
	cr_expect_eq(segment(&m, 0, &last), -EMSGSIZE);
	cr_expect_eq(stream.tx_msn[2], 3);
}

/* Each queue counts by itself, and only with the last segment; tagged messages have no number */
Test(ddp_tx, message_numbers)
{
	struct iovec sg = { payload, 3000 };
	struct ddp_tx_msg m = { .len = 3000, .sg = &sg, .nsg = 1 };
	static const __u32 queues[] = { 0, 0, 1, 0, 3, 1, 2 }, numbers[] = { 1, 2, 1, 3, 1, 2, 1 };

	for (size_t i = 0; i < base_array_size(queues); i++) {
		struct ddp_tx_msg t = { .tagged = true };
		size_t at = 0;
		const __u8 *p;

		wire_len = 0;
		m.qn = queues[i];
		cr_assert_eq(message(&m), 3);
		while (ulpdu(&at, &p)) {
			cr_expect_eq(base_get_be32(p + 6), queues[i]);
			cr_expect_eq(base_get_be32(p + 10), numbers[i], "message %zu", i);
		}
		message(&t);
	}
}

Test(ddp_tx, message_numbers_wrap)
{
	static const __u32 want[] = { UINT32_MAX - 1, UINT32_MAX, 0, 1 };
	struct ddp_tx_msg m = { .qn = 1 };
	size_t at = 0;
	const __u8 *p;

	stream.tx_msn[1] = UINT32_MAX - 1;
	for (size_t i = 0; i < base_array_size(want); i++) {
		message(&m);
		cr_assert(ulpdu(&at, &p));
		cr_expect_eq(base_get_be32(p + 10), want[i], "message %zu", i);
	}
}

/* The longest message there is: its last segments, over memory that is mapped nowhere */
Test(ddp_tx, four_gigabytes)
{
	struct iovec sg[2] = { { payload, 0xFFFFFF00 }, { payload, 0xFF } };
	struct ddp_tx_msg m = { .len = 0xFFFFFFFF, .sg = sg, .nsg = 2 };
	size_t at = 0;
	const __u8 *p;
	bool last;

	stream.mpa.mulpdu = 18 + 200;
	cr_assert_eq(segment(&m, 0xFFFFFF00, &last), 200);
	cr_expect_not(last);
	cr_assert_eq(segment(&m, 0xFFFFFF00 + 200, &last), 55);
	cr_expect(last);
	for (int i = 0; i < 2; i++) {
		size_t n = ulpdu(&at, &p);

		cr_expect_eq(n, 18u + (i ? 55 : 200));
		cr_expect_eq(base_get_be32(p + 14), 0xFFFFFF00u + (i ? 200 : 0));
		cr_expect_arr_eq(p + 18, payload + (i ? 200 : 0), n - 18);
	}
	m.tagged = true;
	m.to = 0x100000000;
	wire_len = at = 0;
	cr_assert_eq(segment(&m, 0xFFFFFFFE, &last), 1);
	cr_expect(last);
	ulpdu(&at, &p);
	cr_expect_eq(base_get_be64(p + 6), 0x1FFFFFFFEull);
}

/* More pieces than one segment may have: it is cut short, and the message is whole all the same */
Test(ddp_tx, many_small_pieces)
{
	struct iovec sg[200];
	struct ddp_tx_msg m = { .len = 200, .sg = sg, .nsg = 200 };
	static const size_t want[] = { 64, 64, 64, 8 };
	size_t at = 0, off = 0;
	const __u8 *p;

	for (size_t i = 0; i < 200; i++)
		sg[i] = (struct iovec){ payload + i, 1 };
	cr_assert_eq(message(&m), 4);
	for (size_t i = 0; i < 4; i++) {
		cr_expect_eq(ulpdu(&at, &p), 18 + want[i]);
		cr_expect_eq(base_get_be32(p + 14), off);
		cr_expect_eq(!!(p[0] & 0x40), i == 3);
		cr_expect_arr_eq(p + 18, payload + off, want[i]);
		off += want[i];
	}
}

Test(ddp_tx, refused)
{
	struct iovec sg = { payload, 100 };
	static const struct {
		struct ddp_tx_msg m;
		__u32 off;
	} rows[] = {
		{ { .qn = 4, .len = 100 }, 0 },
		{ { .qn = UINT32_MAX, .len = 100 }, 0 },
		{ { .len = 100 }, 100 },
		{ { .len = 100 }, 101 },
		{ { .len = 0 }, 1 },
		{ { .len = 101 }, 0 },
		{ { .len = 200 }, 100 },
		{ { .tagged = true, .len = 101 }, 0 },
		{ { .ulp_hdr = "", .ulp_hdr_len = 53, .len = 1 }, 0 },
		{ { .ulp_hdr = "", .ulp_hdr_len = 1, .len = 100 }, 50 },
	};

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct ddp_tx_msg m = rows[i].m;
		struct ddp_stream before = stream;
		bool last = true;

		m.sg = &sg;
		m.nsg = 1;
		cr_expect_eq(segment(&m, rows[i].off, &last), -EINVAL, "row %zu", i);
		cr_expect_eq(wire_len, 0, "row %zu", i);
		cr_expect_arr_eq(&stream, &before, sizeof(stream), "row %zu", i);
		cr_expect(last, "row %zu", i);
	}
}

/* Without room nothing has happened, however little is missing */
Test(ddp_tx, no_room_changes_nothing)
{
	struct iovec sg[2] = { { payload, 50 }, { payload + 60, 50 } };
	struct ddp_tx_msg m = { .qn = 1, .len = 100, .sg = sg, .nsg = 2 };
	unsigned int tight = 0;
	bool last;

	for (__u32 iov_cap = 0; iov_cap < 16; iov_cap++) {
		for (__u32 scratch_cap = 0; scratch_cap < 128; scratch_cap++) {
			struct ddp_stream before = stream;
			ssize_t n;

			wire_len = 0;
			last = false;
			n = segment_within(&m, 0, &last, iov_cap, scratch_cap);
			if (n == -ENOBUFS) {
				cr_assert_arr_eq(&stream, &before, sizeof(stream));
				cr_assert_eq(wire_len, 0);
				cr_assert_not(last);
				tight++;
			} else {
				cr_assert_eq(n, 100);
				cr_assert_eq(stream.tx_msn[1], before.tx_msn[1] + 1);
			}
		}
	}
	cr_expect_gt(tight, 0);
	cr_expect_gt(stream.tx_msn[1], 1);
}
