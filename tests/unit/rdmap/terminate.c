/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Terminates: built in the RFC's form, read in it and in siw's, cut anywhere.
 */
#include "rdmap/terminate.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "tests/unit/rdmap/pair.h"

/* --- what goes out ----------------------------------------------------------------------- */

/* RFC 5040 Figure 10, with a Read Request to blame and without */
Test(rdmap_terminate, headers_by_fault)
{
	static const struct {
		enum iwarp_fault fault;
		__u8 hdrct, hdrct_read;
		__u8 layer_etype, code;
	} rows[] = {
		{ RDMAP_E_LOCAL, 0, 0, 0x00, 0x00 },
		{ RDMAP_E_STAG, 0xC0, 0xE0, 0x01, 0x00 },
		{ RDMAP_E_BOUNDS, 0xC0, 0xE0, 0x01, 0x01 },
		{ RDMAP_E_ACCESS, 0xC0, 0xE0, 0x01, 0x02 },
		{ RDMAP_E_STREAM, 0xC0, 0xE0, 0x01, 0x03 },
		{ RDMAP_E_WRAP, 0xC0, 0xE0, 0x01, 0x04 },
		{ RDMAP_E_INVALIDATE, 0xC0, 0xE0, 0x01, 0x09 },
		{ RDMAP_E_PROT, 0xC0, 0xE0, 0x01, 0xFF },
		{ RDMAP_E_VERSION, 0xC0, 0xC0, 0x02, 0x05 },
		{ RDMAP_E_OPCODE, 0xC0, 0xC0, 0x02, 0x06 },
		{ RDMAP_E_CATASTROPHIC, 0xC0, 0xC0, 0x02, 0x07 },
		{ RDMAP_E_GLOBAL, 0xC0, 0xC0, 0x02, 0x08 },
		{ RDMAP_E_INVALIDATE_OP, 0xC0, 0xC0, 0x02, 0x09 },
		{ RDMAP_E_OPERATION, 0xC0, 0xC0, 0x02, 0xFF },
		{ DDP_E_LOCAL, 0, 0, 0x10, 0x00 },
		{ DDP_E_T_STAG, 0xC0, 0xC0, 0x11, 0x00 },
		{ DDP_E_T_BOUNDS, 0xC0, 0xC0, 0x11, 0x01 },
		{ DDP_E_T_STREAM, 0xC0, 0xC0, 0x11, 0x02 },
		{ DDP_E_T_WRAP, 0xC0, 0xC0, 0x11, 0x03 },
		{ DDP_E_T_VERSION, 0xC0, 0xC0, 0x11, 0x04 },
		{ DDP_E_U_QN, 0xC0, 0xC0, 0x12, 0x01 },
		{ DDP_E_U_NOBUF, 0xC0, 0xC0, 0x12, 0x02 },
		{ DDP_E_U_MSN, 0xC0, 0xC0, 0x12, 0x03 },
		{ DDP_E_U_MO, 0xC0, 0xC0, 0x12, 0x04 },
		{ DDP_E_U_LENGTH, 0xC0, 0xC0, 0x12, 0x05 },
		{ DDP_E_U_VERSION, 0xC0, 0xC0, 0x12, 0x06 },
		{ MPA_E_CLOSED, 0, 0, 0x20, 0x01 },
		{ MPA_E_CRC, 0, 0, 0x20, 0x02 },
		{ MPA_E_MARKER, 0, 0, 0x20, 0x03 },
		{ MPA_E_START, 0, 0, 0x20, 0x04 },
		{ MPA_E_LOCAL, 0, 0, 0x20, 0x05 },
		{ MPA_E_IRD, 0, 0, 0x20, 0x06 },
		{ MPA_E_RTR, 0, 0, 0x20, 0x07 },
	};
	static const __u8 ddp[18] = { 0x41, 0x41, 3, 4, 5 };
	static const struct rdmap_read_req read = { .size = 0x11223344 };

	for (unsigned int i = 0; i < 2 * base_array_size(rows); i++) {
		bool with_read = i % 2;
		__u8 hdrct = with_read ? rows[i / 2].hdrct_read : rows[i / 2].hdrct;
		struct rdmap_culprit at = { ddp, sizeof(ddp), 46, with_read ? &read : NULL };
		struct rdmap_stream s = { .state = RDMAP_OPEN };
		__u8 out[RDMAP_HDR_MAX];
		struct rdmap_term_info back;
		size_t n;

		rdmap_fault_at(&s, rows[i / 2].fault, &at);
		cr_assert_eq(s.state, RDMAP_FAULTED);
		n = rdmap_term_put(&s.term, out);
		cr_assert_eq(n, hdrct == 0 ? 4 : hdrct == 0xC0 ? 24 : 52, "row %u", i / 2);
		cr_assert_eq(out[0], rows[i / 2].layer_etype, "row %u: %02x", i / 2, out[0]);
		cr_assert_eq(out[1], rows[i / 2].code, "row %u", i / 2);
		cr_assert_eq(out[2], hdrct, "row %u", i / 2);
		cr_assert_eq(out[3], 0);
		if (hdrct) {
			cr_assert_eq(base_get_be16(out + 4), 46);
			cr_assert_arr_eq(out + 6, ddp, 18);
		}
		if (hdrct == 0xE0)
			cr_assert_arr_eq(out + 24, &read, 28);
		/* and in RDMA mode it is understood as what it was */
		if (IWARP_FAULT_LAYER(rows[i / 2].fault) == IWARP_L_LLP)
			continue;
		rdmap_term_get(&back, out, n, false);
		cr_assert_eq(memcmp(&back, &s.term, sizeof(back)), 0, "row %u", i / 2);
	}
}

