/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What two ends agree on: CRC, markers, read depths and the ready-to-receive form (RFC 5044
 * section 7.1, RFC 6581 sections 9 and 10). Tables for each role, then every pair of ends.
 * Conformance cases 8, 9, 14, 16, 17, 19, 21 to 27, 29, 31 to 33, 35 and 36.
 */
#include "start_test.h"

#define CRC MPA_F_CRC
#define ENH MPA_F_ENHANCED
#define ULP MPA_DEPTH_ULP
#define W MPA_RTR_WRITE
#define R MPA_RTR_READ
#define S MPA_RTR_SEND
#define P2P_CRC (MPA_F_P2P | MPA_F_CRC)

/* --- the responder -------------------------------------------------------------------------- */

static const struct {
	const char *name;
	struct mpa_config config;
	const char *request, *reply;
	uint8_t flags, rtr;
	uint16_t ird, ord;
} responder[] = {
	/* clang-format off */
	{ "revision 1", { 2, CRC, 0, 3, 5 },
	  REQ "40 01 0000", REP "40 01 0000", CRC, 0, 3, 5 },
	{ "reserved bits, R and S are not echoed", { 2, 0, 0, 3, 5 },
	  REQ "3f 01 0000", REP "00 01 0000", 0, 0, 3, 5 },
	{ "R is not echoed either in revision 2", { 2, 0, 0, 3, 5 },
	  REQ "3f 02 0004 0005 0003", REP "10 02 0004 0003 0005", ENH, 0, 3, 5 },
	{ "of revision 1 a Read may come", { 2, CRC, 0, 0, 5 },
	  REQ "40 01 0000", REP "40 01 0000", CRC, 0, 1, 5 },
	{ "revision 2 without S", { 2, ENH, 0, 3, 5 },
	  REQ "00 02 0000", REP "00 02 0000", 0, 0, 3, 5 },
	{ "CRC by the Request", { 2, 0, 0, 0, 0 },
	  REQ "40 01 0000", REP "40 01 0000", CRC, 0, 1, 0 },
	{ "CRC by the Reply", { 2, CRC, 0, 0, 0 },
	  REQ "00 01 0000", REP "40 01 0000", CRC, 0, 1, 0 },
	{ "no CRC", { 2, 0, 0, 0, 0 },
	  REQ "00 01 0000", REP "00 01 0000", 0, 0, 1, 0 },
	{ "markers there", { 2, 0, 0, 0, 0 },
	  REQ "80 01 0000", REP "00 01 0000", MPA_F_TX_MARKERS, 0, 1, 0 },
	{ "markers here", { 2, MPA_F_RX_MARKERS, 0, 0, 0 },
	  REQ "00 01 0000", REP "80 01 0000", MPA_F_RX_MARKERS, 0, 1, 0 },
	{ "ORD comes down to the IRD there", { 2, 0, 0, 3, 9 },
	  REQ "10 02 0004 0004 0008", REP "10 02 0004 0003 0004", ENH, 0, 3, 4 },
	{ "ORD stays below", { 2, 0, 0, 9, 3 },
	  REQ "10 02 0004 0004 0008", REP "10 02 0004 0009 0003", ENH, 0, 9, 3 },
	{ "ORD there is left to the ULP", { 2, 0, 0, 3, 9 },
	  REQ "10 02 0004 0004 3fff", REP "10 02 0004 3fff 0004", ENH, 0, 3, 4 },
	{ "IRD there is left to the ULP", { 2, 0, 0, 3, 9 },
	  REQ "10 02 0004 3fff 0004", REP "10 02 0004 0003 3fff", ENH, 0, 3, 9 },
	{ "here both are left to the ULP", { 2, 0, 0, ULP, ULP },
	  REQ "10 02 0004 0004 0008", REP "10 02 0004 3fff 3fff", ENH, 0, ULP, ULP },
	{ "Write before Read", { 2, 0, S | W | R, 4, 4 },
	  REQ "10 02 0004 c004 c004", REP "10 02 0004 8004 8004", ENH | MPA_F_P2P, W, 4, 4 },
	{ "Read before Send", { 2, 0, S | W | R, 4, 4 },
	  REQ "10 02 0004 c004 4004", REP "10 02 0004 8004 4004", ENH | MPA_F_P2P, R, 4, 4 },
	{ "Send where nothing else is offered", { 2, 0, S | W | R, 4, 4 },
	  REQ "10 02 0004 c004 0004", REP "10 02 0004 c004 0004", ENH | MPA_F_P2P, S, 4, 4 },
	{ "only what is supported here", { 2, 0, R, 4, 4 },
	  REQ "10 02 0004 c004 c004", REP "10 02 0004 8004 4004", ENH | MPA_F_P2P, R, 4, 4 },
	{ "a Read as RTR raises an IRD of 0", { 2, 0, R, 0, 4 },
	  REQ "10 02 0004 8004 4004", REP "10 02 0004 8001 4004", ENH | MPA_F_P2P, R, 1, 4 },
	{ "no form in common: ours", { 2, 0, W, 4, 4 },
	  REQ "10 02 0004 8004 4004", REP "10 02 0004 8004 8004", ENH | MPA_F_P2P, W, 4, 4 },
	{ "no form offered: ours", { 2, 0, W | R, 4, 4 },
	  REQ "10 02 0004 8004 0004", REP "10 02 0004 8004 8004", ENH | MPA_F_P2P, W, 4, 4 },
	{ "no form supported", { 2, 0, 0, 4, 4 },
	  REQ "10 02 0004 8004 c004", REP "10 02 0004 8004 0004", ENH | MPA_F_P2P, 0, 4, 4 },
	{ "without A no form", { 2, P2P_CRC, W | R, 4, 4 },
	  REQ "10 02 0004 4004 c004", REP "50 02 0004 0004 0004", ENH | CRC, 0, 4, 4 },
	/* clang-format on */
};

