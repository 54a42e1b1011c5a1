/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a wait polls for a while before it sleeps.
 *
 * A spin pays when the message comes before it ends: then nobody had to be woken. It costs, and is
 * lost, when the message comes later, or when the one who is to send it waits for this very
 * processor. Neither can be known, but the last waits tell: after a spin that found nothing the
 * next wait sleeps at once, after two in a row the next two, then four, up to 1024. One that pays
 * makes good for all. A gap between two turns of a spin means that another process ran here in
 * between: such a spin has failed, too, for that process may be the one that is waited for.
 */
#include "am/spin.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"

#define GAP_NS (20 * BASE_NS_PER_US)
#define FAILURES_MAX 11 /* 2^10 waits that sleep */

uint64_t am_spin_begin(struct am_spin *s, uint64_t now, uint64_t length)
{
	if (!length)
		return 0;
	if (s->skip) {
		s->skip--;
		return 0;
	}
	s->turn = now;
	return now + length;
}

bool am_spin_goes_on(struct am_spin *s, uint64_t until, uint64_t now)
{
	uint64_t gap = now - s->turn;

	s->turn = now;
	if (now < until && gap <= GAP_NS)
		return true;
	s->failures = base_min(s->failures + 1, (uint32_t)FAILURES_MAX);
	s->skip = 1u << (s->failures - 1);
	return false;
}

void am_spin_paid(struct am_spin *s)
{
	s->failures = 0;
}

static bool intersects(const uint8_t *a, const uint8_t *b, uint32_t size)
{
	uint32_t i;

	for (i = 0; i < size; i++) {
		if (a[i] & b[i])
			return true;
	}
	return false;
}

bool am_spin_oversubscribed(const uint8_t *masks, uint32_t size, const bool *here, int ranks,
			    int me)
{
	const uint8_t *own = masks + (size_t)me * size, *other;
	uint8_t *all = calloc(1, size);
	int i, sharers = 0, processors = 0;
	uint32_t j;

	for (i = 0; all && i < ranks; i++) {
		other = masks + (size_t)i * size;
		if (!here[i] || !intersects(own, other, size))
			continue;
		sharers++;
		for (j = 0; j < size; j++)
			all[j] |= other[j];
	}
	for (j = 0; all && j < size; j++)
		processors += __builtin_popcount(all[j]);
	free(all);
	return sharers > processors;
}
