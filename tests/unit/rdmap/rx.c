/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What may be received, and what becomes of the rest.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/bits.h"
#include "tests/unit/rdmap/pair.h"

static struct pair *p;

static void setup(void)
{
	p = pair_create(&(struct pair_options){ .flags = MPA_F_CRC, .ird = 2, .ord = 2 });
}

static void teardown(void)
{
	pair_destroy(p);
}

static void again(const struct pair_options *o)
{
	pair_destroy(p);
	p = pair_create(o);
}

TestSuite(rdmap_rx, .init = setup, .fini = teardown);

static enum iwarp_fault take_hex(struct end *e, const char *hex)
{
	__u8 ulpdu[256];

	return end_take(e, ulpdu, unhex(hex, ulpdu));
}

#define ZERO_8 "0000000000000000"
/* Untagged headers behind the two control octets: STag field, QN, MSN, MO */
#define QN0 "00000000 00000000 00000001 00000000"
#define QN1 "00000000 00000001 00000001 00000000"
#define QN2 "00000000 00000002 00000001 00000000"
#define QN3 "00000000 00000003 00000001 00000000"
#define QN4 "00000000 00000004 00000001 00000000"
#define TAGGED "00000001 " ZERO_8
#define READ_28 "00000001" ZERO_8 "00000008 00000002" ZERO_8
#define ATOMIC_52 "00000000 00000001 00000002" ZERO_8 ZERO_8 ZERO_8 ZERO_8 ZERO_8

