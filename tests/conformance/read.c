/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases 91 to 98, 100 and 104: RDMA Reads, from both sides.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

enum { MDR = 0xe0 };

static const struct setup responder, initiator = { .initiator = true };

static struct seg seg;
static uint8_t data[REGION];

static uint32_t with_region(struct world *w, const struct setup *s)
{
	world_start(w, s);
	pattern(w->region, REGION, 1);
	return world_region(w, WARP_ACCESS_REMOTE_READ, false);
}

/* The Request of a Read that the end posted */
struct request {
	uint32_t sink_stag, size, src_stag;
	uint64_t sink_to, src_to;
};

static struct request take_request(struct world *w)
{
	peer_recv_op(&w->peer, &seg, RDMAP_READ_REQ);
	check_eq(seg.len, 28);
	check_eq(seg.mo, 0);
	check_eq(seg.last, true);
	return (struct request){
		.sink_stag = (uint32_t)raw_get(seg.payload, 4),
		.sink_to = raw_get(seg.payload + 4, 8),
		.size = (uint32_t)raw_get(seg.payload + 12, 4),
		.src_stag = (uint32_t)raw_get(seg.payload + 16, 4),
		.src_to = raw_get(seg.payload + 20, 8),
	};
}

static void answer(struct world *w, const struct request *r, bool last, uint32_t off, uint32_t n)
{
	pattern(data, r->size, r->size);
	peer_tagged(&w->peer, RDMAP_READ_RESP, last, r->sink_stag, r->sink_to + off, data + off, n);
}

static void request(struct world *w)
{
	static const uint32_t sizes[] = { 0, 1, 8, 5000, 200000 };

	world_start(w, &initiator);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct request r;

		world_post(w, WARP_WR_READ, 16, sizes[i], 0x11223344, 0x5566778899aabbcc);
		r = take_request(w);
		check_eq(seg.qn, 1);
		check_eq(seg.msn, i + 1);
		check_eq(r.size, sizes[i]);
		check_eq(r.src_stag, 0x11223344);
		check_eq(r.src_to, 0x5566778899aabbcc);
		if (sizes[i]) {
			check_eq(r.sink_stag, w->arena_stag);
			check_eq(r.sink_to, (uintptr_t)w->arena + 16);
		}
		answer(w, &r, true, 0, sizes[i] < 60000 ? sizes[i] : 0);
		if (sizes[i] > 60000)
			break;
		check_eq(world_wc(w).status, WARP_WC_SUCCESS);
		check_octets(w->arena + 16, data, sizes[i]);
	}
}

/* The one Response to a Read of the peer's */
static void take_response(struct world *w, uint32_t stag, uint64_t to, uint32_t size,
			  const uint8_t *want)
{
	uint32_t off = 0;

	do {
		peer_recv_op(&w->peer, &seg, RDMAP_READ_RESP);
		check_eq(seg.stag, stag);
		check_eq(seg.to, to + off);
		check_octets(seg.payload, want + off, seg.len);
		off += (uint32_t)seg.len;
		check(off <= size, "a Response of more than %u octets", size);
		check_eq(seg.last, off == size);
		check(seg.last || seg.len, "no progress");
	} while (!seg.last);
}

static void one_response(struct world *w)
{
	static const uint32_t sizes[] = { 1, 8, 1000, 10000, 200000 };
	uint32_t stag = with_region(w, &responder);

	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		peer_read(&w->peer, 0xaabbccdd + i, 0xfffffffffff0 + i, sizes[i], stag,
			  region_to(w) + i);
		take_response(w, 0xaabbccdd + i, 0xfffffffffff0 + i, sizes[i], w->region + i);
		peer_expect_quiet(&w->peer);
	}
}

static void in_order(struct world *w)
{
	/* One of no octets that waits behind another gets that one's from siw (siw_activate_tx) */
	const uint32_t none = w->kind == DEVICE ? 2 : 0;
	const uint32_t sizes[] = { 5000, 1, none, 20000, 8, 300, none, 7 };
	uint32_t stag = with_region(w, &responder);

	for (uint32_t i = 0; i < 8; i++)
		peer_read(&w->peer, 100 + i, 1000 * i, sizes[i], stag, region_to(w) + 100 * i);
	for (uint32_t i = 0; i < 8; i++)
		take_response(w, 100 + i, 1000 * i, sizes[i], w->region + 100 * i);
	peer_expect_quiet(&w->peer);
}

