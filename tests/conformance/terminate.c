/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases 105 to 114: the Terminate, sent and received.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmap/state.h"
#include "suite.h"

enum { NONE = 0, MD = 0xc0, MDR = 0xe0 };

static const struct setup responder, initiator = { .initiator = true };

static struct seg seg;

/*
 * One message that is at fault: the peer sends it to a responder with a region and a
 * receive of 100 octets
 */
struct culprit {
	uint32_t fault;
	uint8_t hdrct;
	size_t (*build)(const struct world *w, uint32_t stag, uint8_t *u);
};

static size_t bad_bounds(const struct world *w, uint32_t stag, uint8_t *u)
{
	return raw_tagged(u, 0xc1, 0x40, stag, region_to(w) + REGION) + 8;
}

static size_t bad_stag(const struct world *w, uint32_t stag, uint8_t *u)
{
	return raw_tagged(u, 0xc1, 0x40, stag ^ 1, region_to(w)) + 8;
}

static size_t bad_msn(const struct world *w, uint32_t stag, uint8_t *u)
{
	return raw_untagged(u, 0x41, 0x43, 0, 0, 7, 0) + 5;
}

static size_t bad_length(const struct world *w, uint32_t stag, uint8_t *u)
{
	return raw_untagged(u, 0x41, 0x43, 0, 0, 1, 0) + 101;
}

static size_t bad_version(const struct world *w, uint32_t stag, uint8_t *u)
{
	return raw_untagged(u, 0x42, 0x43, 0, 0, 1, 0) + 5;
}

static size_t bad_opcode(const struct world *w, uint32_t stag, uint8_t *u)
{
	return raw_untagged(u, 0x41, 0x4d, 0, 0, 1, 0) + 5;
}

static size_t bad_rdmap_version(const struct world *w, uint32_t stag, uint8_t *u)
{
	return raw_tagged(u, 0xc1, 0x80, stag, region_to(w)) + 5;
}

static size_t bad_read(const struct world *w, uint32_t stag, uint8_t *u)
{
	raw_untagged(u, 0x41, 0x41, 0, 1, 1, 0);
	return 18 + raw_read_req(u + 18, 0xaa, 0xbb, 100, stag, region_to(w) + REGION);
}

static size_t too_short(const struct world *w, uint32_t stag, uint8_t *u)
{
	raw_untagged(u, 0x41, 0x43, 0, 0, 1, 0);
	return 10;
}

static const struct culprit culprits[] = {
	{ DDP_E_T_BOUNDS, MD, bad_bounds },
	{ DDP_E_T_STAG, MD, bad_stag },
	{ DDP_E_U_MSN, MD, bad_msn },
	{ DDP_E_U_LENGTH, MD, bad_length },
	{ DDP_E_U_VERSION, MD, bad_version },
	{ RDMAP_E_OPCODE, MD, bad_opcode },
	{ RDMAP_E_VERSION, MD, bad_rdmap_version },
	{ RDMAP_E_BOUNDS, MDR, bad_read },
	{ DDP_E_LOCAL, NONE, too_short },
};
#define CULPRITS (sizeof(culprits) / sizeof(culprits[0]))

/* Opens a responder and sends it a culprit; the ULPDU that it was */
static size_t provoke(struct world *w, const struct culprit *c, uint8_t *u)
{
	uint32_t stag;
	size_t n;

	world_start(w, &responder);
	stag = world_region(w, WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_REMOTE_READ, false);
	world_recv(w, 0, 100);
	n = c->build(w, stag, u);
	peer_fpdu(&w->peer, u, n);
	return n;
}

static void encoding(struct world *w)
{
	uint8_t u[256] = { 0 };

	for (size_t i = 0; i < CULPRITS; i++) {
		uint32_t f = culprits[i].fault;

		provoke(w, &culprits[i], u);
		peer_recv_op(&w->peer, &seg, RDMAP_TERMINATE);
		check_eq(seg.payload[0] >> 4, f >> 12 & 0xf);
		check_eq(seg.payload[0] & 0xf, f >> 8 & 0xf);
		check_eq(seg.payload[1], f & 0xff);
		check_eq(seg.payload[2] & 0x80, culprits[i].hdrct ? 0x80 : 0);
		check_eq(seg.payload[2] & 0x40, culprits[i].hdrct ? 0x40 : 0);
		check_eq(seg.payload[2] & 0x20, culprits[i].fault == RDMAP_E_BOUNDS ? 0x20 : 0);
		check_eq(seg.payload[2] & 0x1f, 0);
	}
}