static struct mpa_conn request_taken(const struct mpa_config *config, const char *request)
{
	struct mpa_conn c = start_conn(MPA_RESPONDER, *config);
	struct mpa_startup in;
	uint8_t wire[64];
	size_t used;

	cr_assert_eq(start_get(&c, wire, test_hex(request, wire), &in, &used), 0);
	cr_assert_eq(c.state, MPA_REQUESTED);
	return c;
}

Test(negotiate, responder_replies)
{
	for (size_t i = 0; i < base_array_size(responder); i++) {
		struct mpa_conn c = request_taken(&responder[i].config, responder[i].request);
		uint8_t want[64], out[MPA_START_MAX];
		size_t n = test_hex(responder[i].reply, want), len;
		const char *name = responder[i].name;

		cr_assert_eq(mpa_start_reply_put(&c, NULL, 0, out, &len), 0);
		cr_assert_eq(len, n, "%s", name);
		cr_expect_arr_eq(out, want, n, "%s", name);
		cr_expect_eq(c.flags, responder[i].flags, "%s: flags 0x%x", name, c.flags);
		cr_expect_eq(c.rtr, responder[i].rtr, "%s", name);
		cr_expect_eq(c.ird, responder[i].ird, "%s: ird %u", name, c.ird);
		cr_expect_eq(c.ord, responder[i].ord, "%s: ord %u", name, c.ord);
		cr_expect_eq(c.state, MPA_GATED, "%s", name);
		cr_expect_not(mpa_conn_may_send(&c), "%s: the gate is shut", name);
	}
}

/* A reject has the form of a reply, and shows the depths wanted, not the lowered ones */
static const struct {
	struct mpa_config config;
	const char *request, *pd, *reply;
} rejects[] = {
	{ { 2, CRC, 0, 3, 5 }, REQ "40 01 0000", "", REP "60 01 0000" },
	{ { 2, 0, 0, 3, 5 }, REQ "00 01 0000", "6e6f", REP "20 01 0002 6e6f" },
	{ { 2, 0, 0, 3, 9 }, REQ "10 02 0004 0004 0008", "6e6f", REP "30 02 0006 0003 0009 6e6f" },
	{ { 2, 0, 0, 3, 9 }, REQ "10 02 0004 3fff 3fff", "", REP "30 02 0004 3fff 3fff" },
	{ { 2, 0, W | R, 3, 9 }, REQ "10 02 0004 8004 4008", "", REP "30 02 0004 8003 4009" },
};

