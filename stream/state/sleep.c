/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who of the processes that have a stream is to be woken when a level may have changed.
 *
 * A process that sleeps, or may sleep, for a level says so in its place: it awaits, and has
 * something to be woken by. Who has moved an edge takes that away, which makes it the one who
 * wakes: one process wakes another at most once for each time that the latter awaits.
 *
 *	await		asleep := AWAITS	fence	look at levels		sleep
 *	sleepers	edge++			fence	AWAITS? -> WOKEN		wake
 *
 * Each side writes, passes a full fence and reads what the other one writes, so not both of them
 * can miss the other: either the look finds what the edge stands for, or the sleeper is found.
 * An await that finds AWAITS still there needs no fence: whoever has moved an edge and has not come
 * to that word yet will find it there as well.
 *
 * What stands in another process's place may be rubbish. Then somebody is woken in vain or not at
 * all, which who sleeps beside others must reckon with anyway, for they may die in between.
 */
#include "stream/state/memory.h"

#define AWAITS 0x01u
#define WOKEN 0x02u /* since it has awaited last */
#define DEAF 0x04u  /* somebody tried to wake, and could not */

unsigned int stream_await(struct stream *s, uint64_t wakeup)
{
	int slot = base_load(&s->slot);
	unsigned int was = wakeup ? 0 : STREAM_AWAIT_DEAF;
	struct stream_holder *h;
	uint32_t before;

	if (slot < 0)
		return STREAM_AWAIT_DEAF;
	h = &s->state->holder[slot];
	if (base_load(&h->asleep) == AWAITS && base_load(&h->wakeup) == wakeup)
		return was;
	base_store(&h->wakeup, wakeup);
	before = __atomic_exchange_n(&h->asleep, AWAITS, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	was |= before & AWAITS ? 0 : STREAM_AWAIT_NEW;
	was |= before & WOKEN ? STREAM_AWAIT_NOTIFIED : 0;
	return was | (before & DEAF ? STREAM_AWAIT_DEAF : 0);
}

/* It awaits no more; false: somebody else does, or nobody is there */
static bool take(struct stream_holder *h)
{
	uint32_t before = base_load(&h->asleep);

	while (before & AWAITS)
		if (__atomic_compare_exchange_n(&h->asleep, &before, (before & ~AWAITS) | WOKEN,
						false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE))
			return true;
	return false;
}

unsigned int stream_sleepers(struct stream *s, uint64_t *wakeups, unsigned int max)
{
	int self = base_load(&s->slot);
	unsigned int n = 0;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (int i = 0; i < STREAM_HOLDERS && n < max; i++) {
		struct stream_holder *h = &s->state->holder[i];

		if (i == self || !take(h))
			continue;
		wakeups[n] = base_load(&h->wakeup);
		n += wakeups[n] != 0;
	}
	return n;
}

void stream_unheard(struct stream *s, uint64_t wakeup)
{
	struct stream_state *st = s->state;

	for (int i = 0; i < STREAM_HOLDERS; i++)
		if (base_load(&st->holder[i].wakeup) == wakeup)
			__atomic_or_fetch(&st->holder[i].asleep, DEAF, __ATOMIC_SEQ_CST);
}
