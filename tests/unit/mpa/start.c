/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Start-up frames: what goes out, octet by octet, and what is refused, at the first octet that
 * says so. Conformance cases 1 to 4, 7 to 20 and 34.
 */
#include "start_test.h"

#define Z16 "00000000000000000000000000000000"
#define Z64 Z16 Z16 Z16 Z16
#define Z256 Z64 Z64 Z64 Z64
#define Z512 Z256 Z256

static struct mpa_conn conn_new(enum mpa_role role, struct mpa_config config)
{
	struct mpa_conn c;

	memset(&c, 0xFF, sizeof(c));
	mpa_conn_init(&c, role, &config);
	return c;
}

Test(start, a_new_connection_may_not_send)
{
	struct mpa_conn c = conn_new(MPA_RESPONDER, start_siw);

	cr_expect_eq(c.state, MPA_START);
	cr_expect_eq(c.role, MPA_RESPONDER);
	cr_expect_eq(c.fault, IWARP_OK);
	cr_expect_eq(c.mulpdu, MPA_MULPDU_MIN);
	cr_expect_not(mpa_conn_may_send(&c));
}

/* --- Requests out --------------------------------------------------------------------------- */

static const struct {
	const char *name;
	struct mpa_config config;
	const char *pd;
	const char *wire;
} requests[] = {
	{ "revision 1", { .rev = 1, .want = MPA_F_CRC }, "", REQ "40 01 0000" },
	{ "nothing enhanced wanted", { .rev = 2, .want = MPA_F_CRC }, "", REQ "40 01 0000" },
	{ "markers, no CRC", { .rev = 2, .want = MPA_F_RX_MARKERS }, "", REQ "80 01 0000" },
	{ "revision 1 cannot be enhanced",
	  { .rev = 1, .want = MPA_F_ENHANCED | MPA_F_P2P, .rtr = MPA_RTR_READ },
	  "",
	  REQ "00 01 0000" },
	{ "revision 0 is 1", { .rev = 0, .want = MPA_F_CRC }, "", REQ "40 01 0000" },
	{ "revision 3 is 2", { .rev = 3, .want = MPA_F_ENHANCED }, "", REQ "10 02 0004 0000 0000" },
	{ "as siw by default", SIW, "", REQ "10 02 0004 0004 0008" },
	{ "peer to peer with Write and Read", P2P, "756c70", REQ "50 02 0007 8004 c008 756c70" },
	{ "peer to peer with Send alone",
	  { .rev = 2, .want = MPA_F_P2P, .rtr = MPA_RTR_SEND, .ird = 1, .ord = 2 },
	  "",
	  REQ "10 02 0004 c001 0002" },
	{ "a Read as RTR needs an ORD",
	  { .rev = 2, .want = MPA_F_P2P, .rtr = MPA_RTR_READ },
	  "",
	  REQ "10 02 0004 8000 4001" },
	{ "peer to peer without a form is none",
	  { .rev = 2, .want = MPA_F_P2P, .ird = 1 },
	  "",
	  REQ "00 01 0000" },
	{ "depths left to the ULP",
	  { .rev = 2, .want = MPA_F_ENHANCED, .ird = MPA_DEPTH_ULP, .ord = MPA_DEPTH_ULP },
	  "",
	  REQ "10 02 0004 3fff 3fff" },
	{ "depths beyond the field",
	  { .rev = 2, .want = MPA_F_ENHANCED, .ird = 0x4000, .ord = 0xFFFF },
	  "",
	  REQ "10 02 0004 3ffe 3ffe" },
	{ "512 octets of private data", { .rev = 1 }, Z512, REQ "00 01 0200" Z512 },
};

