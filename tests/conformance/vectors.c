/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whole frames as octets (from the RFCs, from captures that Wireshark judges good), received in
 * every cut: one, two (in memory), octet by octet.
 */
#include <ctype.h>
#include <string.h>

#include "suite.h"

static const struct setup responder, initiator = { .initiator = true };
static const struct setup marked = { .initiator = true, .markers = true };
static const struct setup p2p = { .rev = 2, .rtr = WARP_CONN_RTR_WRITE | WARP_CONN_RTR_READ };

struct vector {
	void (*prepare)(struct world *w);
	const char *hex;
	void (*expect)(struct world *w);
};

static size_t octets_of(const char *hex, uint8_t *out)
{
	static const char digits[] = "0123456789abcdef";
	size_t n = 0;

	for (; *hex; hex++) {
		if (isspace((unsigned char)*hex))
			continue;
		out[n / 2] = (uint8_t)(out[n / 2] << 4 | (strchr(digits, *hex) - digits));
		n++;
	}
	return n / 2;
}

/* --- before ------------------------------------------------------------------------------- */

static void ready(struct world *w)
{
	world_start(w, &initiator);
	world_recv(w, 0, 64);
}

static void after_four_sends(struct world *w)
{
	ready(w);
	for (int i = 0; i < 4; i++) {
		peer_send_message(&w->peer, "1234", 4);
		world_wc(w);
		world_recv(w, 0, 64);
	}
}

static void marked_ready(struct world *w)
{
	world_start(w, &marked);
	world_recv(w, 0, 64);
}

static void marked_after_492(struct world *w)
{
	uint8_t payload[464] = { 0 };

	world_start(w, &marked);
	world_recv(w, 0, 500);
	peer_send_message(&w->peer, payload, sizeof(payload));
	world_wc(w);
	world_recv(w, 0, 64);
}

static void unstarted(struct world *w)
{
	world_open(w, &responder);
}

static void unstarted_p2p(struct world *w)
{
	world_open(w, &p2p);
}

static void requested(struct world *w)
{
	struct frame f;

	world_open(w, &initiator);
	peer_recv_frame(&w->peer, &f);
}

static void responded(struct world *w)
{
	world_start(w, &responder);
	world_recv(w, 0, 64);
}

/* --- after -------------------------------------------------------------------------------- */

static struct seg seg;
static struct frame frame;

static void delivered(struct world *w, size_t n)
{
	struct warp_wc wc = world_wc(w);

	check_eq(wc.status, WARP_WC_SUCCESS);
	check_eq(wc.byte_len, n);
}

static void hello(struct world *w)
{
	delivered(w, 5);
	check_octets(w->arena, "hello", 5);
}

static void nothing(struct world *w)
{
	delivered(w, 0);
}

static void zeroes(struct world *w)
{
	delivered(w, 24);
}

static void immediate(struct world *w)
{
	struct warp_wc wc = world_wc(w);

	check_eq(wc.flags & WARP_WC_WITH_IMMEDIATE, WARP_WC_WITH_IMMEDIATE);
	check_eq(wc.immediate, 0x494d4d4441544138);
}

static void established(struct world *w)
{
	world_state(w, WARP_CONN_ESTABLISHED);
}

static void read_answered(struct world *w)
{
	peer_recv_op(&w->peer, &seg, RDMAP_READ_RESP);
	check_eq(seg.len, 0);
	check_eq(seg.stag, 0);
	check_eq(seg.to, 0);
}

/* The example's source is no region here, so its header comes back */
static void read_refused(struct world *w)
{
	struct seg *s = world_expect_terminate(w, RDMAP_E_STAG, 0xe0);

	check_eq(raw_get(s->payload + 24, 4), 0xaabbccdd);
	check_eq(raw_get(s->payload + 40, 4), 0x01020304);
}

static void told_no_buffer(struct world *w)
{
	check_eq(world_state(w, WARP_CONN_ERROR).term_received, DDP_E_U_NOBUF);
}

static void told_bounds(struct world *w)
{
	check_eq(world_state(w, WARP_CONN_ERROR).term_received, RDMAP_E_BOUNDS);
}

static void told_crc(struct world *w)
{
	check_eq(world_state(w, WARP_CONN_ERROR).term_received, MPA_E_CRC);
}

static void replied(struct world *w)
{
	peer_recv_frame(&w->peer, &frame);
	check_octets(frame.key, raw_rep_key, 16);
	check_eq(frame.flags, 0x40);
}

static void replied_enhanced(struct world *w)
{
	peer_recv_frame(&w->peer, &frame);
	check_eq(frame.flags, 0x50);
	check_eq(frame.rev, 2);
	check_eq(world_info(w).peer_ird, 4);
	check_eq(world_info(w).peer_ord, 8);
}

