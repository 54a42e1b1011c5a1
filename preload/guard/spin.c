/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a wait spins, and for how long.
 *
 * It spins only when all of these say so, the cheapest first:
 *
 *	the history of the place	(history.h)
 *	the thread and its cgroup	no real-time class, two processors' time
 *	the processor			no other program wants it, nor the last one that is free;
 *					the peer is elsewhere, and no other thread spins on it
 *					(lease.h)
 *
 * and only for as long as it keeps the processor. A gap between two turns says that something else
 * ran here. When that was a thread, the processor is left alone for a while by all who know of the
 * page, because who is to send may be waiting for it; else this wait alone sleeps.
 *
 * A thread that may run on one processor only spins when it is known that its peer runs on
 * another: the kernel could not move it out of the peer's way.
 */
#include "preload/guard/spin.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/clock.h"
#include "preload/guard/lease.h"
#include "preload/guard/sandbox.h"

#define GAP (20 * BASE_NS_PER_US)
/* So long at once runs a program that has work, and none of the kernel's threads */
#define RUNS_ON (500 * BASE_NS_PER_US)

static uint64_t spin_cap;
static bool quota_low, forced;
static uint64_t counts[SPIN_FATES]; /* atomic */
static unsigned int own_runs;	    /* atomic: how often threads of the library's own ran */

void spin_init(uint64_t cap, bool low)
{
	spin_cap = cap;
	quota_low = low;
}

void spin_force(void)
{
	forced = true;
}

bool spin_may(void)
{
	return spin_cap;
}

uint64_t spin_count(enum spin_fate fate)
{
	return __atomic_load_n(&counts[fate], __ATOMIC_RELAXED);
}

void spin_forget(void)
{
	for (unsigned int i = 0; i < SPIN_FATES; i++)
		__atomic_store_n(&counts[i], 0, __ATOMIC_RELAXED);
}

static void count(enum spin_fate fate)
{
	__atomic_add_fetch(&counts[fate], 1, __ATOMIC_RELAXED);
}

/* Threads may wait in one place at once: what one of them notes is lost then, which is no harm */
static struct spin_history history_load(struct spin_place *place)
{
	struct spin_history h;

	__atomic_load(&place->history, &h, __ATOMIC_RELAXED);
	return h;
}

static void history_store(struct spin_place *place, struct spin_history h)
{
	__atomic_store(&place->history, &h, __ATOMIC_RELAXED);
}

bool spin_rests(struct spin_place *place)
{
	struct spin_history h = history_load(place);

	if (!h.skip || forced)
		return false;
	h.skip--;
	history_store(place, h);
	count(SPIN_UNLIKELY);
	return true;
}

static bool is_likely(struct spin_place *place)
{
	struct spin_history h = history_load(place);
	uint16_t skip = h.skip;
	bool pays = history_pays(&h, spin_cap);

	if (h.skip != skip)
		history_store(place, h);
	return pays;
}

/* Less than that is as long as a look takes, or two */
#define LASTS (2 * BASE_NS_PER_US)

bool spin_lasts(struct spin_place *place)
{
	struct spin_history h = history_load(place);

	return h.known && h.mean > LASTS;
}

bool spin_might(struct spin_place *place)
{
	struct spin_history h = history_load(place);

	h.skip = 0;
	return forced || history_pays(&h, spin_cap);
}

static enum spin_fate thread_judge(struct processor_thread *t, uint64_t now)
{
	if (quota_low)
		return SPIN_QUOTA;
	processor_look(t, now);
	return t->urgent ? SPIN_URGENT : SPIN_FOUND;
}

static enum spin_fate processor_judge(const struct processor_thread *t, struct spin_place *place,
				      int here, uint64_t now)
{
	int fd = __atomic_load_n(&place->fd, __ATOMIC_RELAXED);
	enum processor_peer peer = __atomic_load_n(&place->peer, __ATOMIC_RELAXED);

	if (lease_is_busy((unsigned int)here, now) || lease_takes_last((unsigned int)here, now))
		return SPIN_BUSY;
	if (fd)
		peer = processor_of_peer(fd - 1, here);
	if (peer == PROCESSOR_SAME)
		return SPIN_PEER_HERE;
	return t->confined && peer == PROCESSOR_UNKNOWN ? SPIN_ALONE : SPIN_FOUND;
}

