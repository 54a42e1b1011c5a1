/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many questions are answered, of one host and of all.
 */
#include "preload/rules/answer_rate.h"

#include <criterion/criterion.h>

#define BEGIN (1000 * BASE_NS_PER_S)

static struct answer_rate rate;

/* Of @n questions at once, from @hosts in turn: how many are answered? */
static unsigned int answered(unsigned int n, unsigned int hosts, uint64_t now)
{
	unsigned int yes = 0;

	for (unsigned int i = 0; i < n; i++)
		yes += answer_rate_take(&rate, i % hosts, now);
	return yes;
}

Test(answer_rate, of_one_host)
{
	cr_expect_eq(answered(10000, 1, BEGIN), ANSWER_RATE_ONE);
	cr_expect_eq(answered(10, 1, BEGIN), 0);
	cr_expect_eq(answered(10000, 1, BEGIN + BASE_NS_PER_S / 10), ANSWER_RATE_ONE / 10);
	/* However long it was silent */
	cr_expect_eq(answered(10000, 1, BEGIN + 1000 * BASE_NS_PER_S), ANSWER_RATE_ONE);
}

Test(answer_rate, another_host_is_answered_meanwhile)
{
	answered(10000, 1, BEGIN);
	cr_expect(answer_rate_take(&rate, 1, BEGIN));
	cr_expect_not(answer_rate_take(&rate, ANSWER_RATE_HOSTS, BEGIN));
}

Test(answer_rate, of_all)
{
	cr_expect_eq(answered(100000, ANSWER_RATE_HOSTS, BEGIN), ANSWER_RATE_ALL);
	cr_expect_eq(answered(100000, ANSWER_RATE_HOSTS, BEGIN + BASE_NS_PER_S / 2),
		     ANSWER_RATE_ALL / 2);
}

/* Who is not answered loses nothing by that */
Test(answer_rate, what_is_refused_costs_nothing)
{
	answered(100000, 1, BEGIN);
	cr_expect_eq(answered(1, 1, BEGIN + BASE_NS_PER_S / ANSWER_RATE_ONE), 1);
}
