/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_UNIT_THREADLESS_H
#define TESTS_UNIT_THREADLESS_H

/*
 * No thread is to be had: of what is linked with -Wl,--wrap=pthread_create, in one file of it.
 */
#include <errno.h>
#include <pthread.h>

static int threadless;		     /* what pthread_create() says; 0: as ever */
static unsigned int threadless_from; /* so many more there are before */

int __real_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *arg),
			  void *arg);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *arg),
			  void *arg);

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attr, void *(*run)(void *arg),
			  void *arg)
{
	if (threadless && !threadless_from)
		return threadless;
	threadless_from -= threadless_from != 0;
	return __real_pthread_create(id, attr, run, arg);
}

/* What it says where threads are few, and where their stacks are too small */
static const int threadless_errors[] = { EAGAIN, EINVAL };

#endif
