/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases 59 to 80: DDP, that is segments, message numbers and offsets, tagged buffers.
 */
#include <string.h>

#include "rdmap/state.h"
#include "suite.h"

enum { MD = 0xc0 }; /* a Terminate with length and DDP header */

static const struct setup responder, initiator = { .initiator = true };
static const struct setup small = { .initiator = true, .mss = 536 };

static struct seg seg;
static uint8_t data[1 << 17];

/* A responder with the region open to Writes */
static uint32_t with_region(struct world *w)
{
	world_start(w, &responder);
	return world_region(w, WARP_ACCESS_REMOTE_WRITE, false);
}

/* The ULPDU at fault comes back in the Terminate: its header and its length */
static void expect_fault(struct world *w, uint32_t fault, const uint8_t *ulpdu, size_t n)
{
	struct seg *s = world_expect_terminate(w, fault, MD);
	size_t hdr = ulpdu[0] & 0x80 ? 14 : 18;

	if (!world_asks(w, HEADERS))
		return;
	check_eq(raw_get(s->payload + 4, 2), n);
	check_eq(s->len, 6 + hdr);
	check_octets(s->payload + 6, ulpdu, hdr);
}

static void reserved_bits(struct world *w)
{
	uint8_t u[64];
	uint32_t stag = with_region(w);

	for (int i = 0; i < 2; i++) {
		world_recv(w, 0, 64);
		raw_tagged(u, 0xc1 | 0x3c, 0x40, stag, region_to(w));
		memcpy(u + 14, "write", 5);
		peer_fpdu(&w->peer, u, 19);
		raw_untagged(u, 0x41 | 0x3c, 0x43, 0, 0, w->peer.msn[0]++, 0);
		memcpy(u + 18, "hello", 5);
		peer_fpdu(&w->peer, u, 23);
		check_eq(world_wc(w).byte_len, 5);
		check_octets(w->region, "write", 5);
	}
	/* what the end sends the peer looks at */
	world_post(w, WARP_WR_SEND, 0, 5, 0, 0);
	peer_recv_op(&w->peer, &seg, RDMAP_SEND);
	world_post(w, WARP_WR_WRITE, 0, 5, 1, 2);
	peer_recv_op(&w->peer, &seg, RDMAP_WRITE);
}

static void version(struct world *w)
{
	static const uint8_t versions[] = { 0, 2, 3 };
	uint8_t u[32];

	for (size_t i = 0; i < sizeof(versions); i++) {
		uint32_t stag = with_region(w);

		world_recv(w, 0, 64);
		raw_tagged(u, 0xc0 | versions[i], 0x40, stag, region_to(w));
		peer_fpdu(&w->peer, u, 20);
		expect_fault(w, DDP_E_T_VERSION, u, 20);
		with_region(w);
		world_recv(w, 0, 64);
		raw_untagged(u, 0x40 | versions[i], 0x43, 0, 0, 1, 0);
		peer_fpdu(&w->peer, u, 20);
		expect_fault(w, DDP_E_U_VERSION, u, 20);
		world_nothing_delivered(w);
	}
}

/*
 * A message of @n octets that the end posted: its segments one after the other, and L
 * on the last alone
 */
static unsigned int segments(struct world *w, uint8_t opcode, uint32_t stag, uint64_t to, size_t n)
{
	unsigned int count = 0;
	size_t off = 0;
	uint32_t msn = 0;

	do {
		peer_recv_op(&w->peer, &seg, opcode);
		if (!count++)
			msn = seg.msn;
		if (seg.tagged) {
			check_eq(seg.stag, stag);
			check_eq(seg.to, to + off);
		} else {
			check_eq(seg.mo, off);
			check_eq(seg.msn, msn);
			check_eq(seg.stag, stag);
		}
		check_octets(seg.payload, w->arena + off, seg.len);
		off += seg.len;
		check_eq(seg.last, off == n);
		check(seg.last || seg.len, "no progress");
	} while (!seg.last);
	return count;
}