Test(start, requests_are_put)
{
	for (size_t i = 0; i < base_array_size(requests); i++) {
		struct mpa_conn c = conn_new(MPA_INITIATOR, requests[i].config);
		uint8_t pd[600], want[600], out[600];
		size_t pd_len = test_hex(requests[i].pd, pd);
		size_t n = test_hex(requests[i].wire, want), len = 0;

		memset(out, 0xA5, sizeof(out));
		cr_assert_eq(mpa_start_request_put(&c, pd, pd_len, out, &len), 0);
		cr_assert_eq(len, n, "%s", requests[i].name);
		cr_expect_arr_eq(out, want, n, "%s", requests[i].name);
		cr_expect_eq(out[n], 0xA5, "%s: one octet too many", requests[i].name);
		cr_expect_eq(c.state, MPA_REQUESTED);
		cr_expect_not(mpa_conn_may_send(&c));
	}
}

/* --- private data --------------------------------------------------------------------------- */

static const struct {
	struct mpa_config config;
	size_t max;
} pd_limits[] = { { { .rev = 1 }, 512 }, { SIW, 508 } };

Test(start, private_data_is_limited_in_a_request)
{
	uint8_t pd[513] = { 0 }, out[MPA_START_MAX];

	for (size_t i = 0; i < base_array_size(pd_limits); i++) {
		struct mpa_conn c = conn_new(MPA_INITIATOR, pd_limits[i].config);
		const size_t max = pd_limits[i].max;
		size_t len = 7;

		cr_expect_eq(mpa_start_request_put(&c, pd, max + 1, out, &len), -EMSGSIZE);
		cr_expect_eq(mpa_start_request_put(&c, pd, SIZE_MAX, out, &len), -EMSGSIZE);
		cr_expect_eq(len, 7);
		cr_expect_eq(c.state, MPA_START);
		cr_expect_eq(mpa_start_request_put(&c, pd, max, out, &len), 0);
		cr_expect_eq(len, MPA_START_MAX);
	}
}

typedef int answer_put(struct mpa_conn *c, const void *pd, size_t pd_len, uint8_t *out,
		       size_t *len);

static void expect_answer_limit(answer_put *put, const char *request, size_t max)
{
	struct mpa_conn c = conn_new(MPA_RESPONDER, start_siw);
	uint8_t pd[513] = { 0 }, in[64], out[MPA_START_MAX];
	struct mpa_startup s;
	size_t len;

	cr_assert_eq(mpa_start_request_get(&c, in, test_hex(request, in), &s, &len), 0);
	cr_expect_eq(put(&c, pd, max + 1, out, &len), -EMSGSIZE);
	cr_expect_eq(c.state, MPA_REQUESTED);
	cr_expect_eq(put(&c, pd, max, out, &len), 0);
	cr_expect_eq(len, MPA_START_MAX);
}

Test(start, private_data_is_limited_in_an_answer)
{
	expect_answer_limit(mpa_start_reply_put, REQ "00 01 0000", 512);
	expect_answer_limit(mpa_start_reply_put, REQ "10 02 0004 0000 0000", 508);
	expect_answer_limit(mpa_start_reject_put, REQ "00 01 0000", 512);
	expect_answer_limit(mpa_start_reject_put, REQ "10 02 0004 0000 0000", 508);
}

/* --- frames in, octet by octet ------------------------------------------------------------- */

