/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From start-up to the last commit: depths, the ready-to-receive message, marks and rewinds.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "base/bits.h"
#include "tests/unit/rdmap/pair.h"

/* --- start-up ---------------------------------------------------------------------------- */

Test(rdmap_stream, is_plain_data_of_a_known_size)
{
	static const struct mpa_config config = { .rev = 2, .ird = 3, .ord = 5 };
	struct rdmap_stream s;

	memset(&s, 0xEE, sizeof(s));
	rdmap_stream_init(&s, MPA_RESPONDER, &config, 6, 5);
	cr_assert_eq(s.ddp.mpa.role, MPA_RESPONDER);
	cr_assert_eq(s.in_cap, 6);
	cr_assert_eq(s.out_cap, 5);
	cr_assert_eq(s.state, RDMAP_OPEN);
	cr_assert_eq(rdmap_outstanding(&s), 0);
	cr_assert_leq(sizeof(s), 512);
}

Test(rdmap_stream, depths)
{
	enum { ULP = MPA_DEPTH_ULP };
	static const struct {
		__u8 role;
		__u16 ird, peer_ord, ord, in_cap, out_cap, want_ird, want_ord;
		enum iwarp_fault want;
	} rows[] = {
		{ MPA_INITIATOR, 4, 4, 8, 4, 8, 4, 8, 0 },
		{ MPA_RESPONDER, 4, 4, 8, 8, 16, 4, 8, 0 },
		{ MPA_INITIATOR, 0, 0, 0, 0, 0, 0, 0, 0 },
		/* left to the ULP: what there are slots for */
		{ MPA_INITIATOR, ULP, ULP, ULP, 6, 7, 6, 7, 0 },
		{ MPA_RESPONDER, ULP, 9, ULP, 6, 7, 6, 7, 0 },
		/* revision 1: nothing is known of the peer */
		{ MPA_RESPONDER, 4, ULP, 4, 4, 4, 4, 4, 0 },
		/* more than there are slots for */
		{ MPA_INITIATOR, 4, 4, 100, 4, 8, 4, 8, 0 },
		{ MPA_INITIATOR, 5, 5, 1, 4, 8, 4, 1, MPA_E_IRD },
		{ MPA_RESPONDER, 1, 9, 0, 0, 0, 0, 0, MPA_E_IRD },
		{ MPA_RESPONDER, 5, ULP, 1, 4, 8, 4, 1, MPA_E_IRD },
		/* promised more, but the peer will not use it */
		{ MPA_INITIATOR, 100, 4, 1, 4, 8, 4, 1, 0 },
	};

	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		struct mpa_config config = { .rev = 2 };
		struct rdmap_stream s;
		struct mpa_conn *c = &s.ddp.mpa;

		rdmap_stream_init(&s, rows[i].role, &config, rows[i].in_cap, rows[i].out_cap);
		c->state = MPA_OPEN;
		c->ird = rows[i].ird;
		c->ord = rows[i].ord;
		c->peer_ord = rows[i].peer_ord;
		cr_expect_eq(rdmap_stream_started(&s), rows[i].want, "row %u", i);
		cr_expect_eq(c->ird, rows[i].want_ird, "row %u: %u", i, c->ird);
		cr_expect_eq(c->ord, rows[i].want_ord, "row %u: %u", i, c->ord);
		cr_expect_eq(s.term.fault, rows[i].want, "row %u", i);
		cr_expect_eq(s.state, rows[i].want ? RDMAP_FAULTED : RDMAP_OPEN, "row %u", i);
	}
}