static void last_flag(struct world *w)
{
	world_start(w, &small);
	pattern(w->arena, 10000, 1);
	for (uint32_t n = 0; n < 10000; n = n * 2 + 1) {
		world_post(w, WARP_WR_SEND, 0, n, 0, 0);
		segments(w, RDMAP_SEND, 0, 0, n);
		world_post(w, WARP_WR_WRITE, 0, n, 7, 1ull << 40);
		segments(w, RDMAP_WRITE, 7, 1ull << 40, n);
	}
}

static void message_numbers(struct world *w)
{
	world_start(w, &initiator);
	for (uint32_t i = 1; i <= 5; i++) {
		world_post(w, WARP_WR_SEND, 0, i * 100, 0, 0);
		peer_recv_op(&w->peer, &seg, RDMAP_SEND);
		check_eq(seg.msn, i);
		world_post(w, WARP_WR_READ, 0, 8, 1, i);
		peer_recv_op(&w->peer, &seg, RDMAP_READ_REQ);
		check_eq(seg.msn, i);
		peer_tagged(&w->peer, RDMAP_READ_RESP, true, w->arena_stag,
			    raw_get(seg.payload + 4, 8), "octets!!", 8);
		world_wc(w);
		world_wc(w);
	}
	/* and so it is on the way in */
	for (uint32_t i = 1; i <= 5; i++)
		world_works(w);
}

static void numbers_wrap(struct world *w)
{
	struct rdmap_stream *s;

	world_start(w, &initiator);
	s = w->end->ops->stream(w->end);
	s->ddp.tx_msn[0] = s->ddp.rx_msn[0] = UINT32_MAX - 1;
	w->peer.msn[0] = w->peer.rx_msn[0] = UINT32_MAX - 1;
	for (uint32_t msn = UINT32_MAX - 1; msn != 3; msn++) {
		world_works(w);
		world_post(w, WARP_WR_SEND, 0, 5, 0, 0);
		peer_recv_op(&w->peer, &seg, RDMAP_SEND);
		check_eq(seg.msn, msn);
		world_wc(w);
	}
}

static void same_in_all(struct world *w)
{
	static const struct {
		enum warp_wr_opcode op;
		unsigned int flags;
		uint8_t opcode;
		uint32_t inv;
	} rows[] = {
		{ WARP_WR_SEND, 0, RDMAP_SEND, 0 },
		{ WARP_WR_SEND, WARP_SEND_SOLICITED, RDMAP_SEND_SE, 0 },
		{ WARP_WR_SEND_INVALIDATE, 0, RDMAP_SEND_INV, 0x1234567 },
		{ WARP_WR_SEND_INVALIDATE, WARP_SEND_SOLICITED, RDMAP_SEND_SE_INV, 0x89abcdef },
	};

	world_start(w, &small);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct warp_sge sge = { w->arena, 5000, w->arena_stag };
		struct warp_send_wr wr = { .opcode = rows[i].op,
					   .flags = rows[i].flags,
					   .sg = &sge,
					   .num_sge = 1,
					   .inv_stag = rows[i].inv };

		if (rows[i].inv && !world_asks(w, INVALIDATES))
			continue;
		world_post_wr(w, &wr);
		check(segments(w, rows[i].opcode, rows[i].inv, 0, 5000) > 5, "too few segments");
	}
}

static void rfc_example(struct world *w)
{
	static const size_t untagged[] = { 1482, 566 }, tagged[] = { 1486, 562 };

	world_start(w, &initiator);
	w->end->ops->stream(w->end)->ddp.mpa.mulpdu = 1500;
	world_post(w, WARP_WR_SEND, 0, 2048, 0, 0);
	world_post(w, WARP_WR_WRITE, 0, 2048, 1, 0);
	for (size_t i = 0; i < 2; i++) {
		peer_recv_op(&w->peer, &seg, RDMAP_SEND);
		check_eq(seg.len, untagged[i]);
		check_eq(seg.mo, i ? 1482 : 0);
	}
	for (size_t i = 0; i < 2; i++) {
		peer_recv_op(&w->peer, &seg, RDMAP_WRITE);
		check_eq(seg.len, tagged[i]);
		check_eq(seg.to, i ? 1486 : 0);
	}
}