Test(negotiate, responder_rejects)
{
	for (size_t i = 0; i < base_array_size(rejects); i++) {
		struct mpa_conn c = request_taken(&rejects[i].config, rejects[i].request);
		uint8_t pd[64], want[64], out[MPA_START_MAX];
		size_t pd_len = test_hex(rejects[i].pd, pd);
		size_t n = test_hex(rejects[i].reply, want), len;

		cr_assert_eq(mpa_start_reject_put(&c, pd, pd_len, out, &len), 0);
		cr_assert_eq(len, n, "row %zu", i);
		cr_expect_arr_eq(out, want, n, "row %zu", i);
		cr_expect_eq(c.state, MPA_REJECTED);
		cr_expect_not(mpa_conn_may_send(&c));
	}
}

/* The ULP may look at the Request before it says how deep it goes */
Test(negotiate, config_may_change_before_the_reply)
{
	struct mpa_conn c = request_taken(&start_siw, REQ "10 02 0004 8004 c020");
	uint8_t want[64], out[MPA_START_MAX];
	size_t len;

	cr_expect_eq(c.peer_ird, 4);
	cr_expect_eq(c.peer_ord, 32);
	c.config.ird = 32;
	c.config.ord = 2;
	c.config.rtr = R;
	c.config.want = CRC;
	cr_assert_eq(mpa_start_reply_put(&c, NULL, 0, out, &len), 0);
	cr_assert_eq(len, test_hex(REP "50 02 0004 8020 4002", want));
	cr_expect_arr_eq(out, want, len);
}

/* --- the initiator -------------------------------------------------------------------------- */

static const struct {
	const char *name;
	struct mpa_config config;
	const char *reply;
	enum iwarp_fault fault;
	uint8_t flags, rtr;
	uint16_t ird, ord;
} initiator[] = {
	/* clang-format off */
	{ "revision 1", { 1, CRC, 0, 3, 5 },
	  REP "40 01 0000", 0, CRC, 0, 3, 5 },
	{ "CRC by the Reply", { 1, 0, 0, 0, 0 },
	  REP "40 01 0000", 0, CRC, 0, 0, 0 },
	{ "CRC by the Request", { 1, CRC, 0, 0, 0 },
	  REP "00 01 0000", 0, CRC, 0, 0, 0 },
	{ "no CRC", { 1, 0, 0, 0, 0 },
	  REP "00 01 0000", 0, 0, 0, 0, 0 },
	{ "markers there", { 1, 0, 0, 0, 0 },
	  REP "80 01 0000", 0, MPA_F_TX_MARKERS, 0, 0, 0 },
	{ "markers here", { 1, MPA_F_RX_MARKERS, 0, 0, 0 },
	  REP "00 01 0000", 0, MPA_F_RX_MARKERS, 0, 0, 0 },
	{ "depths that suit", { 2, ENH, 0, 4, 8 },
	  REP "10 02 0004 0008 0004", 0, ENH, 0, 4, 8 },
	{ "ORD comes down", { 2, ENH, 0, 4, 8 },
	  REP "10 02 0004 0003 0002", 0, ENH, 0, 4, 3 },
	{ "IRD too small by one", { 2, ENH, 0, 4, 8 },
	  REP "50 02 0004 0003 0005", MPA_E_IRD, ENH | CRC, 0, 4, 3 },
	{ "IRD too small, markers agreed", { 2, ENH, 0, 0, 8 },
	  REP "90 02 0004 0003 0001", MPA_E_IRD, ENH | MPA_F_TX_MARKERS, 0, 0, 3 },
	{ "depths left to the ULP there", { 2, ENH, 0, 4, 8 },
	  REP "10 02 0004 3fff 3fff", 0, ENH, 0, 4, 8 },
	{ "depths left to the ULP here", { 2, ENH, 0, ULP, ULP },
	  REP "10 02 0004 0080 0080", 0, ENH, 0, ULP, ULP },
	{ "A that was not asked for", { 2, ENH, R, 4, 8 },
	  REP "10 02 0004 8008 4004", 0, ENH, 0, 4, 8 },
	{ "Write", { 2, P2P_CRC, W | R, 4, 8 },
	  REP "50 02 0004 8008 8004", 0, ENH | P2P_CRC, W, 4, 8 },
	{ "Read", { 2, P2P_CRC, W | R, 4, 8 },
	  REP "50 02 0004 8008 4004", 0, ENH | P2P_CRC, R, 4, 8 },
	{ "Send", { 2, P2P_CRC, S | R, 4, 8 },
	  REP "50 02 0004 c008 0004", 0, ENH | P2P_CRC, S, 4, 8 },
	{ "one of several", { 2, P2P_CRC, S | R, 4, 8 },
	  REP "50 02 0004 c008 c004", 0, ENH | P2P_CRC, R, 4, 8 },
	{ "a form that was not offered", { 2, P2P_CRC, R, 4, 8 },
	  REP "50 02 0004 8008 8004", MPA_E_RTR, ENH | P2P_CRC, 0, 4, 8 },
	{ "A without a form", { 2, P2P_CRC, W | R, 4, 8 },
	  REP "50 02 0004 8008 0004", MPA_E_RTR, ENH | P2P_CRC, 0, 4, 8 },
	{ "forms without A", { 2, P2P_CRC, W | R, 4, 8 },
	  REP "50 02 0004 0008 c004", 0, ENH | CRC, 0, 4, 8 },
	{ "a Read without a slot for it", { 2, P2P_CRC, R, 4, 8 },
	  REP "50 02 0004 8000 4004", MPA_E_RTR, ENH | P2P_CRC, 0, 4, 0 },
	{ "a Read as RTR asked for an ORD", { 2, P2P_CRC, R, 4, 0 },
	  REP "50 02 0004 8001 4004", 0, ENH | P2P_CRC, R, 4, 1 },
	/* clang-format on */
};

