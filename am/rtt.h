/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_RTT_H
#define AM_RTT_H

#include <stdbool.h>
#include <stdint.h>

/* The round-trip estimator of one peer, nanoseconds. */
struct am_rtt {
	uint64_t srtt; /* 0: no sample yet */
	uint64_t rttvar;
};

/* What an endpoint may send again, to all its peers. */
struct am_retransmit {
	int32_t budget;	   /* thousandths of a retransmission that may prove needless */
	uint64_t delay;	   /* the time-out when the budget is spent */
	uint64_t probe_at; /* no retransmission without a budget before */
};

void am_rtt_init(struct am_rtt *rtt);
void am_rtt_sample(struct am_rtt *rtt, uint64_t ns);
/* The time-out before back-off; initial is the answer until there is a sample. */
uint64_t am_rtt_timeout(const struct am_rtt *rtt, bool peer_sleeps, uint64_t initial);
/* After how long an answer is late enough to ask for it; BASE_NEVER: that is not known. */
uint64_t am_rtt_late(const struct am_rtt *rtt, bool peer_sleeps);
/* How long copy number n waits for its answer, with so much as the first time-out. */
uint64_t am_rtt_backoff(uint64_t timeout, unsigned int n, uint32_t factor);

void am_retransmit_init(struct am_retransmit *retransmit);
/* Each request earns a little; a retransmission costs one, given back when it proves needed. */
void am_retransmit_earn(struct am_retransmit *retransmit);
bool am_retransmit_spend(struct am_retransmit *retransmit);
/* The same for a question, which leaves half of the first budget to retransmissions. */
bool am_retransmit_ask(struct am_retransmit *retransmit);
void am_retransmit_refund(struct am_retransmit *retransmit, unsigned int n);
/* A retransmission was needless: the next one without a budget waits longer. */
void am_retransmit_penalty(struct am_retransmit *retransmit);

#endif