/* Each to a new stream that has receives of 8192 octets and IRD 2, and waits for nothing */
static const struct {
	const char *ulpdu;
	enum iwarp_fault want;
	__u8 hdrct, ddp_len;
} messages[] = {
	/* too short for DDP */
	{ "", DDP_E_LOCAL, 0, 0 },
	{ "41", DDP_E_LOCAL, 0, 0 },
	{ "c140 00000001 00000000000000", DDP_E_LOCAL, 0, 0 },
	{ "4143 00000000 00000000 00000001 000000", DDP_E_LOCAL, 0, 0 },
	/* versions; reserved bits are not looked at */
	{ "4043" QN0, DDP_E_U_VERSION, 0xC0, 18 },
	{ "c240" TAGGED, DDP_E_T_VERSION, 0xC0, 14 },
	{ "4103" QN0, RDMAP_E_VERSION, 0xC0, 18 },
	{ "4183" QN0, RDMAP_E_VERSION, 0xC0, 18 },
	{ "c100" TAGGED, RDMAP_E_VERSION, 0xC0, 14 },
	{ "7d73" QN0, IWARP_OK, 0, 0 },
	{ "fd70" TAGGED, IWARP_OK, 0, 0 },
	/* opcodes that there are not */
	{ "414c" QN0, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "414d" QN1, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "c14e" TAGGED, RDMAP_E_OPCODE, 0xC0, 14 },
	{ "414f" QN3, RDMAP_E_OPCODE, 0xC0, 18 },
	/* the version comes before the opcode */
	{ "410f" QN0, RDMAP_E_VERSION, 0xC0, 18 },
	/* tagged or not */
	{ "4140" QN0, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "4142" QN0, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "c141" TAGGED READ_28, RDMAP_E_OPCODE, 0xC0, 14 },
	{ "c143" TAGGED, RDMAP_E_OPCODE, 0xC0, 14 },
	{ "c147" TAGGED, RDMAP_E_OPCODE, 0xC0, 14 },
	{ "c148" TAGGED ZERO_8, RDMAP_E_OPCODE, 0xC0, 14 },
	{ "c14a" TAGGED ATOMIC_52, RDMAP_E_OPCODE, 0xC0, 14 },
	{ "c14b" TAGGED "00000000" ZERO_8, RDMAP_E_OPCODE, 0xC0, 14 },
	/* the queue */
	{ "4143" QN1, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "4146" QN2, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "4148" QN3 ZERO_8, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "4141" QN0 READ_28, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "414a" QN3 ATOMIC_52, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "414b" QN1 "00000000" ZERO_8, RDMAP_E_OPCODE, 0xC0, 18 },
	{ "4147" QN0 "20020000", RDMAP_E_OPCODE, 0xC0, 18 },
	{ "4143" QN4, DDP_E_U_QN, 0xC0, 18 },
	{ "4141 00000000 ffffffff 00000001 00000000" READ_28, DDP_E_U_QN, 0xC0, 18 },
	/* the length of what has one */
	{ "4148" QN0 ZERO_8, IWARP_OK, 0, 0 },
	{ "4148" QN0, RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "4148" QN0 "00000000000000", RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "4148" QN0 ZERO_8 "00", RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "4149" QN0 "00000000", RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "4141" QN1 READ_28, IWARP_OK, 0, 0 },
	{ "4141" QN1, RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "4141" QN1 READ_28 "00", RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "414a" QN1 ATOMIC_52, IWARP_OK, 0, 0 },
	{ "414a" QN1 READ_28, RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "414a" QN1 ATOMIC_52 "00", RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "414b" QN3 ZERO_8, RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	/* it is one segment */
	{ "0141" QN1 READ_28, RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "0148" QN0 ZERO_8, RDMAP_E_CATASTROPHIC, 0xC0, 18 },
	{ "4141 00000000 00000001 00000001 00000001" READ_28, DDP_E_U_MO, 0xC0, 18 },
	/* MSN and MO */
	{ "4143 00000000 00000000 00000002 00000000", DDP_E_U_MSN, 0xC0, 18 },
	{ "4143 00000000 00000000 00000000 00000000", DDP_E_U_MSN, 0xC0, 18 },
	{ "4143 00000000 00000000 00000001 00000004", DDP_E_U_MO, 0xC0, 18 },
	{ "4148 00000000 00000000 00000002 00000000" ZERO_8, DDP_E_U_MSN, 0xC0, 18 },
	{ "4141 00000000 00000001 00000002 00000000" READ_28, DDP_E_U_MSN, 0xC0, 18 },
	{ "414a 00000000 00000001 00000000 00000000" ATOMIC_52, DDP_E_U_MSN, 0xC0, 18 },
	/* the octets that only an Invalidate uses */
	{ "4143 ffffffff 00000000 00000001 00000000", IWARP_OK, 0, 0 },
	{ "4145 ffffffff 00000000 00000001 00000000", IWARP_OK, 0, 0 },
	{ "4144" QN0, RDMAP_E_INVALIDATE, 0xC0, 18 },
	{ "4146 ffffffff 00000000 00000001 00000000", RDMAP_E_INVALIDATE, 0xC0, 18 },
	/* nothing waits for an answer */
	{ "c142" TAGGED, RDMAP_E_OPCODE, 0xC0, 14 },
	{ "c142" TAGGED "00", RDMAP_E_OPCODE, 0xC0, 14 },
	{ "414b" QN3 "00000000" ZERO_8, RDMAP_E_OPCODE, 0xC0, 18 },
	/* Writes: of nothing to anywhere */
	{ "c140" TAGGED, IWARP_OK, 0, 0 },
	{ "c140 ffffffff ffffffffffffffff", IWARP_OK, 0, 0 },
	{ "c140" TAGGED "00", DDP_E_T_STAG, 0xC0, 14 },
};

Test(rdmap_rx, one_message)
{
	for (unsigned int i = 0; i < base_array_size(messages); i++) {
		const struct rdmap_term_info *t = &p->b.s.term;
		__u8 ulpdu[256];
		size_t n = unhex(messages[i].ulpdu, ulpdu);
		enum iwarp_fault f = end_take(&p->b, ulpdu, n);

		cr_assert_eq(f, messages[i].want, "row %u: %x instead of %x", i, f,
			     messages[i].want);
		cr_assert_eq(p->b.s.state, f ? RDMAP_FAULTED : RDMAP_OPEN, "row %u", i);
		cr_assert_eq(t->fault, (__u32)messages[i].want, "row %u", i);
		cr_assert_eq(t->hdrct, messages[i].hdrct, "row %u: %02x", i, t->hdrct);
		cr_assert_eq(t->ddp_len, messages[i].ddp_len, "row %u", i);
		cr_assert_eq(t->seg_len, t->hdrct ? n : 0, "row %u", i);
		cr_assert_arr_eq(t->hdr, ulpdu, t->ddp_len);
		again(&(struct pair_options){ .ird = 2, .ord = 2 });
	}
}

/* Every fault that can be received goes out, and says at the other end what it said here */
Test(rdmap_rx, faults_reach_the_other_end)
{
	static const char *const rows[] = {
		"4043" QN0,
		"c240" TAGGED,
		"4103" QN0,
		"414c" QN0,
		"4143" QN4,
		"4148" QN0,
		"4143 00000000 00000000 00000002 00000000",
		"4144" QN0,
		"c140" TAGGED "00",
		"41",
		"4143 00000000 00000000 00000001 00000004",
		"c142" TAGGED,
	};

	for (unsigned int i = 0; i < 2 * base_array_size(rows); i++) {
		struct end *bad = i % 2 ? &p->a : &p->b, *told = i % 2 ? &p->b : &p->a;
		enum iwarp_fault f = take_hex(bad, rows[i / 2]);

		cr_assert_neq(f, IWARP_OK);
		cr_assert_eq(rdmap_tx_terminate(&bad->s, &bad->v), 1);
		cr_assert_eq(bad->s.state, RDMAP_TERM_SENT);
		cr_assert_eq(rdmap_tx_terminate(&bad->s, &bad->v), 0, "only one");
		end_flush(bad);
		cr_assert_eq(end_receive(bad, told), IWARP_OK);
		cr_assert_eq(told->s.state, RDMAP_TERM_RCVD);
		cr_assert_eq(told->s.term.fault, 0);
		cr_assert_eq(memcmp(&told->s.peer_term, &bad->s.term, sizeof(bad->s.term)), 0);
		again(&(struct pair_options){ .ird = 2, .ord = 2 });
	}
}

Test(rdmap_rx, the_first_fault_stays_and_input_is_dropped)
{
	struct rdmap_stream before;
	unsigned int kicks;

	cr_assert_eq(take_hex(&p->b, "4143" QN4), DDP_E_U_QN);
	before = p->b.s;
	kicks = p->b.kicks;
	cr_assert_eq(take_hex(&p->b, "414c" QN0), IWARP_OK);
	cr_assert_eq(take_hex(&p->b, "4143" QN0), IWARP_OK);
	cr_assert_eq(take_hex(&p->b, "4147" QN2 "20020000"), IWARP_OK);
	rdmap_fault(&p->b.s, MPA_E_CRC);
	cr_assert_eq(memcmp(&before, &p->b.s, sizeof(before)), 0);
	cr_assert_eq(p->b.nevents, 0);
	cr_assert_eq(p->b.kicks, kicks);
}

/* --- receives ---------------------------------------------------------------------------- */

Test(rdmap_rx, a_send_in_segments)
{
	cr_assert_eq(take_hex(&p->b, "0143" QN0 "010203"), IWARP_OK);
	cr_assert_eq(p->b.nevents, 0);
	cr_assert_eq(take_hex(&p->b, "4145 00000000 00000000 00000001 00000003 0405"), IWARP_OK);
	cr_assert_eq(p->b.nevents, 1);
	cr_assert_eq(p->b.events[0].recv.len, 5);
	cr_assert_eq(p->b.events[0].recv.op, RDMAP_SEND_SE, "the last segment says");
	cr_assert_arr_eq(p->b.recv[0], "\1\2\3\4\5", 5);
}

Test(rdmap_rx, a_receive_that_is_too_short)
{
	p->b.recv_room = 4;
	cr_assert_eq(take_hex(&p->b, "0143" QN0 "01020304"), IWARP_OK);
	cr_assert_eq(take_hex(&p->b, "4143 00000000 00000000 00000001 00000004 05"),
		     DDP_E_U_LENGTH);
	cr_assert_eq(p->b.recv[0][4], 0);
	cr_assert_eq(p->b.nevents, 0);
}

Test(rdmap_rx, no_receive)
{
	p->b.recv_posted = 0;
	cr_assert_eq(take_hex(&p->b, "4143" QN0), DDP_E_U_NOBUF);
	again(&(struct pair_options){ .ird = 2 });
	p->b.recv_posted = 0;
	cr_assert_eq(take_hex(&p->b, "4148" QN0 ZERO_8), DDP_E_U_NOBUF);
}

/* An Immediate may not end a Send that is under way */
Test(rdmap_rx, an_immediate_inside_a_send)
{
	cr_assert_eq(take_hex(&p->b, "0143" QN0 "01020304"), IWARP_OK);
	cr_assert_eq(take_hex(&p->b, "4148 00000000 00000000 00000001 00000004" ZERO_8),
		     DDP_E_U_MO);
}

static enum iwarp_fault send_invalidate(__u32 stag)
{
	struct rdmap_wr wr = { .op = RDMAP_SEND_INV, .inv_stag = stag };

	cr_assert_eq(end_send(&p->a, &wr), 0);
	return end_receive(&p->a, &p->b);
}

Test(rdmap_rx, invalidation)
{
	__u32 stag = end_stag(&p->b, RW);
	struct iovec sg = { "x", 1 };
	struct rdmap_wr wr = {
		.op = RDMAP_WRITE, .stag = stag, .to = PAIR_TO, .sg = &sg, .nsg = 1, .len = 1
	};

	cr_assert_eq(send_invalidate(stag), IWARP_OK);
	cr_assert(p->b.events[0].recv.invalidated);
	cr_assert_eq(p->b.events[0].recv.inv_stag, stag);
	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(end_receive(&p->a, &p->b), DDP_E_T_STAG, "it is dead");
}

Test(rdmap_rx, what_cannot_be_invalidated)
{
	for (unsigned int i = 0; i < 4; i++) {
		__u32 stag = end_stag(&p->b, i == 1 ? FOREIGN : i == 2 ? SHARED : RW);

		if (i == 0)
			stag ^= 1;
		if (i == 3)
			cr_assert_eq(send_invalidate(stag), IWARP_OK);
		cr_assert_eq(send_invalidate(stag), RDMAP_E_INVALIDATE, "%u", i);
		cr_assert_eq(p->b.s.term.hdrct, 0xC0, "no RDMAP header");
		cr_assert_eq(p->b.nevents, i == 3, "not delivered");
		again(&(struct pair_options){ .ird = 2 });
	}
}

/* --- ready to receive -------------------------------------------------------------------- */

struct rtr_row {
	__u8 agreed;
	const char *ulpdu;
	unsigned int events;
};

/* The first message, whatever was agreed; a Send of nothing is swallowed if it was */
Test(rdmap_rx, first_message_of_an_initiator)
{
	static const struct rtr_row rows[] = {
		{ MPA_RTR_SEND, "4143" QN0, 0 },
		{ MPA_RTR_WRITE, "4143" QN0, 1 },
		{ 0, "4143" QN0, 1 },
		{ MPA_RTR_SEND, "4143" QN0 "01", 1 },
		{ MPA_RTR_SEND, "4145" QN0, 1 },
		{ MPA_RTR_SEND, "0143" QN0, 0 },
		{ MPA_RTR_WRITE, "c140 00000000" ZERO_8, 0 },
		{ MPA_RTR_WRITE, "c140 00000001 0000000000000001", 0 },
		{ 0, "c140 ffffffff ffffffffffffffff", 0 },
		{ MPA_RTR_READ, "4141" QN1 "00000000" ZERO_8 "00000000 00000001" ZERO_8, 0 },
		{ MPA_RTR_WRITE, "4141" QN1 "00000001" ZERO_8 "00000000 00000000" ZERO_8, 0 },
		{ 0, "4141" QN1 "00000001" ZERO_8 "00000000 00000000" ZERO_8, 0 },
	};

	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		again(&(struct pair_options){ .flags = rows[i].agreed ? MPA_F_P2P : 0,
					      .ord = 1,
					      .rtr = rows[i].agreed,
					      .ird = 1,
					      .gated = true });
		cr_assert_eq(take_hex(&p->b, rows[i].ulpdu), IWARP_OK, "row %u", i);
		cr_assert_eq(p->b.nevents, rows[i].events, "row %u", i);
		cr_assert_eq(p->b.recv_posted, PAIR_RECVS - rows[i].events, "row %u", i);
		cr_assert_eq(p->b.s.rtr, RDMAP_RTR_NONE);
		cr_assert_geq(p->b.kicks, 1);
	}
}

