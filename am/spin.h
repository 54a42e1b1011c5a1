/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_SPIN_H
#define AM_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* What the waits of one bundle have shown; times are in ns. */
struct am_spin {
	uint32_t failures; /* spins in a row that found nothing, as far as they count */
	uint32_t skip;	   /* waits that are still to sleep at once */
	uint64_t turn;	   /* of the spin that goes on: the last look at the clock */
};

/* A wait begins: until when to spin; 0: sleep at once. */
uint64_t am_spin_begin(struct am_spin *s, uint64_t now, uint64_t length);
/* After a poll that found nothing: whether to poll again rather than sleep. */
bool am_spin_goes_on(struct am_spin *s, uint64_t until, uint64_t now);
/* The wait ended while it spun. */
void am_spin_paid(struct am_spin *s);

/*
 * How many of the ranks of a machine share the processors of rank me: masks[i] of size bytes has a
 * bit for each processor that rank i may use, here[i] tells whether it is on the same machine.
 * True: these are more ranks than processors.
 */
bool am_spin_oversubscribed(const uint8_t *masks, uint32_t size, const bool *here, int ranks,
			    int me);

#endif