static void zero_size(struct world *w)
{
	static const uint64_t places[] = { 0, UINT64_MAX, 12345 };
	uint32_t stag = with_region(w, &responder);

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		peer_read(&w->peer, 0x77, 0x88 + i, 0, 0xdeadbeef, places[i]);
		take_response(w, 0x77, 0x88 + i, 0, data);
		peer_read(&w->peer, 0x77, 0x88 + i, 0, stag, places[i]);
		take_response(w, 0x77, 0x88 + i, 0, data);
	}
}

/* A Read whose source is at fault: its own headers come back */
static void bad_source(struct world *w, uint32_t stag, uint64_t to, uint32_t size, uint32_t fault)
{
	uint8_t u[46];
	struct seg *s;

	raw_untagged(u, 0x41, 0x41, 0, 1, 1, 0);
	raw_read_req(u + 18, 0x11, 0x22, size, stag, to);
	peer_fpdu(&w->peer, u, sizeof(u));
	s = world_expect_terminate(w, fault, MDR);
	check_eq(raw_get(s->payload + 4, 2), sizeof(u));
	check_octets(s->payload + 6, u, sizeof(u));
}

static void source_faults(struct world *w)
{
	uint32_t stag = with_region(w, &responder);

	bad_source(w, stag ^ 1, region_to(w), 8, RDMAP_E_STAG);
	stag = with_region(w, &responder);
	bad_source(w, stag ^ 0x10000, region_to(w), 8, RDMAP_E_STAG);
	world_start(w, &responder);
	stag = world_region(w, WARP_ACCESS_REMOTE_READ, true);
	bad_source(w, stag, region_to(w), 8, RDMAP_E_STREAM);
	stag = with_region(w, &responder);
	bad_source(w, stag, region_to(w) + REGION - 7, 8, RDMAP_E_BOUNDS);
	stag = with_region(w, &responder);
	bad_source(w, stag, region_to(w) - 1, 8, RDMAP_E_BOUNDS);
	stag = with_region(w, &responder);
	bad_source(w, stag, region_to(w), REGION + 1, RDMAP_E_BOUNDS);
	stag = with_region(w, &responder);
	bad_source(w, stag, UINT64_MAX - 3, 8, RDMAP_E_WRAP);
	world_start(w, &responder);
	stag = world_region(w, WARP_ACCESS_LOCAL_WRITE | WARP_ACCESS_REMOTE_WRITE, false);
	bad_source(w, stag, region_to(w), 8, RDMAP_E_ACCESS);
}

static void large_response(struct world *w)
{
	const struct setup s = { .mss = 536 };
	uint32_t stag = with_region(w, &s);
	unsigned int count = 0, last = 0;

	peer_read(&w->peer, 5, 0, 50000, stag, region_to(w));
	do {
		peer_recv_op(&w->peer, &seg, RDMAP_READ_RESP);
		check_octets(seg.payload, w->region + seg.to, seg.len);
		last += seg.last;
		count++;
	} while (seg.to + seg.len < 50000);
	check_eq(last, 1);
	check_eq(seg.last, true);
	check(count > 50, "%u segments", count);
}

/* --- depths ------------------------------------------------------------------------------- */

static void never_beyond_ord(struct world *w)
{
	const struct setup s = { .initiator = true, .rev = 2, .ord = 8 };
	uint8_t enh[4];
	struct request r[6];
	struct frame f;

	world_open(w, &s);
	peer_recv_frame(&w->peer, &f);
	raw_enhanced(enh, 0, 2, 0, 0);
	peer_send_reply(&w->peer, 0x50, 2, enh, 4);
	w->peer.crc = true;
	check_eq(world_state(w, WARP_CONN_ESTABLISHED).ord, 2);
	for (uint32_t i = 0; i < 6; i++)
		world_post(w, WARP_WR_READ, 1000 * i, 100 + i, 1, i);
	r[0] = take_request(w);
	r[1] = take_request(w);
	for (uint32_t i = 0; i < 6; i++) {
		peer_expect_quiet(&w->peer);
		answer(w, &r[i], true, 0, r[i].size);
		if (i < 4)
			r[i + 2] = take_request(w);
		check_eq(world_wc(w).wr_id, 1000 * i);
		check_octets(w->arena + 1000 * i, data, 100 + i);
	}
}

/* Any of these says that there were too many */
static const uint32_t too_many[] = { DDP_E_U_NOBUF, DDP_E_U_MSN, RDMAP_E_CATASTROPHIC, 0 };

