/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers that are late are asked for: docs/amudp-wire.md, section 7. When that is due is set
 * here by hand, so that no pause of the machine makes the time-out come first.
 */
#include "counted.h"

#include "am/request.h"

#define WARM 16	    /* round trips: now both ends know how long one takes */
#define EARNED 1003 /* by a request, and by a loss */

static void open_warm(struct pair *p)
{
	int i;

	counted_open(p);
	for (i = 0; i < WARM; i++) {
		AM_Request0(p->ep[0], 0, 1);
		pair_until(p, answered == i + 1);
	}
	ran = answered = 0;
	/* as if the machine had made no pause until here */
	for (i = 0; i < 2; i++) {
		memset(&p->ep[i]->stats, 0, sizeof(p->ep[i]->stats));
		memset(&p->ep[i]->xstats, 0, sizeof(p->ep[i]->xstats));
	}
	am_retransmit_init(&p->ep[0]->retransmit);
}

/* All that comes to this end is lost, until it is made whole again. */
static void deafen(struct pair *p, int end)
{
	p->ep[end]->fault.drop = UINT32_MAX;
	p->ep[end]->fault.on = true;
}

/* It has lost what was under way. */
static void lose(struct pair *p, int end)
{
	uint64_t before = p->ep[end]->xstats.FaultsDropped;

	pair_until(p, p->ep[end]->xstats.FaultsDropped > before);
	p->ep[end]->fault.on = false;
}

/* Nothing goes again by itself. */
static void rest(struct am_tx_slot *slot)
{
	slot->last_sent += LATE;
	slot->ask_at = BASE_NEVER;
}

/* One request, its slot. */
static struct am_tx_slot *request(struct pair *p)
{
	struct am_peer *peer = p->ep[0]->translations[0].peer;
	struct am_tx_slot *slot;

	cr_assert_eq(AM_Request0(p->ep[0], 0, 1), AM_OK);
	slot = base_list_entry(base_list_first(&peer->waiting), struct am_tx_slot, node);
	rest(slot);
	return slot;
}

/* The next poll of the requester asks, and no other one. */
static void ask(struct pair *p, struct am_tx_slot *slot)
{
	uint64_t before = p->ep[0]->xstats.QuestionsSent;

	slot->ask_at = 0;
	p->ep[0]->next_deadline = 0;
	while (p->ep[0]->xstats.QuestionsSent == before)
		AM_Poll(p->eb[0]);
	slot->ask_at = BASE_NEVER;
}

static uint64_t again(const struct pair *p)
{
	return p->ep[0]->stats.RequestsRetransmitted[amudp_Short];
}

/* A request that was lost, asked for, and sent again; its slot. */
static struct am_tx_slot *sent_again(struct pair *p)
{
	struct am_tx_slot *slot;

	deafen(p, 1);
	slot = request(p);
	lose(p, 1);
	ask(p, slot);
	pair_until(p, again(p) == 1);
	rest(slot);
	return slot;
}

Test(questions, a_lost_request_goes_again)
{
	struct pair p;
	int32_t budget;

	open_warm(&p);
	budget = p.ep[0]->retransmit.budget;
	sent_again(&p);
	pair_until(&p, answered == 1);
	cr_assert_eq(ran, 1);
	cr_assert_eq(again(&p), 1u);
	cr_assert_eq(p.ep[0]->xstats.NeedlessRetransmissions, 0u);
	cr_assert_eq(p.ep[0]->retransmit.budget, budget + EARNED, "what was needed costs nothing");
	pair_close(&p);
}

Test(questions, a_lost_answer_comes_again)
{
	struct am_tx_slot *slot;
	struct pair p;
	int32_t budget;
	uint64_t srtt;

	open_warm(&p);
	budget = p.ep[0]->retransmit.budget;
	srtt = p.ep[0]->translations[0].peer->rtt.srtt;
	deafen(&p, 0);
	slot = request(&p);
	lose(&p, 0);
	AM_Poll(p.eb[1]);
	ask(&p, slot);
	pair_until(&p, answered == 1);
	cr_assert_eq(ran, 1);
	cr_assert_eq(again(&p), 0u);
	cr_assert_eq(p.ep[1]->xstats.QuestionsAnswered, 1u);
	cr_assert_eq(p.ep[0]->retransmit.budget, budget + EARNED);
	cr_assert_eq(p.ep[0]->translations[0].peer->rtt.srtt, srtt, "no round trip was measured");
	pair_close(&p);
}

