/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files that are open at this client: a hash table of nodes, under one lock. A node is there
 * while it has users.
 */
#include "opens.h"

#include <errno.h>
#include <stdlib.h>

struct opens_node {
	struct opens_node *next;
	uint64_t node;
	unsigned long users;
	bool orphan;
};

int opens_init(struct opens *o)
{
	*o = (struct opens){ .count = 0 };
	return -pthread_mutex_init(&o->lock, NULL);
}

/* Where the pointer to it is, or to the end of its list */
static struct opens_node **place_of(struct opens *o, uint64_t node)
{
	struct opens_node **at = &o->heads[node % OPENS_HEADS];

	while (*at && (*at)->node != node)
		at = &(*at)->next;
	return at;
}

bool opens_any(struct opens *o)
{
	bool any;

	pthread_mutex_lock(&o->lock);
	any = o->count;
	pthread_mutex_unlock(&o->lock);
	return any;
}

int opens_add(struct opens *o, uint64_t node)
{
	struct opens_node **at;
	int ret = 0;

	pthread_mutex_lock(&o->lock);
	at = place_of(o, node);
	if (!*at) {
		*at = calloc(1, sizeof(**at));
		o->count += !!*at;
	}
	if (*at) {
		(*at)->node = node;
		(*at)->users++;
	} else {
		ret = -ENOMEM;
	}
	pthread_mutex_unlock(&o->lock);
	return ret;
}

bool opens_remove(struct opens *o, uint64_t node)
{
	struct opens_node **at, *n;
	bool last = false;

	pthread_mutex_lock(&o->lock);
	at = place_of(o, node);
	n = *at;
	if (n && !--n->users) {
		last = n->orphan;
		*at = n->next;
		o->count--;
		free(n);
	}
	pthread_mutex_unlock(&o->lock);
	return last;
}

bool opens_orphan(struct opens *o, uint64_t node)
{
	struct opens_node *n;

	pthread_mutex_lock(&o->lock);
	n = *place_of(o, node);
	if (n)
		n->orphan = true;
	pthread_mutex_unlock(&o->lock);
	return n;
}