/* A fault of this end has no segment to blame */
Test(rdmap_terminate, local_faults_have_no_headers)
{
	struct rdmap_stream s = { .state = RDMAP_OPEN };

	rdmap_fault(&s, RDMAP_E_BOUNDS);
	cr_assert_eq(s.state, RDMAP_FAULTED);
	cr_assert_eq(s.term.fault, RDMAP_E_BOUNDS);
	cr_assert_eq(s.term.hdrct, 0);
}

Test(rdmap_terminate, the_first_fault_stays)
{
	struct rdmap_stream s = { .state = RDMAP_OPEN };

	rdmap_fault(&s, DDP_E_U_MO);
	rdmap_fault(&s, RDMAP_E_OPCODE);
	cr_assert_eq(s.term.fault, DDP_E_U_MO);
	cr_assert_eq(s.state, RDMAP_FAULTED);
}

/* The other direction has begun to note a fault and its process died: this one does not hang */
Test(rdmap_terminate, a_first_finder_that_died)
{
	struct rdmap_stream s = { .state = RDMAP_OPEN, .term = { .fault = DDP_E_U_MO } };

	rdmap_fault(&s, RDMAP_E_OPCODE);
	cr_assert_eq(s.term.fault, DDP_E_U_MO);
	cr_assert_eq(s.state, RDMAP_OPEN);
}

/* What the peer said stays what ended the stream */
Test(rdmap_terminate, a_fault_after_the_peers_terminate)
{
	struct rdmap_stream s = { .state = RDMAP_TERM_RCVD };

	rdmap_fault(&s, RDMAP_E_OPCODE);
	cr_assert_eq(s.state, RDMAP_TERM_RCVD);
}

/* A length that shared memory could have: never more than there is room for */
Test(rdmap_terminate, a_damaged_header_length)
{
	struct rdmap_term_info t = { .fault = RDMAP_E_STAG, .hdrct = 0xE0, .ddp_len = 255 };
	__u8 out[RDMAP_HDR_MAX];

	cr_assert_leq(rdmap_term_put(&t, out), RDMAP_HDR_MAX);
}

/* --- when it may go ---------------------------------------------------------------------- */

