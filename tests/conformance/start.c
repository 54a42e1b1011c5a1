/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases 1 to 20 and 31 to 38: MPA start-up. Depths and RTR are in depth.c.
 */
#include <errno.h>
#include <string.h>

#include "suite.h"

static const struct setup responder, initiator = { .initiator = true }, responder2 = { .rev = 2 },
				     initiator2 = { .initiator = true, .rev = 2 };

/* The end must close and say so, without an answer */
static void expect_refused(struct world *w)
{
	world_expect_close(w);
	/* the program of a device does not hear of a Request that is none */
	if (w->kind == DEVICE && !w->initiator) {
		check_eq(world_info(w).state, WARP_CONN_CONNECTING);
		return;
	}
	check_eq(world_state(w, WARP_CONN_ERROR).state, WARP_CONN_ERROR);
	check(world_info(w).error < 0, "no error is told");
}

/* Opens; when the end is the initiator its Request is taken in */
static void open_and_take(struct world *w, const struct setup *s, struct frame *f)
{
	world_open(w, s);
	if (s->initiator)
		peer_recv_frame(&w->peer, f);
}

/* Revision and CRC of a Reply are to be those that siw asks for, whatever the case wants */
static bool as_siw_asks(const struct world *w)
{
	return w->initiator && !world_asks(w, REV_1);
}

/* Octets of @out that such a Reply takes */
static size_t reply_as_asked(uint8_t *out, uint8_t flags, const void *pd, size_t len)
{
	uint8_t data[512];

	raw_enhanced(data, 0, 8, 0, 8);
	memcpy(data + 4, pd, len);
	return raw_frame(out, raw_rep_key, (flags & ~0x40) | 0x10, 2, data, 4 + len);
}

static size_t build_reply(const struct world *w, uint8_t *out, uint8_t flags, uint8_t rev,
			  const void *pd, size_t len)
{
	if (as_siw_asks(w))
		return reply_as_asked(out, flags, pd, len);
	return raw_frame(out, raw_rep_key, flags, rev, pd, len);
}

/* The peer's frame: a Request or Reply */
static void send_frame(struct world *w, const struct setup *s, uint8_t flags, uint8_t rev,
		       const void *pd, size_t len)
{
	uint8_t out[20 + 516];

	if (s->initiator)
		peer_send(&w->peer, out, build_reply(w, out, flags, rev, pd, len));
	else
		peer_send_request(&w->peer, flags, rev, pd, len);
}

/* The frames are there: FPDUs may go */
static void start_up_is_done(struct world *w)
{
	w->peer.crc = !as_siw_asks(w);
	if (w->initiator || w->kind == DEVICE)
		world_state(w, WARP_CONN_ESTABLISHED);
}

/* --- 1 to 10 ------------------------------------------------------------------------------ */

static void request_key(struct world *w)
{
	struct frame f;

	for (int i = 0; i < 2; i++) {
		open_and_take(w, i ? &initiator2 : &initiator, &f);
		check_octets(f.key, raw_req_key, 16);
		check(!(f.flags & 0x20), "R in a Request");
		peer_expect_quiet(&w->peer);
	}
}

static void reply_key(struct world *w)
{
	struct frame f;

	world_open(w, &responder);
	peer_send_request(&w->peer, 0x40, 1, NULL, 0);
	peer_recv_frame(&w->peer, &f);
	check_octets(f.key, raw_rep_key, 16);
	peer_expect_quiet(&w->peer);
}

static void wrong_key(struct world *w)
{
	for (int i = 0; i < 34; i++) {
		const struct setup *s = i % 2 ? &initiator : &responder;
		uint8_t out[20];
		struct frame f;

		if (!world_plays(w, s))
			continue;
		open_and_take(w, s, &f);
		raw_frame(out, s->initiator ? raw_rep_key : raw_req_key, 0x40, 1, NULL, 0);
		if (i < 32)
			out[i / 2] ^= 0x20;
		else /* the other role's key */
			memcpy(out, s->initiator ? raw_req_key : raw_rep_key, 16);
		peer_try_send(&w->peer, out, sizeof(out));
		expect_refused(w);
	}
}

