/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases 115 to 124 and 126: Immediate Data and atomics. 125 is in device.c.
 */
#include <errno.h>
#include <string.h>

#include "suite.h"

static const struct setup responder, initiator = { .initiator = true };

static struct seg seg;

/* --- Immediate Data ----------------------------------------------------------------------- */

static void eight_octets(struct world *w)
{
	static const uint32_t want[] = { DDP_E_U_LENGTH,
					 RDMAP_E_OPERATION,
					 RDMAP_E_CATASTROPHIC,
					 DDP_E_LOCAL,
					 RDMAP_E_LOCAL,
					 RDMAP_E_OPCODE,
					 0 };
	static const size_t lengths[] = { 0, 1, 7, 9, 16, 100 };
	uint8_t octets[100] = { 0 };

	world_start(w, &initiator);
	for (int se = 0; se < 2; se++) {
		const struct warp_send_wr wr = { .opcode = WARP_WR_IMMEDIATE,
						 .flags = se ? WARP_SEND_SOLICITED : 0,
						 .immediate = 0x0102030405060708 };

		world_post_wr(w, &wr);
		peer_recv_op(&w->peer, &seg, se ? RDMAP_IMM_SE : RDMAP_IMM);
		check_eq(seg.len, 8);
		check_eq(seg.last, true);
		check_eq(seg.mo, 0);
		check_eq(raw_get(seg.payload, 8), 0x0102030405060708);
	}
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		world_start(w, &responder);
		world_recv(w, 0, 200);
		peer_send_op(&w->peer, RDMAP_IMM, 0, octets, lengths[i]);
		world_expect_terminates(w, want);
		world_nothing_delivered(w);
	}
}

static void takes_a_receive(struct world *w)
{
	static const uint8_t ops[] = { RDMAP_SEND, RDMAP_IMM, RDMAP_SEND, RDMAP_IMM_SE, RDMAP_IMM };
	struct warp_wc wc;

	world_start(w, &responder);
	for (size_t i = 0; i < sizeof(ops); i++)
		world_recv(w, 100 * i, 64);
	for (size_t i = 0; i < sizeof(ops); i++)
		peer_send_op(&w->peer, ops[i], 0, "IMMDATA8", 8);
	for (size_t i = 0; i < sizeof(ops); i++) {
		bool imm = ops[i] != RDMAP_SEND;

		wc = world_wc(w);
		check_eq(wc.wr_id, 100 * i);
		check_eq(wc.status, WARP_WC_SUCCESS);
		check_eq(!!(wc.flags & WARP_WC_WITH_IMMEDIATE), imm);
		check_eq(!!(wc.flags & WARP_WC_SOLICITED), ops[i] == RDMAP_IMM_SE);
		if (imm)
			check_eq(wc.immediate, 0x494d4d4441544138);
	}
	/* and without one it is as a Send */
	peer_send_op(&w->peer, RDMAP_IMM, 0, "IMMDATA8", 8);
	world_expect_terminate(w, DDP_E_U_NOBUF, 0xc0);
}

/* --- atomics in --------------------------------------------------------------------------- */

static uint64_t *word(struct world *w, size_t i)
{
	return (uint64_t *)(void *)w->region + i;
}

static uint32_t with_region(struct world *w)
{
	world_start(w, &responder);
	return world_region(w, WARP_ACCESS_REMOTE_ATOMIC | WARP_ACCESS_REMOTE_READ, false);
}

/* Carries @a out at word 0: the value that comes back */
static uint64_t atomic(struct world *w, struct atomic a, uint32_t stag)
{
	a.stag = stag;
	a.to = region_to(w);
	peer_atomic(&w->peer, &a);
	peer_recv_op(&w->peer, &seg, RDMAP_ATOMIC_RESP);
	check_eq(seg.len, 12);
	check_eq(seg.last, true);
	check_eq(raw_get(seg.payload, 4), a.id);
	return raw_get(seg.payload + 4, 8);
}

