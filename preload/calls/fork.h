/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_FORK_H
#define PRELOAD_FORK_H

#include <pthread.h>
#include <stdbool.h>

void fork_init(void);
/*
 * A process made by @make, which returns its number, 0 in itself, or -errno. Where it does not
 * return in itself, that calls fork_child() before all else.
 */
long fork_by(long (*make)(void *ctx), void *ctx);
void fork_child(void);
/*
 * clone.c: a system call of the program's that is a fork() by another name, made by @call as
 * the kernel has it. False: it is none
 */
bool fork_by_number(long n, const long *a, long (*call)(long n, const long *a), long *r);
/* aio.c, spawn.c */
void aio_before_fork(void);
void aio_after_fork(bool child);
void spawn_before_fork(void);
void spawn_after_fork(bool child);

#endif
