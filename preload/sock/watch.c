/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that sleep on a socket, and sets that have it: they are told of each change.
 */
#include "preload/sock/watch.h"

#include "preload/sock/sock.h"

void sock_watch(struct sock *s, struct sock_watch *watch)
{
	pthread_mutex_lock(&s->lock);
	base_list_push_back(&s->watches, &watch->node);
	pthread_mutex_unlock(&s->lock);
}

void sock_unwatch(struct sock *s, struct sock_watch *watch)
{
	pthread_mutex_lock(&s->lock);
	base_list_remove(&watch->node);
	pthread_mutex_unlock(&s->lock);
}

void sock_tell(struct sock *s)
{
	struct base_list *node, *next;
	bool taken = false;

	pthread_mutex_lock(&s->lock);
	base_list_foreach(node, next, &s->watches) {
		struct sock_watch *w = base_list_entry(node, struct sock_watch, node);

		if (!taken || !w->exclusive)
			taken |= w->wake(w);
	}
	pthread_mutex_unlock(&s->lock);
}

void sock_forget_sleepers(struct sock *s)
{
	struct base_list *node, *next;

	base_list_foreach(node, next, &s->watches) {
		struct sock_watch *w = base_list_entry(node, struct sock_watch, node);

		if (!w->lasting)
			base_list_remove(&w->node);
	}
}
