/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_ENTRY_H
#define PRELOAD_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/table/fdtab.h"

struct sock;

/*
 * What files below call of those above: a socket is given it when it is made (sock.c).
 */
struct sock_ops {
	struct fdent_ops ent;
	/* It was new, and another process may have connected it */
	void (*catch_up)(struct sock *s, int fd);
	int (*progress)(struct sock *s);   /* sock_progress() */
	void (*fall_back)(struct sock *s); /* sock_fall_back() */
};

/* A new one that is not in the table yet; NULL: no memory */
struct sock *sock_alloc(int fd, const struct sock_ops *ops);
void sock_free(struct sock *s);
bool sock_ready(void); /* is there memory for one more? */
/* All there are memory for, as pool_each() */
void sock_each(void (*fn)(void *object));

/* The kernel's name for a socket; 0: it is none */
uint64_t sock_cookie(int fd);
/* Is it the socket's own file that stands at @fd, whatever the table says? */
bool sock_is_behind(const struct sock *s, int fd);

#endif