/* The question, as it comes to the second endpoint. */
static struct am_frame question(const struct am_tx_slot *slot)
{
	return (struct am_frame){
		.type = AM_FRAME_ASK, .flags = slot->copy, .slot = slot->index, .seq = slot->seq
	};
}

/* It met the answer on its way: who asked before a poll's answers went is told in the next. */
Test(questions, an_answer_under_way_is_not_sent_twice)
{
	struct am_tx_slot *slot;
	struct am_frame f;
	struct pair p;
	struct am_peer *asks;
	uint64_t before;

	open_warm(&p);
	asks = p.ep[1]->translations[0].peer;
	slot = request(&p);
	f = question(slot);
	while (!ran)
		AM_Poll(p.eb[1]);
	before = asks->rx[slot->index].epoch;
	for (p.ep[1]->epoch = before + 1; p.ep[1]->epoch < before + 4; p.ep[1]->epoch++)
		am_request_receive_ask(p.ep[1], asks, &f);
	cr_assert_eq(p.ep[1]->xstats.QuestionsAnswered, 0u);
	p.ep[1]->epoch++;
	am_request_receive_ask(p.ep[1], asks, &f);
	cr_assert_eq(p.ep[1]->xstats.QuestionsAnswered, 1u);
	pair_until(&p, answered == 1);
	pair_close(&p);
}

/* Of a slot that nobody has, of one that was never used, of a request that is long over. */
Test(questions, any_question_may_come)
{
	struct am_frame f = { .type = AM_FRAME_ASK, .slot = 60000 };
	struct am_tx_slot *slot;
	struct am_peer *asks;
	struct pair p;
	uint32_t used;

	open_warm(&p);
	asks = p.ep[1]->translations[0].peer;
	am_request_receive_ask(p.ep[1], asks, &f);
	cr_assert_eq(p.ep[1]->queue.count, 1, "it is not here");
	used = p.ep[1]->queue.packets[0].used;
	f.slot = 3;
	am_request_receive_ask(p.ep[1], asks, &f);
	cr_assert_eq(p.ep[1]->queue.packets[0].used, used + 8, "nor that");
	slot = request(&p);
	pair_until(&p, answered == 1);
	f = question(slot);
	f.seq -= 2;
	p.ep[1]->epoch += 100;
	am_request_receive_ask(p.ep[1], asks, &f);
	cr_assert_eq(p.ep[1]->queue.count, 0, "a straggler's question");
	cr_assert_eq(p.ep[1]->xstats.QuestionsAnswered, 0u);
	cr_assert_eq(again(&p), 0u);
	pair_close(&p);
}

/* What is not there is sent once for each copy that was missed, and only while it is awaited. */
Test(questions, who_has_nothing_is_believed_once)
{
	struct am_tx_slot *slot;
	struct am_frame f;
	struct am_peer *peer;
	struct pair p;
	int i;

	open_warm(&p);
	peer = p.ep[0]->translations[0].peer;
	deafen(&p, 1);
	slot = request(&p);
	f = question(slot);
	f.type = AM_FRAME_ABSENT;
	am_reply_receive_absent(p.ep[0], peer, &f);
	cr_assert_eq(again(&p), 0u, "nobody has asked");
	slot->asked = 1;
	for (i = 0; i < 3; i++)
		am_reply_receive_absent(p.ep[0], peer, &f);
	cr_assert_eq(again(&p), 1u);
	f.flags = 7;
	am_reply_receive_absent(p.ep[0], peer, &f);
	f.flags = slot->copy;
	f.seq--;
	am_reply_receive_absent(p.ep[0], peer, &f);
	f.slot = 60000;
	am_reply_receive_absent(p.ep[0], peer, &f);
	cr_assert_eq(again(&p), 1u);
	p.ep[1]->fault.on = false;
	pair_until(&p, answered == 1);
	cr_assert_eq(ran, 1);
	pair_close(&p);
}

