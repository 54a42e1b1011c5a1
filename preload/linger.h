/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_LINGER_H
#define PRELOAD_LINGER_H

#include "preload/sock.h"

/*
 * Streams whose last descriptor is closed and that have something left to do.
 */

/* Takes over the caller's reference; the socket's descriptor is an internal one and goes with it */
void linger_add(struct sock *s);
/*
 * Before the process ends: waits until the peers have what they were sent, at most until
 * @deadline. How many have not.
 */
unsigned int linger_finish(uint64_t deadline);
/* In a child: they are the parent's */
void linger_forget(void);

#endif
