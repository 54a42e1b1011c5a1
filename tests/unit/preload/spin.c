/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * When a wait spins, and what ends its spin. Clock, processor, thread and peer are the test's.
 */
#include "preload/guard/spin.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/clock.h"
#include "preload/guard/lease.h"

#define US BASE_NS_PER_US
#define CAP (50 * US)

/* --- what spin.c asks of others --- */

static struct spin_thread self;
static struct {
	int here, peer_fd;
	enum processor_peer peer;
	bool confined, urgent, taken, thread;
	unsigned int shortened;
} world;
static uint64_t now;

bool sandbox_on;

struct spin_thread *spin_self(void)
{
	return world.thread ? &self : NULL;
}

int processor_here(void)
{
	return world.here;
}

void processor_look(struct processor_thread *t, uint64_t when)
{
	t->confined = world.confined;
	t->urgent = world.urgent;
}

bool processor_was_taken(struct processor_thread *t)
{
	return world.taken;
}

void processor_slice_shorten(void)
{
	world.shortened++;
}

enum processor_peer processor_of_peer(int fd, int here)
{
	world.peer_fd = fd;
	return world.peer;
}

/* --- a place whose waits were short --- */

static struct spin_place place;

static void begin(void)
{
	memset(&world, 0, sizeof(world));
	memset(&self, 0, sizeof(self));
	memset(&place, 0, sizeof(place));
	world.here = 1;
	world.thread = true;
	world.peer = PROCESSOR_OTHER;
	now = BASE_NS_PER_S;
	sandbox_on = false;
	lease_init(NULL, 64);
	spin_init(CAP, false);
	spin_forget();
	spin_note(&place, 5 * US);
	spin_place_of(&place, 5);
}

TestSuite(spin, .init = begin);

/* Turns of @length until the spin ends, or input is found after @after; how long it was */
static uint64_t spin_for(struct spin *s, uint64_t after, uint64_t length)
{
	uint64_t began = now;
	bool found;

	do {
		now += length;
		found = now - began >= after;
	} while (!found && spin_goes_on(s, now));
	spin_end(s, found, false, now);
	return now - began;
}

/* Sleeps at once, for this reason */
static void expect_sleep(enum spin_fate fate)
{
	uint64_t before = spin_count(fate);
	struct spin s;

	cr_expect_not(spin_begin(&s, &place, now, BASE_NEVER), "fate %d", fate);
	cr_expect_eq(spin_count(fate), before + 1, "fate %d", fate);
}

static bool spins(struct spin *s)
{
	return spin_begin(s, &place, now, BASE_NEVER);
}

/* The waits that a refusal lets sleep go by */
static void waits_pass(void)
{
	struct spin s;

	while (place.history.skip) {
		cr_expect_not(spins(&s));
		spin_note(&place, 5 * US);
	}
}

Test(spin, a_place_without_history_sleeps)
{
	memset(&place, 0, sizeof(place));
	expect_sleep(SPIN_UNLIKELY);
}

Test(spin, it_finds_the_input)
{
	struct spin s;

	cr_assert(spins(&s));
	cr_expect_eq(spin_for(&s, 10 * US, US), 10 * US);
	cr_expect_eq(spin_count(SPIN_FOUND), 1);
	cr_assert(spins(&s), "the next one, too");
}

Test(spin, it_ends_at_the_cap)
{
	struct spin s;

	cr_assert(spins(&s));
	cr_expect_eq(spin_for(&s, BASE_NEVER, US), CAP);
	cr_expect_eq(spin_count(SPIN_ENDED), 1);
	expect_sleep(SPIN_UNLIKELY);
}

Test(spin, it_ends_at_the_calls_deadline)
{
	struct spin s;

	cr_assert(spin_begin(&s, &place, now, now + 7 * US));
	cr_expect_eq(spin_for(&s, BASE_NEVER, US), 7 * US);
}

/* The lease is there as long as the spin, and names its end */
Test(spin, a_taken_slot)
{
	struct spin s;

	cr_assert(spins(&s));
	cr_expect_not(lease_take(1, now, now + US), "it has the lease");
	cr_expect(lease_take(0, now, now + US), "of its processor alone");
	expect_sleep(SPIN_TAKEN);
	spin_for(&s, 3 * US, US);
	cr_expect(lease_take(1, now, now + 20 * US), "given back at once");
	expect_sleep(SPIN_TAKEN);
	now += 20 * US;
	cr_expect(spins(&s), "as soon as that is past");
	cr_expect_not(lease_take(1, s.end - 1, s.end));
	cr_expect(lease_take(1, s.end, s.end + US));
}

Test(spin, a_peer_on_the_same_processor)
{
	struct spin s;

	spin_place_of(&place, 12);
	world.peer = PROCESSOR_SAME;
	expect_sleep(SPIN_PEER_HERE);
	cr_expect_eq(world.peer_fd, 12);
	world.peer = PROCESSOR_OTHER;
	waits_pass();
	cr_expect(spins(&s), "it has gone elsewhere");
}

Test(spin, a_gap_that_is_nobodys)
{
	struct spin s;

	cr_assert(spins(&s));
	cr_expect_eq(spin_for(&s, BASE_NEVER, 20 * US + 1), 20 * US + 1, "at the first gap");
	cr_expect_eq(spin_count(SPIN_GAP), 1);
	cr_expect_not(lease_is_busy(1, now));
	cr_expect(lease_take(1, now, now + US), "the lease is given back");
}

Test(spin, turns_of_twenty_microseconds_are_no_gap)
{
	struct spin s;

	cr_assert(spins(&s));
	cr_expect_eq(spin_for(&s, BASE_NEVER, 20 * US), 60 * US);
	cr_expect_eq(spin_count(SPIN_GAP), 0);
}