#define BULK 100000

static void on_bulk_request(void *token)
{
	static uint8_t data[BULK];

	ran++;
	AM_ReplyXfer0(token, 0, 3, data, BULK);
}

static void on_bulk_reply(void *token, void *data, int octets)
{
	cr_assert_eq(octets, BULK);
	answered++;
}

/* The first fragment of an answer says what the whole of a shorter one would. */
Test(questions, a_long_answer_gives_back, .timeout = 30)
{
	struct pair p;
	int32_t budget;

	open_warm(&p);
	AM_SetHandler(p.ep[1], 1, on_bulk_request);
	AM_SetHandler(p.ep[0], 3, on_bulk_reply);
	budget = p.ep[0]->retransmit.budget;
	sent_again(&p);
	pair_until(&p, answered == 1);
	cr_assert_eq(ran, 1);
	cr_assert_eq(p.ep[0]->retransmit.budget, budget + EARNED);
	pair_close(&p);
}

static int asked_in_handler;
static struct pair *in_handler;

static void on_long_request(void *token)
{
	struct am_peer *peer = in_handler->ep[1]->translations[0].peer;
	struct am_tx_slot *slot =
		base_list_entry(base_list_first(&in_handler->ep[0]->translations[0].peer->waiting),
				struct am_tx_slot, node);
	struct am_frame f = question(slot);

	ran++;
	in_handler->ep[1]->epoch += 100;
	am_request_receive_ask(in_handler->ep[1], peer, &f);
	cr_assert_eq(in_handler->ep[1]->queue.count, 0);
	asked_in_handler++;
	AM_Reply0(token, 2);
	in_handler->ep[1]->epoch++;
	am_request_receive_ask(in_handler->ep[1], peer, &f);
	cr_assert_eq(in_handler->ep[1]->xstats.QuestionsAnswered, 0u, "it has hardly gone");
}

/* Its answer will come, or a time-out. */
Test(questions, who_is_at_work_says_nothing)
{
	struct pair p;

	open_warm(&p);
	in_handler = &p;
	AM_SetHandler(p.ep[1], 1, on_long_request);
	request(&p);
	pair_until(&p, answered == 1);
	cr_assert_eq(ran, 1);
	cr_assert_eq(asked_in_handler, 1);
	cr_assert_eq(again(&p), 0u);
	pair_close(&p);
}

/* The request, and then the answer to its copy: both were needed, and both are given back. */
Test(questions, two_losses_cost_nothing)
{
	struct am_tx_slot *slot;
	struct pair p;
	int32_t budget;

	open_warm(&p);
	budget = p.ep[0]->retransmit.budget;
	slot = sent_again(&p);
	deafen(&p, 0);
	lose(&p, 0);
	AM_Poll(p.eb[1]);
	ask(&p, slot);
	pair_until(&p, answered == 1);
	cr_assert_eq(ran, 1);
	cr_assert_eq(p.ep[0]->retransmit.budget, budget + EARNED);
	pair_close(&p);
}

/* Each time that the peer has nothing the question is given back. */
Test(questions, what_is_not_there_costs_nothing, .timeout = 30)
{
	struct am_tx_slot *slot;
	struct pair p;
	unsigned int i, poll;

	open_warm(&p);
	deafen(&p, 1);
	slot = request(&p);
	lose(&p, 1);
	p.ep[0]->retransmit.budget = 5000; /* for one question */
	for (i = 1; i <= 3; i++) {
		ask(&p, slot);
		for (poll = 0; poll < 8; poll++) /* of its sockets one at a time */
			AM_Poll(p.eb[1]);
		deafen(&p, 1);
		while (again(&p) < i)
			AM_Poll(p.eb[0]);
		rest(slot);
		lose(&p, 1);
		cr_assert_eq(p.ep[0]->retransmit.budget, 5000);
	}
	ask(&p, slot);
	pair_until(&p, answered == 1);
	cr_assert_eq(ran, 1);
	cr_assert_eq(p.ep[0]->retransmit.budget, 6000, "the answer shows that there are losses");
	pair_close(&p);
}