static void own_queue(struct world *w)
{
	uint8_t u[256] = { 0 };

	world_start(w, &responder);
	/* also when other queues are far on */
	for (int i = 0; i < 3; i++) {
		world_works(w);
		world_post(w, WARP_WR_SEND, 0, 5, 0, 0);
		peer_recv_op(&w->peer, &seg, RDMAP_SEND);
		world_wc(w);
	}
	raw_untagged(u, 0x41, 0x43, 0, 0, 99, 0);
	peer_fpdu(&w->peer, u, 18);
	peer_recv_op(&w->peer, &seg, RDMAP_TERMINATE);
	check_eq(seg.ulpdu[0], 0x41);
	check_eq(seg.ulpdu[1], 0x47);
	check_eq(seg.stag, 0);
	check_eq(seg.qn, 2);
	check_eq(seg.msn, 1);
	check_eq(seg.mo, 0);
}

static void only_one(struct world *w)
{
	uint8_t u[256] = { 0 };

	for (size_t i = 0; i < CULPRITS; i++) {
		world_start(w, &initiator);
		world_recv(w, 0, 100);
		raw_untagged(u, 0x41, 0x43, 0, 0, 9, 0);
		peer_fpdu(&w->peer, u, 18);
		peer_fpdu(&w->peer, u, 17);
		peer_fpdu(&w->peer, u, 18);
		world_settle(w);
		if (!(w->kind & PROVIDER))
			world_post(w, WARP_WR_SEND, 0, 5, 0, 0);
		/* and the end behind it */
		world_expect_terminate(w, DDP_E_U_MSN, MD);
	}
}

static void headers(struct world *w)
{
	uint8_t u[256] = { 0 };

	for (size_t i = 0; i < CULPRITS; i++) {
		size_t n = provoke(w, &culprits[i], u);
		struct seg *s = world_expect_terminate(w, culprits[i].fault, culprits[i].hdrct);

		if (!culprits[i].hdrct)
			continue;
		check_eq(raw_get(s->payload + 4, 2), n);
		check_octets(s->payload + 6, u, s->len - 6);
		check_eq(s->len - 6, culprits[i].hdrct == MDR ? 46 : u[0] & 0x80 ? 14 : 18);
	}
	/* LLP errors have none: 114 */
}

static void partly_answered(struct world *w)
{
	const struct setup s = { .mss = 1460 };
	uint32_t stag, sent = 0, n;
	struct seg *t;

	world_start(w, &s);
	stag = world_region(w, WARP_ACCESS_REMOTE_READ, false);
	end_layers_limit(w->end, 3);
	peer_read(&w->peer, 0xaa, 0x1000, 100000, stag, region_to(w) + 64);
	for (int i = 0; i < 3; i++) {
		peer_recv_op(&w->peer, &seg, RDMAP_READ_RESP);
		sent += (uint32_t)seg.len;
	}
	w->end->ops->mr_remove(w->end, stag);
	end_layers_limit(w->end, -1);
	t = world_expect_terminate(w, RDMAP_E_STAG, MDR);
	n = 6 + 18;
	check_eq(raw_get(t->payload + n, 4), 0xaa);
	check_eq(raw_get(t->payload + n + 4, 8), 0x1000 + sent);
	check_eq(raw_get(t->payload + n + 12, 4), 100000 - sent);
	check_eq(raw_get(t->payload + n + 16, 4), stag);
	check_eq(raw_get(t->payload + n + 20, 8), region_to(w) + 64 + sent);
}

static void first_alone(struct world *w)
{
	static uint8_t out[4096];
	uint8_t u[256] = { 0 };
	uint32_t stag;
	size_t n;

	for (size_t i = 0; i < CULPRITS - 1; i++) {
		world_start(w, &responder);
		stag = world_region(w, WARP_ACCESS_REMOTE_WRITE | WARP_ACCESS_REMOTE_READ, false);
		world_recv(w, 0, 100);
		n = raw_fpdu(&w->peer, out, u, culprits[i].build(w, stag, u));
		for (size_t k = 0; k < CULPRITS; k++)
			n += raw_fpdu(&w->peer, out + n, u, culprits[k].build(w, stag, u));
		peer_send(&w->peer, out, n);
		/*
		 * the source of a Read is looked at when its answer is due: the next
		 * one may be faster
		 */
		if (culprits[i].fault == RDMAP_E_BOUNDS)
			continue;
		world_expect_terminate(w, culprits[i].fault, culprits[i].hdrct);
	}
}

/* --- received ----------------------------------------------------------------------------- */

/* The end is told of a Terminate with this @fault, and sends none itself */
static void terminated(struct world *w, const uint8_t *payload, size_t n, uint32_t fault)
{
	peer_terminate(&w->peer, payload, n);
	world_ends(w);
	if (world_asks(w, TOLD)) {
		check_eq(world_state(w, WARP_CONN_ERROR).term_received, fault);
		check_eq(world_info(w).term_sent, 0);
	}
	peer_expect_end(&w->peer);
}

