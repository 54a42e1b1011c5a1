/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Times are nanoseconds of CLOCK_MONOTONIC; a deadline is a time, or BASE_NEVER. */
#define BASE_NS_PER_US 1000ull
#define BASE_NS_PER_MS 1000000ull
#define BASE_NS_PER_S 1000000000ull
#define BASE_NEVER UINT64_MAX

/* The kernel's, in nanoseconds */
uint64_t base_clock(clockid_t clock);

static inline uint64_t base_now(void)
{
	return base_clock(CLOCK_MONOTONIC);
}

/* The deadline ns after now; one too far to count is never. */
static inline uint64_t base_deadline(uint64_t now, uint64_t ns)
{
	return ns < BASE_NEVER - now ? now + ns : BASE_NEVER;
}

static inline bool base_deadline_passed(uint64_t deadline, uint64_t now)
{
	return deadline != BASE_NEVER && now >= deadline;
}

static inline uint64_t base_deadline_left(uint64_t deadline, uint64_t now)
{
	if (deadline == BASE_NEVER)
		return BASE_NEVER;
	return deadline > now ? deadline - now : 0;
}

/* For poll(): rounds up, so that a wait never ends before its deadline; -1 waits for ever. */
static inline int base_deadline_poll_ms(uint64_t deadline, uint64_t now)
{
	uint64_t left = base_deadline_left(deadline, now);
	uint64_t ms = left / BASE_NS_PER_MS + (left % BASE_NS_PER_MS != 0);

	if (left == BASE_NEVER)
		return -1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Time-outs as calls have them: milliseconds, less than none for ever */
static inline uint64_t base_deadline_ms(int ms)
{
	if (ms < 0)
		return BASE_NEVER;
	return ms ? base_deadline(base_now(), (uint64_t)ms * BASE_NS_PER_MS) : 0;
}

/* and a timespec, NULL for ever */
static inline bool base_timespec_bad(const struct timespec *ts)
{
	return ts && (ts->tv_sec < 0 || ts->tv_nsec < 0 || ts->tv_nsec >= (long)BASE_NS_PER_S);
}

static inline uint64_t base_deadline_timespec(const struct timespec *ts)
{
	uint64_t ns;

	if (!ts || (uint64_t)ts->tv_sec >= BASE_NEVER / BASE_NS_PER_S / 2)
		return BASE_NEVER;
	ns = (uint64_t)ts->tv_sec * BASE_NS_PER_S + (uint64_t)ts->tv_nsec;
	return ns ? base_deadline(base_now(), ns) : 0;
}

#endif