Test(spin, a_gap_in_which_another_thread_ran)
{
	struct spin s;

	cr_assert(spins(&s));
	world.taken = true;
	spin_for(&s, BASE_NEVER, 3000 * US);
	cr_expect_eq(spin_count(SPIN_GAP), 1);
	waits_pass();
	spin_note(&place, 5 * US);
	expect_sleep(SPIN_BUSY);
	world.here = 0;
	waits_pass();
	cr_expect(spins(&s), "on another processor");
	spin_end(&s, true, false, now);
	world.here = 1;
	now += 10 * BASE_NS_PER_MS;
	cr_expect(spins(&s), "after a while");
}

Test(spin, a_thread_that_moves)
{
	struct spin s;

	cr_assert(spins(&s));
	world.here = 0;
	cr_expect_eq(spin_for(&s, BASE_NEVER, US), US);
	cr_expect_eq(spin_count(SPIN_MOVED), 1);
	cr_expect(lease_take(1, now, now + US), "the lease of the processor that it left");
}

/* It spins only when its peer is known to be elsewhere */
Test(spin, a_thread_with_one_processor)
{
	struct spin s;

	world.confined = true;
	world.peer = PROCESSOR_UNKNOWN;
	expect_sleep(SPIN_ALONE);
	waits_pass();
	world.peer = PROCESSOR_SAME;
	expect_sleep(SPIN_PEER_HERE);
	waits_pass();
	world.peer = PROCESSOR_OTHER;
	cr_expect(spins(&s));
	spin_end(&s, true, false, now);
	world.confined = false;
	world.peer = PROCESSOR_UNKNOWN;
	cr_expect(spins(&s), "with two it may be anywhere");
}

Test(spin, a_real_time_class)
{
	world.urgent = true;
	expect_sleep(SPIN_URGENT);
}

Test(spin, a_quota)
{
	spin_init(CAP, true);
	expect_sleep(SPIN_QUOTA);
}

Test(spin, who_cannot_tell)
{
	struct spin s;

	world.here = -1;
	expect_sleep(SPIN_ALONE);
	world.here = LEASE_SLOTS;
	waits_pass();
	expect_sleep(SPIN_TAKEN);
	world.here = 1;
	world.thread = false;
	cr_expect_not(spins(&s), "a thread without a record");
	world.thread = true;
	sandbox_on = true;
	cr_expect_not(spins(&s), "behind a filter");
	sandbox_on = false;
	cr_expect(spins(&s));
}

Test(spin, without_a_cap)
{
	struct spin s;

	spin_init(0, false);
	cr_expect_not(spin_may());
	cr_expect_not(spins(&s));
}

/* Waits that sleep because of a spin that found nothing are counted, and not noted */
Test(spin, rests)
{
	struct spin s;

	cr_expect_not(spin_rests(&place));
	cr_assert(spins(&s));
	spin_for(&s, BASE_NEVER, US);
	cr_expect(spin_rests(&place));
	cr_expect_eq(spin_count(SPIN_UNLIKELY), 1);
	cr_expect_not(spin_rests(&place), "one only");
	cr_expect(spins(&s));
}

/* It is no fault of the place, and the next wait spins again */
Test(spin, a_signal_ends_it)
{
	struct spin s;

	cr_assert(spins(&s));
	now += US;
	spin_end(&s, false, true, now);
	cr_expect(lease_take(1, now, now + US));
	now += US;
	cr_expect(spins(&s));
}

/* One place's waits say nothing of another's */
Test(spin, each_place_has_its_own_history)
{
	struct spin_place other = { 0 };
	struct spin s;

	for (int i = 0; i < 8; i++)
		spin_note(&other, BASE_NEVER);
	cr_expect_not(spin_begin(&s, &other, now, BASE_NEVER));
	cr_expect(spins(&s));
}

/* Behind the input an acknowledgement may have come, on the processor of who is acknowledged */
Test(spin, who_sends_is_asked_when_input_has_come)
{
	struct spin_place fresh = { 0 };
	struct spin s;

	spin_place_of(&place, -1);
	spin_place_learn(&place, 7);
	cr_expect_eq(world.peer_fd, 7);
	world.peer = PROCESSOR_SAME;
	world.peer_fd = 0;
	spin_place_take(&fresh, &place);
	cr_expect(spin_begin(&s, &fresh, now, BASE_NEVER));
	cr_expect_eq(world.peer_fd, 0, "the next place knows what the last one has learnt");
	spin_end(&s, true, false, now);
	spin_place_learn(&fresh, 8);
	cr_expect_not(spin_begin(&s, &fresh, now, BASE_NEVER));
	cr_expect_eq(spin_count(SPIN_PEER_HERE), 1);
}

Test(spin, a_thread_that_spins_for_long_asks_for_a_short_slice)
{
	struct spin s;

	for (unsigned int k = 0; k < 5; k++) {
		cr_assert(spins(&s));
		cr_expect_eq(world.shortened, k > 1, "spin %u", k);
		for (int i = 0; i < 3; i++) {
			now += 10 * US;
			cr_expect(spin_goes_on(&s, now));
		}
		spin_end(&s, true, false, now);
	}
	cr_expect_eq(world.shortened, 1, "once");
}

Test(spin, a_thread_of_our_own_makes_no_processor_busy)
{
	struct spin s;

	cr_assert(spins(&s));
	world.taken = true;
	spin_disturb();
	now += 30 * US;
	cr_expect(spin_goes_on(&s, now));
	now += 30 * US;
	cr_expect_not(spin_goes_on(&s, now));
	cr_expect(lease_is_busy(1, now), "that was another one");
}
