/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Locks between processes.
 *
 * The robust mutexes of POSIX are no use in memory that another process may write to: while one is
 * held it is a member of its thread's list, by pointers that lie in the mutex. Here the word
 * names the owner's process, and a waiter who has slept for a while asks whether that one lives.
 * A process dies as a whole, so its threads need no names. Where that cannot be known, and
 * where the word is rubbish that happens to name the living, a wait has an end; but not with an
 * owner that stands still, by SIGSTOP or in a debugger, for it goes on where it was, nor with one
 * that has said that it sleeps.
 */
#include "base/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"

#define WAITERS 0x80000000u
#define PID 0x00ffffffu
#define SPACE_SHIFT 24
#define SPACE (BASE_LOCK_SPACE << SPACE_SHIFT)
#define TRIES 100
#define SLEEP_MIN (2 * BASE_NS_PER_MS)
#define SLEEP_MAX (64 * BASE_NS_PER_MS)

static uint32_t own_word(struct base_process self)
{
	return (self.pid & PID) | (self.space << SPACE_SHIFT & SPACE);
}

void base_lock_init(struct base_lock *lock)
{
	__atomic_store_n(&lock->asleep, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&lock->word, 0, __ATOMIC_RELAXED);
}

static bool try(struct base_lock *lock, uint32_t was, uint32_t word)
{
	return __atomic_compare_exchange_n(&lock->word, &was, word, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void futex_wait(struct base_lock *lock, uint32_t word, uint64_t ns)
{
	struct timespec t = { (time_t)(ns / BASE_NS_PER_S), (long)(ns % BASE_NS_PER_S) };

	syscall(SYS_futex, &lock->word, FUTEX_WAIT, word, &t, NULL, 0);
}

/* Who waits, and whom it takes for an owner */
struct waiter {
	struct base_process self;
	base_lock_may_fn *may;
	const void *ctx;
};

static bool is_orphan(uint32_t word, const struct waiter *w)
{
	struct base_process owner = { word & PID, w->self.space };

	if ((word & SPACE) == (own_word(w->self) & SPACE))
		return !base_process_lives(owner, 0);
	return w->may && !w->may(w->ctx, (word & SPACE) >> SPACE_SHIFT);
}

/* When the owner went to sleep: milliseconds that are not 0, and not before it was */
static uint32_t sleep_stamp(void)
{
	return (uint32_t)(base_process_clock() / BASE_NS_PER_MS + 2) | 1;
}

/* Only of an owner of whom it can be known that it lives, and that it is the one who said so */
static bool is_asleep(const struct base_lock *lock, uint32_t word, struct base_process self)
{
	struct base_process owner = { word & PID, self.space };
	uint32_t stamp = __atomic_load_n(&lock->asleep, __ATOMIC_SEQ_CST);
	uint64_t now;

	if (!stamp || !word || (word & SPACE) != (own_word(self) & SPACE) ||
	    base_process_confined())
		return false;
	now = base_process_clock() / BASE_NS_PER_MS + 4; /* the stamp is rounded up */
	return base_process_lives(owner,
				  (now - (uint32_t)((uint32_t)now - stamp)) * BASE_NS_PER_MS);
}

/* The time begins anew when the owner goes on */
static bool is_stopped(uint32_t word, const struct waiter *w)
{
	return (word & SPACE) == (own_word(w->self) & SPACE) &&
	       base_process_is_stopped((struct base_process){ word & PID, w->self.space });
}

/* The same number may be another process's by now: then time tells */
static int wait(struct base_lock *lock, const struct waiter *w)
{
	uint64_t until = base_deadline(base_now(), BASE_LOCK_TIMEOUT), sleep = SLEEP_MIN;
	uint32_t mine = own_word(w->self) | WAITERS;

	for (;;) {
		uint32_t word = __atomic_load_n(&lock->word, __ATOMIC_RELAXED);
		bool late = base_deadline_passed(until, base_now());

		if (late && (is_asleep(lock, word, w->self) || is_stopped(word, w))) {
			until = base_deadline(base_now(), BASE_LOCK_TIMEOUT);
			late = false;
		}
		if (!word || (sleep > SLEEP_MIN && (late || is_orphan(word, w)))) {
			if (!try(lock, word, mine))
				continue;
			if (word)
				base_lock_sleep(lock, false);
			return word ? -EOWNERDEAD : 0;
		}
		if (!(word & WAITERS) && !try(lock, word, word | WAITERS))
			continue;
		futex_wait(lock, word | WAITERS, sleep);
		sleep = base_min(2 * sleep, SLEEP_MAX);
	}
}

/* Somebody has it, or had it just now */
static __attribute__((noinline)) int taken(struct base_lock *lock, const struct waiter *w)
{
	int saved = errno, err;

	for (int i = 1; i < TRIES; i++)
		if (!__atomic_load_n(&lock->word, __ATOMIC_RELAXED) &&
		    try(lock, 0, own_word(w->self)))
			return 0;
	err = wait(lock, w);
	errno = saved;
	return err;
}

int base_lock_take(struct base_lock *lock, base_lock_may_fn *may, const void *ctx)
{
	const struct waiter w = { base_process_self(), may, ctx };

	return try(lock, 0, own_word(w.self)) ? 0 : taken(lock, &w);
}

void base_lock_drop(struct base_lock *lock)
{
	int saved;

	if (!(__atomic_exchange_n(&lock->word, 0, __ATOMIC_RELEASE) & WAITERS))
		return;
	saved = errno;
	syscall(SYS_futex, &lock->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	errno = saved;
}

void base_lock_sleep(struct base_lock *lock, bool on)
{
	__atomic_store_n(&lock->asleep, on ? sleep_stamp() : 0, __ATOMIC_SEQ_CST);
}

bool base_lock_sleeps(const struct base_lock *lock)
{
	return is_asleep(lock, __atomic_load_n(&lock->word, __ATOMIC_ACQUIRE), base_process_self());
}

void base_lock_pass(struct base_lock *lock)
{
	uint64_t until = base_deadline(base_now(), BASE_LOCK_TIMEOUT);
	uint32_t mine = own_word(base_process_self()), word;
	int saved = errno;

	while (((word = __atomic_fetch_or(&lock->word, 0, __ATOMIC_ACQ_REL)) & ~WAITERS) == mine &&
	       !base_deadline_passed(until, base_now()))
		futex_wait(lock, word, SLEEP_MIN);
	errno = saved;
}
