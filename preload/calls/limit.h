/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LIMIT_H
#define PRELOAD_LIMIT_H

/*
 * seccomp(2) with SECCOMP_SET_MODE_: @a are its arguments, @call makes it (-errno); what it
 * returned, or why the process must not confine itself so
 */
long limit_seccomp(long (*call)(const long *a), const long *a);

/*
 * A ring is to be made: @a are the arguments, @call makes it. -EPERM where a rule takes sockets of
 * the program, as in a container, unless WARPSOCK_URING is allow; also then while there
 * are streams, as where the administrator has switched it off.
 */
long limit_uring(long (*call)(const long *a), const long *a);

#endif
