/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Deadlines at their edges: now, never, and the rounding for poll().
 */
#include "base/clock.h"

#include <criterion/criterion.h>

#include "base/bits.h"

Test(clock, now_is_monotonic_time)
{
	uint64_t before = base_now();
	struct timespec ts = { .tv_nsec = 2000000 };

	nanosleep(&ts, NULL);
	cr_assert_geq(base_now() - before, 2000000u);
	cr_assert_lt(base_now() - before, 30 * BASE_NS_PER_S);
}

Test(clock, deadline_saturates)
{
	cr_expect_eq(base_deadline(1000, 5), 1005u);
	cr_expect_eq(base_deadline(1000, BASE_NEVER), BASE_NEVER);
	cr_expect_eq(base_deadline(1000, BASE_NEVER - 1000), BASE_NEVER);
	cr_expect_eq(base_deadline(1000, BASE_NEVER - 1001), BASE_NEVER - 1);
}

static const struct {
	const char *name;
	uint64_t deadline, now;
	bool passed;
	uint64_t left;
	int poll_ms;
} rows[] = {
	{ "ahead", 3000000, 1000000, false, 2000000, 2 },
	{ "rounds up", 3000001, 1000000, false, 2000001, 3 },
	{ "one ns", 1000001, 1000000, false, 1, 1 },
	{ "now", 1000000, 1000000, true, 0, 0 },
	{ "behind", 999999, 1000000, true, 0, 0 },
	{ "never", BASE_NEVER, 1000000, false, BASE_NEVER, -1 },
	{ "never at the end of time", BASE_NEVER, BASE_NEVER, false, BASE_NEVER, -1 },
	{ "far", BASE_NEVER - 1, 0, false, BASE_NEVER - 1, INT_MAX },
};

Test(clock, deadline_table)
{
	for (size_t i = 0; i < base_array_size(rows); i++) {
		uint64_t d = rows[i].deadline, now = rows[i].now;

		cr_expect_eq(base_deadline_passed(d, now), rows[i].passed, "%s", rows[i].name);
		cr_expect_eq(base_deadline_left(d, now), rows[i].left, "%s", rows[i].name);
		cr_expect_eq(base_deadline_poll_ms(d, now), rows[i].poll_ms, "%s", rows[i].name);
	}
}