static const struct {
	const char *name;
	enum mpa_role role;
	const char *wire;
	int rc;
	struct mpa_startup want; /* pd is not compared as a pointer */
	const char *pd;
} frames[] = {
	{ "Request of revision 1",
	  MPA_RESPONDER,
	  REQ "40 01 0000",
	  0,
	  { .flags = MPA_RR_C, .rev = 1, .ird = 0x3FFF, .ord = 0x3FFF },
	  "" },
	{ "512 octets of private data",
	  MPA_RESPONDER,
	  REQ "00 01 0200" Z512,
	  0,
	  { .rev = 1, .ird = 0x3FFF, .ord = 0x3FFF, .pd_len = 512 },
	  Z512 },
	{ "all flags in revision 1",
	  MPA_RESPONDER,
	  REQ "ff 01 0005 0102030405",
	  0,
	  { .flags = MPA_RR_M | MPA_RR_C, .rev = 1, .ird = 0x3FFF, .ord = 0x3FFF, .pd_len = 5 },
	  "0102030405" },
	{ "all flags in revision 2",
	  MPA_RESPONDER,
	  REQ "ff 02 0005 0001000205",
	  0,
	  { .flags = MPA_RR_M | MPA_RR_C | MPA_RR_S, .rev = 2, .ird = 1, .ord = 2, .pd_len = 1 },
	  "05" },
	{ "revision 2 without S",
	  MPA_RESPONDER,
	  REQ "00 02 0004 c001c002",
	  0,
	  { .rev = 2, .ird = 0x3FFF, .ord = 0x3FFF, .pd_len = 4 },
	  "c001c002" },
	{ "peer to peer",
	  MPA_RESPONDER,
	  REQ "50 02 0007 8004 c008 756c70",
	  0,
	  { .flags = MPA_RR_C | MPA_RR_S,
	    .rev = 2,
	    .rtr = MPA_RTR_WRITE | MPA_RTR_READ,
	    .p2p = true,
	    .ird = 4,
	    .ord = 8,
	    .pd_len = 3 },
	  "756c70" },
	{ "every bit of the enhanced words",
	  MPA_RESPONDER,
	  REQ "10 02 0004 ffff ffff",
	  0,
	  { .flags = MPA_RR_S, .rev = 2, .rtr = 7, .p2p = true, .ird = 0x3FFF, .ord = 0x3FFF },
	  "" },
	{ "without A the forms do not count",
	  MPA_RESPONDER,
	  REQ "10 02 0004 7ffe fffe",
	  0,
	  { .flags = MPA_RR_S, .rev = 2, .ird = 0x3FFE, .ord = 0x3FFE },
	  "" },
	{ "Reply",
	  MPA_INITIATOR,
	  REP "50 02 0005 0004 0003 aa",
	  0,
	  { .flags = MPA_RR_C | MPA_RR_S, .rev = 2, .ird = 4, .ord = 3, .pd_len = 1 },
	  "aa" },
	{ "Reply, reserved bits set",
	  MPA_INITIATOR,
	  REP "1f 02 0004 0004 0003",
	  0,
	  { .flags = MPA_RR_S, .rev = 2, .ird = 4, .ord = 3 },
	  "" },
	{ "reject",
	  MPA_INITIATOR,
	  REP "70 02 0006 0004 0008 6e6f",
	  -ECONNREFUSED,
	  { .flags = MPA_RR_C | MPA_RR_R | MPA_RR_S, .rev = 2, .ird = 4, .ord = 8, .pd_len = 2 },
	  "6e6f" },
	{ "reject of revision 1",
	  MPA_INITIATOR,
	  REP "20 01 0002 6e6f",
	  -ECONNREFUSED,
	  { .flags = MPA_RR_R, .rev = 1, .ird = 0x3FFF, .ord = 0x3FFF, .pd_len = 2 },
	  "6e6f" },
};

static void expect_same(const char *name, const struct mpa_startup *got,
			const struct mpa_startup *want, const char *pd)
{
	uint8_t octets[600];

	cr_expect_eq(got->flags, want->flags, "%s: flags 0x%x", name, got->flags);
	cr_expect_eq(got->rev, want->rev, "%s", name);
	cr_expect_eq(got->rtr, want->rtr, "%s", name);
	cr_expect_eq(got->p2p, want->p2p, "%s", name);
	cr_expect_eq(got->ird, want->ird, "%s", name);
	cr_expect_eq(got->ord, want->ord, "%s", name);
	cr_assert_eq(got->pd_len, want->pd_len, "%s", name);
	cr_assert_eq(test_hex(pd, octets), want->pd_len);
	cr_expect_arr_eq(got->pd, octets, want->pd_len, "%s", name);
}