/* It takes its number, and no receive even if there is none; the next one is the program's */
Test(rdmap_rx, a_send_as_ready_to_receive)
{
	again(&(struct pair_options){ .flags = MPA_F_P2P, .rtr = MPA_RTR_SEND, .gated = true });
	p->b.recv_posted = 0;
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 1);
	end_flush(&p->a);
	cr_assert_eq(end_receive(&p->a, &p->b), IWARP_OK);
	p->b.recv_posted = 1;
	cr_assert_eq(end_send(&p->a, &(struct rdmap_wr){ .op = RDMAP_SEND }), 0);
	cr_assert_eq(end_receive(&p->a, &p->b), IWARP_OK);
	cr_assert_eq(p->b.nevents, 1);
}

Test(rdmap_rx, a_send_as_ready_to_receive_with_a_wrong_number)
{
	again(&(struct pair_options){ .flags = MPA_F_P2P, .rtr = MPA_RTR_SEND, .gated = true });
	cr_assert_eq(take_hex(&p->b, "4143 00000000 00000000 00000002 00000000"), DDP_E_U_MSN);
}

/* --- requests ---------------------------------------------------------------------------- */

static const char *const read_requests[] = {
	"4141" QN1 READ_28,
	"414a 00000000 00000001 00000002 00000000" ATOMIC_52,
	"4141 00000000 00000001 00000003 00000000" READ_28,
};

