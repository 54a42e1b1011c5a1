/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LINGER_H
#define PRELOAD_LINGER_H

#include "preload/sock/sock.h"

/* The stream has been closed and has more to do: waits as long as SO_LINGER asks for */
void linger_wait(struct sock *s);
/* The process ends, which SO_LINGER does not hold up */
void linger_never(bool on);

#endif
