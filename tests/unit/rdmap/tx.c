/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What may be sent, and when.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/bits.h"
#include "tests/unit/rdmap/pair.h"

static __u8 payload[6000];
static struct iovec payload_sg = { payload, sizeof(payload) };
static const struct rdmap_wr send_wr = { .op = RDMAP_SEND };
static struct pair *p;

static void teardown(void)
{
	pair_destroy(p);
}

static void open_pair(__u8 flags, __u8 rtr, __u16 depth)
{
	struct pair_options o = {
		.flags = MPA_F_CRC | flags, .rtr = rtr, .ird = depth, .ord = depth, .gated = true
	};

	p = pair_create(&o);
}

static ssize_t tx(struct end *e, const struct rdmap_wr *wr, __u32 off)
{
	bool last;

	return rdmap_tx_wr(&e->s, &e->slots, &e->v, wr, off, &last);
}

static struct rdmap_wr read_wr(__u64 cookie)
{
	return (struct rdmap_wr){ .op = RDMAP_READ_REQ,
				  .len = 3000,
				  .stag = end_stag(&p->b, RW),
				  .to = PAIR_TO,
				  .sink_stag = end_stag(&p->a, RW),
				  .sink_to = PAIR_TO,
				  .cookie = cookie };
}

static struct rdmap_wr atomic_wr(__u64 cookie)
{
	return (struct rdmap_wr){ .op = RDMAP_ATOMIC_REQ,
				  .aop = RDMAP_FETCH_ADD,
				  .data = 1,
				  .stag = end_stag(&p->b, RW),
				  .to = PAIR_TO,
				  .cookie = cookie };
}

TestSuite(rdmap_tx, .fini = teardown);

Test(rdmap_tx, not_a_work_request)
{
	static const struct {
		struct rdmap_wr wr;
		__u32 off;
	} rows[] = {
		{ { .op = RDMAP_READ_RESP }, 0 },
		{ { .op = RDMAP_TERMINATE }, 0 },
		{ { .op = RDMAP_ATOMIC_RESP }, 0 },
		{ { .op = RDMAP_OPCODES }, 0 },
		{ { .op = 255 }, 0 },
		{ { .op = RDMAP_ATOMIC_REQ, .aop = 1 }, 0 },
		{ { .op = RDMAP_ATOMIC_REQ, .aop = 3 }, 0 },
		{ { .op = RDMAP_ATOMIC_REQ, .len = 8 }, 1 },
		{ { .op = RDMAP_READ_REQ, .len = 100 }, 1 },
		{ { .op = RDMAP_IMM, .len = 8 }, 1 },
		{ { .op = RDMAP_SEND }, 1 },
		{ { .op = RDMAP_SEND, .sg = &payload_sg, .nsg = 1, .len = 100 }, 100 },
		/* longer than its list */
		{ { .op = RDMAP_WRITE, .sg = &payload_sg, .nsg = 1, .len = 6001 }, 6000 },
	};

	open_pair(0, 0, 4);
	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		cr_expect_eq(tx(&p->a, &rows[i].wr, rows[i].off), -EINVAL, "%u", i);
		cr_expect_eq(p->a.v.niov, 0, "%u", i);
	}
}

Test(rdmap_tx, octets_2_to_5_only_with_an_invalidate)
{
	static const struct {
		__u8 op;
		__u32 want;
	} rows[] = { { RDMAP_SEND, 0 },	    { RDMAP_SEND_INV, 0xA1B2C3D4 },
		     { RDMAP_SEND_SE, 0 },  { RDMAP_SEND_SE_INV, 0xA1B2C3D4 },
		     { RDMAP_IMM, 0 },	    { RDMAP_IMM_SE, 0 },
		     { RDMAP_READ_REQ, 0 }, { RDMAP_ATOMIC_REQ, 0 } };

	open_pair(0, 0, 4);
	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		struct rdmap_wr wr = { .op = rows[i].op, .inv_stag = 0xA1B2C3D4 };
		size_t at = 0, len;
		const __u8 *u;

		cr_assert_eq(end_send(&p->a, &wr), 0);
		u = end_ulpdu(&p->a, &at, &len);
		cr_expect_eq(u[0], 0x41);
		cr_expect_eq(u[1], 0x40 | wr.op);
		cr_expect_eq(base_get_be32(u + 2), rows[i].want, "%u", i);
		p->a.wire_len = 0;
	}
}

Test(rdmap_tx, closed_to_everything)
{
	static const struct {
		__u8 state, mpa;
	} rows[] = {
		{ RDMAP_FAULTED, MPA_OPEN },   { RDMAP_TERM_SENT, MPA_OPEN },
		{ RDMAP_TERM_RCVD, MPA_OPEN }, { RDMAP_OPEN, MPA_FAILED },
		{ RDMAP_OPEN, MPA_REJECTED },
	};

	open_pair(MPA_F_P2P, MPA_RTR_WRITE, 4);
	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		struct rdmap_wr wr = {
			.op = RDMAP_WRITE, .sg = &payload_sg, .nsg = 1, .len = sizeof(payload)
		};

		p->a.s.state = rows[i].state;
		p->a.s.ddp.mpa.state = rows[i].mpa;
		cr_expect_eq(tx(&p->a, &wr, 0), -EPIPE, "%u", i);
		cr_expect_eq(tx(&p->a, &wr, 1426), -EPIPE, "%u: in the middle", i);
		cr_expect_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 0, "%u", i);
		cr_expect_eq(p->a.v.niov, 0, "%u", i);
	}
}

