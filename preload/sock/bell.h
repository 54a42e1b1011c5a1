/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_BELL_H
#define PRELOAD_BELL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What other processes wake this one by: a descriptor that becomes readable when one of them rings
 * its name. One for each process, made when it is first needed.
 */

/* Its name, which is made now if there is none yet; 0: none is to be had */
uint64_t bell_name(void);
/* -1: there is none */
int bell_fd(void);
/* Has somebody rung since the last time? It is silent again. */
bool bell_heard(void);
/* Another process's: 0, or -errno when it cannot be rung from here */
int bell_ring(uint64_t name);

/* Around fork(): the child has none */
void bell_before_fork(void);
void bell_after_fork(bool child);
/* In a process whose descriptors are not those that its memory speaks of: it has none either */
void bell_forget(void);

#endif
