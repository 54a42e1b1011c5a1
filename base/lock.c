/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Robust process-shared locks, by the mutexes of POSIX: the kernel marks those of a dead thread.
 */
#include "base/lock.h"

#include <errno.h>

#include "base/log.h"

int base_lock_init(struct base_lock *lock)
{
	pthread_mutexattr_t attr;
	int err = pthread_mutexattr_init(&attr);

	if (err)
		return -err;
	err = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!err)
		err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!err)
		err = pthread_mutex_init(&lock->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return -err;
}

int base_lock_take(struct base_lock *lock)
{
	int err = pthread_mutex_lock(&lock->mutex);

	if (err == EOWNERDEAD)
		pthread_mutex_consistent(&lock->mutex);
	else if (err)
		base_err("a lock in shared memory is damaged: %d", err);
	return err ? -EOWNERDEAD : 0;
}

void base_lock_drop(struct base_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
}