Test(negotiate, initiator_takes_replies)
{
	for (size_t i = 0; i < base_array_size(initiator); i++) {
		struct mpa_conn c = start_conn(MPA_INITIATOR, initiator[i].config);
		const char *name = initiator[i].name;
		bool good = !initiator[i].fault;
		struct mpa_startup in;
		uint8_t wire[64];
		size_t n = test_hex(initiator[i].reply, wire), used;

		cr_expect_eq(start_get(&c, wire, n, &in, &used), good ? 0 : -EPROTO, "%s", name);
		cr_expect_eq(c.fault, initiator[i].fault, "%s: fault 0x%x", name, c.fault);
		cr_expect_eq(c.flags, initiator[i].flags, "%s: flags 0x%x", name, c.flags);
		cr_expect_eq(c.rtr, initiator[i].rtr, "%s: rtr %u", name, c.rtr);
		cr_expect_eq(c.ird, initiator[i].ird, "%s: ird %u", name, c.ird);
		cr_expect_eq(c.ord, initiator[i].ord, "%s: ord %u", name, c.ord);
		cr_expect_eq(c.state, good ? MPA_OPEN : MPA_FAILED, "%s", name);
		cr_expect_eq(mpa_conn_may_send(&c), good, "%s", name);
	}
}

/* A Terminate follows MPA_E_IRD: it needs the CRC and the markers that were agreed */
Test(negotiate, a_terminate_can_leave_after_a_depth_that_is_too_small)
{
	struct mpa_conn c = start_conn(MPA_INITIATOR, start_siw);
	const uint8_t term[] = { 0x41, 0x47, 0, 0, 0, 0, 0, 0,	  0,	2, 0,
				 0,    0,    1, 0, 0, 0, 0, 0x20, 0x06, 0, 0 };
	static uint8_t want[TEST_FPDU_MAX], wire[64];
	static struct test_out o;
	struct mpa_startup in;
	size_t used;

	cr_assert_eq(start_get(&c, wire, test_hex(REP "d0 02 0004 0003 0005", wire), &in, &used),
		     -EPROTO);
	cr_assert_eq(c.fault, MPA_E_IRD);
	test_out_reset(&o);
	cr_assert_eq(mpa_tx_fpdu(&c, &o.v, term, sizeof(term), NULL, 0), 0);
	cr_assert_eq(test_out_flatten(&o), 32);
	cr_assert_eq(test_encode(0, true, true, term, sizeof(term), want), 32);
	cr_expect_arr_eq(o.wire, want, 32);
}

Test(negotiate, a_rejected_initiator_may_not_send)
{
	struct mpa_conn c = start_conn(MPA_INITIATOR, start_siw);
	struct mpa_startup in;
	uint8_t wire[64];
	size_t used;

	cr_expect_eq(start_get(&c, wire, test_hex(REP "30 02 0004 0007 0009", wire), &in, &used),
		     -ECONNREFUSED);
	cr_expect_eq(c.state, MPA_REJECTED);
	cr_expect_eq(c.fault, IWARP_OK);
	cr_expect_eq(c.peer_ird, 7);
	cr_expect_eq(c.peer_ord, 9);
	cr_expect_not(mpa_conn_may_send(&c));
}

