/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_OTHERS_H
#define PRELOAD_OTHERS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/sock/sock.h"

/*
 * Streams that other processes have as well: who takes in for them, or makes room, wakes those who
 * sleep for it there. The kernel wakes nobody for what it has no longer.
 */

/* Not 0: there may be such streams here. Another number with each that comes. Atomic */
extern unsigned int others_age;

static inline bool others_any(void)
{
	return __builtin_expect(__atomic_load_n(&others_age, __ATOMIC_ACQUIRE) != 0, 0);
}

static inline bool others_have(const struct sock *s)
{
	return others_any() && stream_shared(s->stream);
}

/* It is shared from now on: who sleeps on it wakes, and sleeps again as one does with others */
void others_come(struct sock *s);

/* Before the last look at a socket's levels: others ring for what happens behind that look */
void others_await(struct sock *s);
/* The same for all that are watched lastingly, if any came since the last time */
void others_await_all(void);
/* What a sleeper polls beside its own; -1: nothing */
int others_fd(void);
/* That has spoken: who sleeps here for what it may mean is told */
void others_heard(void);
/*
 * Until when to sleep, to look again then, whatever has been heard. BASE_NEVER: for ever. No lock
 * may be held
 */
uint64_t others_limit(void);

/* An edge of @s has moved: wakes who sleeps for that in other processes */
void others_tell(struct sock *s);

/* In a child, which begins with none */
void others_after_fork(void);

#endif
