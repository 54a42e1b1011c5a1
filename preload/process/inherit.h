/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_INHERIT_H
#define PRELOAD_INHERIT_H

#include <stdbool.h>

/* When the process starts: sockets that it was given are known, but for plain connections */
void inherit_sockets(void);
/* The same for one that came in a message, or that is only looked at and will come again */
void inherit_received(int fd, bool peek);
/* Each number that the kernel knows of this process, or of a guest. No memory is taken */
void inherit_each(void (*fn)(int fd, void *ctx), void *ctx);

#endif