/* --- every pair of ends --------------------------------------------------------------------- */

struct pair {
	struct mpa_conn i, r;
	int rc;
};

static struct pair meet(const struct mpa_config *i, const struct mpa_config *r)
{
	struct pair p;
	struct mpa_startup in;
	uint8_t wire[MPA_START_MAX];
	size_t len, used;

	mpa_conn_init(&p.i, MPA_INITIATOR, i);
	mpa_conn_init(&p.r, MPA_RESPONDER, r);
	cr_assert_eq(mpa_start_request_put(&p.i, "ping", 4, wire, &len), 0);
	p.rc = mpa_start_request_get(&p.r, wire, len, &in, &used);
	if (p.rc)
		return p;
	cr_assert_eq(used, len);
	cr_assert(in.pd_len == 4 && !memcmp(in.pd, "ping", 4));
	cr_assert_eq(mpa_start_reply_put(&p.r, "pong", 4, wire, &len), 0);
	p.rc = mpa_start_reply_get(&p.i, wire, len, &in, &used);
	cr_assert_eq(used, len);
	cr_assert(in.pd_len == 4 && !memcmp(in.pd, "pong", 4));
	return p;
}

static void expect_flags_agree(const struct pair *p)
{
	const uint8_t same = MPA_F_CRC | MPA_F_ENHANCED | MPA_F_P2P;

	cr_assert_eq(p->i.flags & same, p->r.flags & same);
	cr_assert_eq(!!(p->i.flags & MPA_F_TX_MARKERS), !!(p->r.flags & MPA_F_RX_MARKERS));
	cr_assert_eq(!!(p->i.flags & MPA_F_RX_MARKERS), !!(p->r.flags & MPA_F_TX_MARKERS));
	cr_assert_eq(!!(p->i.flags & MPA_F_CRC),
		     !!((p->i.config.want | p->r.config.want) & MPA_F_CRC));
	cr_assert_eq(p->i.rev, p->r.rev);
}

static void expect_depths_agree(const struct pair *p)
{
	if (!(p->i.flags & MPA_F_ENHANCED))
		return;
	if (p->i.ord != ULP && p->r.ird != ULP)
		cr_assert_leq(p->i.ord, p->r.ird);
	if (p->r.ord != ULP && p->i.ird != ULP)
		cr_assert_leq(p->r.ord, p->i.ird);
	if (p->i.rtr == R)
		cr_assert(p->i.ord >= 1 && p->r.ird >= 1);
}

/* The number of the pair says what each end wants, bit by bit */
static struct mpa_config config_number(unsigned int n)
{
	static const uint16_t depths[] = { 0, 1, 7, ULP };

	const unsigned int want = n / 2 % 16;

	return (struct mpa_config){
		.rev = 1 + n % 2,
		.want = (want & 1 ? CRC : 0) | (want & 0xE) << 1,
		.rtr = n / 32 % 8,
		.ird = depths[n / 256 % 4],
		.ord = depths[n / 1024 % 4],
	};
}

static void expect_pair(const struct mpa_config *i, const struct mpa_config *r)
{
	struct pair p = meet(i, r);

	if (p.rc && p.r.state == MPA_FAILED) {
		cr_assert(r->rev == 1 && p.i.rev == 2);
		return;
	}
	expect_flags_agree(&p);
	if (p.rc) {
		cr_assert_eq(p.i.fault, MPA_E_RTR, "depths can always be lowered");
		cr_assert_not(i->rtr & r->rtr, "a form in common is found");
		return;
	}
	expect_depths_agree(&p);
	cr_assert_eq(p.i.rtr, p.r.rtr);
	cr_assert_eq(!!p.i.rtr, !!(p.i.flags & MPA_F_P2P));
}

Test(negotiate, every_pair_agrees)
{
	for (unsigned int n = 0; n < 4096; n++) {
		struct mpa_config i = config_number(n);

		for (unsigned int m = n % 17; m < 4096; m += 17) {
			struct mpa_config r = config_number(m);

			expect_pair(&i, &r);
		}
	}
}
