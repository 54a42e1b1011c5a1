/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases 127 to 132: what no RFC asks for and existing peers do.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "suite.h"

static const struct setup responder, initiator = { .initiator = true }, responder2 = { .rev = 2 };

static struct seg seg;

/* siw on little-endian hosts: nibbles swapped, M, D, R at the low end; captured from one */
static void swapped_terminate(struct world *w)
{
	static const struct {
		uint8_t octets[24];
		size_t n;
		uint32_t fault;
	} rows[] = {
		{ { 0x11, 0x01, 0x03, 0, 0, 8, 0xc1, 0x40 }, 20, DDP_E_T_BOUNDS },
		{ { 0x21, 0x02, 0x03, 0, 0, 4, 0x41, 0x43 }, 24, DDP_E_U_NOBUF },
		{ { 0x21, 0x05, 0x03, 0 }, 24, DDP_E_U_LENGTH },
		{ { 0x02, 0x02, 0, 0 }, 4, MPA_E_CRC },
		{ { 0x20, 0x06, 0, 0 }, 4, RDMAP_E_OPCODE },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct warp_conn_info info;

		world_start(w, &initiator);
		/* in RDMA mode: something was exchanged before */
		world_works(w);
		peer_terminate(&w->peer, rows[i].octets, rows[i].n);
		world_ends(w);
		if (!world_asks(w, TOLD))
			continue;
		info = world_state(w, WARP_CONN_ERROR);
		check(info.term_received == rows[i].fault, "row %zu is taken as %#x, not %#x", i,
		      info.term_received, rows[i].fault);
		check_eq(info.term_sent, 0);
	}
	/* in start-up it does not compute the CRC that was agreed */
	world_start(w, &responder2);
	w->peer.crc = false;
	peer_terminate(&w->peer, "\x02\x06\0\0", 4);
	world_ends(w);
	if (!world_asks(w, TOLD))
		return;
	check_eq(world_state(w, WARP_CONN_ERROR).term_received, MPA_E_IRD);
	check_eq(world_info(w).term_sent, 0);
}

static void above_mulpdu(struct world *w)
{
	static const size_t lengths[] = { 64769, 65474, 65482, 65535 };
	static uint8_t out[ULPDU_ROOM];

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		world_start(w, i % 2 ? &initiator : &responder);
		pattern(out, sizeof(out), (unsigned int)i);
		world_recv(w, 0, 70000);
		peer_send_message(&w->peer, out, lengths[i] - 18);
		check_eq(world_wc(w).byte_len, lengths[i] - 18);
		check_octets(w->arena, out, lengths[i] - 18);
	}
}

static void any_rtr(struct world *w)
{
	static const uint64_t places[] = { 0, 1, UINT64_MAX };
	const struct setup s = { .rev = 2, .rtr = WARP_CONN_RTR_WRITE | WARP_CONN_RTR_READ };

	for (unsigned int i = 0; i < 12; i++) {
		uint64_t to = places[i / 4];
		uint8_t enh[4];
		struct frame f;

		world_open(w, &s);
		raw_enhanced(enh, RAW_A, 4, i & 2 ? RAW_D : RAW_C, 4);
		peer_send_request(&w->peer, 0x50, 2, enh, 4);
		peer_recv_frame(&w->peer, &f);
		w->peer.crc = true;
		if (i & 2) {
			peer_read(&w->peer, i & 1, to, 0, i & 1, to);
			peer_recv_op(&w->peer, &seg, RDMAP_READ_RESP);
			check_eq(seg.stag, i & 1);
			check_eq(seg.to, to);
		} else {
			peer_write(&w->peer, i & 1, to, NULL, 0);
		}
		world_state(w, WARP_CONN_ESTABLISHED);
		world_works(w);
	}
}

/* --- a peer that is gone ------------------------------------------------------------------ */

enum way { FIN, RESET, WAYS };

static void leave(struct world *w, enum way way)
{
	if (way == FIN)
		peer_close(&w->peer);
	else
		w->peer.llp->ops->abort(w->peer.llp);
}

/* What the end holds when the peer goes, and what it does with work that comes later */
static void survive(struct world *w)
{
	struct warp_send_wr wr = { .opcode = WARP_WR_SEND };
	struct warp_wc wc;

	for (int i = 0; i < 20; i++) {
		world_settle(w);
		if (world_info(w).state >= WARP_CONN_DISCONNECTED)
			break;
	}
	check(world_info(w).state >= WARP_CONN_DISCONNECTED, "the end did not notice");
	w->end->ops->post_send(w->end, &wr);
	world_settle(w);
	while (w->end->ops->poll(w->end, &wc, 1) > 0)
		check(wc.opcode != WARP_WC_READ || wc.status != WARP_WC_SUCCESS, "a Read without "
										 "its Response");
}