Test(rdmap_terminate, when_it_may_be_sent)
{
	static const struct {
		__u8 role, mpa_state, state;
		enum iwarp_fault mpa_fault;
		__u64 rx_fpdus;
		int want;
	} rows[] = {
		{ MPA_INITIATOR, MPA_OPEN, RDMAP_OPEN, 0, 0, 0 },
		{ MPA_INITIATOR, MPA_OPEN, RDMAP_FAULTED, 0, 0, 1 },
		{ MPA_INITIATOR, MPA_OPEN, RDMAP_TERM_SENT, 0, 0, 0 },
		{ MPA_INITIATOR, MPA_OPEN, RDMAP_TERM_RCVD, 0, 0, 0 },
		{ MPA_INITIATOR, MPA_START, RDMAP_FAULTED, 0, 0, 0 },
		{ MPA_INITIATOR, MPA_REQUESTED, RDMAP_FAULTED, 0, 0, 0 },
		{ MPA_INITIATOR, MPA_REJECTED, RDMAP_FAULTED, 0, 0, 0 },
		{ MPA_INITIATOR, MPA_FAILED, RDMAP_FAULTED, MPA_E_CRC, 0, 1 },
		{ MPA_INITIATOR, MPA_FAILED, RDMAP_FAULTED, MPA_E_MARKER, 0, 1 },
		{ MPA_INITIATOR, MPA_FAILED, RDMAP_FAULTED, MPA_E_IRD, 0, 1 },
		{ MPA_INITIATOR, MPA_FAILED, RDMAP_FAULTED, MPA_E_RTR, 0, 1 },
		{ MPA_INITIATOR, MPA_FAILED, RDMAP_FAULTED, MPA_E_START, 0, 0 },
		{ MPA_INITIATOR, MPA_FAILED, RDMAP_FAULTED, MPA_E_CLOSED, 0, 0 },
		{ MPA_RESPONDER, MPA_GATED, RDMAP_FAULTED, 0, 0, 0 },
		{ MPA_RESPONDER, MPA_FAILED, RDMAP_FAULTED, MPA_E_CRC, 0, 0 },
		{ MPA_RESPONDER, MPA_FAILED, RDMAP_FAULTED, MPA_E_CRC, 1, 1 },
		{ MPA_RESPONDER, MPA_FAILED, RDMAP_FAULTED, MPA_E_IRD, 0, 0 },
		{ MPA_RESPONDER, MPA_OPEN, RDMAP_FAULTED, 0, 1, 1 },
	};

	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		struct pair *p = pair_create(NULL);
		struct mpa_conn *c = &p->a.s.ddp.mpa;

		c->role = rows[i].role;
		c->state = rows[i].mpa_state;
		c->fault = rows[i].mpa_fault;
		c->rx_fpdus = rows[i].rx_fpdus;
		p->a.s.state = rows[i].state;
		p->a.s.term.fault = RDMAP_E_LOCAL;
		cr_expect_eq(rdmap_tx_terminate(&p->a.s, &p->a.v), rows[i].want, "row %u", i);
		cr_expect_eq(p->a.v.niov > 0, rows[i].want, "row %u", i);
		cr_expect_eq(rdmap_tx_terminate(&p->a.s, &p->a.v), 0, "row %u: one only", i);
		pair_destroy(p);
	}
}

Test(rdmap_terminate, without_room_it_is_still_due)
{
	struct pair *p = pair_create(NULL);

	rdmap_fault(&p->a.s, RDMAP_E_LOCAL);
	p->a.v.iov_cap = 0;
	cr_assert_eq(rdmap_tx_terminate(&p->a.s, &p->a.v), -ENOBUFS);
	cr_assert_eq(p->a.s.state, RDMAP_FAULTED);
	p->a.v.iov_cap = 8;
	cr_assert_eq(rdmap_tx_terminate(&p->a.s, &p->a.v), 1);
	pair_destroy(p);
}

Test(rdmap_terminate, nothing_goes_after_it)
{
	struct pair *p = pair_create(NULL);
	struct rdmap_wr read = { .op = RDMAP_READ_REQ }, wr = { .op = RDMAP_SEND };
	bool last;

	cr_assert_eq(end_send(&p->a, &read), 0);
	cr_assert_eq(end_receive(&p->a, &p->b), IWARP_OK);
	rdmap_fault(&p->b.s, RDMAP_E_LOCAL);
	cr_assert_eq(rdmap_tx_terminate(&p->b.s, &p->b.v), 1);
	end_flush(&p->b);
	cr_assert_eq(rdmap_tx_wr(&p->b.s, &p->b.slots, &p->b.v, &wr, 0, &last), -EPIPE);
	cr_assert_eq(end_respond(&p->b), 0);
	rdmap_fault(&p->b.s, MPA_E_CRC);
	cr_assert_eq(rdmap_tx_terminate(&p->b.s, &p->b.v), 0);
	cr_assert_eq(p->b.v.niov, 0);
	pair_destroy(p);
}

