/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_BOUNCE_H
#define BASE_BOUNCE_H

#include <stddef.h>

/*
 * Buffers for octets on their way from one descriptor to another, which are too long for the stack
 * of a small thread. A few are kept for the next call.
 */
#define BASE_BOUNCE_SIZE ((size_t)64 * 1024)

/* NULL: no memory */
char *base_bounce_get(void);
void base_bounce_put(char *buf);

#endif
