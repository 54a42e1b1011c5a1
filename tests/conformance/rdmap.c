/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases 81 to 90 and 99 to 103: RDMAP's headers, Sends and Writes. Reads are in read.c.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "suite.h"

enum { MD = 0xc0 };

static const struct setup responder;

static struct seg seg;

static uint32_t with_region(struct world *w, unsigned int access)
{
	world_start(w, &responder);
	return world_region(w, access, false);
}

static void reserved_bits(struct world *w)
{
	uint8_t u[64];
	uint32_t stag = with_region(w, WARP_ACCESS_REMOTE_WRITE);

	for (uint8_t bits = 0x10; bits <= 0x30; bits += 0x10) {
		world_recv(w, 0, 64);
		raw_tagged(u, 0xc1, 0x40 | bits, stag, region_to(w));
		memcpy(u + 14, "write", 5);
		peer_fpdu(&w->peer, u, 19);
		raw_untagged(u, 0x41, 0x43 | bits, 0, 0, w->peer.msn[0]++, 0);
		memcpy(u + 18, "hello", 5);
		peer_fpdu(&w->peer, u, 23);
		check_eq(world_wc(w).byte_len, 5);
		check_octets(w->region, "write", 5);
	}
	/* what the end sends the peer looks at */
	world_post(w, WARP_WR_SEND, 0, 5, 0, 0);
	peer_recv_op(&w->peer, &seg, RDMAP_SEND);
}

/* A message of these two control octets; the end answers with one of @faults */
static void refused(struct world *w, uint8_t ctl, uint8_t ulp, uint32_t qn, const uint32_t *faults)
{
	uint32_t stag = with_region(w, WARP_ACCESS_REMOTE_WRITE);
	uint8_t u[100] = { 0 };
	size_t hdr;

	world_recv(w, 0, 100);
	if (ctl & 0x80)
		hdr = raw_tagged(u, ctl, ulp, stag, region_to(w));
	else
		hdr = raw_untagged(u, ctl, ulp, 0, qn, 1, 0);
	memset(u + hdr, 0xee, sizeof(u) - hdr);
	peer_fpdu(&w->peer, u, sizeof(u));
	world_expect_terminates(w, faults);
	world_nothing_delivered(w);
	check_eq(w->arena[0], 0);
	check_eq(w->region[0], 0);
}

static void version(struct world *w)
{
	static const uint32_t want[] = { RDMAP_E_VERSION, 0 };

	for (uint8_t rv = 0; rv < 4; rv++) {
		if (rv == 1)
			continue;
		refused(w, 0xc1, (uint8_t)(rv << 6), 0, want);
		refused(w, 0x41, (uint8_t)(rv << 6 | 3), 0, want);
	}
}

static void unassigned(struct world *w)
{
	static const uint32_t want[] = { RDMAP_E_OPCODE, 0 };

	for (uint8_t op = 0xc; op < 0x10; op++) {
		refused(w, 0x41, 0x40 | op, 0, want);
		refused(w, 0xc1, 0x40 | op, 0, want);
	}
}

static void contradictions(struct world *w)
{
	static const uint32_t want[] = { RDMAP_E_OPCODE, DDP_E_U_QN, 0 };

	for (uint8_t op = 0; op < 0xc; op++) {
		bool tagged = op == RDMAP_WRITE || op == RDMAP_READ_RESP;
		uint32_t qn = op == RDMAP_READ_REQ || op == RDMAP_ATOMIC_REQ ? 1
			      : op == RDMAP_TERMINATE			     ? 2
			      : op == RDMAP_ATOMIC_RESP			     ? 3
									     : 0;

		if (!tagged)
			refused(w, 0xc1, 0x40 | op, 0, want);
		for (uint32_t q = 0; q < 4; q++) {
			if (tagged || q != qn)
				refused(w, 0x41, 0x40 | op, q, want);
		}
	}
}

