/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef APPS_ARFS_OPENS_H
#define APPS_ARFS_OPENS_H

/* The files that are open at this client, and those of them that have no name any more. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPENS_HEADS = 1024 };

struct opens_node;

struct opens {
	pthread_mutex_t lock;
	struct opens_node *heads[OPENS_HEADS];
	size_t count; /* of nodes */
};

int opens_init(struct opens *o);
bool opens_any(struct opens *o);
/* One more user of @node: 0 or -ENOMEM */
int opens_add(struct opens *o, uint64_t node);
/* One less. True: it was the last one, and the file has no name: the server is to release it */
bool opens_remove(struct opens *o, uint64_t node);
/* The file has no name any more. False: it is not open here */
bool opens_orphan(struct opens *o, uint64_t node);

#endif