Test(rdmap_rx, never_more_requests_than_ird)
{
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(take_hex(&p->b, read_requests[i]), IWARP_OK);
		/* and once for the first message */
		cr_assert_eq(p->b.kicks, i + 2, "there is something to answer");
	}
	cr_assert_eq(take_hex(&p->b, read_requests[2]), DDP_E_U_NOBUF);
	cr_assert_eq(p->b.s.term.seg_len, 46);
	cr_assert_eq(p->b.nevents, 0, "requests are not delivered");
}

static enum ddp_stag_error any_memory(void *ctx, __u32 stag, __u64 to, __u64 len,
				      unsigned int access, __u8 **addr)
{
	*addr = ctx;
	return DDP_STAG_OK;
}

/* An answer that is built makes room, also before the transport is known to have it */
Test(rdmap_rx, a_request_that_is_answered_does_not_count)
{
	__u64 memory = 0;
	struct rdmap_source source = { .get = any_memory, .ctx = &memory };

	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(take_hex(&p->b, read_requests[i]), IWARP_OK);
	cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &source), 1);
	cr_assert_eq(take_hex(&p->b, read_requests[2]), IWARP_OK);
	cr_assert_eq(take_hex(&p->b, "4141 00000000 00000001 00000004 00000000" READ_28),
		     DDP_E_U_NOBUF);
}