Test(rdmap_stream, ready_to_receive)
{
	static const struct {
		__u8 role, flags, rtr;
		__u16 ord;
		__u8 want_rtr;
		enum iwarp_fault want;
	} rows[] = {
		{ MPA_INITIATOR, 0, 0, 4, RDMAP_RTR_NONE, 0 },
		{ MPA_RESPONDER, 0, 0, 4, RDMAP_RTR_NONE, 0 },
		{ MPA_INITIATOR, MPA_F_P2P, MPA_RTR_WRITE, 0, RDMAP_RTR_TO_SEND, 0 },
		{ MPA_RESPONDER, MPA_F_P2P, MPA_RTR_SEND, 0, RDMAP_RTR_TO_COME, 0 },
		{ MPA_INITIATOR, MPA_F_P2P, MPA_RTR_READ, 1, RDMAP_RTR_TO_SEND, 0 },
		{ MPA_RESPONDER, MPA_F_P2P, MPA_RTR_READ, 0, RDMAP_RTR_TO_COME, 0 },
		/* the Read needs a slot */
		{ MPA_INITIATOR, MPA_F_P2P, MPA_RTR_READ, 0, RDMAP_RTR_TO_SEND, MPA_E_IRD },
	};

	for (unsigned int i = 0; i < base_array_size(rows); i++) {
		struct mpa_config config = { .rev = 2 };
		struct rdmap_stream s;

		rdmap_stream_init(&s, rows[i].role, &config, 4, 4);
		s.ddp.mpa.flags = rows[i].flags;
		s.ddp.mpa.rtr = rows[i].rtr;
		s.ddp.mpa.ord = rows[i].ord;
		cr_expect_eq(rdmap_stream_started(&s), rows[i].want, "row %u", i);
		cr_expect_eq(s.rtr, rows[i].want_rtr, "row %u", i);
	}
}

/* The frames themselves, then the stream: what the two ends agreed on is what they do */
static void exchange(struct mpa_conn *i, struct mpa_conn *r)
{
	__u8 frame[MPA_START_MAX];
	struct mpa_startup in;
	size_t len, used;

	cr_assert_eq(mpa_start_request_put(i, NULL, 0, frame, &len), 0);
	cr_assert_eq(mpa_start_request_get(r, frame, len, &in, &used), 0);
	cr_assert_eq(mpa_start_reply_put(r, NULL, 0, frame, &len), 0);
	cr_assert_eq(mpa_start_reply_get(i, frame, len, &in, &used), 0);
}

Test(rdmap_stream, started_by_real_frames)
{
	static const __u8 forms[] = { 0, MPA_RTR_SEND, MPA_RTR_WRITE, MPA_RTR_READ };

	for (unsigned int i = 0; i < base_array_size(forms); i++) {
		struct mpa_config config = { .rev = 2,
					     .want = MPA_F_CRC | MPA_F_ENHANCED,
					     .rtr = forms[i],
					     .ird = 3,
					     .ord = 2 };
		struct pair *p = pair_create(NULL);

		config.want |= forms[i] ? MPA_F_P2P : 0;
		rdmap_stream_init(&p->a.s, MPA_INITIATOR, &config, PAIR_SLOTS, PAIR_SLOTS);
		rdmap_stream_init(&p->b.s, MPA_RESPONDER, &config, PAIR_SLOTS, PAIR_SLOTS);
		exchange(&p->a.s.ddp.mpa, &p->b.s.ddp.mpa);
		cr_assert_eq(rdmap_stream_started(&p->a.s), IWARP_OK);
		cr_assert_eq(rdmap_stream_started(&p->b.s), IWARP_OK);
		cr_assert_eq(p->a.s.ddp.mpa.ord, 2);
		cr_assert_eq(p->b.s.ddp.mpa.ird, 3);
		cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), forms[i] != 0);
		end_flush(&p->a);
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_eq(p->a.nevents + p->b.nevents, 0, "nobody is told");
		cr_assert_eq(end_send(&p->a, &(struct rdmap_wr){ .op = RDMAP_SEND }), 0);
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_eq(end_send(&p->b, &(struct rdmap_wr){ .op = RDMAP_SEND }), 0);
		cr_assert_eq(pair_run(p), IWARP_OK);
		cr_assert_eq(p->a.nevents, 1);
		cr_assert_eq(p->b.nevents, 1);
		pair_destroy(p);
	}
}

/* --- marks and rewinds ------------------------------------------------------------------- */

enum { STEPS = 40, SCRIPT_OCTETS = 20000 };

/* A segment: what was asked for, and what came out */
struct step {
	char kind; /* 'w'ork request, 'r'esponse, 't'erminate */
	unsigned int wr;
	__u32 off;
	__u64 from, to;		   /* octets of the script */
	struct rdmap_tx_mark mark; /* before it */
};

static struct {
	struct end *e;
	struct rdmap_wr wr[8];
	struct step step[STEPS];
	unsigned int n;
	__u8 octets[SCRIPT_OCTETS];
} script;

static __u8 payload[3000];
static struct iovec payload_sg = { payload, sizeof(payload) };