static void two_initiators(struct world *w)
{
	struct frame f;

	open_and_take(w, &initiator, &f);
	peer_try_send(&w->peer, f.key, 16);
	expect_refused(w);
}

static void no_request(struct world *w)
{
	static const struct setup s = { .timeout_ms = 200 };

	for (size_t n = 0; n < 20; n += 19) {
		uint8_t out[20];

		world_open(w, &s);
		raw_frame(out, raw_req_key, 0x40, 1, NULL, 0);
		peer_send(&w->peer, out, n);
		expect_refused(w);
		check_eq(world_info(w).error, -ETIMEDOUT);
	}
}

static void partial_reply(struct world *w)
{
	static const struct setup s = { .initiator = true, .timeout_ms = 200 };

	for (size_t n = 0; n < 20; n += 19) {
		uint8_t out[20];
		struct frame f;

		open_and_take(w, &s, &f);
		raw_frame(out, raw_rep_key, 0x40, 1, NULL, 0);
		peer_send(&w->peer, out, n);
		expect_refused(w);
		check_eq(world_info(w).error, -ETIMEDOUT);
	}
}

static void octet_by_octet(struct world *w)
{
	struct frame f;

	for (int i = 0; i < 2; i++) {
		const struct setup *s = i ? &initiator : &responder;

		if (!world_plays(w, s))
			continue;
		open_and_take(w, s, &f);
		w->peer.cut = 1;
		/* siw forgets what comes while it has four pieces to look at */
		w->peer.pace_ms = w->kind == DEVICE ? 20 : 0;
		send_frame(w, s, 0x40, 1, "sixteen octets..", 16);
		w->peer.cut = 0;
		w->peer.pace_ms = 0;
		if (!s->initiator)
			peer_recv_frame(&w->peer, &f);
		start_up_is_done(w);
		world_works(w);
		check_eq(world_info(w).private_data_len, 16);
	}
}

/* A frame with @flags works as one without */
static void with_flags(struct world *w, uint8_t flags)
{
	for (int i = 0; i < 2; i++) {
		const struct setup *s = i ? &initiator : &responder;
		struct frame f;

		/* in a Reply R has its meaning */
		if ((s->initiator && flags & 0x20) || !world_plays(w, s))
			continue;
		open_and_take(w, s, &f);
		send_frame(w, s, 0x40 | flags, 1, NULL, 0);
		if (!s->initiator)
			peer_recv_frame(&w->peer, &f);
		check_eq(f.flags & 0x2f, 0);
		start_up_is_done(w);
		world_works(w);
	}
}

static void reserved_bits(struct world *w)
{
	for (uint8_t bits = 1; bits < 0x10; bits *= 2)
		with_flags(w, bits);
	with_flags(w, 0x0f);
}

static void r_in_request(struct world *w)
{
	with_flags(w, 0x20);
}

static void pd_too_long(struct world *w)
{
	static const uint16_t lengths[] = { 513, 514, 767, 768, 0x8000, 65535 };

	for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
		const struct setup *s = i % 2 ? &initiator : &responder;
		uint8_t out[20];
		struct frame f;

		open_and_take(w, s, &f);
		raw_frame(out, s->initiator ? raw_rep_key : raw_req_key, 0x40, 1, NULL, 0);
		raw_put(out + 18, 2, lengths[i / 2]);
		peer_try_send(&w->peer, out, sizeof(out));
		expect_refused(w);
	}
}

/* --- private data ------------------------------------------------------------------------- */