static void offsets(struct world *w)
{
	world_start(w, &small);
	pattern(w->arena, 9000, 2);
	world_post(w, WARP_WR_SEND, 0, 9000, 0, 0);
	segments(w, RDMAP_SEND, 0, 0, 9000);
	/* also where the lower half of TO runs over */
	world_post(w, WARP_WR_WRITE, 0, 9000, 0xfedcba98, 0xfffff000);
	segments(w, RDMAP_WRITE, 0xfedcba98, 0xfffff000, 9000);
}

static void zero_length(struct world *w)
{
	uint32_t stag;

	world_start(w, &initiator);
	stag = world_region(w, WARP_ACCESS_REMOTE_READ, false);
	world_post(w, WARP_WR_SEND, 0, 0, 0, 0);
	check_eq(segments(w, RDMAP_SEND, 0, 0, 0), 1);
	world_post(w, WARP_WR_WRITE, 0, 0, 9, 10);
	check_eq(segments(w, RDMAP_WRITE, 9, 10, 0), 1);
	peer_read(&w->peer, 11, 12, 0, stag, region_to(w));
	check_eq(segments(w, RDMAP_READ_RESP, 11, 12, 0), 1);
	peer_expect_quiet(&w->peer);
}

static void zero_length_anywhere(struct world *w)
{
	static const uint64_t places[] = { 0, 1, UINT64_MAX, 1ull << 63 };
	uint32_t stag = with_region(w);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		peer_write(&w->peer, 0, places[i], NULL, 0);
		peer_write(&w->peer, 0xffffffff, places[i], NULL, 0);
		peer_write(&w->peer, stag, places[i], NULL, 0);
	}
	world_works(w);
}

/* --- untagged faults ---------------------------------------------------------------------- */

/* A Send segment with receives of 100 octets posted; the fault that it is */
static void bad_send(struct world *w, uint32_t qn, uint32_t msn, uint32_t mo, size_t n,
		     uint32_t fault)
{
	static uint8_t u[2000];

	raw_untagged(u, 0x41, 0x43, 0, qn, msn, mo);
	pattern(u + 18, n, 7);
	peer_fpdu(&w->peer, u, 18 + n);
	expect_fault(w, fault, u, 18 + n);
	world_nothing_delivered(w);
}

static void unknown_queue(struct world *w)
{
	static const uint32_t queues[] = { 4, 5, 0x100, 0xffffffff };

	for (size_t i = 0; i < sizeof(queues) / sizeof(queues[0]); i++) {
		world_start(w, &responder);
		world_recv(w, 0, 100);
		bad_send(w, queues[i], 1, 0, 5, DDP_E_U_QN);
	}
}

static void no_receive(struct world *w)
{
	for (size_t n = 0; n < 10; n += 5) {
		world_start(w, &responder);
		bad_send(w, 0, 1, 0, n, DDP_E_U_NOBUF);
	}
	world_start(w, &responder);
	world_works(w);
	bad_send(w, 0, 2, 0, 5, DDP_E_U_NOBUF);
}

