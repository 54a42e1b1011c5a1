/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Cases 39 to 58: FPDUs, that is lengths, PAD, CRC, markers, and how TCP may cut them.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "suite.h"

static const struct setup responder, initiator = { .initiator = true };
static const struct setup marked_out = { .initiator = true, .peer_markers = true };
static const struct setup marked_in = { .initiator = true, .markers = true };

static struct seg seg;

/* An end that judges CRCs: siw as initiator does without */
static const struct setup *with_crc(const struct world *w)
{
	return w->kind == DEVICE ? &responder : &initiator;
}

/* The end sends @n octets of pattern; a one-segment message comes back in seg */
static void end_sends(struct world *w, size_t n)
{
	pattern(w->arena, n, (unsigned int)n);
	world_post(w, WARP_WR_SEND, 0, (uint32_t)n, 0, 0);
	peer_recv_op(&w->peer, &seg, RDMAP_SEND);
	check_eq(world_wc(w).status, WARP_WC_SUCCESS);
}

/* The peer sends @n octets of pattern, and they are delivered */
static void peer_sends(struct world *w, size_t n)
{
	static uint8_t out[ULPDU_ROOM];

	pattern(out, n, (unsigned int)n);
	world_recv(w, 0, (uint32_t)n + 1);
	peer_send_message(&w->peer, out, n);
	check_eq(world_wc(w).byte_len, n);
	check_octets(w->arena, out, n);
}

static void length_field(struct world *w)
{
	world_start(w, &initiator);
	for (size_t n = 0; n < 100; n += 11) {
		end_sends(w, n);
		check_eq(seg.ulpdu_len, 18 + n);
		check_eq(raw_get(seg.fpdu, 2), 18 + n);
		check_octets(seg.payload, w->arena, n);
	}
	world_post(w, WARP_WR_WRITE, 0, 10, 1, 2);
	peer_recv_op(&w->peer, &seg, RDMAP_WRITE);
	check_eq(seg.ulpdu_len, 14 + 10);
}

/* That PAD is zero the peer sees to */
static void pad(struct world *w)
{
	world_start(w, &initiator);
	for (size_t n = 0; n < 9; n++) {
		end_sends(w, n);
		check_eq(seg.fpdu_len, (2 + 18 + n + 3) / 4 * 4 + 4);
	}
}

static void pad_ignored(struct world *w)
{
	uint8_t out[64], u[23];
	size_t n;

	world_start(w, &responder);
	for (size_t n = 0; n < 9; n++) {
		w->peer.pad = 0xaa;
		peer_sends(w, n);
	}
	/* but the CRC covers it: one of an FPDU with zeroes there does not do */
	world_recv(w, 0, 64);
	raw_untagged(u, 0x41, 0x43, 0, 0, w->peer.msn[0], 0);
	n = raw_fpdu(&w->peer, out, u, sizeof(u));
	out[2 + sizeof(u)] = 1;
	peer_send(&w->peer, out, n);
	world_expect_terminate(w, MPA_E_CRC, 0);
}

/* --- CRC ---------------------------------------------------------------------------------- */

/* The FPDUs of RFC 5044 section 4.4, with markers; the second stands at stream octet 492 */
static const uint8_t figure_5[] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x2a, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x52, 0x23, 0x99, 0x83,
};
static const uint8_t figure_6[] = {
	0x00, 0x2a, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x84, 0x92, 0x58, 0x98,
};
#define BEFORE_FIGURE_6 464 /* payload of a Send that makes an FPDU of 492 octets */

static void end_sends_zeroes(struct world *w, const uint8_t *figure)
{
	memset(w->arena, 0, 24);
	world_post(w, WARP_WR_SEND, 0, 24, 0, 0);
	peer_recv_op(&w->peer, &seg, RDMAP_SEND);
	check_eq(seg.fpdu_len, sizeof(figure_5));
	check_octets(seg.fpdu, figure, sizeof(figure_5));
}

static void peer_sends_figure(struct world *w, const uint8_t *figure)
{
	world_recv(w, 0, 64);
	peer_send(&w->peer, figure, sizeof(figure_5));
	check_eq(world_wc(w).byte_len, 24);
}