/* Where there are no more slots than IRD, only a commit gives one back */
Test(rdmap_rx, a_slot_is_not_reused_before_the_commit)
{
	__u64 memory = 0;
	struct rdmap_source source = { .get = any_memory, .ctx = &memory };

	p->b.s.in_cap = 2;
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(take_hex(&p->b, read_requests[i]), IWARP_OK);
	cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &source), 1);
	rdmap_tx_commit(&p->b.s);
	cr_assert_eq(take_hex(&p->b, read_requests[2]), IWARP_OK);
	cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &source), 1);
	cr_assert_eq(take_hex(&p->b, "4141 00000000 00000001 00000004 00000000" READ_28),
		     DDP_E_U_NOBUF);
}

Test(rdmap_rx, no_depth_at_all)
{
	again(&(struct pair_options){ .ird = 0 });
	p->b.s.in_cap = 0;
	cr_assert_eq(take_hex(&p->b, read_requests[0]), DDP_E_U_NOBUF);
}

/* --- responses --------------------------------------------------------------------------- */

static struct rdmap_wr read_wr(__u32 len)
{
	return (struct rdmap_wr){ .op = RDMAP_READ_REQ,
				  .len = len,
				  .stag = 1,
				  .sink_stag = end_stag(&p->a, LOCAL),
				  .sink_to = PAIR_TO + 16,
				  .cookie = 77 };
}