static void wrong_number(struct world *w)
{
	static const uint32_t numbers[] = { 0, 1, 3, 4, 0xffffffff };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		world_start(w, &responder);
		world_works(w);
		world_recv(w, 0, 100);
		bad_send(w, 0, numbers[i], 0, 5, DDP_E_U_MSN);
	}
	for (uint32_t mo = 1; mo < 100; mo *= 3) {
		world_start(w, &responder);
		world_recv(w, 0, 100);
		bad_send(w, 0, 1, mo, 5, DDP_E_U_MO);
	}
	/* inside a message: again, a gap, beyond */
	for (uint32_t mo = 0; mo < 80; mo += mo == 0 ? 39 : mo == 39 ? 2 : 20) {
		world_start(w, &responder);
		world_recv(w, 0, 100);
		peer_untagged(&w->peer, RDMAP_SEND, false, 0, 1, 0, data, 40);
		bad_send(w, 0, 1, mo, 5, DDP_E_U_MO);
	}
}

static void too_long(struct world *w)
{
	for (size_t n = 101; n < 1500; n = n * 3 / 2) {
		world_start(w, &responder);
		world_recv(w, 0, 100);
		bad_send(w, 0, 1, 0, n, DDP_E_U_LENGTH);
		for (size_t i = 0; i < 2000; i++)
			check(!w->arena[i], "octet %zu was written", i);
	}
	world_start(w, &responder);
	world_recv(w, 0, 100);
	pattern(data, 60, 7);
	peer_untagged(&w->peer, RDMAP_SEND, false, 0, 1, 0, data, 60);
	bad_send(w, 0, 1, 60, 41, DDP_E_U_LENGTH);
	for (size_t i = 60; i < 200; i++)
		check(!w->arena[i], "octet %zu was written", i);
	/* and what just fits */
	world_start(w, &responder);
	world_recv(w, 0, 100);
	peer_untagged(&w->peer, RDMAP_SEND, false, 0, 1, 0, data, 60);
	peer_untagged(&w->peer, RDMAP_SEND, true, 0, 1, 60, data, 40);
	check_eq(world_wc(w).byte_len, 100);
}

/* --- tagged faults ------------------------------------------------------------------------ */

/* A Write of @n octets that is at fault; the region stays as it was */
static void bad_write(struct world *w, uint32_t stag, uint64_t to, size_t n, uint32_t fault)
{
	static uint8_t u[2000];

	raw_tagged(u, 0xc1, 0x40, stag, to);
	memset(u + 14, 0xff, n);
	peer_fpdu(&w->peer, u, 14 + n);
	expect_fault(w, fault, u, 14 + n);
	world_guards(w);
	for (size_t i = 0; i < REGION; i++)
		check(!w->region[i], "octet %zu of the region was written", i);
}

static void tagged_faults(struct world *w)
{
	uint32_t stag = with_region(w);

	bad_write(w, stag ^ 1, region_to(w), 8, DDP_E_T_STAG);
	stag = with_region(w);
	bad_write(w, stag ^ 0x100, region_to(w), 8, DDP_E_T_STAG);
	with_region(w);
	bad_write(w, 0, region_to(w), 8, DDP_E_T_STAG);
	stag = with_region(w);
	w->end->ops->mr_remove(w->end, stag);
	bad_write(w, stag, region_to(w), 8, DDP_E_T_STAG);
	stag = with_region(w);
	bad_write(w, stag, region_to(w) + 2 * (uint64_t)REGION, 8, DDP_E_T_BOUNDS);
	stag = with_region(w);
	bad_write(w, stag, 0, 8, DDP_E_T_BOUNDS);
	stag = with_region(w);
	bad_write(w, stag, UINT64_MAX - 3, 8, DDP_E_T_WRAP);
	world_start(w, &responder);
	stag = world_region(w, WARP_ACCESS_REMOTE_WRITE, true);
	bad_write(w, stag, region_to(w), 8, DDP_E_T_STREAM);
	/* DDP has no code for a missing right: an STag that is not valid for this */
	world_start(w, &responder);
	stag = world_region(w, WARP_ACCESS_LOCAL_WRITE | WARP_ACCESS_REMOTE_READ, false);
	bad_write(w, stag, region_to(w), 8, DDP_E_T_STAG);
}