static void invalidate_stag_field(struct world *w)
{
	static const uint8_t plain[] = { RDMAP_SEND, RDMAP_SEND_SE, RDMAP_IMM, RDMAP_IMM_SE };
	uint32_t stag = with_region(w, WARP_ACCESS_REMOTE_WRITE);

	/* what the end sends with opcodes other than 4 and 6 the peer looks at */
	for (size_t i = 0; i < sizeof(plain); i++) {
		struct warp_wc wc;

		if (plain[i] >= RDMAP_IMM && !world_asks(w, NEW_OPS))
			continue;
		world_recv(w, 0, 64);
		peer_send_op(&w->peer, plain[i], stag, "8 octets", 8);
		wc = world_wc(w);
		check_eq(wc.status, WARP_WC_SUCCESS);
		check_eq(wc.flags & WARP_WC_WITH_INVALIDATE, 0);
	}
	peer_write(&w->peer, stag, region_to(w), "valid", 5);
	world_works(w);
	check_octets(w->region, "valid", 5);
}

static void zero_length_send(struct world *w)
{
	struct warp_wc wc;

	world_start(w, &responder);
	world_recv(w, 0, 64);
	world_recv(w, 64, 64);
	peer_send_message(&w->peer, NULL, 0);
	peer_send_message(&w->peer, "hello", 5);
	wc = world_wc(w);
	check_eq(wc.wr_id, 0);
	check_eq(wc.byte_len, 0);
	wc = world_wc(w);
	check_eq(wc.wr_id, 64);
	check_eq(wc.byte_len, 5);
	check_eq(w->arena[0], 0);
}

/* Is the queue's descriptor readable, when what has come was taken in? */
static bool event(struct world *w)
{
	struct pollfd fd = { .fd = warp_cq_fd(end_provider_cq(w->end)), .events = POLLIN };

	world_settle(w);
	return poll(&fd, 1, 0) > 0;
}

static void armed(struct world *w)
{
	struct warp_cq *cq = end_provider_cq(w->end);

	world_recv(w, 0, 64);
	world_recv(w, 64, 64);
	world_recv(w, 128, 64);
	warp_cq_ack(cq);
	check_eq(warp_cq_arm(cq, true), 0);
	peer_send_op(&w->peer, RDMAP_SEND, 0, "a", 1);
	check(!event(w), "a Send without SE raises a solicited event");
	peer_send_op(&w->peer, RDMAP_SEND_SE, 0, "b", 1);
	check(event(w), "a Send with SE raises none");
	check_eq(warp_cq_ack(cq), 0);
	peer_send_op(&w->peer, RDMAP_SEND_SE, 0, "c", 1);
	check(!event(w), "an event that was not armed");
	for (int i = 0; i < 3; i++)
		world_wc(w);
}

static void solicited(struct world *w)
{
	static const uint8_t ops[] = { RDMAP_SEND, RDMAP_SEND_SE, RDMAP_SEND_INV,
				       RDMAP_SEND_SE_INV };

	world_start(w, &responder);
	for (size_t i = 0; i < sizeof(ops); i++) {
		uint32_t stag =
			w->end->ops->mr(w->end, w->region, 64, WARP_ACCESS_REMOTE_WRITE, false);
		bool want = ops[i] == RDMAP_SEND_SE || ops[i] == RDMAP_SEND_SE_INV;
		struct warp_wc wc;

		world_recv(w, 0, 64);
		peer_send_op(&w->peer, ops[i], stag, "hello", 5);
		wc = world_wc(w);
		check_eq(wc.byte_len, 5);
		if (world_asks(w, TOLD))
			check_eq(!!(wc.flags & WARP_WC_SOLICITED), want);
	}
	if (w->kind & PROVIDER && world_asks(w, EVENTS))
		armed(w);
}

/* --- invalidation ------------------------------------------------------------------------- */

