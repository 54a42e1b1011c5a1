/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each opcode in both directions between two streams: what goes in at one end comes out at the
 * other.
 */
#include "rdmap/opcode.h"

#include <criterion/criterion.h>

#include "tests/unit/rdmap/pair.h"

struct direction {
	struct end *from, *to;
};

static struct pair *p;

static struct direction direction(unsigned int i)
{
	return i ? (struct direction){ &p->b, &p->a } : (struct direction){ &p->a, &p->b };
}

static void setup(void)
{
	p = pair_create(NULL);
}

static void teardown(void)
{
	pair_destroy(p);
}

TestSuite(rdmap_opcode, .init = setup, .fini = teardown);

/* RFC 5040 Figure 4, RFC 7306 Figure 3 */
Test(rdmap_opcode, table)
{
	static const struct {
		bool tagged;
		__u8 qn, hdr_len;
	} want[RDMAP_OPCODES] = {
		{ true, 0, 0 },	 { false, 1, 28 }, { true, 0, 0 },   { false, 0, 0 },
		{ false, 0, 0 }, { false, 0, 0 },  { false, 0, 0 },  { false, 2, 0 },
		{ false, 0, 8 }, { false, 0, 8 },  { false, 1, 52 }, { false, 3, 12 },
	};

	for (unsigned int op = 0; op < RDMAP_OPCODES; op++) {
		cr_expect_eq(rdmap_opcodes[op].tagged, want[op].tagged, "%u", op);
		cr_expect_eq(rdmap_opcodes[op].qn, want[op].qn, "%u", op);
		cr_expect_eq(rdmap_opcodes[op].hdr_len, want[op].hdr_len, "%u", op);
		cr_expect_not_null(rdmap_opcodes[op].take, "%u", op);
	}
}

static __u8 payload[6000];

static void fill_payload(unsigned int seed)
{
	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = (__u8)(i * 7 + i / 256 + seed);
}

Test(rdmap_opcode, write)
{
	static const __u32 lengths[] = { 0, 1, 1426, 1427, 6000 };

	for (unsigned int i = 0; i < 2 * 5; i++) {
		struct direction d = direction(i & 1);
		struct iovec sg[2] = { { payload, 700 }, { payload + 700, sizeof(payload) - 700 } };
		struct rdmap_wr wr = { .op = RDMAP_WRITE,
				       .sg = sg,
				       .nsg = 2,
				       .len = lengths[i / 2],
				       .stag = end_stag(d.to, RW),
				       .to = PAIR_TO + 100 };
		__u8 before = end_mem(d.to, RW)[100 + wr.len];

		fill_payload(i);
		cr_assert_eq(end_send(d.from, &wr), 0);
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_arr_eq(end_mem(d.to, RW) + 100, payload, wr.len);
		cr_assert_eq(end_mem(d.to, RW)[100 + wr.len], before);
		cr_assert_eq(d.to->nevents, 0, "a Write is not delivered");
	}
}

Test(rdmap_opcode, send_family)
{
	static const struct {
		__u8 op;
		bool solicited, invalidate;
	} rows[] = {
		{ RDMAP_SEND, false, false },
		{ RDMAP_SEND_INV, false, true },
		{ RDMAP_SEND_SE, true, false },
		{ RDMAP_SEND_SE_INV, true, true },
	};
	static const __u32 lengths[] = { 0, 1, 1422, 5000 };

	for (unsigned int i = 0; i < 2 * 4; i++) {
		struct direction d = direction(i & 1);
		__u32 stag = end_stag(d.to, i / 2 == 1 ? RW : READ_ONLY);
		struct iovec sg = { payload, lengths[i / 2] };
		struct rdmap_wr wr = { .op = rows[i / 2].op,
				       .sg = &sg,
				       .nsg = 1,
				       .len = lengths[i / 2],
				       .inv_stag = stag };
		const struct rdmap_recv *recv = &d.to->events[d.to->nevents].recv;
		unsigned int buffer = d.to->recv_first;

		fill_payload(i);
		cr_assert_eq(end_send(d.from, &wr), 0);
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_eq(recv->op, rows[i / 2].op);
		cr_assert_eq(recv->len, wr.len);
		cr_assert_eq(recv->solicited, rows[i / 2].solicited);
		cr_assert_eq(recv->invalidated, rows[i / 2].invalidate);
		cr_assert_eq(recv->inv_stag, rows[i / 2].invalidate ? stag : 0);
		cr_assert_arr_eq(d.to->recv[buffer], payload, wr.len);
		cr_assert_eq(!ddp_stag_lookup(&d.to->stags, stag), rows[i / 2].invalidate);
		cr_assert_eq(d.to->recv_posted, PAIR_RECVS - 1 - i / 2, "one receive each");
	}
}