/* --- what comes in ----------------------------------------------------------------------- */

#define UNTAGGED_18 "4143 00000000 00000000 00000007 00000000"
#define TAGGED_14 "c140 00000001 0000000000000002"
#define READ_28 "aabbccdd 0000000000001000 00000018 01020304 0000000000002000"

static const struct {
	const char *payload;
	bool starting;
	__u32 fault;
	__u8 hdrct, swapped, ddp_len;
	__u16 seg_len;
} terminates[] = {
	/* the RFC's form */
	{ "1202c000 0017" UNTAGGED_18, false, DDP_E_U_NOBUF, 0xC0, 0, 18, 23 },
	{ "1100c000 0032" TAGGED_14, false, DDP_E_T_STAG, 0xC0, 0, 14, 50 },
	{ "0101e000 002e" UNTAGGED_18 READ_28, false, RDMAP_E_BOUNDS, 0xE0, 0, 18, 46 },
	{ "20020000", false, MPA_E_CRC, 0, 0, 0, 0 },
	{ "12028000 0017", false, DDP_E_U_NOBUF, 0x80, 0, 0, 23 },
	{ "12024000 0017" UNTAGGED_18, false, DDP_E_U_NOBUF, 0x40, 0, 18, 23 },
	/* reserved bits beside those of the RFC's form */
	{ "1202df77 0017" UNTAGGED_18, false, DDP_E_U_NOBUF, 0xC0, 0, 18, 23 },
	/* codes and layers that are not defined */
	{ "1277c000 0017" UNTAGGED_18, false, IWARP_FAULT(1, 2, 0x77), 0xC0, 0, 18, 23 },
	{ "ff330000", false, IWARP_FAULT(15, 15, 0x33), 0, 0, 0, 0 },
	{ "23020000", false, IWARP_FAULT(2, 3, 2), 0, 0, 0, 0 },
	{ "00420000", false, IWARP_FAULT(0, 0, 0x42), 0, 0, 0, 0 },
	/* siw's form, as seen on the wire */
	{ "11010300 0008" TAGGED_14, false, DDP_E_T_BOUNDS, 0xC0, 1, 14, 8 },
	{ "21020300 0004" UNTAGGED_18, false, DDP_E_U_NOBUF, 0xC0, 1, 18, 4 },
	{ "21050300 0004" UNTAGGED_18, false, DDP_E_U_LENGTH, 0xC0, 1, 18, 4 },
	{ "10010700 0000" UNTAGGED_18 READ_28, false, RDMAP_E_BOUNDS, 0xE0, 1, 18, 0 },
	{ "20070300 0000" UNTAGGED_18, false, RDMAP_E_CATASTROPHIC, 0xC0, 1, 18, 0 },
	/* siw's without headers: no other reading is defined ... */
	{ "02020000", false, MPA_E_CRC, 0, 1, 0, 0 },
	{ "02030000", true, MPA_E_MARKER, 0, 1, 0, 0 },
	{ "02040000", false, MPA_E_START, 0, 1, 0, 0 },
	{ "21060000", false, DDP_E_U_VERSION, 0, 1, 0, 0 },
	{ "20080000", false, RDMAP_E_GLOBAL, 0, 1, 0, 0 },
	/* ... both are, and when it came tells */
	{ "20060000", false, RDMAP_E_OPCODE, 0, 1, 0, 0 },
	{ "20050000", false, RDMAP_E_VERSION, 0, 1, 0, 0 },
	{ "20060000", true, MPA_E_IRD, 0, 0, 0, 0 },
	{ "20070000", true, MPA_E_RTR, 0, 0, 0, 0 },
	{ "02060000", true, MPA_E_IRD, 0, 1, 0, 0 },
	{ "02070000", true, MPA_E_RTR, 0, 1, 0, 0 },
	{ "02060000", false, RDMAP_E_OPCODE, 0, 0, 0, 0 },
	/* ... nothing tells: the RFC's */
	{ "10000000", false, DDP_E_LOCAL, 0, 0, 0, 0 },
	{ "01000000", true, RDMAP_E_STAG, 0, 0, 0, 0 },
	{ "11040000", false, DDP_E_T_VERSION, 0, 0, 0, 0 },
	/* any size: what is not there is not there */
	{ "", false, RDMAP_E_OPERATION, 0, 0, 0, 0 },
	{ "12", false, RDMAP_E_OPERATION, 0, 0, 0, 0 },
	{ "1202", false, DDP_E_U_NOBUF, 0, 0, 0, 0 },
	{ "1202c0", false, DDP_E_U_NOBUF, 0, 0, 0, 0 },
	{ "1202c000 00", false, DDP_E_U_NOBUF, 0, 0, 0, 0 },
	{ "1202c000 0017", false, DDP_E_U_NOBUF, 0x80, 0, 0, 23 },
	{ "1202c000 0017 41", false, DDP_E_U_NOBUF, 0x80, 0, 0, 23 },
	{ "1202c000 0017 4143 00000000 00000000 00000007 000000", false, DDP_E_U_NOBUF, 0x80, 0, 0,
	  23 },
	{ "1202c000 0017" UNTAGGED_18 "00", false, DDP_E_U_NOBUF, 0xC0, 0, 18, 23 },
	{ "0101e000 002e" UNTAGGED_18, false, RDMAP_E_BOUNDS, 0xC0, 0, 18, 46 },
	{ "0101e000 002e" UNTAGGED_18 "aabbccdd", false, RDMAP_E_BOUNDS, 0xC0, 0, 18, 46 },
	{ "0101e000 002e" UNTAGGED_18 "aabbccdd 0000000000001000 00000018 01020304 00000000000020",
	  false, RDMAP_E_BOUNDS, 0xC0, 0, 18, 46 },
	{ "0101e000 002e" UNTAGGED_18 READ_28 "ff", false, RDMAP_E_BOUNDS, 0xE0, 0, 18, 46 },
	/* an RDMAP header without a DDP header says nothing */
	{ "0101a000 002e" READ_28, false, RDMAP_E_BOUNDS, 0x80, 0, 0, 46 },
	{ "01012000" READ_28, false, RDMAP_E_BOUNDS, 0, 0, 0, 0 },
	{ "10010400" READ_28, false, RDMAP_E_BOUNDS, 0, 1, 0, 0 },
};

