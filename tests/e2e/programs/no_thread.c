/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A library for LD_PRELOAD with which no thread is to be had; NO_THREAD=EINVAL: for another reason.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int pthread_create(pthread_t *id, const pthread_attr_t *attr,
							  void *(*run)(void *arg), void *arg)
{
	return getenv("NO_THREAD") ? EINVAL : EAGAIN;
}