Test(rdmap_tx, a_responder_waits_for_the_first_message)
{
	struct rdmap_wr wr = { .op = RDMAP_WRITE };

	open_pair(0, 0, 4);
	cr_assert_eq(tx(&p->b, &send_wr, 0), -EAGAIN);
	cr_assert_eq(p->b.kicks, 0);
	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(pair_run(p), IWARP_OK);
	cr_assert_eq(p->b.kicks, 1, "its tx side hears of it");
	cr_assert_eq(tx(&p->b, &send_wr, 0), 0);
	cr_assert_eq(end_send(&p->a, &wr), 0);
	cr_assert_eq(pair_run(p), IWARP_OK);
	cr_assert_eq(p->b.kicks, 1, "once");
}

Test(rdmap_tx, ready_to_receive_goes_first)
{
	open_pair(MPA_F_P2P, MPA_RTR_WRITE, 4);
	cr_assert_eq(tx(&p->a, &send_wr, 0), -EAGAIN);
	p->a.v.iov_cap = 0;
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), -ENOBUFS);
	cr_assert_eq(tx(&p->a, &send_wr, 0), -EAGAIN, "still due");
	p->a.v.iov_cap = 100;
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 1);
	cr_assert_eq(tx(&p->a, &send_wr, 0), 0);
	end_flush(&p->a);
	cr_assert_eq(pair_run(p), IWARP_OK);
	cr_assert_eq(p->b.nevents, 1, "the Send alone");
	cr_assert_eq(rdmap_tx_rtr(&p->b.s, &p->b.slots, &p->b.v), 0, "a responder sends none");
}

Test(rdmap_tx, ready_to_receive_waits_for_start_up)
{
	open_pair(MPA_F_P2P, MPA_RTR_WRITE, 4);
	p->a.s.ddp.mpa.state = MPA_REQUESTED;
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 0);
	cr_assert_eq(tx(&p->a, &send_wr, 0), -EAGAIN);
}

/* As damaged state could have it: there is no slot to take, so none is taken */
Test(rdmap_tx, ready_to_receive_without_a_depth)
{
	open_pair(MPA_F_P2P, MPA_RTR_READ, 4);
	p->a.s.out_cap = 0;
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 0);
	cr_assert_eq(p->a.v.niov, 0);
}

Test(rdmap_tx, read_as_ready_to_receive_is_not_reported)
{
	open_pair(MPA_F_P2P, MPA_RTR_READ, 1);
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 1);
	cr_assert_eq(rdmap_outstanding(&p->a.s), 1, "it takes a slot");
	end_flush(&p->a);
	cr_assert_eq(pair_run(p), IWARP_OK);
	cr_assert_eq(rdmap_outstanding(&p->a.s), 0);
	cr_assert_eq(p->a.nevents + p->b.nevents, 0, "nobody is told");
	cr_assert_eq(p->a.kicks, 1, "the slot is free again");
	cr_assert_eq(p->b.lookups, 0);
}

Test(rdmap_tx, never_more_than_ord)
{
	open_pair(0, 0, 3);
	p->b.s.ddp.mpa.ird = 12;
	for (unsigned int round = 0; round < 20; round++) {
		for (unsigned int i = 0; i < 3; i++) {
			struct rdmap_wr wr = (i + round) % 2 ? read_wr(i) : atomic_wr(i);

			cr_assert_eq(rdmap_outstanding(&p->a.s), i);
			cr_assert_eq(end_send(&p->a, &wr), 0);
		}
		cr_assert_eq(tx(&p->a, &(struct rdmap_wr){ .op = RDMAP_READ_REQ }, 0), -EAGAIN);
		cr_assert_eq(tx(&p->a, &(struct rdmap_wr){ .op = RDMAP_ATOMIC_REQ }, 0), -EAGAIN);
		cr_assert_eq(p->a.v.niov, 0);
		cr_assert_eq(end_send(&p->a, &send_wr), 0, "others go on");
		p->b.recv_posted++;
		p->b.recv_first = 0;
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_eq(p->a.nevents, 3);
		for (unsigned int i = 0; i < 3; i++)
			cr_assert_eq(p->a.events[i].cookie, i, "in order");
		p->a.nevents = p->b.nevents = 0;
	}
}

Test(rdmap_tx, a_depth_of_none)
{
	open_pair(0, 0, 0);
	cr_assert_eq(tx(&p->a, &(struct rdmap_wr){ .op = RDMAP_READ_REQ }, 0), -EINVAL);
	cr_assert_eq(tx(&p->a, &(struct rdmap_wr){ .op = RDMAP_ATOMIC_REQ }, 0), -EINVAL);
	cr_assert_eq(tx(&p->a, &(struct rdmap_wr){ .op = RDMAP_SEND, .fence = true }, 0), 0);
}

