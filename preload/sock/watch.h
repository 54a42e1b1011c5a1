/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_WATCH_H
#define PRELOAD_WATCH_H

#include <stdbool.h>

#include "base/list.h"

struct sock;

/*
 * One that is told when the levels of a socket may have changed. Called under sock->lock. An
 * exclusive one says whether it takes what happened; then the exclusive ones behind it are not
 * told.
 */
struct sock_watch {
	struct base_list node;
	bool exclusive;
	bool lasting; /* not a thread's that sleeps */
	bool (*wake)(struct sock_watch *watch);
};

void sock_watch(struct sock *s, struct sock_watch *watch);
void sock_unwatch(struct sock *s, struct sock_watch *watch);
/* The levels of a socket may have changed, or it became a stream and is judged otherwise */
void sock_tell(struct sock *s);

/* Around fork(), with the socket's lock held: a child has none of the threads that slept */
void sock_forget_sleepers(struct sock *s);

#endif
