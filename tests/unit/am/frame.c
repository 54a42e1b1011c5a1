/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams and frames: what is written is read back, and what does not agree with itself is
 * refused.
 */
#include "am/frame.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>

#include "base/bits.h"
#include "include/warp/amudp.h"

static const struct am_packet packet = {
	.flags = AM_PACKET_CRC | AM_PACKET_SLEEPS,
	.window = 640,
	.source_inc = 0x01020304,
	.dest_inc = 0x05060708,
	.addr = 0x0100007f,
	.port = 0x3930,
	.nonce = 0x1122334455667788ull,
};

static void put(uint8_t *p, size_t n)
{
	struct iovec iov = { p, n };

	memset(p, 7, n);
	am_packet_put(p, &packet);
	am_packet_seal(&iov, 1);
}

Test(frame, packet_round_trip)
{
	struct am_packet out;
	uint8_t p[64];

	put(p, sizeof(p));
	cr_assert_eq(am_packet_parse(p, sizeof(p), &out), 0);
	cr_assert_eq(out.flags, packet.flags);
	cr_assert_eq(out.window, packet.window);
	cr_assert_eq(out.source_inc, packet.source_inc);
	cr_assert_eq(out.dest_inc, packet.dest_inc);
	cr_assert_eq(out.addr, packet.addr);
	cr_assert_eq(out.port, packet.port);
	cr_assert_eq(out.nonce, packet.nonce);
}

Test(frame, packet_octets)
{
	static const uint8_t octets[] = { 0xA2, 0x13, 0,    40,	  0xC9, 0xA9, 0x21, 0x97,
					  0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
					  1,	2,    3,    4,	  5,	6,    7,    8,
					  127,	0,    0,    1,	  0x30, 0x39, 2,    0x80,
					  7,	7,    7,    7,	  7,	7,    7,    7 };
	uint8_t p[sizeof(octets)];
	size_t i;

	put(p, sizeof(p));
	for (i = 0; i < sizeof(p); i++)
		cr_assert_eq(p[i], octets[i], "octet %zu is %#x", i, p[i]);
}

