/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/*
 * A lock that may lie in memory shared by processes and that survives the death of its owner.
 * What it guards may then be half changed: who gets -EOWNERDEAD holds the lock, and it alone is
 * told. The user of the lock must treat what it guards as lost; the lock itself goes on
 * working.
 *
 * Never held across a sleep.
 */
struct base_lock {
	pthread_mutex_t mutex;
};

int base_lock_init(struct base_lock *lock);
/* 0, or -EOWNERDEAD: held as well, but the owner before died in it */
int base_lock_take(struct base_lock *lock);
void base_lock_drop(struct base_lock *lock);

#endif