static void request_numbers(struct world *w)
{
	const struct warp_sge sge = { w->arena, 8, w->arena_stag };
	uint32_t stag;

	(void)sge;
	world_start(w, &initiator);
	for (uint32_t i = 0; i < 6; i++) {
		world_post(w, i % 2 ? WARP_WR_FETCH_ADD : WARP_WR_READ, 64 * i, 8, 1, 8 * i);
		peer_recv_op(&w->peer, &seg, i % 2 ? RDMAP_ATOMIC_REQ : RDMAP_READ_REQ);
		check_eq(seg.qn, 1);
		check_eq(seg.msn, i + 1);
		check_eq(seg.len, i % 2 ? 52 : 28);
	}
	/* inwards the same: they share the numbers */
	stag = with_region(w);
	for (uint32_t i = 0; i < 6; i++) {
		const struct atomic a = { .id = i, .data = 1 };

		if (i % 2)
			check_eq(atomic(w, a, stag), i / 2);
		else
			peer_read(&w->peer, 1, 2, 8, stag, region_to(w));
		if (i % 2 == 0)
			peer_recv_op(&w->peer, &seg, RDMAP_READ_RESP);
	}
}

static void responses(struct world *w)
{
	uint32_t stag = with_region(w);

	for (uint32_t i = 1; i < 5; i++) {
		const struct atomic a = { .id = 0xfeed0000 + i, .data = 1 };

		atomic(w, a, stag);
		check_eq(seg.qn, 3);
		check_eq(seg.msn, i);
		check_eq(seg.mo, 0);
	}
}

static const struct op_row {
	uint8_t aop;
	uint64_t old, data, mask, compare, compare_mask, want;
} adds[] = {
	{ 0, 5, 3, 0, 0, ~0ull, 8 },
	{ 0, ~0ull, 1, 0, 0, ~0ull, 0 },
	{ 0, 0x00000000ffffffff, 1, 0, 0, ~0ull, 0x0000000100000000 },
	/* a field that ends at bit 31, another at bit 63 */
	{ 0, 0x00000000ffffffff, 1, 0x8000000080000000, 0, ~0ull, 0 },
	{ 0, 0xffffffffffffffff, 0x0000000100000001, 0x8000000080000000, 0, ~0ull, 0 },
	{ 0, 0x7fffffff7fffffff, 0x0000000100000001, 0x8000000080000000, 0, ~0ull,
	  0x8000000080000000 },
	/* octets */
	{ 0, 0xff00ff00ff00ff00, 0x0101010101010101, 0x8080808080808080, 0, ~0ull,
	  0x0001000100010001 },
	{ 0, 0xfffefdfcfbfaf9f8, 0x0203040506070809, 0x8080808080808080, 0, ~0ull,
	  0x0101010101010101 },
	/* every bit a field of its own: exclusive or */
	{ 0, 0xf0f0f0f0f0f0f0f0, 0xffff0000ffff0000, ~0ull, 0, ~0ull, 0x0f0ff0f00f0ff0f0 },
	/* one bit in the middle; compare data is ignored */
	{ 0, 0x00000000000000ff, 1, 0x80, 77, 1, 0 },
	{ 0, 0x000000000000017f, 1, 0x80, 77, 1, 0x180 },
},
  swaps[] = {
	  { 2, 5, 9, ~0ull, 5, ~0ull, 9 },
	  { 2, 5, 9, ~0ull, 6, ~0ull, 5 },
	  { 2, 0x1234567890abcdef, 0xffffffffffffffff, 0x00000000ffffffff, 0x0000000090abcdef,
	    0x00000000ffffffff, 0x12345678ffffffff },
	  { 2, 0x1234567890abcdef, 0, 0xff00000000000000, 0xef, 0xff, 0x0034567890abcdef },
	  { 2, 0x1234567890abcdef, 0, 0xff00000000000000, 0xee, 0xff, 0x1234567890abcdef },
	  /* nothing compared: always; nothing swapped: never changes */
	  { 2, 1, 2, ~0ull, 77, 0, 2 },
	  { 2, 1, 2, 0, 1, ~0ull, 1 },
	  { 2, ~0ull, 0, 1, ~0ull, ~0ull, ~0ull - 1 },
  };

