/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of cases over a device, which is siw of Linux 6.1: those where it does otherwise
 * than the case wants, which must fail there as they did when this was written, and those that it
 * is not asked. That a case fails in another way, by a signal or for want of time, is no departure.
 */
#include "suite.h"

#define CASES(...)                 \
	(const struct departing[]) \
	{                          \
		__VA_ARGS__,       \
		{                  \
			0, NULL, 0 \
		}                  \
	}

#define NO_REPLY "the connection is error (error -22), not established"
/* Of a Reply in many pieces it may not look at the last ones until others come */
#define UNREAD "the connection is connecting (error 0), not established"
#define REFUSED "the connection is rejected (error -111), not established"
#define UNSUPPORTED "the device does not connect: Operation not supported"
/* -EOPNOTSUPP of the provider verbs, for siw's library would lose the STag or the opcode */
#define NOT_POSTED "w->end->ops->post_send(w->end, wr) is 18446744073709551521 "
#define UNKNOWN_OPCODE "Terminate 0x200600 instead of opcode "

static const struct departure departures[] = {
	{ "bits", "siw makes its Reply of the Request: what it does not know comes back",
	  "siw_cm.c, siw_proc_mpareq",
	  CASES({ 8, "reserved bits are set: 0x41", AS_RESPONDER },
		{ 9, "f.flags & 0x2f is 32 ", 0 }) },
	{ "parting", "as initiator siw closes behind a Terminate of its own",
	  "siw_cm.c, siw_proc_mpareply", CASES({ 3, "octet 0 came where the end", AS_INITIATOR }) },
	{ "whole", "siw looks at a key once all 20 octets are there; the peer of case 4 sends 16",
	  "siw_cm.c, siw_recv_mpa_rr", CASES({ 4, "the connection is still there", 0 }) },
	{ "rev-0", "siw takes revision 0, too", "siw_cm.c, siw_proc_mpareq, siw_proc_mpareply",
	  CASES({ 15, "octet 0x4d came where the end", REV_0 }) },
	{ "own-start",
	  "siw asks for revision 2 and for no CRC, and as initiator takes nothing else",
	  "siw_cm.c, siw_connect, siw_proc_mpareply",
	  CASES({ 7, REFUSED "|" UNREAD, AS_INITIATOR }, { 8, REFUSED, REV_1 },
		{ 12, REFUSED, REV_1 }, { 14, "f.rev is 2 (0x2), not 1 (0x1)", WISHES },
		{ 32, "info.private_data_len is 254 (0xfe), not 2 ", REV_1 },
		{ 35, REFUSED, REV_1 }, { 36, "no FPDU came: 0 octets, and time is up", WISHES },
		{ 37, "f.flags & 0x40 is 0 (0), not 64 (0x40)", 0 }) },
	{ "behind", "as initiator siw refuses a Reply with octets behind it",
	  "siw_cm.c, siw_recv_mpa_rr", CASES({ 12, NO_REPLY, BEHIND }, { 34, NO_REPLY, 0 }) },
	{ "markers", "siw neither asks for markers nor lets the peer ask",
	  "siw_cm.c, siw_proc_mpareq, siw_proc_mpareply",
	  CASES({ 35, "the Request is refused", MARKERS },
		{ 35, "no start-up frame: 0 octets", WISHES }, { 42, REFUSED, 0 },
		{ 45, UNSUPPORTED, MARKERS }, { 46, REFUSED, 0 }, { 47, REFUSED, 0 },
		{ 48, REFUSED, 0 }, { 49, REFUSED, 0 }, { 50, REFUSED, 0 }, { 51, UNSUPPORTED, 0 },
		{ 52, UNSUPPORTED, 0 }, { 53, UNSUPPORTED, 0 },
		{ 57, "no start-up frame: 0 octets", MARKERS }) },
	{ "untold",
	  "a program of a device is not told revision, CRC, MULPDU, Terminate, solicited event, "
	  "what was invalidated, or depths where it is rejected",
	  "rdma-core's infiniband/verbs.h, rdma/rdma_cma.h",
	  CASES({ 16, "world_info(w).mpa_rev is 0 ", TOLD },
		{ 25, "info.peer_ird is 0 (0), not 7 (0x7)", TOLD },
		{ 36, "world_info(w).crc is 0 (0), not 1 (0x1)", TOLD },
		{ 54, "world_info(w).mulpdu is 0 (0), not 128 (0x80)", 0 },
		{ 58, "the connection is disconnected (error 0), not error", TOLD },
		{ 87, "!!(wc.flags & WARP_WC_SOLICITED) is 0 ", TOLD },
		{ 87, "a Send with SE raises none", EVENTS },
		{ 88, "wc.flags & WARP_WC_WITH_INVALIDATE is 0 ", TOLD },
		{ 90, "wc.inv_stag is 0 (0), not ", TOLD },
		{ 111, "world_state(w, WARP_CONN_ERROR).term_received is 0 (0)", TOLD },
		{ 113, "the connection is disconnected (error 0), not error", TOLD },
		{ 127, "the connection is disconnected (error 0), not error", TOLD }) },
	{ "depths", "IRD and ORD have eight bits in librdmacm, and siw bounds of its own",
	  "rdma-core's rdma/rdma_cma.h; siw.h, SIW_MAX_ORD_QP",
	  CASES({ 19, "info.peer_ird is 188 (0xbc), not 10940 (0x2abc)", 0 },
		{ 23, "no FPDU came: 0 octets, and time is up", 0 },
		{ 24, "d.ird is 128 (0x80), not 16383 (0x3fff)", 0 }) },
	{ "gate", "as responder siw sends before the first FPDU has come", "siw_cm.c, siw_accept",
	  CASES({ 33, "24 octets came that should not, the first is 0", 0 }) },
	{ "late-crc", "siw judges headers, and places octets, before it has the CRC",
	  "siw_qp_rx.c, siw_tcp_rx_data",
	  CASES({ 43, "Terminate 0x11202, not 0x12002", HEADERS },
		{ 43, "w->arena[0] is 120 (0x78), not 0 ", PLACED },
		{ 44, "w->arena[0] is 98 (0x62), not 0", PLACED }) },
	{ "codes", "siw's Terminate has another code or other headers, or there is none",
	  "siw_qp_rx.c, siw_init_terminate's callers; siw_qp.c, siw_send_terminate",
	  CASES({ 60, "header bits 0, not 0xc0", HEADERS },
		{ 72, "Terminate 0x11202, not 0x11205", 0 },
		{ 73, "Terminate 0x11000, not 0x11103", 0 },
		{ 75, "Terminate 0x11202, not 0x11205", 0 }, { 84, "Terminate 0x11100", 0 },
		{ 89, "no FPDU came: 0 octets, and time is up", 0 },
		{ 95, "s->payload + 6 differs from u at octet 13 of 46: 0x8, not 0x1", 0 },
		{ 98, "no FPDU came: 0 octets, and the connection ended|Terminate 0x12007", 0 },
		{ 105, "seg.payload[2] & 0x80 is 0 (0), not 128 (0x80)", 0 },
		{ 108, "Terminate 0x11202, not 0x11205", 0 },
		{ 110, "Terminate 0x11202, not 0x11205", 0 },
		{ 112, "Terminate 0x11202, not 0x11203", 0 },
		{ 114, "no FPDU came: 0 octets, and time is up", HEADERS }) },
	{ "segments", "siw wants PAD and CRC of an FPDU in one TCP segment",
	  "siw_qp_rx.c, siw_get_trailer",
	  CASES({ 56, "the end closed while the peer was sending", 0 }) },
	{ "invalidate", "siw's library loses the STag that a Send is to invalidate",
	  "rdma-core's providers/siw/siw.c, push_send_wqe",
	  CASES({ 64, NOT_POSTED, INVALIDATES }) },
	{ "7306", "siw has neither atomics nor immediate data", "siw_qp_rx.c, siw_get_hdr",
	  CASES({ 85, "wc.status is 1 (0x1), not 0 ", NEW_OPS },
		{ 103, UNKNOWN_OPCODE "11", NEW_OPS }, { 115, NOT_POSTED, 0 },
		{ 116, "wc.status is 1 (0x1), not 0 (0)", 0 }, { 117, NOT_POSTED, 0 },
		{ 118, UNKNOWN_OPCODE "11", 0 }, { 119, UNKNOWN_OPCODE "11", 0 },
		{ 120, UNKNOWN_OPCODE "11", 0 }, { 121, UNKNOWN_OPCODE "11", 0 },
		{ 122, "Terminate 0x10206, not 0x10207", 0 }, { 123, NOT_POSTED, 0 },
		{ 124, UNKNOWN_OPCODE "11", 0 }) },
	{ "pad", "siw does not clear PAD, which may be zero all the same",
	  "siw_qp_tx.c, siw_qp_prepare_tx", CASES({ 40, NULL, 0 }) },
	{ "long", "siw's ULPDU_Length may exceed 64768, or not", "siw_qp_tx.c, siw_update_tcpseg",
	  CASES({ 55, NULL, 0 }, { 92, NULL, 0 }, { 96, NULL, 0 }) },
	{ "slow",
	  "siw waits ten seconds for a Request, and a peer that goes meanwhile takes its listener "
	  "along",
	  "siw_cm.c, siw_cm_queue_work, siw_cm_work_handler", CASES({ 5, NULL, 0 }) },
	{ "oops",
	  "siw tells of private data that it has not taken in: a NULL pointer, or octets behind it",
	  "siw_cm.c, siw_cm_upcall",
	  CASES({ 10, NULL, 0 }, { 11, NULL, 0 }, { 13, NULL, 0 }, { 20, NULL, 0 }) },
	{ "oops-depths",
	  "siw takes the depths from a Reply that is too short for them: from octets behind it, or "
	  "a NULL pointer",
	  "siw_cm.c, siw_proc_mpareply", CASES({ 18, NULL, 0 }) },
	{ "rtr", "a peer that asks for an RTR and goes without one is a BUG in iw_cm",
	  "core/iwcm.c, cm_close_handler",
	  CASES({ 26, NULL, 0 }, { 28, NULL, 0 }, { 29, NULL, 0 }, { 30, NULL, 0 },
		{ 129, NULL, 0 }) },
};

