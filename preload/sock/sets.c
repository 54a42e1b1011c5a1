/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What sets of sockets are told. A process without sets has nobody to tell, however early in its
 * life it has sockets.
 */
#include "preload/sock/sets.h"

#include <stdbool.h>
#include <stddef.h>

static const struct sets_ops *above; /* atomic: those of sets, should there be any */
static bool made;		     /* atomic: there has been one, perhaps before sets_begin() */

void sets_begin(const struct sets_ops *ops)
{
	__atomic_store_n(&above, ops, __ATOMIC_RELEASE);
}

void sets_made(void)
{
	__atomic_store_n(&made, true, __ATOMIC_RELEASE);
}

static const struct sets_ops *sets_get(void)
{
	return __atomic_load_n(&made, __ATOMIC_ACQUIRE) ? __atomic_load_n(&above, __ATOMIC_ACQUIRE)
							: NULL;
}

void sets_rekey(struct sock *s)
{
	if (sets_get())
		sets_get()->rekey(s);
}

void sets_forget(struct sock *s)
{
	if (sets_get())
		sets_get()->forget(s);
}

void sets_give_back(struct sock *s)
{
	if (sets_get())
		sets_get()->give_back(s);
}

unsigned int sets_pass(struct sock *s)
{
	return sets_get() ? sets_get()->pass(s) : 0;
}

void sets_take(struct sock *s, int fd)
{
	if (sets_get())
		sets_get()->take(s, fd);
}