/* Both ends' private data come through whole, each way */
static void exchange_pd(struct world *w, bool initiates, uint8_t rev, size_t len)
{
	uint8_t mine[516], yours[512];
	size_t enh = rev == 2 ? 4 : 0;
	struct setup s = { .initiator = initiates, .rev = rev, .pd = yours, .pd_len = len };
	struct warp_conn_info info;
	struct frame f;

	pattern(yours, len, 1);
	pattern(mine, sizeof(mine), 2);
	raw_enhanced(mine, 0, 1, 0, 1);
	open_and_take(w, &s, &f);
	send_frame(w, &s, 0x40 | (enh ? 0x10 : 0), rev, mine + 4 - enh, enh + len);
	if (!initiates)
		peer_recv_frame(&w->peer, &f);
	check_eq(f.pd_len, enh + len);
	check_octets(f.pd + enh, yours, len);
	w->peer.crc = true;
	world_works(w);
	info = world_info(w);
	check_eq(info.private_data_len, len);
	check_octets(info.private_data, mine + 4, len);
}

static void pd_limits(struct world *w)
{
	for (int i = 0; i < 4; i++)
		exchange_pd(w, i & 1, 1, i & 2 ? 512 : 0);
}

static void pd_lengths(struct world *w)
{
	static const size_t lengths[] = { 1, 3, 4, 7, 255, 256, 508 };

	for (size_t i = 0; i < 4 * sizeof(lengths) / sizeof(lengths[0]); i++)
		exchange_pd(w, i & 1, i & 2 ? 2 : 1, lengths[i / 4]);
}

/* Private data that does not fit into a frame is not sent */
static void pd_refused(struct world *w, uint8_t rev, size_t len)
{
	static uint8_t much[600];
	const struct setup s = { .initiator = true, .rev = rev, .pd = much, .pd_len = len };

	world_open(w, &s);
	peer_expect_end(&w->peer);
	check(world_info(w).error == -EMSGSIZE || world_info(w).error == -EINVAL,
	      "error %d for %zu octets", world_info(w).error, len);
}

static void pd_not_beyond(struct world *w)
{
	uint8_t out[128], u[64];
	struct frame f;
	size_t n;

	open_and_take(w, &initiator, &f);
	world_recv(w, 0, 64);
	w->peer.crc = !as_siw_asks(w);
	n = build_reply(w, out, 0x40, 1, "12345678", 8);
	if (!world_asks(w, BEHIND)) {
		peer_send(&w->peer, out, n);
		world_state(w, WARP_CONN_ESTABLISHED);
		n = 0;
	}
	raw_untagged(u, 0x41, 0x43, 0, 0, 1, 0);
	memcpy(u + 18, "hello", 5);
	n += raw_fpdu(&w->peer, out + n, u, 23);
	peer_send(&w->peer, out, n);
	world_state(w, WARP_CONN_ESTABLISHED);
	check_eq(world_wc(w).byte_len, 5);
	check_eq(world_info(w).private_data_len, 8);
	check_octets(world_info(w).private_data, "12345678", 8);
	if (w->kind == DEVICE)
		return; /* it does not even connect */
	pd_refused(w, 1, 513);
	pd_refused(w, 1, 600);
}

static void enhanced_pd(struct world *w)
{
	uint8_t enh[4 + 3] = { 0, 1, 0, 1, 'u', 'l', 'p' };

	exchange_pd(w, true, 2, 508);
	exchange_pd(w, false, 2, 508);
	pd_refused(w, 2, 509);
	world_open(w, &responder2);
	peer_send_request(&w->peer, 0x50, 2, enh, sizeof(enh));
	check(peer_fill(&w->peer, 20), "no Reply");
	check_eq(world_info(w).private_data_len, 3);
	check_octets(world_info(w).private_data, "ulp", 3);
}

/* --- revisions ---------------------------------------------------------------------------- */

static void revision_sent(struct world *w)
{
	struct frame f;

	if (world_asks(w, WISHES)) {
		open_and_take(w, &initiator, &f);
		check_eq(f.rev, 1);
		check_eq(f.flags & 0x10, 0);
	}
	open_and_take(w, &initiator2, &f);
	check_eq(f.rev, 2);
	check_eq(f.flags & 0x10, 0x10);
	check(f.pd_len >= 4, "PD_Length %u", f.pd_len);
}

