/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases 19 and 21 to 30: what RFC 6581 adds to start-up, the depths of Reads and the RTR.
 */
#include <errno.h>
#include <string.h>

#include "suite.h"

enum { NONE = 0x3fff };

static const struct setup responder2 = { .rev = 2 };

struct depths {
	uint16_t ird, ord;
};

static struct depths depths_of(const struct frame *f)
{
	check_eq(f->rev, 2);
	check_eq(f->flags & 0x10, 0x10);
	check(f->pd_len >= 4, "PD_Length %u", f->pd_len);
	return (struct depths){ (uint16_t)raw_get(f->pd, 2), (uint16_t)raw_get(f->pd + 2, 2) };
}

static void reply(struct world *w, uint8_t flags, uint16_t ird, uint16_t ord)
{
	uint8_t enh[4];

	raw_enhanced(enh, 0, ird, 0, ord);
	peer_send_reply(&w->peer, 0x50 | flags, 2, enh, 4);
	w->peer.crc = true;
}

/* An initiator whose Request was taken in: the words of its Request */
static struct depths initiate(struct world *w, uint16_t ird, uint16_t ord, uint8_t rtr)
{
	const struct setup s = { .initiator = true, .rev = 2, .ird = ird, .ord = ord, .rtr = rtr };
	struct frame f;

	world_open(w, &s);
	peer_recv_frame(&w->peer, &f);
	return depths_of(&f);
}

/* A responder that was sent these words: those of its Reply */
static struct depths respond(struct world *w, const struct setup *s, uint16_t ird, uint16_t ord)
{
	uint8_t enh[4];
	struct frame f;

	world_open(w, s);
	raw_enhanced(enh, 0, ird, 0, ord);
	peer_send_request(&w->peer, 0x50, 2, enh, 4);
	peer_recv_frame(&w->peer, &f);
	check_eq(f.flags & 0x20, 0);
	w->peer.crc = true;
	return depths_of(&f);
}

static void encoding(struct world *w)
{
	struct depths d = initiate(w, 0x21, 0x32, 0);
	struct warp_conn_info info;

	check_eq(d.ird, 0x21);
	check_eq(d.ord, 0x32);
	reply(w, 0, 0x2abc, 0x15);
	info = world_state(w, WARP_CONN_ESTABLISHED);
	check_eq(info.peer_ird, 0x2abc);
	check_eq(info.peer_ord, 0x15);
	d = initiate(w, 0x21, 0x32, WARP_CONN_RTR_READ | WARP_CONN_RTR_WRITE);
	check_eq(d.ird, RAW_A | 0x21);
	check_eq(d.ord, RAW_C | RAW_D | 0x32);
}

static void responder_ord(struct world *w)
{
	static const uint16_t irds[] = { 0, 1, 3, 7, 8, 9, 0x3ffe };

	for (size_t i = 0; i < sizeof(irds) / sizeof(irds[0]); i++) {
		struct depths d = respond(w, &responder2, irds[i], 2);

		check(d.ord <= irds[i], "ORD %u for an IRD of %u", d.ord, irds[i]);
		check_eq(d.ord, irds[i] < 8 ? irds[i] : 8);
		check(d.ird >= 2, "IRD %u for an ORD of 2", d.ird);
		check_eq(world_info(w).ord, d.ord);
	}
}

static void initiator_ord(struct world *w)
{
	static const uint16_t irds[] = { 0, 1, 3, 7, 8, 9, 0x3ffe };

	for (size_t i = 0; i < sizeof(irds) / sizeof(irds[0]); i++) {
		initiate(w, 8, 8, 0);
		reply(w, 0, irds[i], 8);
		check_eq(world_state(w, WARP_CONN_ESTABLISHED).ord, irds[i] < 8 ? irds[i] : 8);
	}
}

static void initiator_ird(struct world *w)
{
	initiate(w, 4, 4, 0);
	reply(w, 0, 4, 4);
	check(world_state(w, WARP_CONN_ESTABLISHED).ird >= 4, "IRD below the Reply's ORD");
	initiate(w, 4, 4, 0);
	reply(w, 0, 4, 5);
	world_expect_terminate(w, MPA_E_IRD, 0);
}

