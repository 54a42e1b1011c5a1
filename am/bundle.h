/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_BUNDLE_H
#define AM_BUNDLE_H

#include "am/endpoint.h"
#include "am/lock.h"
#include "am/spin.h"

#define AM_BUNDLE_MAGIC 0xA2B0D1E5u

struct amudp_eb {
	uint32_t magic;
	struct base_list node;
	int event_mask;
	struct am_lock lock; /* handlers run without */
	struct base_list endpoints;
	struct am_wait_set *wait_sets; /* not in use */
	int idle;		       /* polls in a row that found nothing */
	int extra_fd;		       /* also waited for: a collective's answer; -1 none */
	struct am_spin spin;	       /* how its waits went */
};

extern bool am_oversubscribed; /* more processes than processors: yield when idle */

/*
 * Atomic: called by the next poll, with no lock held; it need not return. The caller that sets it
 * then makes the descriptor readable, so that sleepers poll; -1: there is none.
 */
extern void (*am_bundle_interrupt)(void);
extern int am_bundle_interrupt_fd;
/* Calls it, if it is set. */
void am_bundle_interrupt_serve(void);

static inline bool am_bundle_valid(const struct amudp_eb *eb)
{
	return eb && eb->magic == AM_BUNDLE_MAGIC;
}

void am_bundles_free(void);
/* With the lock held; returns messages taken in. */
int am_bundle_poll(struct amudp_eb *eb);
/*
 * Polls once, and when that finds nothing may sleep until something comes or is due; the lock is
 * dropped while it sleeps. *spin_until is the caller's for as long as he waits for one thing, and 0
 * at first.
 */
void am_bundle_wait(struct amudp_eb *eb, uint64_t *spin_until);

#endif
