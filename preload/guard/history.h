/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_HISTORY_H
#define PRELOAD_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What the last waits of one place say about the next one: does it pay to spin before it sleeps?
 * Eight bytes, so that threads that wait in one place can read and write them at once.
 */
struct spin_history {
	_Alignas(8) uint32_t mean; /* ns from a wait's begin to its input: a moving estimate */
	uint16_t skip;		   /* so many waits sleep at once */
	uint8_t failed;		   /* spins in a row that found nothing */
	bool known;		   /* a wait has ended */
};

/* Shall a wait spin, for @cap ns at most? It counts the waits that are to sleep at once */
bool history_pays(struct spin_history *h, uint64_t cap);
/* A wait has ended. Its input came after @waited ns (BASE_NEVER: none came) */
void history_note(struct spin_history *h, uint64_t waited, uint64_t cap);
/* The same, and it has spun: @found: the spin found the input */
void history_note_spin(struct spin_history *h, uint64_t waited, bool found, uint64_t cap);
/* To spin would be of no use, whenever the input comes: as after a spin that found nothing */
void history_rest(struct spin_history *h);

#endif