static void not_negotiated(struct world *w)
{
	struct depths d = respond(w, &responder2, NONE, NONE);

	check_eq(d.ird, NONE);
	check_eq(d.ord, NONE);
	check_eq(world_info(w).ird, 8);
	check_eq(world_info(w).ord, 8);
	d = respond(w, &responder2, NONE, 3);
	check_eq(d.ord, NONE);
	check(d.ird >= 3 && d.ird != NONE, "IRD %u", d.ird);
	initiate(w, 8, 8, 0);
	reply(w, 0, NONE, NONE);
	check_eq(world_state(w, WARP_CONN_ESTABLISHED).ord, 8);
	check_eq(world_info(w).ird, 8);
}

static void told_to_the_ulp(struct world *w)
{
	static const struct setup hold = { .rev = 2, .hold = true };
	uint8_t enh[4];
	struct warp_conn_info info;

	initiate(w, 8, 8, 0);
	reply(w, 0, 5, 6);
	info = world_state(w, WARP_CONN_ESTABLISHED);
	check_eq(info.peer_ird, 5);
	check_eq(info.peer_ord, 6);
	initiate(w, 8, 8, 0);
	reply(w, 0x20, 7, 9);
	info = world_state(w, WARP_CONN_REJECTED);
	if (world_asks(w, TOLD)) {
		check_eq(info.peer_ird, 7);
		check_eq(info.peer_ord, 9);
	}
	world_open(w, &hold);
	raw_enhanced(enh, 0, 11, 0, 12);
	peer_send_request(&w->peer, 0x50, 2, enh, 4);
	info = world_state(w, WARP_CONN_REQUEST);
	check_eq(info.peer_ird, 11);
	check_eq(info.peer_ord, 12);
}

/* --- RTR ---------------------------------------------------------------------------------- */

static const struct setup p2p = { .rev = 2, .rtr = WARP_CONN_RTR_WRITE | WARP_CONN_RTR_READ };

static void rtr_answered(struct world *w)
{
	for (unsigned int offered = 0; offered < 8; offered++) {
		uint16_t b = offered & 1 ? RAW_B : 0;
		uint16_t cd = (offered & 2 ? RAW_C : 0) | (offered & 4 ? RAW_D : 0);
		struct depths d = respond(w, &p2p, RAW_A | b | 4, cd | 4);
		uint16_t chosen = d.ord & (RAW_C | RAW_D);

		check(d.ird & RAW_A, "A=1 is answered with A=0");
		check(chosen || d.ird & RAW_B, "A=1 is answered without an RTR");
		check(!cd || (chosen && !(chosen & ~cd)), "offered %#x, chosen %#x", cd, chosen);
	}
}

static void client_server(struct world *w)
{
	struct depths d = respond(w, &p2p, RAW_B | 4, RAW_C | RAW_D | 4);

	check_eq(d.ird & (RAW_A | RAW_B), 0);
	check_eq(d.ord & (RAW_C | RAW_D), 0);
	/* and the first FPDU may be any */
	world_recv(w, 0, 64);
	peer_send_message(&w->peer, "hello", 5);
	check_eq(world_wc(w).byte_len, 5);
}

static const struct {
	unsigned int flag;
	uint16_t ird_bits, ord_bits;
	uint8_t opcode;
} forms[] = {
	{ WARP_CONN_RTR_WRITE, 0, RAW_C, RDMAP_WRITE },
	{ WARP_CONN_RTR_READ, 0, RAW_D, RDMAP_READ_REQ },
	{ WARP_CONN_RTR_SEND, RAW_B, 0, RDMAP_SEND },
};
#define FORMS (sizeof(forms) / sizeof(forms[0]))

/* The end is initiator and got a Reply that chooses form @i; its RTR was taken in */
static void rtr_sent(struct world *w, size_t i, struct seg *seg)
{
	uint8_t all = WARP_CONN_RTR_WRITE | WARP_CONN_RTR_READ | WARP_CONN_RTR_SEND;
	struct depths d = initiate(w, 8, 8, all);

	check_eq(d.ird, RAW_A | RAW_B | 8);
	check_eq(d.ord, RAW_C | RAW_D | 8);
	reply(w, 0, RAW_A | forms[i].ird_bits | 8, forms[i].ord_bits | 8);
	peer_recv_op(&w->peer, seg, forms[i].opcode);
	check_eq(seg->at, 0);
	check_eq(seg->last, true);
	check_eq(seg->len, seg->opcode == RDMAP_READ_REQ ? 28 : 0);
	if (seg->opcode == RDMAP_READ_REQ) {
		check_eq(raw_get(seg->payload + 12, 4), 0);
		peer_tagged(&w->peer, RDMAP_READ_RESP, true, (uint32_t)raw_get(seg->payload, 4),
			    raw_get(seg->payload + 4, 8), NULL, 0);
	}
}