static void ops(struct world *w, const struct op_row *rows, size_t n)
{
	uint32_t stag = with_region(w);

	for (size_t i = 0; i < n; i++) {
		const struct atomic a = { .aop = rows[i].aop,
					  .id = (uint32_t)i,
					  .data = rows[i].data,
					  .mask = rows[i].mask,
					  .compare = rows[i].compare,
					  .compare_mask = rows[i].compare_mask };
		uint64_t now;

		*word(w, 0) = rows[i].old;
		check_eq(atomic(w, a, stag), rows[i].old);
		memcpy(&now, w->region, 8);
		check(now == rows[i].want, "row %zu: %#llx, not %#llx", i, (unsigned long long)now,
		      (unsigned long long)rows[i].want);
		check_eq(*word(w, 1), 0);
	}
}

static void fetch_add(struct world *w)
{
	ops(w, adds, sizeof(adds) / sizeof(adds[0]));
}

static void cmp_swap(struct world *w)
{
	ops(w, swaps, sizeof(swaps) / sizeof(swaps[0]));
}

/* As requester: every field on the wire, and the value at the sink */
static void both_kinds(struct world *w)
{
	const struct atomic add = { .aop = 0, .data = 1 },
			    swap = { .aop = 2, .compare_mask = ~0ull };
	uint32_t stag = with_region(w);
	uint8_t answer[12];

	atomic(w, add, stag);
	atomic(w, swap, stag);
	world_start(w, &initiator);
	for (uint32_t i = 0; i < 2; i++) {
		struct warp_sge sge = { w->arena + 8, 8, w->arena_stag };
		const struct warp_send_wr wr = { .opcode = i ? WARP_WR_CMP_SWAP : WARP_WR_FETCH_ADD,
						 .flags = WARP_SEND_SIGNALED,
						 .sg = &sge,
						 .num_sge = 1,
						 .remote_stag = 0x11223344,
						 .remote_to = 0x5566778899aabbc8,
						 .swap_add = 0x0102030405060708,
						 .mask = 0x1112131415161718,
						 .compare = 0x2122232425262728,
						 .compare_mask = 0x3132333435363738 };

		world_post_wr(w, &wr);
		peer_recv_op(&w->peer, &seg, RDMAP_ATOMIC_REQ);
		check_eq(seg.len, 52);
		check_eq(raw_get(seg.payload, 4), i ? 2 : 0);
		check_eq(raw_get(seg.payload + 8, 4), 0x11223344);
		check_eq(raw_get(seg.payload + 12, 8), 0x5566778899aabbc8);
		check_eq(raw_get(seg.payload + 20, 8), 0x0102030405060708);
		check_eq(raw_get(seg.payload + 28, 8), 0x1112131415161718);
		check_eq(raw_get(seg.payload + 36, 8), i ? 0x2122232425262728 : 0);
		check_eq(raw_get(seg.payload + 44, 8), i ? 0x3132333435363738 : ~0ull);
		memcpy(answer, seg.payload + 4, 4);
		raw_put(answer + 4, 8, 0xabcdef0123456789 + i);
		peer_untagged(&w->peer, RDMAP_ATOMIC_RESP, true, 3, i + 1, 0, answer, 12);
		check_eq(world_wc(w).opcode, WARP_WC_ATOMIC);
		check_eq(*(uint64_t *)(void *)(w->arena + 8), 0xabcdef0123456789 + i);
	}
}

static void unaligned(struct world *w)
{
	for (unsigned int off = 1; off < 8; off++) {
		uint32_t stag = with_region(w);
		const struct atomic a = { .stag = stag, .to = region_to(w) + off, .data = 1 };

		peer_atomic(&w->peer, &a);
		world_expect_terminate(w, RDMAP_E_CATASTROPHIC, 0xc0);
		for (size_t i = 0; i < 64; i++)
			check(!w->region[i], "octet %zu was changed", i);
	}
}