/* Builds one step; its octets into @out, how many */
static size_t step_build(const struct step *st, __u8 *out, ssize_t *taken, bool *last)
{
	struct end *e = script.e;
	size_t n;

	e->wire_len = 0;
	*last = true;
	if (st->kind == 'w')
		*taken = rdmap_tx_wr(&e->s, &e->slots, &e->v, &script.wr[st->wr], st->off, last);
	else if (st->kind == 'r')
		*taken = rdmap_tx_response(&e->s, &e->slots, &e->v, &e->source) - 1;
	else
		*taken = rdmap_tx_terminate(&e->s, &e->v) - 1;
	cr_assert_geq(*taken, 0, "kind %c of %u at %u: %zd", st->kind, st->wr, st->off, *taken);
	end_flush(e);
	n = e->wire_len;
	memcpy(out, e->wire, n);
	return n;
}

/* Adds the segments of a message; @count responses */
static void script_add(char kind, unsigned int arg)
{
	__u32 off = 0;
	unsigned int i = 0;
	bool last;

	do {
		struct step *st = &script.step[script.n];
		ssize_t taken;

		cr_assert_lt(script.n, STEPS);
		*st = (struct step){ .kind = kind, .wr = arg, .off = off };
		st->from = script.n ? st[-1].to : 0;
		cr_assert_lt(st->from, SCRIPT_OCTETS - 2000);
		rdmap_tx_mark(&script.e->s, &st->mark);
		st->to = st->from + step_build(st, script.octets + st->from, &taken, &last);
		script.n++;
		off += (__u32)taken;
	} while (kind == 'r' ? ++i < arg : !last);
}

/* The same octets again from step @k on, after a rewind to its mark */
static void script_again(unsigned int k)
{
	rdmap_tx_rewind(&script.e->s, &script.step[k].mark);
	for (unsigned int i = k; i < script.n; i++) {
		const struct step *st = &script.step[i];
		__u8 octets[4096];
		ssize_t taken;
		bool last;

		cr_assert_eq(step_build(st, octets, &taken, &last), st->to - st->from);
		cr_assert_arr_eq(octets, script.octets + st->from, st->to - st->from,
				 "step %u after a rewind to %u", i, k);
	}
}

/* Requests of a, among them Atomics, for b to answer */
static void requests_come(struct pair *p)
{
	struct rdmap_wr wrs[] = {
		{ .op = RDMAP_ATOMIC_REQ, .aop = RDMAP_FETCH_ADD, .to = PAIR_TO, .data = 1 },
		{ .op = RDMAP_ATOMIC_REQ, .aop = RDMAP_FETCH_ADD, .to = PAIR_TO, .data = 1 },
		{ .op = RDMAP_READ_REQ, .to = PAIR_TO + 8, .len = 2000, .sink_to = PAIR_TO },
		{ .op = RDMAP_READ_REQ },
		{ .op = RDMAP_READ_REQ, .to = PAIR_TO + 9, .len = 700, .sink_to = PAIR_TO },
	};

	for (unsigned int i = 0; i < base_array_size(wrs); i++) {
		wrs[i].stag = end_stag(&p->b, RW);
		wrs[i].sink_stag = end_stag(&p->a, RW);
		cr_assert_eq(end_send(&p->a, &wrs[i]), 0);
	}
	cr_assert_eq(end_receive(&p->a, &p->b), IWARP_OK);
}

static void script_write(struct pair *p)
{
	struct rdmap_wr *wr = script.wr;

	script.e = &p->b;
	for (unsigned int i = 0; i < sizeof(payload); i++)
		payload[i] = (__u8)(i * 11);
	wr[0] = (struct rdmap_wr){ .op = RDMAP_WRITE,
				   .sg = &payload_sg,
				   .nsg = 1,
				   .len = 3000,
				   .stag = end_stag(&p->a, RW),
				   .to = PAIR_TO };
	wr[1] = (struct rdmap_wr){ .op = RDMAP_READ_REQ, .len = 100, .cookie = 1 };
	wr[2] = (struct rdmap_wr){ .op = RDMAP_SEND, .sg = &payload_sg, .nsg = 1, .len = 2000 };
	wr[3] = (struct rdmap_wr){ .op = RDMAP_ATOMIC_REQ, .cookie = 2 };
	wr[4] = (struct rdmap_wr){ .op = RDMAP_IMM_SE, .imm = 42 };
	script_add('w', 0);
	script_add('w', 1);
	script_add('r', 2);
	script_add('w', 2);
	script_add('w', 3);
	script_add('r', 4 + 1 + 2);
	script_add('w', 4);
}