static void rtr_first(struct world *w)
{
	static struct seg seg;

	for (size_t i = 0; i < FORMS; i++) {
		rtr_sent(w, i, &seg);
		world_state(w, WARP_CONN_ESTABLISHED);
		peer_expect_quiet(&w->peer);
		world_post(w, WARP_WR_SEND, 0, 5, 0, 0);
		peer_recv_op(&w->peer, &seg, RDMAP_SEND);
		check_eq(seg.len, 5);
	}
}

static void rtr_mismatch(struct world *w)
{
	static const uint16_t replies[] = { 0, RAW_B };

	for (size_t i = 0; i < 2; i++) {
		initiate(w, 8, 8, WARP_CONN_RTR_WRITE | WARP_CONN_RTR_READ);
		reply(w, 0, RAW_A | replies[i] | 8, 8);
		world_expect_terminate(w, MPA_E_RTR, 0);
	}
	initiate(w, 8, 8, WARP_CONN_RTR_WRITE);
	reply(w, 0, RAW_A | 8, RAW_D | 8);
	world_expect_terminate(w, MPA_E_RTR, 0);
}

/* As responder: the RTR in, no completion out, and the stream is as if it had not been */
static void rtr_received(struct world *w, size_t i)
{
	static struct seg seg;
	uint16_t ord = (uint16_t)(forms[i].ord_bits | 8);
	struct depths d = respond(w, &p2p, RAW_A | 8, ord);

	check_eq(d.ord & (RAW_C | RAW_D), forms[i].ord_bits);
	check(world_info(w).state != WARP_CONN_ESTABLISHED, "established before the RTR came");
	if (forms[i].opcode == RDMAP_WRITE)
		peer_write(&w->peer, 1, 0, NULL, 0);
	else
		peer_read(&w->peer, 1, 2, 0, 1, 0);
	world_state(w, WARP_CONN_ESTABLISHED);
	if (forms[i].opcode == RDMAP_READ_REQ) {
		peer_recv_op(&w->peer, &seg, RDMAP_READ_RESP);
		check_eq(seg.len, 0);
		check_eq(seg.stag, 1);
		check_eq(seg.to, 2);
	}
	world_no_wc(w);
	world_recv(w, 0, 64);
	peer_send_message(&w->peer, "hello", 5);
	check_eq(world_wc(w).byte_len, 5);
}

static void rtr_not_told(struct world *w)
{
	static struct seg seg;

	for (size_t i = 0; i < 2; i++)
		rtr_received(w, i);
	for (size_t i = 0; i < FORMS; i++) {
		rtr_sent(w, i, &seg);
		world_no_wc(w);
	}
}

static const struct row rows[] = {
	CASE(19, "6581 9", "IRD and ORD have 14 bits, flags the top two", encoding),
	CASE(21, "6581 9.1", "a Responder's ORD is at most the Initiator's IRD", responder_ord),
	CASE(22, "6581 9.1", "an Initiator lowers its ORD to the Reply's IRD", initiator_ord),
	CASE(23, "6581 9.1", "an IRD below the Reply's ORD is raised, or Terminate 2/0/06",
	     initiator_ird),
	CASE(24, "6581 9.1", "0x3FFF answers 0x3FFF, own values stay", not_negotiated),
	CASE(25, "6581 9.1", "the peer's depths are told on accept and on reject", told_to_the_ulp),
	CASE(26, "6581 9.2", "A=1 is answered with A=1 and a form", rtr_answered),
	CASE(27, "6581 9.2", "A=0 is answered with zeroes, B, C, D ignored", client_server),
	CASE(28, "6581 5, 9.2", "exactly one RTR, as the first FPDU", rtr_first),
	CASE(29, "6581 9.2", "no form in common: Terminate 2/0/07", rtr_mismatch),
	CASE(30, "6581 4.4, 5", "an RTR is no completion", rtr_not_told),
};

ROWS(depth, rows);
