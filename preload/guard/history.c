/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The history of the waits of one place.
 *
 * A spin pays when the input comes before it ends: nobody has to be woken then. The time of a wait
 * that sleeps tells less than that of one that spins, for it includes a wakeup, of this thread and
 * perhaps of the peer's. So the estimate allows for that, and a spin that finds nothing is the
 * better judge: the next wait sleeps, after two such spins in a row the next two, then four, up to
 * 1024. A spin that finds something makes good for all of them.
 *
 * The first wait of a place sleeps: nothing speaks for a spin.
 */
#include "preload/guard/history.h"

#include "base/bits.h"
#include "base/clock.h"

/* So much of a wait may be wakeups */
#define WAKEUPS (50 * BASE_NS_PER_US)
#define FAILED_MAX 11 /* 2^10 waits that sleep */

static uint64_t reach(uint64_t cap)
{
	return cap + WAKEUPS;
}

bool history_pays(struct spin_history *h, uint64_t cap)
{
	if (!h->known || !cap)
		return false;
	if (h->skip) {
		h->skip--;
		return false;
	}
	return h->mean <= reach(cap);
}

/* One long wait among short ones does not end the spinning, three in a row do */
void history_note(struct spin_history *h, uint64_t waited, uint64_t cap)
{
	int64_t sample = (int64_t)base_min(waited, 2 * reach(cap)), mean = h->mean;

	h->mean = (uint32_t)(h->known ? mean + (sample - mean) / 4 : sample);
	h->known = true;
}

void history_note_spin(struct spin_history *h, uint64_t waited, bool found, uint64_t cap)
{
	history_note(h, found ? waited : BASE_NEVER, cap);
	if (found)
		h->failed = 0;
	else
		history_rest(h);
}

void history_rest(struct spin_history *h)
{
	h->failed = (uint8_t)base_min(h->failed + 1, FAILED_MAX);
	h->skip = (uint16_t)(1u << (h->failed - 1));
}
