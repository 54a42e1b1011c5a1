/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_WAKEUP_H
#define PRELOAD_WAKEUP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What other processes wake this one by: a descriptor that becomes readable when one of them sends
 * to its name. One for each process, made when it is first needed.
 */

/* Its name, which is made now if there is none yet; 0: none is to be had */
uint64_t wakeup_name(void);
/* -1: there is none */
int wakeup_fd(void);
/* Has somebody woken since the last time? It is silent again. */
bool wakeup_take(void);
/* Another process's: 0, or -errno when it cannot be woken from here */
int wakeup_send(uint64_t name);

/* Around fork(): the child has none */
void wakeup_before_fork(void);
void wakeup_after_fork(bool child);
/* In a process whose descriptors are not those that its memory speaks of: it has none either */
void wakeup_forget(void);

#endif
