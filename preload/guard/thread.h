/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_THREAD_H
#define PRELOAD_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Once, before any thread */
void thread_init(void);
/* A stack with so much for the thread's own use */
int thread_stack_set(pthread_attr_t *attr, size_t need);

/*
 * A thread of ours, with all signals blocked, and @stack for its own use. It runs when this
 * returns: 0, or -errno. Takes memory of the program's malloc, so no lock may be held
 */
int thread_begin(pthread_t *id, size_t stack, void *(*run)(void *arg));

/*
 * The process's first thread ends, and others go on. A thread of ours that stays is told by
 * @thread_first_ended, if that is set, and asks from time to time whether only such are left: the
 * process ends when they do.
 */
extern void (*thread_first_ended)(void);
void thread_first_ends(void);
bool thread_first_has_ended(void);
bool thread_is_only_ours(void);
void thread_after_fork(void);

/* Is the calling thread one of those? */
extern __thread bool thread_is_ours;

#endif