/* Told falsely that it is not there: the answer is to the first copy, and the second one costs. */
Test(questions, what_was_drawn_in_vain_costs)
{
	struct am_tx_slot *slot;
	struct am_frame f;
	struct pair p;
	int32_t budget;

	open_warm(&p);
	slot = request(&p);
	budget = p.ep[0]->retransmit.budget;
	f = question(slot);
	f.type = AM_FRAME_ABSENT;
	slot->asked = 1;
	am_reply_receive_absent(p.ep[0], p.ep[0]->translations[0].peer, &f);
	cr_assert_eq(again(&p), 1u);
	rest(slot);
	pair_until(&p, answered == 1);
	cr_assert_eq(ran, 1);
	cr_assert_eq(p.ep[0]->xstats.NeedlessRetransmissions, 1u);
	cr_assert_eq(p.ep[0]->retransmit.budget, budget - 1000);
	pair_close(&p);
}

/* Two copies that were paid: the answer to the first of them leaves the second's price spent. */
Test(questions, what_a_time_out_sent_is_given_back, .timeout = 30)
{
	struct am_tx_slot *slot;
	struct pair p;
	unsigned int lost;

	for (lost = 0; lost < 2; lost++) {
		ran = answered = 0;
		open_warm(&p);
		deafen(&p, 1);
		slot = request(&p);
		lose(&p, 1);
		p.ep[0]->retransmit.budget = 3000;
		while (again(&p) < 2) {
			slot->last_sent = 0;
			p.ep[0]->translations[0].peer->probe_at = 0;
			p.ep[0]->next_deadline = 0;
			AM_Poll(p.eb[0]);
			rest(slot);
			if (lost && again(&p) == 1) {
				deafen(&p, 1);
				lose(&p, 1);
			}
		}
		pair_until(&p, answered == 1);
		cr_assert_eq(ran, 1);
		cr_assert_eq(p.ep[0]->retransmit.budget, lost ? 4000 : 3000);
		pair_close(&p);
	}
}

/* Asks as often as it may; how often that is. */
static uint64_t ask_on(struct pair *p, struct am_tx_slot *slot)
{
	uint64_t before = p->ep[0]->xstats.QuestionsSent;
	int i;

	for (i = 0; i < 100; i++) {
		slot->ask_at = 0;
		p->ep[0]->next_deadline = 0;
		/* the clock is read in one of two empty polls */
		AM_Poll(p->eb[0]);
		AM_Poll(p->eb[0]);
	}
	return p->ep[0]->xstats.QuestionsSent - before;
}

Test(questions, there_is_an_end_to_them)
{
	struct am_tx_slot *slot;
	struct pair p;

	open_warm(&p);
	slot = request(&p);
	p.ep[0]->retransmit.budget = 32000;
	cr_assert_eq(ask_on(&p, slot), 4u);
	pair_until(&p, answered == 1);
	slot = request(&p);
	p.ep[0]->retransmit.budget = 6999;
	cr_assert_eq(ask_on(&p, slot), 2u, "half of the first budget is for what goes again");
	pair_until(&p, answered == 2);
	slot = request(&p);
	p.ep[0]->translations[0].peer->sleeps = true;
	p.ep[0]->retransmit.budget = 32000;
	cr_assert_eq(ask_on(&p, slot), 0u, "it wakes first");
	pair_until(&p, answered == 3);
	pair_close(&p);
}

/* Once a round trip is known, a question is due at twice its time, or at 10 us. */
Test(questions, when)
{
	struct am_rtt rtt;
	int i;

	am_rtt_init(&rtt);
	cr_assert_eq(am_rtt_late(&rtt, false), BASE_NEVER);
	for (i = 0; i < 100; i++)
		am_rtt_sample(&rtt, 3000);
	cr_assert_eq(am_rtt_late(&rtt, false), 10000u);
	cr_assert_eq(am_rtt_late(&rtt, true), BASE_NEVER);
	for (i = 0; i < 100; i++)
		am_rtt_sample(&rtt, 8000);
	cr_assert_eq(am_rtt_late(&rtt, false), 2 * rtt.srtt);
	am_rtt_sample(&rtt, 80000);
	cr_assert_eq(am_rtt_late(&rtt, false), rtt.srtt + 4 * rtt.rttvar);
}