static void to_the_end(struct world *w)
{
	uint32_t stag = with_region(w);

	pattern(data, 1000, 3);
	peer_write(&w->peer, stag, region_to(w) + REGION - 1000, data, 1000);
	peer_write(&w->peer, stag, region_to(w) + REGION - 1, data + 999, 1);
	peer_write(&w->peer, stag, region_to(w), data, 1);
	world_works(w);
	check_octets(w->region + REGION - 1000, data, 1000);
	check_eq(w->region[0], data[0]);
	world_guards(w);
	stag = with_region(w);
	bad_write(w, stag, region_to(w) + REGION - 1000, 1001, DDP_E_T_BOUNDS);
	stag = with_region(w);
	bad_write(w, stag, region_to(w) + REGION, 1, DDP_E_T_BOUNDS);
	stag = with_region(w);
	bad_write(w, stag, region_to(w) - 1, 1, DDP_E_T_BOUNDS);
}

static void nothing_placed(struct world *w)
{
	uint32_t stag = with_region(w);

	/* bad_write() looks: also the part that lies inside the region is as it was */
	bad_write(w, stag, region_to(w) + REGION - 8, 16, DDP_E_T_BOUNDS);
	stag = with_region(w);
	bad_write(w, stag, region_to(w) - 8, 16, DDP_E_T_BOUNDS);
	world_start(w, &responder);
	world_recv(w, 0, 100);
	bad_send(w, 0, 1, 0, 101, DDP_E_U_LENGTH);
	check_eq(w->arena[0], 0);
}

static void silent_after_fault(struct world *w)
{
	uint32_t stag = with_region(w);

	world_recv(w, 0, 100);
	peer_write(&w->peer, stag ^ 1, region_to(w), "bad", 3);
	peer_write(&w->peer, stag, region_to(w), "good", 4);
	peer_send_message(&w->peer, "good", 4);
	peer_untagged(&w->peer, RDMAP_SEND, true, 9, 9, 9, "bad", 3);
	world_expect_terminate(w, DDP_E_T_STAG, MD);
	world_nothing_delivered(w);
	check_eq(w->region[0], 0);
	check_eq(w->arena[0], 0);
}

/* --- order and delivery ------------------------------------------------------------------- */

static void submission_order(struct world *w)
{
	static const uint8_t ops[] = { RDMAP_SEND, RDMAP_WRITE, RDMAP_WRITE,	RDMAP_SEND,
				       RDMAP_SEND, RDMAP_WRITE, RDMAP_READ_REQ, RDMAP_SEND };

	world_start(w, &small);
	for (size_t i = 0; i < sizeof(ops); i++)
		world_post(w,
			   ops[i] == RDMAP_SEND	   ? WARP_WR_SEND
			   : ops[i] == RDMAP_WRITE ? WARP_WR_WRITE
						   : WARP_WR_READ,
			   4096 * i, ops[i] == RDMAP_READ_REQ ? 8 : 1000 + (uint32_t)i, 5, i);
	for (size_t i = 0; i < sizeof(ops); i++) {
		size_t n = peer_recv_message(&w->peer, ops[i], data, sizeof(data));

		check_eq(n, ops[i] == RDMAP_READ_REQ ? 28 : 1000 + i);
	}
}

static void delivery(struct world *w)
{
	world_start(w, &responder);
	pattern(data, 300, 8);
	world_recv(w, 0, 300);
	world_recv(w, 1000, 300);
	peer_untagged(&w->peer, RDMAP_SEND, false, 0, 1, 0, data, 100);
	world_no_wc(w);
	peer_untagged(&w->peer, RDMAP_SEND, false, 0, 1, 100, data + 100, 100);
	world_no_wc(w);
	peer_untagged(&w->peer, RDMAP_SEND, true, 0, 1, 200, data + 200, 100);
	check_eq(world_wc(w).wr_id, 0);
	check_octets(w->arena, data, 300);
	world_no_wc(w);
	peer_untagged(&w->peer, RDMAP_SEND, true, 0, 2, 0, data, 1);
	check_eq(world_wc(w).wr_id, 1000);
	world_no_wc(w);
}