static enum iwarp_fault read_response(bool last, __u32 stag, __u64 to, __u32 len)
{
	__u8 ulpdu[256] = { last ? 0xC1 : 0x81, 0x42 };

	base_put_be32(ulpdu + 2, stag);
	base_put_be64(ulpdu + 6, to);
	memset(ulpdu + 14, 0xEE, len);
	return end_take(&p->a, ulpdu, 14 + len);
}

Test(rdmap_rx, read_responses_that_do_not_match)
{
	static const struct {
		bool last;
		__u32 stag_flip;
		__s32 to;
		__u32 len;
		enum iwarp_fault want;
	} rows[] = {
		{ true, 0, 0, 100, IWARP_OK },
		{ true, 1, 0, 100, DDP_E_T_STAG },
		{ true, 0, 1, 100, DDP_E_T_BOUNDS },
		{ true, 0, -1, 100, DDP_E_T_BOUNDS },
		{ true, 0, 0, 101, DDP_E_T_BOUNDS },
		{ false, 0, 0, 101, DDP_E_T_BOUNDS },
		{ true, 0, 0, 99, RDMAP_E_CATASTROPHIC },
		{ true, 0, 0, 0, RDMAP_E_CATASTROPHIC },
	};

	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		struct rdmap_wr wr;
		enum iwarp_fault f;

		again(&(struct pair_options){ .ord = 2 });
		wr = read_wr(100);
		cr_assert_eq(end_send(&p->a, &wr), 0);
		f = read_response(rows[i].last, wr.sink_stag ^ rows[i].stag_flip,
				  wr.sink_to + rows[i].to, rows[i].len);
		cr_assert_eq(f, rows[i].want, "row %u: %x", i, f);
		cr_assert_eq(p->a.nevents, !f, "row %u", i);
		cr_assert_eq(end_mem(&p->a, LOCAL)[16 + 100], (__u8)((16 + 100) * 13 + LOCAL));
	}
}

Test(rdmap_rx, a_read_response_in_segments)
{
	struct rdmap_wr wr = read_wr(100);

	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(read_response(false, wr.sink_stag, wr.sink_to, 60), IWARP_OK);
	cr_assert_eq(p->a.nevents, 0, "it is not complete");
	cr_assert_eq(read_response(false, wr.sink_stag, wr.sink_to + 60, 40), IWARP_OK);
	cr_assert_eq(p->a.nevents, 0, "all is there, but the end has not been said");
	cr_assert_eq(rdmap_outstanding(&p->a.s), 1);
	cr_assert_eq(read_response(true, wr.sink_stag, wr.sink_to + 100, 0), IWARP_OK);
	cr_assert_eq(p->a.nevents, 1);
	cr_assert_eq(p->a.events[0].cookie, 77);
	cr_assert_eq(p->a.accesses, DDP_LOCAL_WRITE);
	cr_assert_eq(rdmap_outstanding(&p->a.s), 0);
	cr_assert_eq(read_response(true, wr.sink_stag, wr.sink_to, 100), RDMAP_E_OPCODE, "once");
}

Test(rdmap_rx, a_read_response_with_a_gap)
{
	struct rdmap_wr wr = read_wr(100);

	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(read_response(false, wr.sink_stag, wr.sink_to, 40), IWARP_OK);
	cr_assert_eq(read_response(true, wr.sink_stag, wr.sink_to + 50, 50), DDP_E_T_BOUNDS);
}

/* A message of nothing names nothing (RFC 5041 section 5.2) */
Test(rdmap_rx, the_answer_to_a_read_of_nothing)
{
	struct rdmap_wr wr = read_wr(0);

	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(read_response(true, 0xBAD, 0xBAD, 0), IWARP_OK);
	cr_assert_eq(p->a.events[0].cookie, 77);
	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(read_response(true, wr.sink_stag, wr.sink_to, 1), DDP_E_T_BOUNDS);
}

