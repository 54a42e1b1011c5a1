/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long to wait for an answer: RFC 6298, section 2, with floors of our own.
 *
 * Samples are unambiguous (each answer names the copy that drew it), so Karn's rule is not
 * needed. A short time-out hits a peer that lost its CPU for a few milliseconds as well as a
 * lost packet, and when we lost ours, all peers look late. The endpoint's budget keeps those under
 * one in three hundred requests: when it is spent, the time-out is a longer one, and a single
 * request goes again, until retransmissions prove needed. That time doubles with each needless
 * one, so that it outgrows the pauses of a crowded machine, however long they are; the first loss
 * that is one brings it back.
 */
#include "am/rtt.h"

#include "base/bits.h"
#include "base/clock.h"

#define FLOOR_NS (50 * BASE_NS_PER_US)
#define FLOOR_SLEEPS_NS (2 * BASE_NS_PER_MS)

#define ASK_FLOOR_NS (10 * BASE_NS_PER_US)

#define BARE 3 /* resends at the bare time-out, for losses in a row are common */
#define BACKOFF_MAX_NS (250 * BASE_NS_PER_MS)

#define DELAY_NS (20 * BASE_NS_PER_MS)
#define DELAY_MAX_NS (2 * BASE_NS_PER_S)

#define BUDGET_EARN 3
#define BUDGET_COST 1000
#define BUDGET_START (8 * BUDGET_COST)
#define BUDGET_MAX (32 * BUDGET_COST)

void am_rtt_init(struct am_rtt *rtt)
{
	rtt->srtt = 0;
	rtt->rttvar = 0;
}

void am_rtt_sample(struct am_rtt *rtt, uint64_t ns)
{
	uint64_t error;

	if (!rtt->srtt) {
		rtt->srtt = base_max(ns, 1u);
		rtt->rttvar = ns / 2;
		return;
	}
	error = rtt->srtt > ns ? rtt->srtt - ns : ns - rtt->srtt;
	rtt->rttvar = (3 * rtt->rttvar + error) / 4;
	rtt->srtt = base_max((7 * rtt->srtt + ns) / 8, 1u);
}

uint64_t am_rtt_timeout(const struct am_rtt *rtt, bool peer_sleeps, uint64_t initial)
{
	uint64_t floor = peer_sleeps ? FLOOR_SLEEPS_NS : FLOOR_NS;

	if (!rtt->srtt)
		return initial;
	return base_max(rtt->srtt + 4 * rtt->rttvar, base_max(floor, 4 * rtt->rttvar));
}

uint64_t am_rtt_late(const struct am_rtt *rtt, bool peer_sleeps)
{
	if (!rtt->srtt || peer_sleeps)
		return BASE_NEVER;
	return base_max(rtt->srtt + base_max(rtt->srtt, 4 * rtt->rttvar), ASK_FLOOR_NS);
}

uint64_t am_rtt_backoff(uint64_t timeout, unsigned int n, uint32_t factor)
{
	uint64_t ns = timeout;

	for (; n >= BARE && ns < BACKOFF_MAX_NS; n--)
		ns *= factor;
	return base_min(ns, base_max(timeout, BACKOFF_MAX_NS));
}

void am_retransmit_init(struct am_retransmit *t)
{
	*t = (struct am_retransmit){ .budget = BUDGET_START, .delay = DELAY_NS };
}

void am_retransmit_earn(struct am_retransmit *t)
{
	t->budget = base_min(t->budget + BUDGET_EARN, BUDGET_MAX);
}

bool am_retransmit_spend(struct am_retransmit *t)
{
	if (t->budget < BUDGET_COST)
		return false;
	t->budget -= BUDGET_COST;
	return true;
}

bool am_retransmit_ask(struct am_retransmit *t)
{
	return t->budget >= BUDGET_START / 2 + BUDGET_COST && am_retransmit_spend(t);
}

void am_retransmit_refund(struct am_retransmit *t, unsigned int n)
{
	t->budget = (int32_t)base_min(t->budget + (int64_t)n * BUDGET_COST, BUDGET_MAX);
	t->delay = DELAY_NS;
	t->probe_at = 0;
}

void am_retransmit_penalty(struct am_retransmit *t)
{
	t->delay = base_min(t->delay * 2, DELAY_MAX_NS);
}
