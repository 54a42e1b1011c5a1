/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LIBC_H
#define PRELOAD_LIBC_H

#include <errno.h>
#include <wrap.h> /* made of wrap.list */

/*
 * The edge: a result as our calls give it (-errno) as a program wants it. The one place where
 * errno is set.
 */
long libc_result(long result);

/* The other way round, for libc.NAME(...) inside our calls */
static inline long libc_try(long result)
{
	return result < 0 ? -errno : result;
}

/* Finds libc's own functions; until then stand-ins make the system calls */
void libc_init(void);

long libc_early_pselect(int n, fd_set *in, fd_set *out, fd_set *except,
			const struct timespec *timeout, const sigset_t *mask);

#endif