Test(rdmap_terminate, taken_apart)
{
	for (unsigned int i = 0; i < base_array_size(terminates); i++) {
		__u8 octets[128], *exact;
		size_t n = unhex(terminates[i].payload, octets);
		struct rdmap_term_info t;

		/* of exactly this size, for a sanitizer to watch */
		exact = malloc(n ? n : 1);
		cr_assert_not_null(exact);
		memcpy(exact, octets, n);
		memset(&t, 0xEE, sizeof(t));
		rdmap_term_get(&t, exact, n, terminates[i].starting);
		free(exact);
		cr_expect_eq(t.fault, terminates[i].fault, "row %u: %x", i, t.fault);
		cr_expect_eq(t.hdrct, terminates[i].hdrct, "row %u: %02x", i, t.hdrct);
		cr_expect_eq(t.swapped, terminates[i].swapped, "row %u", i);
		cr_expect_eq(t.ddp_len, terminates[i].ddp_len, "row %u", i);
		cr_expect_eq(t.seg_len, terminates[i].seg_len, "row %u", i);
		cr_expect_arr_eq(t.hdr, octets + 6, t.ddp_len + (t.hdrct & 0x20 ? 28 : 0));
	}
}

/* Received through a stream: whatever its number and offset */
Test(rdmap_terminate, received_by_either_end)
{
	static const char *const rows[] = {
		"4147 00000000 00000002 00000001 00000000",
		"4147 ffffffff 00000002 00000005 00000000",
		"4147 00000000 00000002 00000000 00000009",
		"0147 00000000 00000002 00000001 00000000",
	};

	for (unsigned int i = 0; i < 2 * base_array_size(rows); i++) {
		struct pair *p = pair_create(NULL);
		struct end *e = i % 2 ? &p->a : &p->b;
		__u8 ulpdu[64];
		size_t n = unhex(rows[i / 2], ulpdu);

		n += unhex("12030000", ulpdu + n);
		cr_assert_eq(end_take(e, ulpdu, n), IWARP_OK);
		cr_assert_eq(e->s.state, RDMAP_TERM_RCVD);
		cr_assert_eq(e->s.peer_term.fault, DDP_E_U_MSN);
		cr_assert_eq(e->s.term.fault, 0);
		cr_assert_eq(rdmap_tx_terminate(&e->s, &e->v), 0, "it is not answered");
		pair_destroy(p);
	}
}

