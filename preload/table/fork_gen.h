/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_FORK_GEN_H
#define PRELOAD_FORK_GEN_H

#include <pthread.h>
#include <stdbool.h>

/* Changes with each fork(), in the child: what has another one is its parent's as well */
extern unsigned int fork_gen;

/* @adopt: makes the tables a child's that nobody announced */
void fork_gen_init(void (*adopt)(void));
bool fork_gen_is_known(void);
/* In a child that was announced: it is its own */
void fork_gen_born(void);
/*
 * Does this process share the memory of the one that the tables are of, as a child of vfork() does?
 * Then they are not to be changed, and descriptors are the kernel's alone.
 */
bool fork_gen_is_guest(void);

/*
 * A lock that was taken for fork(). In a child that nobody announced it may be another thread's, or
 * free: there it is made anew, too, but unlocked before, for sanitizers know who holds it.
 */
static inline void fork_gen_lock_drop(pthread_mutex_t *lock, bool child)
{
	pthread_mutex_unlock(lock);
	if (child)
		pthread_mutex_init(lock, NULL);
}

/*
 * This process was made by _Fork() or clone(): locks of libc's may have been another thread's then,
 * and it begins no thread
 */
extern bool fork_gen_bare;

#endif