/* The slots are the limit also if the negotiated number is wrong */
Test(rdmap_tx, never_more_than_there_are_slots)
{
	open_pair(0, 0, 4);
	p->a.s.ddp.mpa.ord = 1000;
	for (unsigned int i = 0; i < PAIR_SLOTS; i++)
		cr_assert_eq(end_send(&p->a, &(struct rdmap_wr){ .op = RDMAP_READ_REQ }), 0);
	cr_assert_eq(tx(&p->a, &(struct rdmap_wr){ .op = RDMAP_READ_REQ }, 0), -EAGAIN);
}

Test(rdmap_tx, a_fence_waits_for_reads_and_atomics)
{
	static const __u8 ops[] = { RDMAP_WRITE,   RDMAP_READ_REQ, RDMAP_SEND,
				    RDMAP_SEND_SE, RDMAP_IMM,	   RDMAP_ATOMIC_REQ };

	open_pair(0, 0, 4);
	for (unsigned int i = 0; i < 2 * base_array_size(ops); i++) {
		struct rdmap_wr first = i % 2 ? atomic_wr(1) : read_wr(1);
		struct rdmap_wr wr = read_wr(2);

		wr.op = ops[i / 2];
		wr.len = 0;
		wr.fence = true;
		cr_assert_eq(end_send(&p->a, &first), 0);
		cr_assert_eq(tx(&p->a, &wr, 0), -EAGAIN, "%u", i);
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_eq(end_send(&p->a, &wr), 0, "%u", i);
		cr_assert_eq(pair_run(p), IWARP_OK);
		p->a.nevents = 0;
	}
}

/* With a fence a Read cannot see a Write that was sent after it; without, the Write may pass */
Test(rdmap_tx, without_a_fence_it_does_not_wait)
{
	struct rdmap_wr read, write = { .op = RDMAP_WRITE };

	open_pair(0, 0, 4);
	read = read_wr(1);
	cr_assert_eq(end_send(&p->a, &read), 0);
	cr_assert_eq(end_send(&p->a, &write), 0);
}

Test(rdmap_tx, a_response_half_built_is_not_interrupted)
{
	struct rdmap_wr read;

	open_pair(0, 0, 4);
	read = read_wr(1);
	cr_assert_eq(end_send(&p->a, &read), 0);
	cr_assert_eq(end_receive(&p->a, &p->b), IWARP_OK);
	cr_assert_eq(tx(&p->b, &send_wr, 0), 0, "before the Response");
	for (unsigned int i = 0; i < 2; i++) {
		cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &p->b.source), 1);
		cr_assert_eq(tx(&p->b, &send_wr, 0), -EAGAIN);
	}
	cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &p->b.source), 1);
	cr_assert_eq(tx(&p->b, &send_wr, 0), 0, "behind it");
	end_flush(&p->b);
	cr_assert_eq(pair_run(p), IWARP_OK);
}

Test(rdmap_tx, without_room_nothing_has_changed)
{
	static const __u8 ops[] = { RDMAP_WRITE,   RDMAP_READ_REQ, RDMAP_SEND,
				    RDMAP_SEND_SE, RDMAP_IMM,	   RDMAP_ATOMIC_REQ };

	open_pair(0, 0, 4);
	for (unsigned int i = 0; i < base_array_size(ops); i++) {
		struct rdmap_wr wr = { .op = ops[i], .sg = &payload_sg, .nsg = 1, .len = 10 };
		struct rdmap_stream before = p->a.s;

		p->a.v.scratch_cap = 8;
		cr_assert_eq(tx(&p->a, &wr, 0), -ENOBUFS, "%u", i);
		cr_assert_eq(memcmp(&before, &p->a.s, sizeof(before)), 0, "%u", i);
	}
}

/*
 * One queue and one row of numbers for Reads and Atomics, another for Sends (RFC 7306 section
 * 5.2)
 */
Test(rdmap_tx, message_numbers)
{
	static const struct {
		__u8 op;
		__u32 qn, msn;
	} rows[] = {
		{ RDMAP_READ_REQ, 1, 1 }, { RDMAP_ATOMIC_REQ, 1, 2 }, { RDMAP_SEND, 0, 1 },
		{ RDMAP_READ_REQ, 1, 3 }, { RDMAP_IMM, 0, 2 },	      { RDMAP_ATOMIC_REQ, 1, 4 },
	};
	size_t at = 0, len;

	open_pair(0, 0, 12);
	for (unsigned int i = 0; i < base_array_size(rows); i++)
		cr_assert_eq(end_send(&p->a, &(struct rdmap_wr){ .op = rows[i].op }), 0);
	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		const __u8 *u = end_ulpdu(&p->a, &at, &len);

		cr_expect_eq(base_get_be32(u + 6), rows[i].qn, "%u", i);
		cr_expect_eq(base_get_be32(u + 10), rows[i].msn, "%u", i);
		cr_expect_eq(base_get_be32(u + 14), 0, "%u", i);
	}
}