static void revision_unknown(struct world *w)
{
	static const uint8_t revs[] = { 0, 3, 4, 255 };
	uint8_t enh[4] = { 0 };
	struct frame f;

	for (size_t i = 0; i < 4 * sizeof(revs); i++) {
		struct setup s = { .initiator = i & 1, .rev = i & 2 ? 2 : 1 };

		if (!world_plays(w, &s) || (!revs[i / 4] && !world_asks(w, REV_0)))
			continue;
		open_and_take(w, &s, &f);
		send_frame(w, &s, i & 2 ? 0x50 : 0x40, revs[i / 4], enh, i & 2 ? 4 : 0);
		expect_refused(w);
	}
}

static void revision_1_taken(struct world *w)
{
	struct frame f;

	world_open(w, &responder2);
	peer_send_request(&w->peer, 0x40, 1, "pd", 2);
	peer_recv_frame(&w->peer, &f);
	check_eq(f.rev, 1);
	check_eq(f.flags & 0x30, 0);
	check_eq(f.pd_len, 0);
	w->peer.crc = true;
	world_works(w);
	if (world_asks(w, TOLD))
		check_eq(world_info(w).mpa_rev, 1);
}

static void s_answers_s(struct world *w)
{
	static const struct {
		uint8_t flags, rev;
	} rows[] = { { 0x50, 2 }, { 0x40, 2 }, { 0x40, 1 } };
	uint8_t enh[4] = { 0, 1, 0, 1 };
	struct frame f;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool s = rows[i].flags & 0x10;

		world_open(w, &responder2);
		peer_send_request(&w->peer, rows[i].flags, rows[i].rev, enh, s ? 4 : 0);
		peer_recv_frame(&w->peer, &f);
		check_eq(f.flags & 0x30, s ? 0x10 : 0);
		check_eq(f.pd_len, s ? 4 : 0);
		w->peer.crc = true;
		world_works(w);
	}
}

static void enhanced_too_short(struct world *w)
{
	uint8_t enh[4] = { 0 };
	struct frame f;

	for (size_t i = 0; i < 8; i++) {
		struct setup s = { .initiator = i & 1, .rev = 2 };

		open_and_take(w, &s, &f);
		send_frame(w, &s, 0x50, 2, enh, i / 2);
		expect_refused(w);
	}
}

/* --- 31 to 34 ----------------------------------------------------------------------------- */

static void reject(struct world *w)
{
	static const struct setup s = { .hold = true };
	struct frame f;

	world_open(w, &s);
	peer_send_request(&w->peer, 0x40, 1, "please", 6);
	world_state(w, WARP_CONN_REQUEST);
	check_octets(world_info(w).private_data, "please", 6);
	world_recv(w, 0, 64);
	check_eq(w->end->ops->reject(w->end, "no", 2), 0);
	peer_recv_frame(&w->peer, &f);
	check_octets(f.key, raw_rep_key, 16);
	check_eq(f.flags & 0x20, 0x20);
	check_eq(f.pd_len, 2);
	check_octets(f.pd, "no", 2);
	/* FPDUs are for full operation */
	w->peer.crc = true;
	peer_send_message(&w->peer, "hello", 5);
	world_settle(w);
	check_eq(world_info(w).state, WARP_CONN_REJECTED);
	check_eq(w->arena[0], 0);
	check_eq(world_info(w).rx_fpdus, 0);
}

static void rejected(struct world *w)
{
	struct warp_conn_info info;
	struct warp_send_wr wr = { .opcode = WARP_WR_SEND };
	struct frame f;

	open_and_take(w, &initiator, &f);
	send_frame(w, &initiator, 0x60, 1, "no", 2);
	info = world_state(w, WARP_CONN_REJECTED);
	check_eq(info.private_data_len, 2);
	check_octets(info.private_data, "no", 2);
	w->end->ops->post_send(w->end, &wr);
	peer_expect_end(&w->peer);
	check_eq(world_info(w).tx_fpdus, 0);
}

