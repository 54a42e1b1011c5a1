/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_URING_H
#define PRELOAD_URING_H

#include <stdbool.h>

/*
 * Has the program an io_uring? What it asks of the kernel by that passes by us, so its connections
 * cannot be on DDP.
 */
bool uring_used(void);

/*
 * io_uring_setup(2) by libc's syscall(): @a are its arguments, @call makes it. -EPERM while there
 * are streams, as where the administrator has switched it off.
 */
long uring_setup(long (*call)(const long *a), const long *a);

#endif