static void replied_ulp(struct world *w)
{
	replied_enhanced(w);
	check_eq(world_info(w).private_data_len, 3);
	check_octets(world_info(w).private_data, "ulp", 3);
}

/* --- cuts --------------------------------------------------------------------------------- */

static void feed(struct world *w, const struct vector *v, const uint8_t *p, size_t n, size_t a,
		 size_t b)
{
	const size_t ends[] = { a, b, n };
	size_t at = 0;

	v->prepare(w);
	for (size_t i = 0; i < 3; i++) {
		peer_try_send(&w->peer, p + at, ends[i] - at);
		at = ends[i];
		world_pump(w);
	}
	w->peer.crc = true;
	v->expect(w);
}

static void every_cut(struct world *w)
{
	const struct vector *v = w->arg;
	uint8_t p[256];
	size_t n = octets_of(v->hex, p);

	for (size_t a = 1; a < n; a++) {
		feed(w, v, p, n, a, n);
		for (size_t b = a + 1; w->kind == MEM && b < n; b++)
			feed(w, v, p, n, a, b);
	}
	v->prepare(w);
	w->peer.cut = 1;
	peer_try_send(&w->peer, p, n);
	w->peer.crc = true;
	v->expect(w);
}

#define REQ "4d504120494420526571204672616d65"
#define REP "4d504120494420526570204672616d65"
#define Z24 "000000000000000000000000000000000000000000000000"

#define VECTOR(name, prepare, hex, expect)                                                  \
	{                                                                                   \
		0, name, "received in every cut", every_cut, ALL, 0, &(const struct vector) \
		{                                                                           \
			prepare, hex, expect                                                \
		}                                                                           \
	}

static const struct row rows[] = {
	VECTOR("Request, revision 1", unstarted, REQ "40 01 0000", replied),
	VECTOR("Reply, revision 1", requested, REP "40 01 0000", established),
	VECTOR("Request, revision 2, peer to peer", unstarted_p2p,
	       REQ "50 02 0007 8004 c008 756c70", replied_ulp),
	VECTOR("Request of siw", unstarted_p2p, REQ "10 02 0004 0004 0008", replied_enhanced),
	VECTOR("RTR Write", responded, "000e c140 00000001 0000000000000000 ebd34c5f", established),
	VECTOR("RTR Read", responded,
	       "002e 4141 00000000 00000001 00000001 00000000 00000000 0000000000000000 00000000"
	       "00000001 0000000000000000 ba10e3c9",
	       read_answered),
	VECTOR("RTR Send", responded, "0012 4143 00000000 00000000 00000001 00000000 587be8c4",
	       nothing),
	VECTOR("Send of hello", ready,
	       "0017 4143 00000000 00000000 00000001 00000000 68656c6c6f 000000 b990b10c", hello),
	VECTOR("RFC 5044 figure 5", marked_ready,
	       "00000000 002a 4143 00000000 00000000 00000001 00000000" Z24 "52239983", zeroes),
	VECTOR("RFC 5044 figure 5 without its marker", ready,
	       "002a 4143 00000000 00000000 00000001 00000000" Z24 "b7243ec3", zeroes),
	VECTOR("RFC 5044 figure 6", marked_after_492,
	       "002a 4143 00000000 00000000 00000002 00000000 00000014" Z24 "84925898", zeroes),
	VECTOR("Read Request", responded,
	       "002e 4141 00000000 00000001 00000001 00000000 aabbccdd 0000000000001000 00000018"
	       "01020304 0000000000002000 691ad9ae",
	       read_refused),
	VECTOR("Immediate Data", after_four_sends,
	       "001a 4148 00000000 00000000 00000005 00000000 494d4d4441544138 f9071909",
	       immediate),
	VECTOR("Terminate, DDP header", ready,
	       "002a 4147 00000000 00000002 00000001 00000000 1202c000 0017 4143 00000000 00000000"
	       "00000007 00000000 734642fc",
	       told_no_buffer),
	VECTOR("Terminate, DDP and RDMAP header", ready,
	       "0046 4147 00000000 00000002 00000001 00000000 0101e000 002e 4141 00000000 00000001"
	       "00000001 00000000 aabbccdd 0000000000001000 00000018 01020304 0000000000002000"
	       "16317c8e",
	       told_bounds),
	VECTOR("Terminate, no header", ready,
	       "0016 4147 00000000 00000002 00000001 00000000 20020000 7fe42585", told_crc),
};

ROWS(vectors, rows);