static void told_and_flushed(struct world *w)
{
	static const uint8_t bounds[] = { 0x11, 0x01, 0x00, 0x00 };
	unsigned int flushed = 0;
	struct warp_wc wc;

	world_start(w, &initiator);
	world_recv(w, 1000, 64);
	world_recv(w, 2000, 64);
	world_post(w, WARP_WR_READ, 0, 8, 1, 2);
	peer_recv_op(&w->peer, &seg, RDMAP_READ_REQ);
	terminated(w, bounds, sizeof(bounds), DDP_E_T_BOUNDS);
	if (!(w->kind & PROVIDER))
		return;
	while (flushed < 3) {
		wc = world_wc(w);
		check(wc.status != WARP_WC_SUCCESS, "%llu succeeded", (unsigned long long)wc.wr_id);
		flushed++;
	}
	world_no_wc(w);
}

/* Much is on its way to the end when it sends its Terminate: that must not be lost by a reset */
static void graceful(struct world *w)
{
	static uint8_t out[FPDU_ROOM];
	uint8_t u[23] = { 0 };
	size_t n;

	world_start(w, &initiator);
	raw_untagged(u, 0x41, 0x43, 0, 0, 9, 0);
	n = raw_fpdu(&w->peer, out, u, sizeof(u));
	peer_send(&w->peer, out, n);
	for (int i = 0; i < 10; i++)
		peer_try_send(&w->peer, out, sizeof(out));
	world_expect_terminate(w, DDP_E_U_MSN, MD);
	check(w->peer.ended, "the connection was reset");
}

static void any_terminate(struct world *w)
{
	static const struct {
		uint8_t control[4];
		size_t n;
		uint32_t fault;
	} rows[] = {
		{ { 0x20, 0x02, 0, 0 }, 4, MPA_E_CRC },
		{ { 0x12, 0x02, 0xc0, 0 }, 24, DDP_E_U_NOBUF },
		{ { 0x11, 0x01, 0xc0, 0 }, 20, DDP_E_T_BOUNDS },
		{ { 0x01, 0x01, 0xe0, 0 }, 52, RDMAP_E_BOUNDS },
		{ { 0x02, 0x06, 0x80, 0 }, 6, RDMAP_E_OPCODE },
		{ { 0x00, 0x00, 0, 0 }, 4, RDMAP_E_LOCAL },
		{ { 0x0f, 0xff, 0, 0 }, 4, IWARP_FAULT(0, 15, 255) },
		{ { 0xff, 0x77, 0, 0 }, 4, IWARP_FAULT(15, 15, 0x77) },
		{ { 0x23, 0x02, 0, 0 }, 4, IWARP_FAULT(2, 3, 2) },
		{ { 0x12, 0x05, 0x18, 0xff }, 4, DDP_E_U_LENGTH },
	};

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t p[52] = { 0 };

		world_start(w, i % 2 ? &initiator : &responder);
		memcpy(p, rows[i / 2].control, 4);
		if (rows[i / 2].n == 20)
			p[6] = 0xc1;
		else if (rows[i / 2].n > 20)
			p[6] = 0x41;
		terminated(w, p, rows[i / 2].n, rows[i / 2].fault);
	}
}

static void without_headers(struct world *w)
{
	uint8_t u[32] = { 0 };

	/* siw as initiator does without CRCs, and looks for a receive before it has one */
	world_start(w, w->kind == DEVICE ? &responder : &initiator);
	if (w->kind == DEVICE)
		world_recv(w, 0, 64);
	w->peer.crc_change = 1;
	peer_send_message(&w->peer, "hello", 5);
	world_expect_terminate(w, MPA_E_CRC, NONE);
	if (!world_asks(w, HEADERS))
		return;
	for (size_t n = 0; n < 18; n++) {
		world_start(w, &initiator);
		world_recv(w, 0, 64);
		raw_untagged(u, 0x41, 0x43, 0, 0, 1, 0);
		peer_fpdu(&w->peer, u, n);
		world_expect_terminate(w, DDP_E_LOCAL, NONE);
	}
}

static const struct row rows[] = {
	CASE(105, "5040 4.8", "layer and type are the nibbles, M, D, R the top bits", encoding),
	CASE(106, "5040 5.4", "queue 2, MSN 1, MO 0, one segment", own_queue),
	CASE(107, "5040 5.4", "one Terminate, and nothing after it", only_one),
	CASE(108, "5040 4.8", "headers as Figure 10 has them", headers),
	CASE_ON(109, "5040 4.8", "of a Read partly answered: its header, moved on", partly_answered,
		LAYERS, "a provider cannot be stopped between two segments"),
	CASE(110, "5040 7.1 r4", "the first fault alone is told", first_alone),
	CASE(111, "5040 5.4, 6.2.1", "a received one is told, and work ends in error",
	     told_and_flushed),
	CASE(112, "5040 6.2.1", "closing does not destroy the Terminate", graceful),
	CASE(113, "5040 4.8, 6580 3", "any legal size, unknown codes", any_terminate),
	CASE(114, "5040 4.8", "LLP and local errors have no headers", without_headers),
};

ROWS(terminate, rows);