/*
 * At each boundary of a script of 16 segments and more the transport takes no more; what is built
 * again is what was built, with markers in between, and an Atomic is not done twice
 */
Test(rdmap_stream, rewind_at_each_boundary)
{
	struct pair_options o = {
		.flags = MPA_F_CRC | MPA_F_TX_MARKERS, .ird = 6, .ord = 6, .mulpdu = 600
	};
	struct pair *p = pair_create(&o);
	__u64 *number = p->b.mem[RW];

	p->b.s.ddp.mpa.flags = p->a.s.ddp.mpa.flags = MPA_F_CRC;
	requests_come(p);
	p->b.s.ddp.mpa.flags = o.flags;
	*number = 10;
	script_write(p);
	cr_assert_gt(script.n, 16);
	cr_assert_eq(*number, 12);
	for (unsigned int k = script.n; k-- > 0;)
		script_again(k);
	cr_assert_eq(*number, 12);
	cr_assert_eq(rdmap_outstanding(&p->b.s), 2);
	pair_destroy(p);
}

/* And what did go is taken by the other end, in whatever portions it went */
Test(rdmap_stream, what_is_built_again_is_understood)
{
	struct pair *p = pair_create(
		&(struct pair_options){ .flags = MPA_F_CRC, .ird = 6, .ord = 6, .mulpdu = 600 });

	requests_come(p);
	script_write(p);
	script_again(3);
	script_again(9);
	script_again(script.n - 1);
	memcpy(p->b.wire, script.octets, script.step[script.n - 1].to);
	p->b.wire_len = script.step[script.n - 1].to;
	cr_assert_eq(end_receive(&p->b, &p->a), IWARP_OK);
	cr_assert_eq(p->a.nevents, 5 + 2, "five answers, a Send and an Immediate");
	cr_assert_arr_eq(p->a.recv[0], payload, 2000);
	cr_assert_arr_eq(end_mem(&p->a, RW) + 2000, payload + 2000, 1000);
	pair_destroy(p);
}

Test(rdmap_stream, a_terminate_that_did_not_leave_is_due_again)
{
	struct pair *p = pair_create(NULL);
	struct rdmap_tx_mark before, behind;

	rdmap_tx_mark(&p->a.s, &before);
	rdmap_fault(&p->a.s, RDMAP_E_LOCAL);
	cr_assert_eq(rdmap_tx_terminate(&p->a.s, &p->a.v), 1);
	rdmap_tx_mark(&p->a.s, &behind);
	rdmap_tx_rewind(&p->a.s, &behind);
	cr_assert_eq(p->a.s.state, RDMAP_TERM_SENT, "it has left");
	rdmap_tx_rewind(&p->a.s, &before);
	cr_assert_eq(p->a.s.state, RDMAP_FAULTED, "the fault stays");
	p->a.v.niov = p->a.v.used = 0;
	cr_assert_eq(rdmap_tx_terminate(&p->a.s, &p->a.v), 1);
	cr_assert_eq(p->a.s.ddp.tx_msn[RDMAP_QN_TERM], 2, "numbered 1 again");
	pair_destroy(p);
}

Test(rdmap_stream, a_fault_is_not_taken_back)
{
	struct pair *p = pair_create(NULL);
	struct rdmap_tx_mark mark;

	rdmap_tx_mark(&p->a.s, &mark);
	rdmap_fault(&p->a.s, RDMAP_E_LOCAL);
	rdmap_tx_rewind(&p->a.s, &mark);
	cr_assert_eq(p->a.s.state, RDMAP_FAULTED);
	pair_destroy(p);
}

Test(rdmap_stream, ready_to_receive_that_did_not_leave_is_due_again)
{
	struct pair *p = pair_create(&(struct pair_options){
		.flags = MPA_F_P2P, .rtr = MPA_RTR_READ, .ird = 1, .ord = 1 });
	struct rdmap_tx_mark mark;

	rdmap_tx_mark(&p->a.s, &mark);
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 1);
	rdmap_tx_rewind(&p->a.s, &mark);
	cr_assert_eq(rdmap_outstanding(&p->a.s), 0);
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 1);
	pair_destroy(p);
}

