/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A request that the peer has does not go again when its answer is late, or lost: the answer is
 * asked for. When that is due is set here by hand. And that the peer has it gets known, although
 * the reply cannot begin.
 */
#include "counted.h"

#define OCTETS 30000 /* in fragments */
#define REQUESTS 400 /* many more than both windows take */

Test(received, its_answer_is_asked_for, .timeout = 60)
{
	struct am_tx_slot *slot;
	struct am_peer *peer;
	struct pair p;

	counted_open(&p);
	AM_Request0(p.ep[0], 0, 1);
	pair_until(&p, answered == 1);
	memset(&p.ep[0]->stats, 0, sizeof(p.ep[0]->stats));
	memset(&p.ep[0]->xstats, 0, sizeof(p.ep[0]->xstats));
	cr_assert_eq(AM_Request0(p.ep[0], 0, 1), AM_OK);
	peer = p.ep[0]->translations[0].peer;
	slot = base_list_entry(base_list_first(&peer->waiting), struct am_tx_slot, node);
	slot->received = true;
	slot->last_sent += LATE;
	p.ep[0]->fault.drop = UINT32_MAX;
	p.ep[0]->fault.on = true;
	pair_until(&p, p.ep[0]->xstats.FaultsDropped == 1);
	p.ep[0]->fault.on = false;
	cr_assert_eq(ran, 2);
	slot->last_sent = 0;
	p.ep[0]->next_deadline = 0;
	pair_until(&p, answered == 2);
	cr_assert_eq(ran, 2);
	cr_assert_geq(p.ep[0]->xstats.QuestionsSent, 1u);
	cr_assert_geq(p.ep[1]->xstats.QuestionsAnswered, 1u);
	cr_assert_eq(p.ep[0]->stats.RequestsRetransmitted[amudp_Short], 0u);
	pair_close(&p);
}

static void on_transfer(void *token, void *buf, int n)
{
	ran++;
	AM_ReplyXfer0(token, 0, 2, buf, n);
}

static void on_transferred(void *token, void *buf, int n)
{
	answered++;
}

Test(received, replies_wait_for_each_other_s_requests, .timeout = 60)
{
	char *data = calloc(1, OCTETS);
	struct pair p;
	int i, k;

	setenv("FAULT_RATE", "0.1", 1);
	setenv("AMUDP_MAX_PACKET", "8192", 1);
	setenv("RECVDEPTH", "16", 1);
	pair_open(&p, AM_SEQ);
	for (k = 0; k < 2; k++) {
		AM_SetHandler(p.ep[k], 1, on_transfer);
		AM_SetHandler(p.ep[k], 2, on_transferred);
	}
	pair_map(&p, REQUESTS);
	for (i = 0; i < REQUESTS; i++) {
		for (k = 0; k < 2; k++)
			cr_assert_eq(AM_RequestXfer0(p.ep[k], 0, 0, 1, data, OCTETS), AM_OK);
	}
	pair_until(&p, p.ep[0]->outstanding + p.ep[1]->outstanding == 0);
	cr_assert_eq(ran, 2 * REQUESTS);
	cr_assert_eq(answered, 2 * REQUESTS);
	free(data);
	pair_close(&p);
}
