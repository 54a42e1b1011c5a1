/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LIBC_H
#define PRELOAD_LIBC_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <wrap.h> /* made of wrap.list */

#include "base/clock.h"

/*
 * The border: a result as our calls give it (-errno) as a program wants it. The one place where
 * errno is set.
 */
long libc_result(long result);

/* The same for a call that returns a pointer, which is never in the range of -errno */
void *libc_pointer(long result);

/*
 * What call_NAME may return besides: that it is libc's affair, which is then called with nothing
 * of ours held; and that it was interrupted as calls are that SA_RESTART restarts.
 */
#define CALL_THEIRS (-ENOMSG)
#define CALL_RESTART (-ERESTART)

/* A call without a time-out is one that SA_RESTART restarts */
static inline long call_interrupted(uint64_t deadline)
{
	return deadline == BASE_NEVER ? CALL_RESTART : -EINTR;
}

/* The other way round, for libc.NAME(...) inside our calls */
static inline long libc_try(long result)
{
	return result < 0 ? -errno : result;
}

/* Finds libc's own functions; until then stand-ins make the system calls */
void libc_init(void);

/* libc's own function by name into the pointer at @function, as it was if there is none */
bool libc_find(const char *name, void *function);

long libc_early_pselect(int n, fd_set *in, fd_set *out, fd_set *except,
			const struct timespec *timeout, const sigset_t *mask);

#endif