Test(start, frames_are_taken_octet_by_octet)
{
	for (size_t i = 0; i < base_array_size(frames); i++) {
		struct mpa_conn c = start_conn(frames[i].role, start_siw);
		struct mpa_startup in = { 0 };
		uint8_t wire[MPA_START_MAX];
		size_t n = test_hex(frames[i].wire, wire), used;

		for (size_t have = 0; have < n; have++) {
			cr_assert_eq(start_get(&c, wire, have, &in, &used), -EAGAIN);
			cr_expect_eq(used, have < MPA_RR_LEN ? MPA_RR_LEN : n);
			cr_expect_null(in.pd, "nothing is written before its time");
		}
		cr_expect_eq(start_get(&c, wire, n, &in, &used), frames[i].rc, "%s",
			     frames[i].name);
		cr_expect_eq(used, n, "%s", frames[i].name);
		expect_same(frames[i].name, &in, &frames[i].want, frames[i].pd);
		cr_expect_eq(c.peer_ird, in.ird, "%s", frames[i].name);
		cr_expect_eq(c.peer_ord, in.ord, "%s", frames[i].name);
	}
}

Test(start, octets_behind_a_frame_are_not_taken)
{
	struct mpa_conn c = start_conn(MPA_INITIATOR, start_siw);
	struct mpa_startup in;
	uint8_t wire[128];
	size_t n = test_hex(REP "10 02 0004 0001 0001 0012 4143", wire), used = 0;

	cr_expect_eq(start_get(&c, wire, n, &in, &used), 0);
	cr_expect_eq(used, 24);
	cr_expect_eq(c.state, MPA_OPEN);
}

/* --- frames refused ------------------------------------------------------------------------- */

static const struct {
	const char *name;
	enum mpa_role role;
	const char *wire;
	size_t at; /* with so many octets it is known */
} refused[] = {
	{ "HTTP", MPA_RESPONDER, "474554202f20485454502f312e310d0a0d0a0d0a0d0a", 1 },
	{ "Reply key where a Request is due", MPA_RESPONDER, REP "40 01 0000", 10 },
	{ "Request key where a Reply is due", MPA_INITIATOR, REQ "10 02 0004 0000 0000", 10 },
	{ "last octet of the key", MPA_RESPONDER, "4d504120494420526571204672616d64 40010000", 16 },
	{ "revision 0", MPA_RESPONDER, REQ "40 00 0000", 18 },
	{ "revision 3", MPA_RESPONDER, REQ "40 03 0000", 18 },
	{ "revision 255", MPA_RESPONDER, REQ "10 ff 0004 00000000", 18 },
	{ "513 octets of private data", MPA_RESPONDER, REQ "40 01 0201", 20 },
	{ "768 octets of private data", MPA_RESPONDER, REQ "40 01 0300", 19 },
	{ "65535 octets of private data", MPA_RESPONDER, REQ "40 01 ffff", 19 },
	{ "S without private data", MPA_RESPONDER, REQ "10 02 0000", 20 },
	{ "S with 3 octets of private data", MPA_RESPONDER, REQ "10 02 0003 000000", 20 },
	{ "Reply of revision 0", MPA_INITIATOR, REP "10 00 0004 0000 0000", 18 },
	{ "Reply of revision 3", MPA_INITIATOR, REP "10 03 0004 0000 0000", 18 },
	{ "reject of revision 3", MPA_INITIATOR, REP "30 03 0004 0000 0000", 18 },
	{ "plain Reply to an enhanced Request", MPA_INITIATOR, REP "00 02 0000", 18 },
	{ "Reply of revision 1 to an enhanced Request", MPA_INITIATOR, REP "10 01 0004 00000000",
	  18 },
	{ "Reply, 513 octets of private data", MPA_INITIATOR, REP "10 02 0201", 20 },
	{ "Reply, S with 3 octets of private data", MPA_INITIATOR, REP "10 02 0003 000000", 20 },
};

Test(start, malformed_frames_are_refused_at_once)
{
	for (size_t i = 0; i < base_array_size(refused); i++) {
		uint8_t wire[64];
		size_t n = test_hex(refused[i].wire, wire), used;
		struct mpa_startup in;

		for (size_t have = 0; have <= n; have++) {
			struct mpa_conn c = start_conn(refused[i].role, start_siw);
			bool bad = have >= refused[i].at;

			cr_expect_eq(start_get(&c, wire, have, &in, &used), bad ? -EPROTO : -EAGAIN,
				     "%s, %zu octets", refused[i].name, have);
			cr_expect_eq(c.fault, bad ? MPA_E_START : IWARP_OK);
			cr_expect_eq(c.state == MPA_FAILED, bad);
		}
	}
}