static void figures(struct world *w)
{
	world_start(w, &marked_out);
	end_sends_zeroes(w, figure_5);
	world_start(w, &marked_out);
	end_sends(w, BEFORE_FIGURE_6);
	end_sends_zeroes(w, figure_6);

	world_start(w, &marked_in);
	peer_sends_figure(w, figure_5);
	world_start(w, &marked_in);
	peer_sends(w, BEFORE_FIGURE_6);
	peer_sends_figure(w, figure_6);
}

/* A good Send of "hello" with one bit flipped, and much behind it, for a length that grew */
static void flip(struct world *w, size_t octet, unsigned int bit)
{
	static uint8_t out[FPDU_ROOM + ULPDU_ROOM];
	uint8_t u[23];
	size_t n;

	world_start(w, with_crc(w));
	world_recv(w, 0, 64);
	raw_untagged(u, 0x41, 0x43, 0, 0, 1, 0);
	memcpy(u + 18, "hello", 5);
	memset(out, 0, sizeof(out));
	n = raw_fpdu(&w->peer, out, u, sizeof(u));
	out[octet] ^= (uint8_t)(1u << bit);
	peer_try_send(&w->peer, out, octet < 2 ? n + ULPDU_ROOM : n);
	world_expect_terminate(w, MPA_E_CRC, 0);
	world_nothing_delivered(w);
	if (world_asks(w, PLACED))
		check_eq(w->arena[0], 0);
}

static void flipped_bits(struct world *w)
{
	/* 20 octets are length and header */
	for (size_t octet = world_asks(w, HEADERS) ? 0 : 20; octet < 32; octet++) {
		flip(w, octet, octet % 8);
		for (unsigned int bit = 0; w->kind == MEM && bit < 8; bit++)
			flip(w, octet, bit);
	}
}

static void nothing_after_crc_error(struct world *w)
{
	uint32_t stag;

	world_start(w, with_crc(w));
	stag = world_region(w, WARP_ACCESS_REMOTE_WRITE, false);
	for (uint32_t i = 0; i < 4; i++)
		world_recv(w, 64 * i, 64);
	w->peer.crc_change = 0x80;
	peer_send_message(&w->peer, "bad", 3);
	peer_write(&w->peer, stag, region_to(w), "bad", 3);
	w->peer.msn[0] = 1;
	peer_send_message(&w->peer, "good", 4);
	peer_send_message(&w->peer, "good", 4);
	world_expect_terminate(w, MPA_E_CRC, 0);
	world_nothing_delivered(w);
	if (world_asks(w, PLACED))
		check_eq(w->arena[0], 0);
	check_eq(w->arena[64], 0);
	check_eq(w->region[0], 0);
}

/* The Terminate comes, so TCP was open; the end behind it is an orderly one */
static void open_until_terminate(struct world *w)
{
	world_start(w, with_crc(w));
	if (w->kind == DEVICE)
		world_recv(w, 0, 64); /* siw looks for one before it has the CRC */
	w->peer.crc_change = 1;
	peer_send_message(&w->peer, "bad", 3);
	world_expect_terminate(w, MPA_E_CRC, 0);
	check(w->peer.ended, "the connection was reset");
	if (!world_asks(w, MARKERS))
		return;
	world_start(w, &marked_in);
	w->peer.ptr_wrong = 4;
	peer_send_message(&w->peer, "bad", 3);
	world_expect_terminate(w, MPA_E_MARKER, 0);
	check(w->peer.ended, "the connection was reset");
}

/* --- markers: that they are where they must be and point where they must the peer sees to -- */

static void first_marker(struct world *w)
{
	world_start(w, &marked_out);
	pattern(w->arena, 5, 1);
	world_post(w, WARP_WR_SEND, 0, 5, 0, 0);
	check(peer_fill(&w->peer, 8), "no FPDU");
	check_eq(raw_get(w->peer.in, 4), 0);
	check_eq(raw_get(w->peer.in + 4, 2), 23);
	peer_recv_op(&w->peer, &seg, RDMAP_SEND);
	check_eq(seg.markers, 1);
}