/* Requests while nothing is answered: 8 may wait, the ninth may not */
static void overrun_held(struct world *w, uint32_t stag)
{
	end_layers_limit(w->end, 0);
	for (uint32_t i = 0; i < 8; i++)
		peer_read(&w->peer, 1, i, 100, stag, region_to(w));
	world_settle(w);
	check_eq(world_info(w).term_sent, 0);
	peer_read(&w->peer, 1, 8, 100, stag, region_to(w));
	world_settle(w);
	end_layers_limit(w->end, -1);
	world_expect_terminates(w, too_many);
}

/* The same where nobody holds answers back: so large that they cannot leave, as nobody reads */
static void overrun_large(struct world *w, uint32_t stag)
{
	uint32_t got = 0;

	for (uint32_t i = 0; i < 200; i++)
		peer_read(&w->peer, 1, 0, REGION, stag, region_to(w));
	world_settle(w);
	do {
		peer_recv(&w->peer, &seg);
		got += seg.opcode == RDMAP_READ_RESP && seg.last;
	} while (seg.opcode == RDMAP_READ_RESP && got < 200);
	if (seg.opcode == RDMAP_TERMINATE) {
		uint32_t fault = 0x10000 | seg.payload[0] << 8 | seg.payload[1];

		check(fault == too_many[0] || fault == too_many[1] || fault == too_many[2],
		      "Terminate %#x", fault);
		peer_expect_end(&w->peer);
		check_eq(world_info(w).state, WARP_CONN_ERROR);
	}
	check(got < 200, "200 Reads were taken at a depth of 8");
}

static void beyond_ird(struct world *w)
{
	uint32_t stag = with_region(w, &responder);

	if (w->kind & PROVIDER)
		overrun_large(w, stag);
	else
		overrun_held(w, stag);
}

/* --- Responses in ------------------------------------------------------------------------- */

static void completed_by_response(struct world *w)
{
	struct request r;

	world_start(w, &initiator);
	world_post(w, WARP_WR_READ, 64, 1000, 1, 2);
	r = take_request(w);
	world_no_wc(w);
	answer(w, &r, false, 0, 400);
	world_no_wc(w);
	answer(w, &r, false, 400, 400);
	world_no_wc(w);
	answer(w, &r, true, 800, 200);
	check_eq(world_wc(w).byte_len, 1000);
	check_octets(w->arena + 64, data, 1000);
	world_no_wc(w);
}

static void unasked_response(struct world *w)
{
	static const uint32_t want[] = { RDMAP_E_OPCODE, DDP_E_T_STAG, DDP_E_LOCAL, 0 };
	struct request r;

	for (int i = 0; i < 3; i++) {
		world_start(w, &initiator);
		if (i) { /* one Read was answered already */
			world_post(w, WARP_WR_READ, 0, 8, 1, 2);
			r = take_request(w);
			answer(w, &r, true, 0, 8);
			world_wc(w);
			/* siw says nothing of a fault while it sends, as it may a retry Write */
			if (w->kind == DEVICE)
				world_settle(w);
		}
		peer_tagged(&w->peer, RDMAP_READ_RESP, true, w->arena_stag,
			    (uintptr_t)w->arena + 100, "8 octets", i == 2 ? 0 : 8);
		world_expect_terminates(w, want);
		check_eq(w->arena[100], 0);
	}
}

static const struct row rows[] = {
	CASE(91, "5040 5.2.1", "a Read Request: queue 1, one segment, MO 0", request),
	CASE(92, "5040 4.4, 5.2", "one Response, with the Request's sink", one_response),
	CASE(93, "5040 5.2.2, 5.5 r20", "Responses in the order of the Requests", in_order),
	CASE(94, "5040 5.2.1", "of a Read of zero octets the source is not checked", zero_size),
	CASE(95, "5040 7.2", "source at fault: 0/1/00, 03, 01, 04, 02", source_faults),
	CASE(96, "5041 5.2", "a large Response has L on the last segment alone", large_response),
	CASE(97, "5040 6.1", "no more Reads than ORD at once", never_beyond_ord),
	CASE(98, "5040 5.2.2, 6.1", "more Reads than IRD end the stream", beyond_ird),
	CASE(100, "5040 5.5 r19", "a Read is complete with its Response", completed_by_response),
	CASE(104, "5040 7.2", "a Response that nobody asked for", unasked_response),
};

ROWS(read, rows);