Test(start, a_plain_request_wants_a_plain_reply)
{
	static const struct {
		const char *wire;
		int rc;
	} rows[] = { { REP "40 01 0000", 0 },
		     { REP "40 02 0000", 0 },
		     { REP "50 01 0000", 0 },
		     { REP "50 02 0004 0000 0000", -EPROTO } };

	for (size_t i = 0; i < base_array_size(rows); i++) {
		struct mpa_config plain = { .rev = 2, .want = MPA_F_CRC };
		struct mpa_conn c = start_conn(MPA_INITIATOR, plain);
		struct mpa_startup in;
		uint8_t wire[64];
		size_t used;

		cr_expect_eq(start_get(&c, wire, test_hex(rows[i].wire, wire), &in, &used),
			     rows[i].rc, "row %zu", i);
		cr_expect_eq(c.rev, 1);
	}
}

Test(start, revision_1_alone_refuses_revision_2)
{
	struct mpa_conn c = start_conn(MPA_RESPONDER, (struct mpa_config){ .rev = 1 });
	struct mpa_startup in;
	uint8_t wire[64];
	size_t used;

	test_hex(REQ "10 02 0004 0000 0000", wire);
	cr_expect_eq(start_get(&c, wire, 17, &in, &used), -EAGAIN);
	cr_expect_eq(start_get(&c, wire, 18, &in, &used), -EPROTO);
	cr_expect_eq(c.fault, MPA_E_START);
}

/* --- calls out of turn ---------------------------------------------------------------------- */

enum call { REQ_PUT, REQ_GET, REP_PUT, REJ_PUT, REP_GET, CALLS };

static int call(enum call which, struct mpa_conn *c)
{
	uint8_t wire[MPA_START_MAX] = { 0 };
	struct mpa_startup in;
	size_t used;

	switch (which) {
	case REQ_PUT:
		return mpa_start_request_put(c, NULL, 0, wire, &used);
	case REQ_GET:
		return mpa_start_request_get(c, wire, 0, &in, &used);
	case REP_PUT:
		return mpa_start_reply_put(c, NULL, 0, wire, &used);
	case REJ_PUT:
		return mpa_start_reject_put(c, NULL, 0, wire, &used);
	default:
		return mpa_start_reply_get(c, wire, 0, &in, &used);
	}
}

static int call_wanted(enum call which, enum mpa_role role, enum mpa_state state)
{
	static const struct {
		enum mpa_role role;
		enum mpa_state state;
		int rc;
	} turns[CALLS] = {
		[REQ_PUT] = { MPA_INITIATOR, MPA_START, 0 },
		[REQ_GET] = { MPA_RESPONDER, MPA_START, -EAGAIN },
		[REP_PUT] = { MPA_RESPONDER, MPA_REQUESTED, 0 },
		[REJ_PUT] = { MPA_RESPONDER, MPA_REQUESTED, 0 },
		[REP_GET] = { MPA_INITIATOR, MPA_REQUESTED, -EAGAIN },
	};

	if (turns[which].role == role && turns[which].state == state)
		return turns[which].rc;
	if (state == MPA_FAILED && (which == REQ_GET || which == REP_GET))
		return -EPROTO;
	return -EINVAL;
}

Test(start, calls_out_of_turn_are_refused)
{
	for (int which = 0; which < CALLS; which++) {
		for (int i = 0; i < 2 * (MPA_FAILED + 1); i++) {
			struct mpa_conn c = conn_new(i % 2, start_siw);

			c.state = i / 2;
			cr_expect_eq(call(which, &c), call_wanted(which, i % 2, i / 2),
				     "call %d, role %d, state %d", which, i % 2, i / 2);
		}
	}
}