/* The sink of a Read must be memory that we may write to */
Test(rdmap_rx, a_sink_without_the_right)
{
	struct rdmap_wr wr = read_wr(10);

	wr.sink_stag = end_stag(&p->a, WRITE_ONLY);
	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(read_response(true, wr.sink_stag, wr.sink_to, 10), DDP_E_T_STAG);
}

Test(rdmap_rx, a_write_needs_the_remote_right)
{
	static const struct {
		enum pair_region region;
		enum iwarp_fault want;
	} rows[] = { { RW, IWARP_OK },
		     { WRITE_ONLY, IWARP_OK },
		     { READ_ONLY, DDP_E_T_STAG },
		     { LOCAL, DDP_E_T_STAG },
		     { FOREIGN, DDP_E_T_STREAM } };
	struct iovec sg = { "abcd", 4 };

	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		struct rdmap_wr wr;

		again(&(struct pair_options){ .ird = 2 });
		wr = (struct rdmap_wr){ .op = RDMAP_WRITE,
					.sg = &sg,
					.nsg = 1,
					.len = 4,
					.stag = end_stag(&p->b, rows[i].region),
					.to = PAIR_TO };
		cr_assert_eq(end_send(&p->a, &wr), 0);
		cr_assert_eq(end_receive(&p->a, &p->b), rows[i].want, "row %u", i);
		cr_assert_eq(!memcmp(end_mem(&p->b, rows[i].region), "abcd", 4), !rows[i].want);
		cr_assert_eq(p->b.accesses, DDP_REMOTE_WRITE);
	}
}

/* Another tagged message inside one that has not ended */
Test(rdmap_rx, messages_are_not_interleaved)
{
	struct rdmap_wr wr = read_wr(100);
	__u8 write[14] = { 0xC1, 0x40 };

	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(read_response(false, wr.sink_stag, wr.sink_to, 40), IWARP_OK);
	base_put_be32(write + 2, wr.sink_stag);
	cr_assert_eq(end_take(&p->a, write, 14), DDP_E_T_STAG);
}

static enum iwarp_fault atomic_response(__u32 msn, __u32 req_id, __u64 value)
{
	__u8 ulpdu[30] = { 0x41, 0x4B };

	base_put_be32(ulpdu + 6, RDMAP_QN_ATOMIC);
	base_put_be32(ulpdu + 10, msn);
	base_put_be32(ulpdu + 18, req_id);
	base_put_be64(ulpdu + 22, value);
	return end_take(&p->a, ulpdu, sizeof(ulpdu));
}

Test(rdmap_rx, atomic_responses)
{
	static const struct rdmap_wr wr = { .op = RDMAP_ATOMIC_REQ, .cookie = 5 };

	for (__u32 i = 0; i < 5; i++) {
		cr_assert_eq(end_send(&p->a, &wr), 0);
		cr_assert_eq(atomic_response(i + 1, i, 1000 + i), IWARP_OK);
		cr_assert_eq(p->a.events[i].value, 1000 + i);
		cr_assert_eq(p->a.events[i].cookie, 5);
	}
	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(atomic_response(6, 4, 0), RDMAP_E_OPCODE, "an old request");
}

Test(rdmap_rx, an_atomic_response_with_a_wrong_number)
{
	static const struct rdmap_wr wr = { .op = RDMAP_ATOMIC_REQ };

	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(atomic_response(2, 0, 0), DDP_E_U_MSN);
}

/* The oldest request is the one to be answered, and by what fits it */
Test(rdmap_rx, responses_in_the_wrong_order)
{
	struct rdmap_wr read = read_wr(10), atomic = { .op = RDMAP_ATOMIC_REQ };

	cr_assert_eq(end_send(&p->a, &read), 0);
	cr_assert_eq(end_send(&p->a, &atomic), 0);
	cr_assert_eq(atomic_response(1, 0, 0), RDMAP_E_OPCODE);
	again(&(struct pair_options){ .ord = 2 });
	read = read_wr(10);
	cr_assert_eq(end_send(&p->a, &atomic), 0);
	cr_assert_eq(end_send(&p->a, &read), 0);
	cr_assert_eq(read_response(true, read.sink_stag, read.sink_to, 10), RDMAP_E_OPCODE);
}
