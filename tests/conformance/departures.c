/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What becomes of cases over a device, which is siw of Linux 6.1: those where it does otherwise
 * than the case wants, which must fail there as long as it does, and those that it is not asked.
 */
#include "suite.h"

#define CASES(...)              \
	(const unsigned char[]) \
	{                       \
		__VA_ARGS__, 0  \
	}

static const struct departure departures[] = {
	{ "bits", "siw makes its Reply of the Request: what it does not know comes back",
	  "siw_cm.c, siw_proc_mpareq", true, CASES(8, 9) },
	{ "parting", "as initiator siw closes behind a Terminate of its own",
	  "siw_cm.c, siw_proc_mpareply", true, CASES(3) },
	{ "whole", "siw looks at a key once all 20 octets are there; the peer of case 4 sends 16",
	  "siw_cm.c, siw_recv_mpa_rr", true, CASES(4) },
	{ "rev-0", "siw takes revision 0, too", "siw_cm.c, siw_proc_mpareq, siw_proc_mpareply",
	  true, CASES(15) },
	{ "own-start",
	  "siw asks for revision 2, for no CRC, nor ever for markers; it refuses a Reply of "
	  "revision 1 or with M, and octets behind a frame",
	  "siw_cm.c, siw_connect, siw_proc_mpareply, siw_recv_mpa_rr", true,
	  CASES(7, 12, 14, 34, 35, 36, 37, 42, 46, 47, 48, 49, 50, 51, 52, 53, 57) },
	{ "untold",
	  "a program of a device is not told revision, CRC, MULPDU, Terminate, solicited event, or "
	  "what was invalidated",
	  "rdma-core's infiniband/verbs.h, rdma/rdma_cma.h", true,
	  CASES(16, 32, 54, 58, 87, 88, 90, 111, 113, 127) },
	{ "depths", "IRD and ORD have eight bits in librdmacm, and siw bounds of its own",
	  "rdma-core's rdma/rdma_cma.h; siw.h, SIW_MAX_ORD_QP", true, CASES(19, 23, 24, 25) },
	{ "gate", "as responder siw sends before the first FPDU has come", "siw_cm.c, siw_accept",
	  true, CASES(33) },
	{ "late-crc", "siw judges headers, and places octets, before it has the CRC",
	  "siw_qp_rx.c, siw_tcp_rx_data", true, CASES(43, 44, 45, 114) },
	{ "codes", "siw's Terminate has another code or other headers, or there is none",
	  "siw_qp_rx.c, siw_init_terminate's callers; siw_qp.c, siw_send_terminate", true,
	  CASES(60, 72, 73, 75, 84, 89, 95, 98, 105, 108, 110, 112) },
	{ "segments", "siw wants PAD and CRC of an FPDU in one TCP segment",
	  "siw_qp_rx.c, siw_get_trailer", true, CASES(56) },
	{ "invalidate", "siw's library loses the STag that a Send is to invalidate",
	  "rdma-core's providers/siw/siw.c, push_send_wqe", true, CASES(64, 85) },
	{ "7306", "siw has neither atomics nor immediate data", "siw_qp_rx.c, siw_get_hdr", true,
	  CASES(103, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124) },
	{ "pad", "siw does not clear PAD, which may be zero all the same",
	  "siw_qp_tx.c, siw_qp_prepare_tx", false, CASES(40) },
	{ "long", "siw's ULPDU_Length may exceed 64768, or not", "siw_qp_tx.c, siw_update_tcpseg",
	  false, CASES(55, 92, 96) },
	{ "slow",
	  "siw waits ten seconds for a Request, and a peer that goes meanwhile takes its listener "
	  "along",
	  "siw_cm.c, siw_cm_queue_work, siw_cm_work_handler", false, CASES(5) },
	{ "oops",
	  "siw tells of private data that it has not taken in: a NULL pointer, or octets behind it",
	  "siw_cm.c, siw_cm_upcall", false, CASES(10, 11, 13, 20) },
	{ "oops-depths",
	  "siw takes the depths from a Reply that is too short for them: from octets behind it, or "
	  "a NULL pointer",
	  "siw_cm.c, siw_proc_mpareply", false, CASES(18) },
	{ "rtr", "a peer that asks for an RTR and goes without one is a BUG in iw_cm",
	  "core/iwcm.c, cm_close_handler", false, CASES(26, 28, 29, 30, 129) },
};

const struct departure *departure_at(size_t i)
{
	return i < sizeof(departures) / sizeof(departures[0]) ? &departures[i] : NULL;
}

const struct departure *departure_of(unsigned int number)
{
	for (size_t i = 0; departure_at(i); i++)
		for (const unsigned char *at = departures[i].cases; *at; at++)
			if (*at == number)
				return &departures[i];
	return NULL;
}
