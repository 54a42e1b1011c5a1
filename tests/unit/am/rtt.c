/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The estimator: floors, RFC 6298's arithmetic, and the budget of retransmissions.
 */
#include "am/rtt.h"

#include <criterion/criterion.h>

#define US 1000u
#define MS 1000000u

Test(rtt, no_sample_no_opinion)
{
	struct am_rtt r;

	am_rtt_init(&r);
	cr_assert_eq(am_rtt_timeout(&r, false, 100 * MS), 100 * MS);
}

Test(rtt, first_sample)
{
	struct am_rtt r;

	am_rtt_init(&r);
	am_rtt_sample(&r, 800 * US);
	cr_assert_eq(r.srtt, 800 * US);
	cr_assert_eq(r.rttvar, 400 * US);
	cr_assert_eq(am_rtt_timeout(&r, false, 0), 2400 * US);
}

/* The gains are 1/8 and 1/4, and the deviation is from the estimate that was. */
Test(rtt, second_and_third_sample)
{
	struct am_rtt r;

	am_rtt_init(&r);
	am_rtt_sample(&r, 800 * US);
	am_rtt_sample(&r, 1600 * US);
	cr_assert_eq(r.srtt, 900 * US);
	cr_assert_eq(r.rttvar, 500 * US);
	am_rtt_sample(&r, 100 * US);
	cr_assert_eq(r.srtt, 800 * US);
	cr_assert_eq(r.rttvar, 575 * US);
	cr_assert_eq(am_rtt_timeout(&r, false, 0), 3100 * US);
}

Test(rtt, floors)
{
	struct am_rtt r;
	int i;

	am_rtt_init(&r);
	for (i = 0; i < 100; i++)
		am_rtt_sample(&r, 8 * US);
	cr_assert_eq(am_rtt_timeout(&r, false, 0), 50 * US);
	cr_assert_eq(am_rtt_timeout(&r, true, 0), 2 * MS);
}

Test(rtt, follows_the_network)
{
	struct am_rtt r;
	int i;

	am_rtt_init(&r);
	for (i = 0; i < 200; i++)
		am_rtt_sample(&r, 5 * MS);
	cr_assert_geq(am_rtt_timeout(&r, false, 0), 5 * MS - 100 * US);
	am_rtt_sample(&r, 15 * MS);
	cr_assert_geq(am_rtt_timeout(&r, false, 0), 15 * MS);
}

/* Three resends at the bare time-out, then ever later ones, up to a quarter of a second. */
Test(rtt, backoff)
{
	static const unsigned int ms[] = { 20, 20, 20, 40, 80, 160, 250, 250 };
	unsigned int i;

	for (i = 0; i < sizeof(ms) / sizeof(ms[0]); i++)
		cr_assert_eq(am_rtt_backoff(20 * MS, i, 2), ms[i] * MS, "copy %u", i);
	cr_assert_eq(am_rtt_backoff(20 * MS, UINT8_MAX, 1), 20 * MS);
	cr_assert_eq(am_rtt_backoff(300 * MS, UINT8_MAX, 2), 300 * MS, "it is longer by itself");
}

Test(rtt, budget)
{
	struct am_retransmit t;
	int spent = 0, i;

	am_retransmit_init(&t);
	while (am_retransmit_spend(&t))
		spent++;
	cr_assert_eq(spent, 8);
	for (i = 0; i < 1000; i++) {
		am_retransmit_earn(&t);
		spent += am_retransmit_spend(&t);
	}
	cr_assert_eq(spent, 11, "three in a thousand requests: %d", spent);
	am_retransmit_refund(&t, 1);
	cr_assert(am_retransmit_spend(&t), "one that was needed costs nothing");
}

Test(rtt, delay_without_a_budget)
{
	struct am_retransmit t;
	int i;

	am_retransmit_init(&t);
	cr_assert_eq(t.delay, 20 * MS);
	am_retransmit_penalty(&t);
	cr_assert_eq(t.delay, 40 * MS);
	for (i = 0; i < 100; i++)
		am_retransmit_penalty(&t);
	cr_assert_eq(t.delay, 2000 * MS);
	am_retransmit_refund(&t, 1);
	cr_assert_eq(t.delay, 20 * MS, "losses are real again");
}
