/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_FORK_H
#define PRELOAD_FORK_H

#include <pthread.h>
#include <stdbool.h>

/* Changes with each fork(), in the child: what has another one is its parent's as well */
extern unsigned int fork_age;

void fork_init(void);
/*
 * A process made by @make, which returns its number, 0 in itself, or -errno. Where it does not
 * return in itself, that calls fork_child() before all else.
 */
long fork_by(long (*make)(void *ctx), void *ctx);
void fork_child(void);
/*
 * calls/clone.c: a system call of the program's that is a fork() by another name, made by @call as
 * the kernel has it. False: it is none
 */
bool fork_by_number(long n, const long *a, long (*call)(long n, const long *a), long *r);
/*
 * Does this process share the memory of the one that the tables are of, as a child of vfork() does?
 * Then they are not to be changed, and descriptors are the kernel's alone.
 */
bool fork_is_guest(void);

/*
 * A lock that was taken for fork(). In a child that nobody announced it may be another thread's, or
 * free: there it is made anew, too, but unlocked before, for sanitizers know who holds it.
 */
static inline void fork_lock_drop(pthread_mutex_t *lock, bool child)
{
	pthread_mutex_unlock(lock);
	if (child)
		pthread_mutex_init(lock, NULL);
}

/* Of calls/aio.c, which has nobody else to tell of it */
void aio_before_fork(void);
void aio_after_fork(bool child);

#endif