static void message_length(struct world *w)
{
	static const uint32_t lengths[] = { 0, 1, 99, 100, 101, 5000, 60000 };

	world_start(w, &responder);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t n = lengths[i], mo = 0;

		pattern(data, n, (unsigned int)i);
		world_recv(w, 0, 100000);
		for (; n - mo > 700; mo += 700)
			peer_untagged(&w->peer, RDMAP_SEND, false, 0, w->peer.msn[0], mo, data + mo,
				      700);
		peer_untagged(&w->peer, RDMAP_SEND, true, 0, w->peer.msn[0]++, mo, data + mo,
			      n - mo);
		check_eq(world_wc(w).byte_len, n);
		check_octets(w->arena, data, n);
	}
}

static void many_segments(struct world *w)
{
	uint32_t stag = with_region(w), n = 100000, off = 0;

	pattern(data, n, 9);
	for (; n - off > 1000; off += 1000)
		peer_tagged(&w->peer, RDMAP_WRITE, false, stag, region_to(w) + 4321 + off,
			    data + off, 1000);
	peer_tagged(&w->peer, RDMAP_WRITE, true, stag, region_to(w) + 4321 + off, data + off,
		    n - off);
	world_works(w);
	check_octets(w->region + 4321, data, n);
	check_eq(w->region[4320], 0);
	check_eq(w->region[4321 + n], 0);
}

#define REACH "needs a stream in a state that the native API does not give out"

static const struct row rows[] = {
	CASE(59, "5041 4.1", "DV 1 and zeroes are sent, reserved bits ignored", reserved_bits),
	CASE(60, "5041 7.2", "another DV: 1/1/04 or 1/2/06", version),
	CASE(61, "5041 4.1", "L on the last segment alone", last_flag),
	CASE(62, "5041 4.3", "MSN from 1 for each queue, one more a message", message_numbers),
	CASE_ON(63, "5041 4.3", "MSN wraps from 0xFFFFFFFF to 0", numbers_wrap, LAYERS, REACH),
	CASE(64, "5041 4.3", "QN, MSN, RsvdULP are the same in all segments", same_in_all),
	CASE_ON(65, "5041 5.2", "2048 octets at MULPDU 1500", rfc_example, LAYERS, REACH),
	CASE(66, "5041 5.2", "MO and TO are base and offset", offsets),
	CASE(67, "5041 5.2", "a message of zero octets is one segment", zero_length),
	CASE(68, "5041 5.2", "STag and TO of zero octets are not checked", zero_length_anywhere),
	CASE(69, "5041 7", "a queue that is not in use: 1/2/01", unknown_queue),
	CASE(70, "5041 7", "a Send without a receive: 1/2/02", no_receive),
	CASE(71, "5041 7", "wrong MSN: 1/2/03, wrong MO: 1/2/04", wrong_number),
	CASE(72, "5041 7", "too long: 1/2/05, and nothing beyond the buffer", too_long),
	CASE(73, "5041 7", "STag 1/1/00, bounds 01, stream 02, wrap 03", tagged_faults),
	CASE(74, "5041 7.1", "up to the end of the region, not one octet more", to_the_end),
	CASE(75, "5041 7.1", "of a segment at fault nothing is placed", nothing_placed),
	CASE(76, "5041 7.1", "after a fault input is dropped silently", silent_after_fault),
	CASE(77, "5041 5.3", "messages leave in the order of submission", submission_order),
	CASE(78, "5041 5.3, 5.4", "in order, once, and only when complete", delivery),
	CASE(79, "5041 5.4", "the length of the message is told", message_length),
	CASE(80, "5041 5.2", "a Write of many segments at any TO", many_segments),
};

ROWS(ddp, rows);
