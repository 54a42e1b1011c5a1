/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_URGENT_H
#define PRELOAD_URGENT_H

#include "preload/sock/sock.h"

/*
 * The signal for an urgent octet. The kernel does not see the octet: so who takes it in sends the
 * signal, and where nobody may be about to, the worker thread looks (worker.c).
 */

/* An urgent octet has come (stream_param.urgent): SIGURG to the owner of the descriptor */
void urgent_signal(void *sock);
/* The program has set an owner (worker_urgent_owner()) */
void urgent_owner_set(struct sock *s);
/* A socket of another process's, or of the program before this one: it may have one */
void urgent_owner_find(struct sock *s);
/* Is there an owner, for whom somebody must look? */
static inline bool urgent_is_awaited(const struct sock *s)
{
	return __atomic_load_n(&s->urgent_owner, __ATOMIC_ACQUIRE) && stream_urgent_may(s->stream);
}

#endif
