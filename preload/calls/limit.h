/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LIMIT_H
#define PRELOAD_LIMIT_H

/*
 * seccomp(2) with SECCOMP_SET_MODE_: @a are its arguments, @call makes it (-errno); what it
 * returned, or why the process must not confine itself so
 */
long limit_seccomp(long (*call)(const long *a), const long *a);

/*
 * io_uring_setup(2) by libc's syscall(): @a are its arguments, @call makes it. -EPERM while there
 * are streams, as where the administrator has switched it off.
 */
long limit_uring(long (*call)(const long *a), const long *a);

#endif