static void invalidated_first(struct world *w)
{
	static const uint8_t ops[] = { RDMAP_SEND_INV, RDMAP_SEND_SE_INV };
	struct warp_wc wc;

	for (size_t i = 0; i < sizeof(ops); i++) {
		uint32_t stag = with_region(w, WARP_ACCESS_REMOTE_WRITE);

		world_recv(w, 0, 64);
		peer_write(&w->peer, stag, region_to(w), "before", 6);
		peer_send_op(&w->peer, ops[i], stag, "hello", 5);
		wc = world_wc(w);
		if (world_asks(w, TOLD)) {
			check_eq(wc.flags & WARP_WC_WITH_INVALIDATE, WARP_WC_WITH_INVALIDATE);
			check_eq(wc.inv_stag, stag);
		}
		check_eq(wc.byte_len, 5);
		check_octets(w->region, "before", 6);
		peer_write(&w->peer, stag, region_to(w), "after", 5);
		world_expect_terminate(w, DDP_E_T_STAG, MD);
		check_octets(w->region, "before", 6);
	}
}

static void cannot_invalidate(struct world *w)
{
	static const uint32_t want[] = { RDMAP_E_INVALIDATE, RDMAP_E_INVALIDATE_OP, 0 };

	for (int i = 0; i < 4; i++) {
		uint32_t stag;

		world_start(w, &responder);
		stag = world_region(w, WARP_ACCESS_REMOTE_WRITE, i == 0);
		if (i == 1)
			stag ^= 0xff;
		if (i == 2)
			stag = 0;
		if (i == 3)
			w->end->ops->mr_remove(w->end, stag);
		world_recv(w, 0, 64);
		peer_send_op(&w->peer, RDMAP_SEND_INV, stag, "hello", 5);
		world_expect_terminates(w, want);
		world_nothing_delivered(w);
	}
}

static void access_after(struct world *w)
{
	unsigned int both = WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_REMOTE_READ;

	for (int i = 0; i < 2; i++) {
		uint32_t stag = with_region(w, both);
		struct warp_wc wc;

		world_recv(w, 0, 64);
		peer_send_op(&w->peer, RDMAP_SEND_INV, stag, "hello", 5);
		wc = world_wc(w);
		check_eq(wc.byte_len, 5);
		if (world_asks(w, TOLD))
			check_eq(wc.inv_stag, stag);
		if (i == 0) {
			peer_write(&w->peer, stag, region_to(w), "after", 5);
			world_expect_terminate(w, DDP_E_T_STAG, MD);
		} else {
			peer_read(&w->peer, 1, 2, 8, stag, region_to(w));
			world_expect_terminate(w, RDMAP_E_STAG, 0xe0);
		}
	}
	/* of an STag that the owner withdrew the same holds: 73 */
}

/* --- order -------------------------------------------------------------------------------- */

static void read_after_write(struct world *w)
{
	uint32_t stag = with_region(w, WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_REMOTE_READ);
	uint8_t got[64];

	for (uint8_t i = 1; i < 50; i++) {
		uint8_t now[64];

		memset(now, i, sizeof(now));
		peer_write(&w->peer, stag, region_to(w), now, sizeof(now));
		peer_read(&w->peer, 1, 0, sizeof(now), stag, region_to(w));
		check_eq(peer_recv_message(&w->peer, RDMAP_READ_RESP, got, sizeof(got)), 64);
		check_octets(got, now, sizeof(now));
	}
	/* a Send lands in memory that can be read, too */
	world_recv(w, 0, 64);
	stag = w->end->ops->mr(w->end, w->arena, 64, WARP_ACCESS_REMOTE_READ, false);
	peer_send_message(&w->peer, "sent", 4);
	peer_read(&w->peer, 1, 0, 4, stag, (uintptr_t)w->arena);
	check_eq(peer_recv_message(&w->peer, RDMAP_READ_RESP, got, sizeof(got)), 4);
	check_octets(got, "sent", 4);
}