static void markers_everywhere(struct world *w)
{
	uint64_t before = 0;
	unsigned int markers = 0;

	world_start(w, &marked_out);
	pattern(w->arena, 70000, 4);
	for (uint32_t n = 0; n < 70000; n = n * 3 + 97) {
		world_post(w, WARP_WR_SEND, 0, n, 0, 0);
		do {
			peer_recv_op(&w->peer, &seg, RDMAP_SEND);
			check_octets(seg.payload, w->arena + seg.mo, seg.len);
			markers += seg.markers;
		} while (!seg.last);
	}
	before = w->peer.rx_pos;
	check_eq(markers, (before + 511) / 512);
}

static void several_markers(struct world *w)
{
	unsigned int most = 0;

	world_start(w, &marked_out);
	pattern(w->arena, 1300, 5);
	for (int i = 0; i < 8; i++) {
		world_post(w, WARP_WR_SEND, 0, 1300, 0, 0);
		peer_recv_op(&w->peer, &seg, RDMAP_SEND);
		check_octets(seg.payload, w->arena, 1300);
		most = seg.markers > most ? seg.markers : most;
	}
	check_eq(most, 3);
	world_start(w, &marked_in);
	for (int i = 0; i < 8; i++)
		peer_sends(w, 1300);
}

static void marker_between(struct world *w)
{
	world_start(w, &marked_out);
	end_sends(w, 502 - 18);
	check_eq(seg.fpdu_len, 512);
	end_sends(w, 10);
	check_eq(seg.at, 512);
	check_eq(raw_get(seg.fpdu, 4), 0);
	check_eq(seg.markers, 1);
	world_start(w, &marked_in);
	peer_sends(w, 502 - 18);
	peer_sends(w, 10);
	peer_sends(w, 1000);
}

static void marker_before_crc(struct world *w)
{
	world_start(w, &marked_out);
	end_sends(w, 506 - 18);
	check_eq(seg.fpdu_len, 520);
	check_eq(raw_get(seg.fpdu + 512, 4), 0x1fc);
	end_sends(w, 10);
	world_start(w, &marked_in);
	peer_sends(w, 506 - 18);
	peer_sends(w, 10);
}

static void low_bits(struct world *w)
{
	world_start(w, &marked_in);
	for (uint8_t low = 1; low < 4; low++) {
		w->peer.ptr_low = low;
		peer_sends(w, 1200);
	}
	/* sent as zero: held to by the peer */
	world_start(w, &marked_out);
	end_sends(w, 1200);
	check_eq(seg.markers, 3);
}

static void markers_removed(struct world *w)
{
	world_start(w, &marked_in);
	for (size_t n = 1; n < 3000; n += 1 + n / 3)
		peer_sends(w, n);
	for (size_t n = 480; n < 520; n++)
		peer_sends(w, n);
}

static void marker_wrong(struct world *w)
{
	static const uint16_t wrong[] = { 4, 8, 512, 0x8000, 0xfffc };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		world_start(w, &marked_in);
		peer_sends(w, 100);
		world_recv(w, 0, 1024);
		w->peer.ptr_wrong = wrong[i];
		peer_send_message(&w->peer, w->arena, 1000);
		world_expect_terminate(w, MPA_E_MARKER, 0);
		world_nothing_delivered(w);
	}
}

/* --- MULPDU ------------------------------------------------------------------------------- */

static const struct {
	uint16_t emss, plain, marked;
} mulpdus[] = {
	{ 100, 128, 128 },    { 536, 530, 522 },    { 1220, 1214, 1202 },    { 1388, 1382, 1370 },
	{ 1440, 1434, 1422 }, { 1448, 1442, 1430 }, { 1460, 1454, 1442 },    { 2048, 2042, 2026 },
	{ 8948, 8942, 8870 }, { 8960, 8954, 8882 }, { 65483, 64768, 64768 },
};

/* What TCP makes of a segment size that was asked for: options take their part */
static unsigned int real_emss(const struct world *w)
{
	int mss = 0;
	socklen_t len = sizeof(mss);

	getsockopt(w->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len);
	return (unsigned int)mss;
}

