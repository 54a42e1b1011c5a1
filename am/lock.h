/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef AM_LOCK_H
#define AM_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/* The lock of a bundle and of all in it. In AM_SEQ one thread calls, and there is nothing to do. */
struct am_lock {
	bool on;
	pthread_mutex_t mutex;
};

static inline void am_lock_take(struct am_lock *lock)
{
	if (lock->on)
		pthread_mutex_lock(&lock->mutex);
}

static inline void am_lock_drop(struct am_lock *lock)
{
	if (lock->on)
		pthread_mutex_unlock(&lock->mutex);
}

#endif