static void gate(struct world *w)
{
	for (int markers = 0; markers < 2; markers++) {
		const struct setup s = { .peer_markers = markers };
		struct warp_send_wr wr = { .opcode = WARP_WR_SEND };
		static struct seg seg;
		int rc;

		world_start(w, &s);
		rc = w->end->ops->post_send(w->end, &wr);
		check(rc == 0 || rc == -ENOTCONN, "post: %d", rc);
		peer_expect_quiet(&w->peer);
		peer_write(&w->peer, 1, 0, NULL, 0);
		world_state(w, WARP_CONN_ESTABLISHED);
		if (rc)
			world_post_wr(w, &wr);
		peer_recv_op(&w->peer, &seg, RDMAP_SEND);
		check_eq(seg.at, 0);
	}
}

static void fpdu_behind_reply(struct world *w)
{
	uint8_t out[256], u[64];
	struct frame f;
	size_t n;

	open_and_take(w, &initiator, &f);
	world_recv(w, 0, 64);
	world_recv(w, 64, 64);
	w->peer.crc = !as_siw_asks(w);
	n = build_reply(w, out, 0x40, 1, NULL, 0);
	for (uint32_t msn = 1; msn <= 2; msn++) {
		raw_untagged(u, 0x41, 0x43, 0, 0, msn, 0);
		memcpy(u + 18, "hello", 5);
		n += raw_fpdu(&w->peer, out + n, u, 23);
	}
	peer_send(&w->peer, out, n);
	world_state(w, WARP_CONN_ESTABLISHED);
	check_eq(world_wc(w).wr_id, 0);
	check_eq(world_wc(w).wr_id, 64);
	check_octets(w->arena + 64, "hello", 5);
}

/* --- 35 to 38 ----------------------------------------------------------------------------- */

/* A few thousand octets each way */
static void both_ways(struct world *w)
{
	static uint8_t out[3000], in[3000];
	struct warp_wc wc;

	pattern(out, sizeof(out), 3);
	world_recv(w, 0, sizeof(out));
	peer_send_message(&w->peer, out, sizeof(out));
	wc = world_wc(w);
	check_eq(wc.byte_len, sizeof(out));
	check_octets(w->arena, out, sizeof(out));
	world_post(w, WARP_WR_SEND, 0, sizeof(out), 0, 0);
	check_eq(peer_recv_message(&w->peer, RDMAP_SEND, in, sizeof(in)), sizeof(in));
	check_octets(in, out, sizeof(in));
	check_eq(world_wc(w).status, WARP_WC_SUCCESS);
}

static void markers_by_direction(struct world *w)
{
	for (int i = 0; i < 8; i++) {
		const struct setup s = { .initiator = i & 1,
					 .markers = i & 2,
					 .peer_markers = i & 4 };
		struct frame f;

		if ((s.markers && !world_asks(w, WISHES)) ||
		    (s.peer_markers && !world_asks(w, MARKERS)))
			continue;
		open_and_take(w, &s, &f);
		send_frame(w, &s, 0x40 | (s.peer_markers ? 0x80 : 0), 1, NULL, 0);
		if (!s.initiator)
			peer_recv_frame(&w->peer, &f);
		check(s.initiator || !(f.flags & 0x20), "the Request is refused");
		check_eq(!!(f.flags & 0x80), s.markers);
		start_up_is_done(w);
		w->peer.rx_marked = s.peer_markers;
		w->peer.tx_marked = s.markers;
		both_ways(w);
		check_eq(world_info(w).tx_markers, s.peer_markers);
		check_eq(world_info(w).rx_markers, s.markers);
	}
}

static void crc_by_either(struct world *w)
{
	for (int i = 0; i < 8; i++) {
		const struct setup s = { .initiator = i & 1,
					 .no_crc = i & 2,
					 .peer_no_crc = i & 4 };
		bool on = !s.no_crc || !s.peer_no_crc;

		/* as initiator siw does not let the peer choose either */
		if (on && (s.initiator || s.peer_no_crc) && !world_asks(w, WISHES))
			continue;
		world_start(w, &s);
		both_ways(w);
		if (world_asks(w, TOLD))
			check_eq(world_info(w).crc, on);
		world_recv(w, 0, 64);
		w->peer.crc_change = 1;
		peer_send_message(&w->peer, "hello", 5);
		if (on)
			world_expect_terminate(w, MPA_E_CRC, 0);
		else
			check_eq(world_wc(w).byte_len, 5);
	}
}