Test(rdmap_opcode, immediate)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct direction d = direction(i & 1);
		bool solicited = i / 2;
		struct rdmap_wr wr = { .op = solicited ? RDMAP_IMM_SE : RDMAP_IMM,
				       .imm = 0x0123456789ABCDEF + i };
		const struct rdmap_recv *recv = &d.to->events[d.to->nevents].recv;

		d.to->recv_room = 0;
		cr_assert_eq(end_send(d.from, &wr), 0);
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_eq(recv->op, wr.op);
		cr_assert_eq(recv->len, 8);
		cr_assert_eq(recv->imm, wr.imm);
		cr_assert_eq(recv->solicited, solicited);
		cr_assert_eq(d.to->recv_posted, PAIR_RECVS - 1 - i / 2, "one receive each");
	}
}

Test(rdmap_opcode, read)
{
	static const __u32 lengths[] = { 0, 1, 1426, 1427, 10000 };

	for (unsigned int i = 0; i < 2 * 5; i++) {
		struct direction d = direction(i & 1);
		struct rdmap_wr wr = { .op = RDMAP_READ_REQ,
				       .len = lengths[i / 2],
				       .stag = end_stag(d.to, READ_ONLY),
				       .to = PAIR_TO + 50,
				       .sink_stag = end_stag(d.from, LOCAL),
				       .sink_to = PAIR_TO + 7,
				       .cookie = 1000 + i };
		const struct pair_event *ev = &d.from->events[d.from->nevents];
		__u8 behind = end_mem(d.from, LOCAL)[7 + wr.len];
		unsigned int told = d.to->nevents;

		cr_assert_eq(end_send(d.from, &wr), 0);
		cr_assert_eq(rdmap_outstanding(&d.from->s), 1);
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_eq(rdmap_outstanding(&d.from->s), 0);
		cr_assert_eq(ev->kind, EV_DONE);
		cr_assert_eq(ev->cookie, wr.cookie);
		cr_assert_arr_eq(end_mem(d.from, LOCAL) + 7, end_mem(d.to, READ_ONLY) + 50, wr.len);
		cr_assert_eq(end_mem(d.from, LOCAL)[7 + wr.len], behind);
		cr_assert_eq(d.to->nevents, told, "the target is told nothing");
	}
}

Test(rdmap_opcode, atomics)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct direction d = direction(i);
		__u64 *number = (__u64 *)(void *)end_mem(d.to, RW) + 3;
		struct rdmap_wr add = { .op = RDMAP_ATOMIC_REQ,
					.aop = RDMAP_FETCH_ADD,
					.stag = end_stag(d.to, RW),
					.to = PAIR_TO + 24,
					.data = 5,
					.cookie = 1 };
		struct rdmap_wr swap = { .op = RDMAP_ATOMIC_REQ,
					 .aop = RDMAP_CMP_SWAP,
					 .stag = end_stag(d.to, RW),
					 .to = PAIR_TO + 24,
					 .data = 0xABCD,
					 .mask = ~0ull,
					 .compare = 105,
					 .compare_mask = ~0ull,
					 .cookie = 2 };
		const struct pair_event *ev = &d.from->events[d.from->nevents];

		*number = 100;
		cr_assert_eq(end_send(d.from, &add), 0);
		cr_assert_eq(end_send(d.from, &swap), 0);
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_eq(ev[0].cookie, 1);
		cr_assert_eq(ev[0].value, 100);
		cr_assert_eq(ev[1].cookie, 2);
		cr_assert_eq(ev[1].value, 105);
		cr_assert_eq(*number, 0xABCD);
	}
}