static void completion_order(struct world *w)
{
	static const struct setup initiator = { .initiator = true };
	struct warp_wc wc;

	world_start(w, &initiator);
	world_post(w, WARP_WR_READ, 0, 8, 1, 0);
	world_post(w, WARP_WR_SEND, 100, 8, 0, 0);
	world_post(w, WARP_WR_WRITE, 200, 8, 1, 0);
	peer_recv_op(&w->peer, &seg, RDMAP_READ_REQ);
	/* the Send and the Write are out, but the Read comes first */
	peer_recv_op(&w->peer, &seg, RDMAP_SEND);
	peer_recv_op(&w->peer, &seg, RDMAP_WRITE);
	world_no_wc(w);
	peer_tagged(&w->peer, RDMAP_READ_RESP, true, w->arena_stag, (uintptr_t)w->arena, "octets!!",
		    8);
	for (uint64_t id = 0; id <= 200; id += 100) {
		wc = world_wc(w);
		check_eq(wc.wr_id, id);
		check_eq(wc.status, WARP_WC_SUCCESS);
	}
}

static void writes_before_send(struct world *w)
{
	static uint8_t out[60000];
	uint32_t stag = with_region(w, WARP_ACCESS_REMOTE_WRITE);

	for (unsigned int i = 0; i < 8; i++) {
		pattern(out, sizeof(out), i);
		world_recv(w, 0, 64);
		for (size_t off = 0; off < sizeof(out); off += 1000)
			peer_tagged(&w->peer, RDMAP_WRITE, off + 1000 == sizeof(out), stag,
				    region_to(w) + off, out + off, 1000);
		peer_send_message(&w->peer, "done", 4);
		check_eq(world_wc(w).byte_len, 4);
		check_octets(w->region, out, sizeof(out));
	}
}

static void not_told(struct world *w)
{
	uint32_t stag = with_region(w, WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_REMOTE_READ |
					       WARP_ACCESS_REMOTE_ATOMIC);
	const struct atomic a = { .stag = stag, .to = region_to(w), .data = 1 };

	peer_write(&w->peer, stag, region_to(w) + 8, "write", 5);
	peer_read(&w->peer, 1, 0, 8, stag, region_to(w));
	peer_recv_op(&w->peer, &seg, RDMAP_READ_RESP);
	if (world_asks(w, NEW_OPS)) {
		peer_atomic(&w->peer, &a);
		peer_recv_op(&w->peer, &seg, RDMAP_ATOMIC_RESP);
	}
	world_no_wc(w);
	world_works(w);
}

static const struct row rows[] = {
	CASE(81, "5040 4.1", "RV 1 and zeroes are sent, reserved bits ignored", reserved_bits),
	CASE(82, "5040 7.2", "another RV: 0/2/05", version),
	CASE(83, "5040 7.2, 7306 1.1", "an unassigned opcode: 0/2/06", unassigned),
	CASE(84, "5040 4.1, 7.2", "an opcode with the wrong T or queue is refused", contradictions),
	CASE(85, "5040 4.1", "Invalidate STag is for opcodes 4 and 6", invalidate_stag_field),
	CASE(86, "5040 5.3", "a Send of zero octets takes a receive", zero_length_send),
	CASE(87, "5040 5.3", "a solicited event by opcodes 5 and 6, when armed", solicited),
	CASE(88, "5040 5.3", "the STag is invalid before the Send is delivered", invalidated_first),
	CASE(89, "5040 5.3", "what cannot be invalidated: code 09", cannot_invalidate),
	CASE(90, "5040 7.2, 8.1.1", "no access by an STag that was invalidated", access_after),
	CASE(99, "5040 5.5 r12", "a Read sees the Writes before it", read_after_write),
	CASE_ON(101, "5040 5.5 r15", "completions in the order of submission", completion_order,
		PROVIDER, "completion queues are the provider's"),
	CASE(102, "5040 5.5 r10", "a Send comes after the Writes before it", writes_before_send),
	CASE(103, "5040 5.1, 5.2.1", "Writes, Reads and atomics are not told", not_told),
};

ROWS(rdmap, rows);