static unsigned int formula(unsigned int emss, bool marked)
{
	unsigned int over = 6 + emss % 4 + (marked ? 4 * ((emss + 511) / 512) : 0);

	if (emss < 128 + over)
		return 128;
	return emss - over > 64768 ? 64768 : emss - over;
}

/* The software provider makes FPDUs with markers no longer: soft/soft_core.h, SOFT_TX_MARKED */
static unsigned int used_emss(const struct world *w, bool marked)
{
	unsigned int emss = real_emss(w), most = 16384;

	return w->kind == SOFT && marked && emss > most ? most : emss;
}

static void mulpdu(struct world *w)
{
	for (size_t i = 0; i < 2 * sizeof(mulpdus) / sizeof(mulpdus[0]); i++) {
		bool marked = i % 2;
		struct setup s = { .initiator = true,
				   .peer_markers = marked,
				   .mss = mulpdus[i / 2].emss };
		unsigned int want = marked ? mulpdus[i / 2].marked : mulpdus[i / 2].plain;

		if (w->kind != MEM && s.mss > 9000)
			s.mss = 0;
		world_start(w, &s);
		if (w->kind != MEM)
			want = formula(used_emss(w, marked), marked);
		check_eq(world_info(w).mulpdu, want);
		world_post(w, WARP_WR_SEND, 0, 3 * want, 0, 0);
		do {
			peer_recv_op(&w->peer, &seg, RDMAP_SEND);
			check_eq(seg.last ? want : seg.ulpdu_len, want);
		} while (!seg.last);
	}
}

static void longest(struct world *w)
{
	const struct setup s = { .initiator = true, .mss = w->kind == MEM ? 65483 : 0 };
	size_t most = 0;

	world_start(w, &s);
	pattern(w->arena, 400000, 6);
	world_post(w, WARP_WR_SEND, 0, 400000, 0, 0);
	do {
		peer_recv_op(&w->peer, &seg, RDMAP_SEND);
		check_octets(seg.payload, w->arena + seg.mo, seg.len);
		most = seg.ulpdu_len > most ? seg.ulpdu_len : most;
	} while (!seg.last);
	check(most <= 64768, "a ULPDU of %zu octets", most);
	/* over TCP the window that grows only slowly bounds the segment too */
	if (w->kind == MEM)
		check_eq(most, 64768);
}

/* --- segmentation ------------------------------------------------------------------------- */

