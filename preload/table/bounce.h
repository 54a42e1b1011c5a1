/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_BOUNCE_H
#define PRELOAD_BOUNCE_H

#include <stddef.h>

/*
 * Buffers for octets on their way from one descriptor to another, which are too long for the stack
 * of a small thread. A few are kept for the next call.
 */
#define BOUNCE_SIZE ((size_t)64 * 1024)

/* NULL: no memory */
char *bounce_get(void);
void bounce_put(char *buf);

#endif