const struct departure *departure_at(size_t i)
{
	return i < sizeof(departures) / sizeof(departures[0]) ? &departures[i] : NULL;
}

const struct departure *departure_of(unsigned int number, size_t i, const struct departing **how)
{
	const struct departure *d;

	for (size_t k = 0; (d = departure_at(k)); k++)
		for (const struct departing *at = d->cases; at->number; at++)
			if (at->number == number && !i--) {
				*how = at;
				return d;
			}
	return NULL;
}

unsigned int departure_parts(unsigned int number)
{
	const struct departing *how;
	unsigned int parts = 0;

	for (size_t i = 0; departure_of(number, i, &how); i++)
		parts |= how->part;
	return parts;
}

const char *departure_part_text(unsigned int part)
{
	static const struct {
		enum part part;
		const char *text;
	} texts[] = {
		{ AS_INITIATOR, "as initiator" },
		{ AS_RESPONDER, "as responder" },
		{ REV_0, "revision 0" },
		{ REV_1, "a Reply of revision 1" },
		{ BEHIND, "octets behind a Reply" },
		{ MARKERS, "markers" },
		{ WISHES, "what the end asks for" },
		{ TOLD, "what is told" },
		{ EVENTS, "the event" },
		{ HEADERS, "headers" },
		{ PLACED, "what is placed" },
		{ NEW_OPS, "atomics and immediate data" },
		{ INVALIDATES, "Sends that invalidate" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].part == part)
			return texts[i].text;
	return "all of it";
}