static void gone_without_terminate(struct world *w)
{
	for (unsigned int i = 0; i < 6 * WAYS; i++) {
		uint8_t u[64];
		uint32_t stag;

		world_start(w, i % 4 < 2 ? &initiator : &responder);
		stag = world_region(w, WARP_ACCESS_REMOTE_READ, false);
		world_recv(w, 0, 64);
		raw_untagged(u, 0x41, 0x43, 0, 0, 9, 0);
		switch (i / WAYS) {
		case 0: /* the peer is at fault */
			peer_fpdu(&w->peer, u, 18);
			break;
		case 1: /* the end owes answers */
			for (int k = 0; k < 8; k++)
				peer_read(&w->peer, 1, 2, REGION, stag, region_to(w));
			break;
		case 2: /* the end waits for one */
			if (i % 4 < 2)
				world_post(w, WARP_WR_READ, 0, 8, 1, 2);
			world_settle(w);
			break;
		case 3: /* half a message, half an FPDU */
			peer_untagged(&w->peer, RDMAP_SEND, false, 0, 1, 0, u, 8);
			peer_try_send(&w->peer, u, 10);
			break;
		case 4: /* a CRC error */
			w->peer.crc_change = 1;
			peer_fpdu(&w->peer, u, 18);
			break;
		default: /* nothing at all */
			break;
		}
		leave(w, i % WAYS);
		survive(w);
	}
}

/* --- towards siw -------------------------------------------------------------------------- */

enum { MESSAGES = 60 };

struct fpdu_place {
	uint64_t trailer, end;
};

/* May TCP cut at stream octet @at? */
static void check_cut(const struct fpdu_place *p, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		check(at <= p[i].trailer || at >= p[i].end,
		      "a segment may end at octet %llu, inside the PAD and CRC of FPDU %zu",
		      (unsigned long long)at, i);
}

static void trailers_whole(struct world *w)
{
	static struct fpdu_place places[1024];
	const struct setup s = { .initiator = true, .mss = 1000 };
	uint64_t group = 0, at = 0;
	size_t n = 0, mss;
	socklen_t len = sizeof(int);
	int value = 0;

	world_start(w, &s);
	getsockopt(w->end_fd, IPPROTO_TCP, TCP_MAXSEG, &value, &len);
	mss = (size_t)value;
	sends_watch(w->end_fd);
	for (uint32_t i = 0; i < MESSAGES; i++)
		world_post(w, i % 3 ? WARP_WR_SEND : WARP_WR_WRITE, 0, i * i % 3001, 1, 2);
	for (uint32_t i = 0; i < MESSAGES; n++) {
		peer_recv(&w->peer, &seg);
		places[n] =
			(struct fpdu_place){ seg.at + 2 + seg.ulpdu_len, seg.at + seg.fpdu_len };
		i += seg.last;
	}
	sends_watch(-1);
	check(n > MESSAGES, "%zu FPDUs", n);
	/* while this thread waited for a processor the end may have sent its empty Write again */
	for (size_t i = 0; i < sends_count() && at < w->peer.rx_pos; i++) {
		struct sent_call c = sends_at(i);

		at += c.n;
		if (!c.record)
			continue;
		for (uint64_t cut = group + mss; cut < at; cut += mss)
			check_cut(places, n, cut);
		check_cut(places, n, at);
		group = at;
	}
	check_eq(at, w->peer.rx_pos);
	check(group == at || at - group <= mss, "%llu octets without a boundary",
	      (unsigned long long)(at - group));
}

/* siw may overlook the first FPDU until another segment comes */
static void write_retry(struct world *w)
{
	world_start(w, &initiator);
	w->peer.write_retries = false; /* to be seen */
	world_post(w, WARP_WR_SEND, 0, 5, 0, 0);
	peer_recv_op(&w->peer, &seg, RDMAP_SEND);
	peer_recv_op(&w->peer, &seg, RDMAP_WRITE);
	check_eq(seg.len, 0);
	check_eq(world_wc(w).opcode, WARP_WC_SEND);
	world_no_wc(w);
}

static const struct row rows[] = {
	CASE(127, "siw", "a Terminate in siw's form, and one without CRC in start-up",
	     swapped_terminate),
	CASE(128, "siw", "ULPDU_Length above 64768 is taken", above_mulpdu),
	CASE(129, "cxgb4, siw", "an RTR with STag 0 or 1 and any TO", any_rtr),
	CASE(130, "siw", "a peer that goes without a Terminate", gone_without_terminate),
	CASE_ON(131, "siw", "no TCP segment ends inside PAD or CRC", trailers_whole, SOFT,
		"who hands octets to TCP is the provider"),
	CASE_ON(132, "siw", "an Initiator whose first FPDU is not answered sends more", write_retry,
		PROVIDER, "time is the provider's: the layers have no clock"),
};

ROWS(robust, rows);
