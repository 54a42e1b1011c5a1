/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_EXEC_INHERIT_H
#define PRELOAD_EXEC_INHERIT_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/process/loadable.h"
#include "preload/sock/sock.h"

/* A number by which the next program is given a stream */
struct inherited_fd {
	int fd;
	struct sock *sock; /* with a reference; a guest has none when it executes */
	uint64_t cookie;
	int local;   /* what the program gets in its place, by a relay; -1: it adopts the stream */
	int far;     /* the relay's end of that */
	int back;    /* a guest's: the socket, for when the program is not executed */
	bool shared; /* a guest's: for the program's process */
};

/* What the next program of this process, or of a guest, is given */
struct exec_inherit {
	struct inherited_fd *inherited;
	unsigned int n, room;
	bool guest;
	bool adopts; /* it needs us in it */
	int relay;   /* -1 */
};

/* How many struct inherited_fd there must be room for */
unsigned int exec_inherit_count(void);
/* In @room of the caller's, since a guest may not take memory of its parent's */
void exec_inherit_init(struct exec_inherit *h, struct inherited_fd *room, unsigned int n);
/*
 * Makes them ready for a program that can load us, or cannot: 0, or -errno, and nothing has
 * happened. In this process, and not in a guest, process_finish() spares them from now on.
 */
int exec_inherit_prepare(struct exec_inherit *h, enum loadable to);
/* Right before the program is executed: the last steps */
void exec_inherit_leave(struct exec_inherit *h);
/* It was not: all is as before */
void exec_inherit_return(struct exec_inherit *h);

#endif