static void depth(struct world *w)
{
	static const enum warp_wr_opcode posts[] = { WARP_WR_FETCH_ADD, WARP_WR_READ,
						     WARP_WR_CMP_SWAP };
	const struct setup s = { .initiator = true, .rev = 2 };
	uint8_t enh[4], answer[12] = { 0 };
	struct frame f;

	world_open(w, &s);
	peer_recv_frame(&w->peer, &f);
	raw_enhanced(enh, 0, 2, 0, 0);
	peer_send_reply(&w->peer, 0x50, 2, enh, 4);
	w->peer.crc = true;
	check_eq(world_state(w, WARP_CONN_ESTABLISHED).ord, 2);
	for (size_t i = 0; i < 3; i++)
		world_post(w, posts[i], 64 * i, 8, 1, 0);
	peer_recv_op(&w->peer, &seg, RDMAP_ATOMIC_REQ);
	memcpy(answer, seg.payload + 4, 4);
	peer_recv_op(&w->peer, &seg, RDMAP_READ_REQ);
	peer_expect_quiet(&w->peer);
	peer_untagged(&w->peer, RDMAP_ATOMIC_RESP, true, 3, 1, 0, answer, 12);
	peer_recv_op(&w->peer, &seg, RDMAP_ATOMIC_REQ);
	check_eq(world_wc(w).wr_id, 0);
}

static void one_order(struct world *w)
{
	uint32_t stag = with_region(w);

	for (uint32_t i = 0; i < 4; i++) {
		const struct atomic a = { .id = i, .stag = stag, .to = region_to(w), .data = 1 };

		peer_atomic(&w->peer, &a);
		peer_read(&w->peer, i, 0, 8, stag, region_to(w));
	}
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t now = i + 1;

		peer_recv_op(&w->peer, &seg, RDMAP_ATOMIC_RESP);
		check_eq(raw_get(seg.payload, 4), i);
		check_eq(raw_get(seg.payload + 4, 8), i);
		peer_recv_op(&w->peer, &seg, RDMAP_READ_RESP);
		check_eq(seg.stag, i);
		check_octets(seg.payload, &now, 8);
	}
}

/* All opcodes of 7306 are there; what is not are the other atomic operations */
static void not_supported(struct world *w)
{
	static const uint32_t want[] = { RDMAP_E_OPCODE, 0 };

	for (uint8_t aop = 1; aop < 16; aop += aop == 1 ? 2 : 1) {
		uint32_t stag = with_region(w);
		const struct atomic a = { .aop = aop, .stag = stag, .to = region_to(w), .data = 1 };

		peer_atomic(&w->peer, &a);
		world_expect_terminates(w, want);
		check_eq(*word(w, 0), 0);
	}
}

static const struct row rows[] = {
	CASE(115, "7306 6.3", "Immediate Data has 8 octets, no more, no less", eight_octets),
	CASE(116, "7306 6.3, 6.4", "it takes a receive, in the order of Sends", takes_a_receive),
	CASE(117, "7306 5.2", "Atomic Requests count with Read Requests", request_numbers),
	CASE(118, "7306 5.2.2", "Atomic Responses: queue 3, from 1, Id echoed", responses),
	CASE(119, "7306 5", "FetchAdd and CmpSwap, both with masks", both_kinds),
	CASE(120, "7306 5.1.1", "a carry stops at a mask bit", fetch_add),
	CASE(121, "7306 5.1.2", "compare and swap masks, the old value in any case", cmp_swap),
	CASE(122, "7306 8.2", "an unaligned target: 0/2/07, nothing changed", unaligned),
	CASE(123, "7306 5.2, 5.2.2", "atomics count towards ORD and IRD", depth),
	CASE(124, "7306 5.4, 7", "atomics and Reads are done in one order", one_order),
	CASE(126, "7306 1.1", "what is not supported: 0/2/06", not_supported),
};

ROWS(rfc7306, rows);
