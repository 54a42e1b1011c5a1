/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a wait spins: what the last waits, a busy processor and the ranks beside it say.
 */
#include <criterion/criterion.h>

#include "am/spin.h"
#include "base/clock.h"

#define LENGTH (50 * BASE_NS_PER_US)
#define TURN BASE_NS_PER_US

/* One wait for a message that comes after so long; true: it spun at all. */
static bool wait_for(struct am_spin *s, uint64_t *now, uint64_t comes)
{
	uint64_t until = am_spin_begin(s, *now, LENGTH), end = *now + comes;

	if (!until) {
		*now = end;
		return false;
	}
	for (;;) {
		*now += TURN;
		if (*now >= end) {
			am_spin_paid(s);
			return true;
		}
		if (!am_spin_goes_on(s, until, *now)) {
			*now = end;
			return true;
		}
	}
}

static int spins_of(struct am_spin *s, int waits, uint64_t comes)
{
	uint64_t now = BASE_NS_PER_S;
	int i, n = 0;

	for (i = 0; i < waits; i++)
		n += wait_for(s, &now, comes);
	return n;
}

Test(spin, no_length_is_no_spin)
{
	struct am_spin s = { 0 };

	cr_expect_eq(am_spin_begin(&s, 1000, 0), 0u);
	cr_expect_eq(am_spin_begin(&s, 1000, LENGTH), 1000 + LENGTH);
}

Test(spin, what_comes_soon_is_always_spun_for)
{
	struct am_spin s = { 0 };

	cr_expect_eq(spins_of(&s, 1000, 10 * BASE_NS_PER_US), 1000);
}

/* 1 + 1, 1 + 2, 1 + 4 .. 1 + 512: ten spins in 1033 waits, then one in 1025 */
Test(spin, what_comes_late_is_tried_again_now_and_then)
{
	struct am_spin s = { 0 };

	cr_expect_eq(spins_of(&s, 1033, 200 * BASE_NS_PER_US), 10);
	cr_expect_eq(spins_of(&s, 4 * 1025, 200 * BASE_NS_PER_US), 4);
}

Test(spin, one_that_pays_makes_good_for_all)
{
	struct am_spin s = { 0 };

	spins_of(&s, 30, 200 * BASE_NS_PER_US);
	cr_assert_gt(s.skip, 1u);
	spins_of(&s, (int)s.skip + 1, 10 * BASE_NS_PER_US);
	cr_expect_eq(s.failures, 0u);
	cr_expect_eq(spins_of(&s, 100, 10 * BASE_NS_PER_US), 100);
}

/* Another process ran here between two turns. */
Test(spin, a_gap_ends_a_spin)
{
	struct am_spin s = { 0 };
	uint64_t until = am_spin_begin(&s, 1000, LENGTH);

	cr_expect(am_spin_goes_on(&s, until, 1000 + 19 * BASE_NS_PER_US));
	cr_expect(!am_spin_goes_on(&s, until, 1000 + 40 * BASE_NS_PER_US));
	cr_expect_eq(am_spin_begin(&s, 2000, LENGTH), 0u);
	cr_expect_neq(am_spin_begin(&s, 3000, LENGTH), 0u);
}

Test(spin, ranks_and_the_processors_they_share)
{
	static const struct {
		uint8_t masks[4][2];
		bool here[4];
		bool oversubscribed; /* rank 0 */
	} rows[] = {
		{ { { 3 }, { 3 } }, { 1, 1 }, false },
		{ { { 3 }, { 3 }, { 3 } }, { 1, 1, 1 }, true },
		{ { { 3 }, { 3 }, { 3 } }, { 1, 1, 0 }, false },
		{ { { 1 }, { 1 } }, { 1, 1 }, true },
		{ { { 1 }, { 2 }, { 4 }, { 8 } }, { 1, 1, 1, 1 }, false },
		{ { { 1 }, { 2 }, { 1 }, { 2 } }, { 1, 1, 1, 1 }, true },
		{ { { 1 }, { 2 }, { 2 }, { 2 } }, { 1, 1, 1, 1 }, false },
		{ { { 0, 1 }, { 0, 1 } }, { 1, 1 }, true },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(am_spin_oversubscribed(rows[i].masks[0], 2, rows[i].here, 4, 0),
			     rows[i].oversubscribed, "row %zu", i);
}