/* The first that a responder hears is about start-up; later, and for an initiator, it is not */
Test(rdmap_terminate, context)
{
	static const char *const terminate = "4147 00000000 00000002 00000001 00000000 20060000";
	static const struct {
		bool initiator, spoke_before;
		enum iwarp_fault want;
	} rows[] = { { false, false, MPA_E_IRD },
		     { false, true, RDMAP_E_OPCODE },
		     { true, false, RDMAP_E_OPCODE },
		     { true, true, RDMAP_E_OPCODE } };

	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		struct pair *p = pair_create(NULL);
		struct end *e = rows[i].initiator ? &p->a : &p->b;
		struct end *peer = rows[i].initiator ? &p->b : &p->a;
		__u8 ulpdu[64];

		if (rows[i].spoke_before) {
			cr_assert_eq(end_send(peer, &(struct rdmap_wr){ .op = RDMAP_WRITE }), 0);
			cr_assert_eq(end_receive(peer, e), IWARP_OK);
		}
		cr_assert_eq(end_take(e, ulpdu, unhex(terminate, ulpdu)), IWARP_OK);
		cr_expect_eq(e->s.peer_term.fault, rows[i].want, "row %u", i);
		pair_destroy(p);
	}
}

/* --- in words ---------------------------------------------------------------------------- */

Test(rdmap_terminate, every_fault_has_a_text)
{
	for (__u32 n = 0; n < 0x30000; n++) {
		const char *text = rdmap_fault_text(n);

		cr_assert_not_null(text);
		cr_assert_gt(strlen(text), 5);
	}
}

Test(rdmap_terminate, texts)
{
	static const struct {
		__u32 fault;
		const char *text;
	} rows[] = {
		{ IWARP_OK, "no fault" },
		{ RDMAP_E_LOCAL, "RDMAP: local catastrophic error" },
		{ IWARP_FAULT(0, 0, 0x77), "RDMAP: local catastrophic error" },
		{ RDMAP_E_ACCESS, "RDMAP, remote protection: access rights violation" },
		{ IWARP_FAULT(0, 1, 0x44), "RDMAP, remote protection: unknown code" },
		{ IWARP_FAULT(0, 2, 0x44), "RDMAP, remote operation: unknown code" },
		{ IWARP_FAULT(0, 3, 0), "RDMAP: unknown error type" },
		{ DDP_E_U_NOBUF, "DDP, untagged buffer: no buffer available" },
		{ IWARP_FAULT(1, 1, 0x44), "DDP, tagged buffer: unknown code" },
		{ MPA_E_CRC, "MPA: CRC error" },
		{ IWARP_FAULT(2, 0, 0x44), "MPA: unknown code" },
		{ IWARP_FAULT(2, 3, 2), "MPA: error of the transport" },
		{ IWARP_FAULT(2, 4, 0), "unknown layer or error type" },
		{ IWARP_FAULT(3, 0, 0), "unknown layer or error type" },
	};

	for (unsigned int i = 0; i < base_array_size(rows); i++)
		cr_expect_str_eq(rdmap_fault_text(rows[i].fault), rows[i].text, "%x",
				 rows[i].fault);
}
