/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The end of the process, as far as its threads are concerned.
 *
 * With TCP a connection is what it was until the process is gone, and a thread that sleeps on it
 * sleeps. With us it ends before, and other threads must not act on that. An execution that fails
 * lets them go on. So does a process that is still there a while after all has been delivered: then
 * a function of exit() behind ours may wait for them.
 */
#include "preload/guard/exiting.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sockutil.h"
#include "preload/guard/thread.h"

bool exiting_begun;
static int finished;	   /* atomic: the thread that did it */
static uint64_t delivered; /* atomic: since when nothing is left to do; 0: something is */

static bool ended_elsewhere(void)
{
	int who = __atomic_load_n(&finished, __ATOMIC_ACQUIRE);

	return who && who != (int)syscall(SYS_gettid);
}

/* The process has mostly ended by then */
#define WHILE (50 * BASE_NS_PER_MS)

static bool is_delivered(void)
{
	uint64_t since = __atomic_load_n(&delivered, __ATOMIC_ACQUIRE);

	return since && base_deadline_passed(base_deadline(since, WHILE), base_now());
}

static void sleep_shortly(void)
{
	base_poll(NULL, 0, base_deadline(base_now(), 20 * BASE_NS_PER_MS));
}

/*
 * A thread of ours is joined by the one that ends the process: what libc frees for it last may be
 * a call of ours, where the program's malloc makes calls
 */
bool exiting_halt(void)
{
	bool halted = false;

	while (!thread_is_ours && ended_elsewhere() && !is_delivered()) {
		halted = true;
		sleep_shortly();
	}
	return halted;
}

void exiting_halt_for_good(void)
{
	while (!thread_is_ours && ended_elsewhere())
		sleep_shortly();
}

/* Who comes second must not end the process while the first one is at it */
static bool finish_claim(void)
{
	int self = (int)syscall(SYS_gettid), who = 0;

	while (!__atomic_compare_exchange_n(&finished, &who, self, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE)) {
		if (who == self)
			return false;
		exiting_halt_for_good();
		who = 0;
	}
	return true;
}

bool exiting_claim(void)
{
	if (!finish_claim())
		return false;
	__atomic_store_n(&exiting_begun, true, __ATOMIC_RELEASE);
	return true;
}

void exiting_done(void)
{
	__atomic_store_n(&delivered, base_now(), __ATOMIC_RELEASE);
}

bool exiting_revoke(void)
{
	if (!__atomic_exchange_n(&finished, 0, __ATOMIC_ACQ_REL))
		return false;
	__atomic_store_n(&exiting_begun, false, __ATOMIC_RELEASE);
	return true;
}

void exiting_after_fork(void)
{
	__atomic_store_n(&delivered, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&finished, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&exiting_begun, false, __ATOMIC_RELEASE);
}