Test(frame, every_flipped_bit_is_seen)
{
	struct am_packet out;
	uint8_t p[64];
	size_t bit;

	put(p, sizeof(p));
	for (bit = 0; bit < 8 * sizeof(p); bit++) {
		/* the flag that says there is a checksum is the endpoint's to insist on */
		if (bit == 8 * 1)
			continue;
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_lt(am_packet_parse(p, sizeof(p), &out), 0, "bit %zu", bit);
		p[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

Test(frame, checksum_over_pieces)
{
	uint8_t a[64], b[64];
	struct am_packet out;
	struct iovec iov[2] = { { b, 40 }, { b + 40, 24 } };

	put(a, sizeof(a));
	memcpy(b, a, sizeof(b));
	am_packet_seal(iov, 2);
	cr_assert_arr_eq(a, b, sizeof(a));
	cr_assert_eq(am_packet_parse(b, sizeof(b), &out), 0);
}

Test(frame, packet_refused)
{
	struct am_packet out;
	uint8_t p[64];

	put(p, sizeof(p));
	cr_assert_eq(am_packet_parse(p, 31, &out), -EPROTO);
	cr_assert_eq(am_packet_parse(p, 56, &out), -EPROTO, "shorter than it says");
	p[1] = 0x19;
	cr_assert_eq(am_packet_parse(p, sizeof(p), &out), -EPROTO, "a flag not known");
	p[1] = 0x23;
	cr_assert_eq(am_packet_parse(p, sizeof(p), &out), -EPROTONOSUPPORT);
	p[0] = 0;
	cr_assert_eq(am_packet_parse(p, sizeof(p), &out), -EPROTO);
}

Test(frame, packets_in_one_datagram)
{
	struct iovec iov[2];
	uint8_t p[200];
	int i;

	memset(p, 7, sizeof(p));
	for (i = 0; i < 2; i++) {
		iov[0] = (struct iovec){ p + 61 * i, 40 };
		iov[1] = (struct iovec){ p + 61 * i + 40, 21 };
		am_packet_put(iov[0].iov_base, &packet);
		am_packet_seal(iov, 2);
	}
	cr_assert_eq(am_packet_length(p, 122), 61u);
	cr_assert_eq(am_packet_length(p + 61, 61), 61u);
	cr_assert_eq(am_packet_length(p, 60), 60u, "cut: one packet, which nobody will take");
	cr_assert_eq(am_packet_length(p, 20), 20u);
	p[2] = p[3] = 0;
	cr_assert_eq(am_packet_length(p, 122), 122u, "no packet is without a header");
}

struct message_case {
	const char *name;
	uint8_t type;
	uint8_t flags;
	uint8_t numargs;
	uint32_t nbytes;
	uint32_t length; /* what is really there */
	uint32_t fragment_offset;
	uint32_t fragment_size;
	int good;
};

#define LONG (amudp_Long | AM_MESSAGE_OFFSET)
static const struct message_case messages[] = {
	{ "short", AM_FRAME_REQUEST, amudp_Short, 0, 0, 0, 0, 0, 1 },
	{ "short, 16 arguments", AM_FRAME_REPLY, amudp_Short, 16, 0, 0, 0, 0, 1 },
	{ "short, odd arguments", AM_FRAME_REPLY, amudp_Short, 3, 0, 0, 0, 0, 1 },
	{ "short, 17 arguments", AM_FRAME_REPLY, amudp_Short, 17, 0, 0, 0, 0, 0 },
	{ "short with data", AM_FRAME_REQUEST, amudp_Short, 0, 8, 8, 0, 0, 0 },
	{ "medium", AM_FRAME_REQUEST, amudp_Medium, 1, 100, 100, 0, 0, 1 },
	{ "medium of nothing", AM_FRAME_REQUEST, amudp_Medium, 1, 0, 0, 0, 0, 1 },
	{ "medium, less data", AM_FRAME_REQUEST, amudp_Medium, 1, 100, 99, 0, 0, 0 },
	{ "medium, more data", AM_FRAME_REQUEST, amudp_Medium, 2, 100, 101, 0, 0, 0 },
	{ "medium, too long", AM_FRAME_REQUEST, amudp_Medium | AM_MESSAGE_FRAGMENT, 0, 65001, 1000,
	  0, 1000, 0 },
	{ "medium with an offset", AM_FRAME_REQUEST, amudp_Medium | AM_MESSAGE_OFFSET, 0, 8, 8, 0,
	  0, 0 },
	{ "long", AM_FRAME_REQUEST, LONG, 5, 64, 64, 0, 0, 1 },
	{ "long without an offset", AM_FRAME_REQUEST, amudp_Long, 5, 64, 64, 0, 0, 0 },
	{ "category 3", AM_FRAME_REQUEST, 3, 0, 0, 0, 0, 0, 0 },
	{ "unknown flag", AM_FRAME_REQUEST, 1 << 6, 0, 0, 0, 0, 0, 0 },
	{ "get", AM_FRAME_REQUEST, LONG | AM_MESSAGE_GET, 2, 5000, 0, 0, 0, 1 },
	{ "get with data", AM_FRAME_REQUEST, LONG | AM_MESSAGE_GET, 2, 8, 8, 0, 0, 0 },
	{ "get as a reply", AM_FRAME_REPLY, LONG | AM_MESSAGE_GET, 2, 8, 0, 0, 0, 0 },
	{ "auto", AM_FRAME_REPLY, AM_MESSAGE_AUTO, 0, 0, 0, 0, 0, 1 },
	{ "auto request", AM_FRAME_REQUEST, AM_MESSAGE_AUTO, 0, 0, 0, 0, 0, 0 },
	{ "auto with arguments", AM_FRAME_REPLY, AM_MESSAGE_AUTO, 1, 0, 0, 0, 0, 0 },
	{ "first fragment", AM_FRAME_REQUEST, LONG | AM_MESSAGE_FRAGMENT, 1, 1500, 1000, 0, 1000,
	  1 },
	{ "last fragment", AM_FRAME_REQUEST, LONG | AM_MESSAGE_FRAGMENT, 1, 1500, 500, 1000, 1000,
	  1 },
	{ "last fragment, long", AM_FRAME_REQUEST, LONG | AM_MESSAGE_FRAGMENT, 1, 1500, 1000, 1000,
	  1000, 0 },
	{ "fragment between", AM_FRAME_REQUEST, LONG | AM_MESSAGE_FRAGMENT, 1, 2500, 1000, 500,
	  1000, 0 },
	{ "fragment beyond", AM_FRAME_REQUEST, LONG | AM_MESSAGE_FRAGMENT, 1, 1500, 1000, 2000,
	  1000, 0 },
	{ "fragment of nothing", AM_FRAME_REQUEST, LONG | AM_MESSAGE_FRAGMENT, 1, 1500, 0, 0, 0,
	  0 },
	{ "tiny fragment", AM_FRAME_REQUEST, LONG | AM_MESSAGE_FRAGMENT, 1, 1500, 8, 0, 8, 0 },
	{ "fragment of a whole", AM_FRAME_REQUEST, LONG | AM_MESSAGE_FRAGMENT, 1, 900, 900, 0, 1000,
	  0 },
	{ "more than the longest", AM_FRAME_REQUEST, LONG | AM_MESSAGE_FRAGMENT, 1,
	  AMUDP_MAX_XFER + 1, 1000, 0, 1000, 0 },
};

static size_t message_put(uint8_t *p, const struct message_case *c, struct am_frame *f)
{
	int32_t args[32];
	size_t head;
	int i;

	for (i = 0; i < 32; i++)
		args[i] = -i;
	*f = (struct am_frame){ .type = c->type,
				.flags = c->flags,
				.handler = 9,
				.numargs = c->numargs,
				.copy = 2,
				.slot = 77,
				.seq = 65535,
				.nbytes = c->nbytes,
				.length = c->length,
				.fragment_offset = c->fragment_offset,
				.fragment_size = c->fragment_size,
				.tag = 0xABCDEF0123456789ull,
				.offset = 0x1000,
				.source_offset = 0x2000 };
	head = am_frame_put_message(p, f, args);
	memset(p + head, 0x42, c->length);
	return base_align_up(head + c->length, 8);
}

Test(frame, messages)
{
	uint8_t p[2048];
	struct am_frame in, out;
	size_t i, n;
	int ret;

	for (i = 0; i < base_array_size(messages); i++) {
		const struct message_case *c = &messages[i];

		n = message_put(p, c, &in);
		ret = am_frame_parse(p, n, &out);
		cr_assert_eq(ret >= 0, c->good, "%s: %d", c->name, ret);
		if (ret < 0)
			continue;
		cr_assert_eq(ret, (int)n, "%s", c->name);
		cr_assert_eq(out.slot, 77);
		cr_assert_eq(out.seq, 65535);
		cr_assert_eq(out.tag, in.tag);
		cr_assert_eq(out.copy, 2);
		cr_assert_eq(out.handler, 9);
		cr_assert_eq(out.nbytes, c->nbytes);
		cr_assert_eq(out.length, c->length);
		cr_assert_eq(out.fragment_offset, c->fragment_offset);
		cr_assert_eq((uintptr_t)(out.data - p) % 8,
			     c->length ? 0 : (uintptr_t)(out.data - p) % 8);
		if (c->numargs)
			cr_assert_eq((int32_t)base_get_be32(out.args + 4 * (c->numargs - 1)),
				     1 - c->numargs, "%s", c->name);
	}
}

Test(frame, only_a_reply_says_that_it_was_asked_for)
{
	struct am_frame out, in = { .type = AM_FRAME_REQUEST, .flags = amudp_Short };
	uint8_t p[64];
	size_t n = am_frame_put_message(p, &in, NULL);

	am_frame_patch_copy(p, AM_COPY_ASKED - 1);
	cr_assert_eq(am_frame_parse(p, n, &out), (int)n);
	am_frame_patch_copy(p, AM_COPY_ASKED);
	cr_assert_lt(am_frame_parse(p, n, &out), 0);
	p[0] = AM_FRAME_REPLY;
	cr_assert_eq(am_frame_parse(p, n, &out), (int)n);
	cr_assert_eq(out.copy, AM_COPY_ASKED);
}

Test(frame, truncated_anywhere_is_refused)
{
	uint8_t p[2048];
	struct am_frame in, out;
	size_t n = message_put(p, &messages[11], &in), i;

	for (i = 0; i < n; i++)
		cr_assert_lt(am_frame_parse(p, i, &out), 0, "%zu octets", i);
}

Test(frame, small_frames)
{
	struct am_frame in = { .slot = 3, .seq = 4 }, out;
	uint8_t p[64], map[] = { 0xF0, 1, 2 };

	in.type = AM_FRAME_SACK;
	in.cumulative = 9;
	in.total = 40;
	in.length = sizeof(map);
	cr_assert_eq(am_frame_put_sack(p, &in, map), 24u);
	cr_assert_eq(am_frame_parse(p, 24, &out), 24);
	cr_assert_eq(out.cumulative, 9u);
	cr_assert_eq(out.total, 40u);
	cr_assert_eq(out.length, 3u);
	cr_assert_arr_eq(out.data, map, 3);

	in.type = AM_FRAME_REFUSE;
	in.reason = EBADTAG;
	cr_assert_eq(am_frame_put_refuse(p, &in), 16u);
	cr_assert_eq(am_frame_parse(p, 16, &out), 16);
	cr_assert_eq(out.reason, EBADTAG);
	p[8] = EREPLYREJECTED + 1;
	cr_assert_lt(am_frame_parse(p, 16, &out), 0);

	in.type = AM_FRAME_MOVE;
	in.serial = 0x80000001u;
	cr_assert_eq(am_frame_put_number(p, &in), 16u);
	cr_assert_eq(am_frame_parse(p, 16, &out), 16);
	cr_assert_eq(out.serial, 0x80000001u);

	in.type = AM_FRAME_ASK;
	cr_assert_eq(am_frame_put_bare(p, &in), 8u);
	cr_assert_eq(am_frame_parse(p, 8, &out), 8);
	p[1] = AM_COPY_ASKED;
	cr_assert_lt(am_frame_parse(p, 8, &out), 0, "no copy has that number");
	p[1] = 0;
	base_put_be16(p + 2, 16);
	cr_assert_lt(am_frame_parse(p, 16, &out), 0, "there is nothing behind it");
	p[0] = AM_FRAME_TYPES;
	cr_assert_lt(am_frame_parse(p, 16, &out), 0);
	p[0] = 0;
	cr_assert_lt(am_frame_parse(p, 16, &out), 0);
}

/* Octets as docs/amudp-wire.md has them: what both ends got wrong together would pass otherwise. */
struct golden {
	const char *name;
	struct am_frame frame; /* length: of data, or of the SACK's map */
	uint32_t there;	       /* octets of data behind the head; a fragment's are fewer than all */
	size_t count;
	uint8_t octets[80];
};

static const int32_t golden_args[] = { 0x01020304, -2, 0x7FFFFFFF };
static const uint8_t golden_data[] = { 0xD1, 0xD2, 0xD3 };

static const struct golden golden[] = {
	{ "REQUEST, medium, three arguments",
	  { .type = AM_FRAME_REQUEST,
	    .flags = amudp_Medium,
	    .handler = 0x2A,
	    .numargs = 3,
	    .copy = 5,
	    .slot = 0x0102,
	    .seq = 0x0304,
	    .nbytes = 3,
	    .tag = 0x1112131415161718,
	    .length = 3 },
	  3,
	  43,
	  { 1,	  1,	0,    43,   1,	  2,	3,    4,    0x2A, 3, 5,	   0,	 0,   0,    0,
	    3,	  0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 1, 2,	   3,	 4,   0xFF, 0xFF,
	    0xFF, 0xFE, 0x7F, 0xFF, 0xFF, 0xFF, 0,    0,    0,	  0, 0xD1, 0xD2, 0xD3 } },
	{ "REQUEST, a get",
	  { .type = AM_FRAME_REQUEST,
	    .flags = LONG | AM_MESSAGE_GET,
	    .handler = 7,
	    .numargs = 1,
	    .slot = 9,
	    .seq = 0xFFFF,
	    .nbytes = 0x00012345,
	    .tag = 1,
	    .offset = 0x2122232425262728,
	    .source_offset = 0x3132333435363738 },
	  0,
	  44,
	  { 1,	  42,	0,    44,   0,	  9,	0xFF, 0xFF, 7,	  1,	0,
	    0,	  0,	1,    0x23, 0x45, 0,	0,    0,    0,	  0,	0,
	    0,	  1,	0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x31,
	    0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 1,    2,	  3,	4 } },
	{ "REPLY, the last fragment of a long one",
	  { .type = AM_FRAME_REPLY,
	    .flags = LONG | AM_MESSAGE_FRAGMENT,
	    .handler = 3,
	    .copy = 1,
	    .slot = 1,
	    .seq = 2,
	    .nbytes = 0x00010003,
	    .tag = 4,
	    .fragment_offset = 0x00010000,
	    .fragment_size = 0x00008000,
	    .offset = 0x40 },
	  3,
	  43,
	  { 2, 38, 0, 43, 0, 1, 0, 2, 3, 0,    1, 0, 0, 1, 0, 3, 0,    0, 0,	0,    0,   0,
	    0, 4,  0, 0,  0, 0, 0, 0, 0, 0x40, 0, 1, 0, 0, 0, 0, 0x80, 0, 0xD1, 0xD2, 0xD3 } },
	{ "REPLY, automatic",
	  { .type = AM_FRAME_REPLY,
	    .flags = AM_MESSAGE_AUTO,
	    .copy = 2,
	    .slot = 0x0304,
	    .seq = 0x0506 },
	  0,
	  24,
	  { 2, 16, 0, 24, 3, 4, 5, 6, 0, 0, 2 } },
	{ "SACK, of a reply, with a map",
	  { .type = AM_FRAME_SACK,
	    .flags = AM_FRAME_OF_REPLY,
	    .slot = 0x0708,
	    .seq = 0x090A,
	    .length = 3,
	    .cumulative = 0x01020304,
	    .total = 0x05060708 },
	  3,
	  19,
	  { 3, 1, 0, 19, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6, 7, 8, 0xD1, 0xD2, 0xD3 } },
	{ "SACK, all is there",
	  { .type = AM_FRAME_SACK, .slot = 1, .seq = 2 },
	  0,
	  16,
	  { 3, 0, 0, 16, 0, 1, 0, 2 } },
	{ "REFUSE",
	  { .type = AM_FRAME_REFUSE, .slot = 1, .seq = 0x0203, .reason = EBADTAG },
	  0,
	  16,
	  { 4, 0, 0, 16, 0, 1, 2, 3, 3 } },
	{ "REFUSE_ACK",
	  { .type = AM_FRAME_REFUSE_ACK,
	    .flags = AM_FRAME_OF_REPLY,
	    .slot = 0x0100,
	    .seq = 2,
	    .reason = EREPLYREJECTED },
	  0,
	  16,
	  { 5, 1, 0, 16, 1, 0, 0, 2, 10 } },
	{ "RESET",
	  { .type = AM_FRAME_RESET, .serial = 0x81828384 },
	  0,
	  16,
	  { 6, 0, 0, 16, 0, 0, 0, 0, 0x81, 0x82, 0x83, 0x84 } },
	{ "MOVE, two places",
	  { .type = AM_FRAME_MOVE, .serial = 0x00000102 },
	  0,
	  32,
	  { 7,	0, 0, 32, 0,	0,    0, 0, 0,	 0,   1, 2, 0,	  0,	0, 0,
	    10, 1, 2, 3,  0x12, 0x34, 0, 0, 192, 168, 4, 5, 0x56, 0x78, 0, 0 } },
	{ "MOVE_ACK",
	  { .type = AM_FRAME_MOVE_ACK, .serial = 0x00000102 },
	  0,
	  16,
	  { 8, 0, 0, 16, 0, 0, 0, 0, 0, 0, 1, 2 } },
	{ "ASK",
	  { .type = AM_FRAME_ASK, .flags = 2, .slot = 0x0102, .seq = 0x0304 },
	  0,
	  8,
	  { 9, 2, 0, 8, 1, 2, 3, 4 } },
	{ "ABSENT",
	  { .type = AM_FRAME_ABSENT, .flags = 254, .slot = 0x0102, .seq = 0x0304 },
	  0,
	  8,
	  { 10, 254, 0, 8, 1, 2, 3, 4 } },
};

static size_t golden_put(uint8_t *p, const struct golden *g)
{
	struct sockaddr_in places[2] = {
		{ .sin_port = htons(0x1234), .sin_addr.s_addr = htonl(0x0A010203) },
		{ .sin_port = htons(0x5678), .sin_addr.s_addr = htonl(0xC0A80405) },
	};
	size_t n;

	switch (g->frame.type) {
	case AM_FRAME_REQUEST:
	case AM_FRAME_REPLY:
		n = am_frame_put_message(p, &g->frame, golden_args);
		if (g->frame.fragment_size)
			am_frame_patch_fragment(p, n, g->frame.fragment_offset, g->there);
		memcpy(p + n, golden_data, g->there);
		return n + g->there;
	case AM_FRAME_SACK:
		return am_frame_put_sack(p, &g->frame, golden_data);
	case AM_FRAME_REFUSE:
	case AM_FRAME_REFUSE_ACK:
		return am_frame_put_refuse(p, &g->frame);
	case AM_FRAME_MOVE:
		return am_frame_put_move(p, &g->frame, places, 2);
	case AM_FRAME_ASK:
	case AM_FRAME_ABSENT:
		return am_frame_put_bare(p, &g->frame);
	default:
		return am_frame_put_number(p, &g->frame);
	}
}

static void golden_compare(const struct golden *g, const struct am_frame *out)
{
	const struct am_frame *f = &g->frame;
	uint32_t length = f->type == AM_FRAME_MOVE ? 16 : g->there;
	int i;

	cr_assert_eq(out->type, f->type, "%s", g->name);
	cr_assert_eq(out->flags, f->flags, "%s", g->name);
	cr_assert_eq(out->handler, f->handler, "%s", g->name);
	cr_assert_eq(out->numargs, f->numargs, "%s", g->name);
	cr_assert_eq(out->copy, f->copy, "%s", g->name);
	cr_assert_eq(out->reason, f->reason, "%s", g->name);
	cr_assert_eq(out->slot, f->slot, "%s", g->name);
	cr_assert_eq(out->seq, f->seq, "%s", g->name);
	cr_assert_eq(out->nbytes, f->nbytes, "%s", g->name);
	cr_assert_eq(out->fragment_offset, f->fragment_offset, "%s", g->name);
	cr_assert_eq(out->fragment_size, f->fragment_size, "%s", g->name);
	cr_assert_eq(out->cumulative, f->cumulative, "%s", g->name);
	cr_assert_eq(out->total, f->total, "%s", g->name);
	cr_assert_eq(out->serial, f->serial, "%s", g->name);
	cr_assert_eq(out->tag, f->tag, "%s", g->name);
	cr_assert_eq(out->offset, f->offset, "%s", g->name);
	cr_assert_eq(out->source_offset, f->source_offset, "%s", g->name);
	cr_assert_eq(out->length, length, "%s", g->name);
	for (i = 0; i < f->numargs; i++)
		cr_assert_eq((int32_t)base_get_be32(out->args + 4 * i), golden_args[i]);
	if (g->there)
		cr_assert_arr_eq(out->data, golden_data, g->there);
}

Test(frame, golden_octets)
{
	struct am_frame out;
	uint8_t p[128];
	size_t i, j, n;

	for (i = 0; i < base_array_size(golden); i++) {
		const struct golden *g = &golden[i];

		memset(p, 0, sizeof(p));
		n = golden_put(p, g);
		cr_assert_geq(n, g->count, "%s: %zu octets", g->name, n);
		for (j = 0; j < n; j++)
			cr_assert_eq(p[j], g->octets[j], "%s: octet %zu is %#x, not %#x", g->name,
				     j, p[j], g->octets[j]);
		cr_assert_geq(am_frame_parse(g->octets, base_align_up(g->count, 8), &out), 0, "%s",
			      g->name);
		golden_compare(g, &out);
	}
}

Test(frame, places_are_whole_and_few)
{
	struct am_frame in = { .type = AM_FRAME_MOVE, .serial = 1 }, out;
	struct sockaddr_in places[AM_WIRE_MAX_PLACES + 1] = { 0 };
	uint8_t p[128];
	int i;

	for (i = 0; i <= AM_WIRE_MAX_PLACES + 1; i++) {
		size_t n = am_frame_put_move(p, &in, places, i);
		int ret = am_frame_parse(p, n, &out);

		cr_assert_eq(n, 16u + 8u * (unsigned int)i);
		cr_assert_eq(ret, i <= AM_WIRE_MAX_PLACES ? (int)n : -EPROTO, "%d places", i);
	}
	am_frame_put_move(p, &in, places, 2);
	for (i = 9; i < 32; i++) {
		p[3] = (uint8_t)i;
		cr_assert_eq(am_frame_parse(p, 32, &out) >= 0, i >= 16 && i % 8 == 0, "%d octets",
			     i);
	}
}