void spin_place_learn(struct spin_place *place, int fd)
{
	struct spin_history h = history_load(place);
	enum processor_peer peer;

	/* Only for a wait that it decides about */
	if (h.skip || !history_pays(&h, spin_cap))
		return;
	peer = processor_of_peer(fd, processor_here());
	__atomic_store_n(&place->peer, peer, __ATOMIC_RELAXED);
}

/* What will not change from one wait to the next, and is dear, is not asked for each time */
static bool refused(struct spin_place *place, enum spin_fate fate)
{
	struct spin_history h = history_load(place);

	count(fate);
	if (fate == SPIN_BUSY)
		return false;
	history_rest(&h);
	history_store(place, h);
	return false;
}

/* SPIN_FOUND: nothing speaks against it */
static enum spin_fate judge(struct processor_thread *t, struct spin_place *place, int here,
			    uint64_t now)
{
	enum spin_fate fate = here < 0 ? SPIN_ALONE : thread_judge(t, now);

	return fate == SPIN_FOUND ? processor_judge(t, place, here, now) : fate;
}

bool spin_begin(struct spin *s, struct spin_place *place, uint64_t now, uint64_t deadline)
{
	struct spin_thread *t = spin_self();
	enum spin_fate fate = SPIN_FOUND;
	int here;

	if (!spin_cap || !t || __atomic_load_n(&sandbox_on, __ATOMIC_RELAXED))
		return false;
	if (!forced && !is_likely(place)) {
		count(SPIN_UNLIKELY);
		return false;
	}
	here = processor_here();
	if (!forced)
		fate = judge(&t->processor, place, here, now);
	if (fate != SPIN_FOUND)
		return refused(place, fate);
	*s = (struct spin){ place, now, base_min(deadline, base_deadline(now, spin_cap)), now,
			    (unsigned int)here };
	if (lease_take(s->cpu, now, s->end))
		return true;
	count(SPIN_TAKEN);
	return false;
}

void spin_disturb(void)
{
	__atomic_add_fetch(&own_runs, 1, __ATOMIC_RELAXED);
}

/* Where the kernel's answer takes that long by itself, as for a very long list, it is no use */
static bool lost(struct spin *s, uint64_t now, uint64_t gap)
{
	struct spin_thread *t = spin_self();
	bool taken = processor_was_taken(&t->processor);
	unsigned int own = __atomic_load_n(&own_runs, __ATOMIC_RELAXED);

	if (taken && own != t->own_runs) {
		t->own_runs = own;
		return false;
	}
	if (taken && gap >= RUNS_ON)
		lease_busy(s->cpu, now);
	else if (taken)
		lease_busy_briefly(s->cpu, now);
	count(SPIN_GAP);
	return true;
}

/*
 * A thread that becomes ready while this one spins would wait until the kernel's slice is over,
 * some milliseconds. So the processor is offered so often, whatever the waits in between found.
 * That reaches threads of the same scheduling group; for those of others the slice is made short
 */
#define OFFER (50 * BASE_NS_PER_US)

static void offer(uint64_t now)
{
	struct spin_thread *t = spin_self();

	if (!t->offered)
		t->offered = now;
	if (now - t->offered < OFFER)
		return;
	t->offered = now;
	if (!t->yields)
		processor_slice_shorten();
	t->yields = true;
	syscall(SYS_sched_yield);
}

bool spin_goes_on(struct spin *s, uint64_t now)
{
	uint64_t gap = now - s->turn;

	s->turn = now;
	if (!forced)
		offer(now);
	if (gap > GAP && !forced && lost(s, now, gap))
		return false;
	if (processor_here() != (int)s->cpu && !forced) {
		count(SPIN_MOVED);
		return false;
	}
	if (now < s->end)
		return true;
	count(SPIN_ENDED);
	return false;
}

void spin_end(struct spin *s, bool found, bool stopped, uint64_t now)
{
	struct spin_history h = history_load(s->place);
	uint64_t waited = now - s->began;

	lease_give(s->cpu, s->end);
	if (found)
		count(SPIN_FOUND);
	if (stopped && !found)
		return;
	history_note_spin(&h, waited, found, spin_cap);
	history_store(s->place, h);
}

void spin_note(struct spin_place *place, uint64_t waited)
{
	struct spin_history h = history_load(place);

	history_note(&h, waited, spin_cap);
	history_store(place, h);
}