static void crc_is_the_default(struct world *w)
{
	struct frame f;

	open_and_take(w, &initiator, &f);
	check_eq(f.flags & 0x40, 0x40);
	world_open(w, &responder);
	peer_send_request(&w->peer, 0, 1, NULL, 0);
	peer_recv_frame(&w->peer, &f);
	check_eq(f.flags & 0x40, 0x40);
}

static void crc_off_not_checked(struct world *w)
{
	static const uint32_t values[] = { 0, ~0u, 0x12345678, 1 };

	for (size_t i = 0; i < 2 * sizeof(values) / sizeof(values[0]); i++) {
		const struct setup s = { .initiator = i & 1, .no_crc = true, .peer_no_crc = true };

		world_start(w, &s);
		w->peer.crc_change = values[i / 2];
		world_works(w);
	}
}

#define CLOCK "time is the provider's: the layers have no clock"

static const struct row rows[] = {
	CASE(1, "5044 7.1.1", "a Request has the exact key", request_key),
	CASE(2, "5044 7.1.1", "a Reply has the exact key", reply_key),
	CASE(3, "5044 7.1.1, 7.1.2 r5", "any other key closes, at either role", wrong_key),
	CASE(4, "5044 7.1.2 r8", "a Request where a Reply is due closes", two_initiators),
	CASE_ON(5, "5044 7.1.2 r8, r10", "a Responder without a Request times out", no_request,
		PROVIDER, CLOCK),
	CASE_ON(6, "5044 7.1.2 r10", "an Initiator with half a Reply times out", partial_reply,
		PROVIDER, CLOCK),
	CASE(7, "5044 7.1", "a frame may come octet by octet", octet_by_octet),
	CASE(8, "5044 7.1.1", "reserved bits are sent as zero and ignored", reserved_bits),
	CASE(9, "5044 7.1.1", "R in a Request is ignored", r_in_request),
	CASE(10, "5044 7.1.1", "PD_Length 513 and more closes", pd_too_long),
	CASE(11, "5044 7.1.1", "PD_Length 0 and 512 are taken", pd_limits),
	CASE(12, "5044 7.1.2 r9", "no octet more than PD_Length is private data", pd_not_beyond),
	CASE(13, "5044 7.1.1", "private data and its length reach both ULPs", pd_lengths),
	CASE(14, "5044 7.1.1, 6581 6", "revision 1 without, 2 with enhanced data", revision_sent),
	CASE(15, "5044 7.1.1", "a revision that cannot be used closes", revision_unknown),
	CASE(16, "6581 6", "who speaks revision 2 takes revision 1", revision_1_taken),
	CASE(17, "6581 10", "S answers S, and none answers none", s_answers_s),
	CASE(18, "6581 6, 9", "S with PD_Length below 4 closes", enhanced_too_short),
	CASE(20, "6581 9", "508 octets beside enhanced data, which the ULP does not see",
	     enhanced_pd),
	CASE(31, "5044 7.1.2 r2", "a refusal is a Reply with R and no full operation", reject),
	CASE(32, "5044 7.1.2 r3", "after R the Initiator sends no FPDU", rejected),
	CASE(33, "5044 7.1.2 r4", "a Responder sends nothing before the first FPDU", gate),
	CASE(34, "robustness", "FPDUs may stand behind the Reply at once", fpdu_behind_reply),
	CASE(35, "5044 7.1.1", "markers where the peer's frame had M, by direction",
	     markers_by_direction),
	CASE(36, "5044 7.1.1, 4.4", "CRC when C is in either frame", crc_by_either),
	CASE_ON(37, "5044 4.4", "C is set by default", crc_is_the_default, PROVIDER,
		"the default is the native API's: the layers are told"),
	CASE(38, "5044 4.1, 4.4", "without CRC any value of the field will do",
	     crc_off_not_checked),
};

ROWS(start, rows);