/* A responder's is receiving's: a mark from before it came does not bring it back */
Test(rdmap_stream, ready_to_receive_that_has_come_stays)
{
	struct pair *p = pair_create(&(struct pair_options){
		.flags = MPA_F_P2P, .rtr = MPA_RTR_SEND, .ird = 1, .ord = 1 });
	struct rdmap_tx_mark mark;

	rdmap_tx_mark(&p->b.s, &mark);
	cr_assert_eq(rdmap_tx_rtr(&p->a.s, &p->a.slots, &p->a.v), 1);
	end_flush(&p->a);
	cr_assert_eq(pair_run(p), IWARP_OK);
	rdmap_tx_rewind(&p->b.s, &mark);
	cr_assert_eq(end_send(&p->a, &(struct rdmap_wr){ .op = RDMAP_SEND }), 0);
	cr_assert_eq(pair_run(p), IWARP_OK);
	cr_assert_eq(p->b.nevents, 1, "a Send of nothing that is the program's");
	pair_destroy(p);
}

/* It knew what would be asked for. The Read is over, and so is the stream. */
Test(rdmap_stream, an_answer_to_a_request_that_has_not_left)
{
	struct pair *p = pair_create(NULL);
	struct rdmap_wr wr = { .op = RDMAP_READ_REQ };
	static const __u8 response[14] = { 0xC1, 0x42 };
	struct rdmap_tx_mark mark;
	bool last;

	rdmap_tx_mark(&p->a.s, &mark);
	cr_assert_eq(rdmap_tx_wr(&p->a.s, &p->a.slots, &p->a.v, &wr, 0, &last), 0);
	cr_assert_eq(end_take(&p->a, response, sizeof(response)), IWARP_OK);
	rdmap_tx_rewind(&p->a.s, &mark);
	cr_assert_eq(p->a.s.state, RDMAP_FAULTED);
	cr_assert_eq(p->a.s.term.fault, RDMAP_E_OPCODE);
	cr_assert_eq(rdmap_outstanding(&p->a.s), 0);
	pair_destroy(p);
}

/* As damaged state could have it */
Test(rdmap_stream, a_ring_that_is_out_of_order_has_nothing_oldest)
{
	struct pair *p = pair_create(NULL);
	static const __u8 response[14] = { 0xC1, 0x42 };

	p->a.s.out_head = 5;
	p->a.s.out_tail = 4;
	cr_assert_eq(end_take(&p->a, response, sizeof(response)), RDMAP_E_OPCODE);
	pair_destroy(p);
}

/* The indices of both rings pass their end, with a size that is no power of two */
Test(rdmap_stream, rings_wrap)
{
	struct pair *p = pair_create(NULL);
	__u32 close = rdmap_ring_span(PAIR_SLOTS) - 7;

	p->b.s.in_head = p->b.s.in_next = p->b.s.in_tail = close;
	p->a.s.out_head = p->a.s.out_tail = close;
	for (unsigned int round = 0; round < 8; round++) {
		for (unsigned int i = 0; i < 4; i++) {
			struct rdmap_wr wr = { .op = i % 2 ? RDMAP_READ_REQ : RDMAP_ATOMIC_REQ,
					       .len = 8,
					       .stag = end_stag(&p->b, RW),
					       .to = PAIR_TO,
					       .data = 1,
					       .sink_stag = end_stag(&p->a, RW),
					       .sink_to = PAIR_TO,
					       .cookie = round * 4 + i };

			cr_assert_eq(end_send(&p->a, &wr), 0);
		}
		cr_assert_eq(rdmap_outstanding(&p->a.s), 4);
		cr_assert_eq(pair_run(p), IWARP_OK);
	}
	cr_assert_eq(p->a.nevents, 32);
	for (unsigned int i = 0; i < 32; i++)
		cr_assert_eq(p->a.events[i].cookie, i);
	cr_assert_lt(p->a.s.out_tail, 100);
	cr_assert_eq(p->b.s.in_tail, p->a.s.out_tail);
	pair_destroy(p);
}

/* A commit gives slots back, nothing else does */
Test(rdmap_stream, commit)
{
	struct pair *p = pair_create(&(struct pair_options){ .ird = 6, .ord = 6 });

	requests_come(p);
	cr_assert_eq(rdmap_tx_response(&p->b.s, &p->b.slots, &p->b.v, &p->b.source), 1);
	cr_assert_eq(p->b.s.in_head, 0);
	cr_assert_eq(p->b.s.in_next, 1);
	rdmap_tx_commit(&p->b.s);
	cr_assert_eq(p->b.s.in_head, 1);
	pair_destroy(p);
}
