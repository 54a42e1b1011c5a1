/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the last waits of a place say of the next one.
 */
#include "preload/guard/history.h"

#include <criterion/criterion.h>

#include "base/clock.h"

#define US BASE_NS_PER_US
#define CAP (50 * US)

Test(history, the_first_wait_sleeps)
{
	struct spin_history h = { 0 };

	cr_expect_not(history_pays(&h, CAP));
	history_note(&h, 10 * US, CAP);
	cr_expect(history_pays(&h, CAP));
	cr_expect_not(history_pays(&h, 0), "nobody spins without a cap");
}

/* How long a wait took, and whether the next one spins; a wakeup or two are in it */
Test(history, short_waits_pay_and_long_ones_do_not)
{
	static const struct {
		uint64_t waited;
		bool pays;
	} rows[] = {
		{ 0, true },	     { 50 * US, true },	   { 99 * US, true },
		{ 101 * US, false }, { 1000 * US, false }, { BASE_NEVER, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct spin_history h = { 0 };

		for (int n = 0; n < 20; n++)
			history_note(&h, rows[i].waited, CAP);
		cr_expect_eq(history_pays(&h, CAP), rows[i].pays, "row %zu", i);
	}
}

/* One long wait is forgiven; a place that has become idle stops */
Test(history, a_place_that_becomes_idle_stops)
{
	struct spin_history h = { 0 };

	for (int n = 0; n < 20; n++)
		history_note(&h, 5 * US, CAP);
	history_note(&h, BASE_NS_PER_S, CAP);
	cr_expect(history_pays(&h, CAP));
	for (int n = 0; n < 4; n++)
		history_note(&h, BASE_NS_PER_S, CAP);
	cr_expect_not(history_pays(&h, CAP));
	for (int n = 0; n < 20; n++)
		history_note(&h, 5 * US, CAP);
	cr_expect(history_pays(&h, CAP), "and begins again");
}

static unsigned int waits_that_sleep(struct spin_history *h)
{
	unsigned int n = 0;

	for (; !history_pays(h, CAP) && n < 5000; n++)
		history_note(h, 5 * US, CAP);
	return n;
}

/* After each spin that finds nothing twice as many waits sleep, though they would be short */
Test(history, spins_that_find_nothing_become_rare)
{
	struct spin_history h = { 0 };
	unsigned int before = 0, n = 0;

	history_note(&h, 5 * US, CAP);
	for (int i = 0; i < 14; i++) {
		cr_expect(history_pays(&h, CAP), "%d", i);
		history_note_spin(&h, CAP, false, CAP);
		n = waits_that_sleep(&h);
		cr_expect(n >= before, "%d: %u, %u", i, n, before);
		before = n;
	}
	cr_expect_eq(n, 1024);
	history_note_spin(&h, 5 * US, true, CAP);
	cr_expect_eq(waits_that_sleep(&h), 0, "one that finds something makes good");
	history_note_spin(&h, CAP, false, CAP);
	cr_expect_leq(waits_that_sleep(&h), 2u);
}

Test(history, a_rest_is_for_some_waits)
{
	struct spin_history h = { 0 };

	history_note(&h, 5 * US, CAP);
	for (unsigned int n = 1; n <= 1024; n *= 2) {
		history_rest(&h);
		cr_expect_eq(waits_that_sleep(&h), n);
	}
}

/* The longest cap fits, too */
Test(history, a_cap_of_a_second)
{
	struct spin_history h = { 0 };

	for (int n = 0; n < 9; n++)
		history_note(&h, BASE_NEVER, BASE_NS_PER_S);
	cr_expect_not(history_pays(&h, BASE_NS_PER_S));
	for (int n = 0; n < 9; n++)
		history_note(&h, BASE_NS_PER_S, BASE_NS_PER_S);
	cr_expect(history_pays(&h, BASE_NS_PER_S) || h.mean > BASE_NS_PER_S);
}