static const size_t sizes[] = { 5, 0, 100, 1, 1400, 7, 0, 3 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* Sends of these sizes with a Write before each into one buffer */
static size_t build_stream(struct world *w, uint32_t stag, uint8_t *out)
{
	uint8_t u[2000];
	size_t n = 0;

	for (size_t i = 0; i < SIZES; i++) {
		raw_tagged(u, 0xc1, 0x40, stag, region_to(w) + 2000 * i);
		pattern(u + 14, sizes[i], (unsigned int)i);
		n += raw_fpdu(&w->peer, out + n, u, 14 + sizes[i]);
		raw_untagged(u, 0x41, 0x43, 0, 0, w->peer.msn[0]++, 0);
		pattern(u + 18, sizes[i], (unsigned int)i);
		n += raw_fpdu(&w->peer, out + n, u, 18 + sizes[i]);
		world_recv(w, 2000 * i, 2000);
	}
	return n;
}

static void expect_stream(struct world *w)
{
	uint8_t want[2000];

	for (size_t i = 0; i < SIZES; i++) {
		struct warp_wc wc = world_wc(w);

		check_eq(wc.wr_id, 2000 * i);
		check_eq(wc.byte_len, sizes[i]);
		pattern(want, sizes[i], (unsigned int)i);
		check_octets(w->arena + 2000 * i, want, sizes[i]);
		check_octets(w->region + 2000 * i, want, sizes[i]);
	}
}

static void stream_cut(struct world *w, bool markers, size_t cut)
{
	static uint8_t out[1 << 14];
	const struct setup s = { .markers = markers };
	uint32_t stag;
	size_t n;

	world_start(w, &s);
	stag = world_region(w, WARP_ACCESS_REMOTE_WRITE, false);
	n = build_stream(w, stag, out);
	w->peer.cut = cut;
	if (cut) {
		peer_send(&w->peer, out, n);
	} else {
		for (size_t at = 0, part; at < n; at += part) {
			part = 1 + (size_t)rand() % 40;
			part = part < n - at ? part : n - at;
			peer_send(&w->peer, out + at, part);
			world_pump(w);
		}
	}
	expect_stream(w);
}

static void any_segmentation(struct world *w)
{
	static const size_t cuts[] = { 1, 2, 3, 4, 5, 7, 11, 13, 31, 512, 1000, 0, 0, 0 };

	srand(56);
	for (size_t i = 0; i < 2 * sizeof(cuts) / sizeof(cuts[0]); i++)
		stream_cut(w, i % 2, cuts[i / 2]);
}

static void many_in_one(struct world *w)
{
	stream_cut(w, false, 1 << 14);
	if (world_asks(w, MARKERS))
		stream_cut(w, true, 1 << 14);
}

static void end_inside(struct world *w)
{
	uint8_t out[64], u[23];
	size_t n = 32;

	for (size_t at = 0; at <= n; at += w->kind == MEM ? 1 : 8) {
		world_start(w, &initiator);
		world_recv(w, 0, 64);
		raw_untagged(u, 0x41, 0x43, 0, 0, 1, 0);
		memcpy(u + 18, "hello", 5);
		check_eq(raw_fpdu(&w->peer, out, u, sizeof(u)), n);
		peer_send(&w->peer, out, at);
		peer_close(&w->peer);
		if (!world_asks(w, TOLD))
			world_ends(w);
		else if (at % n)
			world_state(w, WARP_CONN_ERROR);
		else
			world_state(w, WARP_CONN_DISCONNECTED);
		check_eq(world_info(w).term_sent, 0);
	}
}

static const struct row rows[] = {
	CASE(39, "5044 4.1", "ULPDU_Length counts the ULPDU alone", length_field),
	CASE(40, "5044 4.1", "PAD of zeroes to a multiple of 4", pad),
	CASE(41, "5044 4.1", "PAD is ignored, but the CRC covers it", pad_ignored),
	CASE(42, "5044 4.4", "CRC32c, least octet first; Figures 5 and 6", figures),
	CASE(43, "5044 6, 8", "a flipped bit anywhere: Terminate 2/0/02", flipped_bits),
	CASE(44, "5044 8", "nothing is delivered after a CRC error", nothing_after_crc_error),
	CASE(45, "5044 8", "TCP stays open until the Terminate is sent", open_until_terminate),
	CASE(46, "5044 4.3", "the first marker stands before the first FPDU", first_marker),
	CASE(47, "5044 4.3", "a marker every 512 octets, across FPDUs", markers_everywhere),
	CASE(48, "5044 4.3", "each FPDUPTR counts from ULPDU_Length", several_markers),
	CASE(49, "5044 4.3, 4.4", "FPDUPTR 0 between FPDUs, covered by the next CRC",
	     marker_between),
	CASE(50, "5044 4.4", "a marker before the CRC field is covered", marker_before_crc),
	CASE(51, "5044 4.2, erratum 1427", "low FPDUPTR bits: zero, masked, covered", low_bits),
	CASE(52, "5044 4.3", "markers are removed on receipt", markers_removed),
	CASE(53, "5044 8", "a marker that contradicts: Terminate 2/0/03", marker_wrong),
	CASE(54, "5044 3, 4.5", "MULPDU by the formulas, 128 to 64768", mulpdu),
	CASE(55, "5044 3", "no ULPDU of more than 64768 octets", longest),
	CASE(56, "5044 5.1, 6", "any TCP segmentation", any_segmentation),
	CASE(57, "5044 5.1", "several FPDUs in one segment", many_in_one),
	CASE(58, "5044 8, 5041 6.2", "an end inside an FPDU is a lost connection", end_inside),
};

ROWS(fpdu, rows);
