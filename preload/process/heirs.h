/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_HEIRS_H
#define PRELOAD_HEIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/process/loadable.h"
#include "preload/sock/sock.h"

/* A number by which the next program is given a stream */
struct heir {
	int fd;
	struct sock *sock; /* with a reference; a guest has none when it executes */
	uint64_t cookie;
	int local;   /* what the program gets in its place, by a relay; -1: it adopts the stream */
	int far;     /* the relay's end of that */
	int back;    /* a guest's: the socket, for when the program is not executed */
	bool shared; /* a guest's: for the program's process */
};

/* What the next program of this process, or of a guest, is given */
struct heirs {
	struct heir *heir;
	unsigned int n, room;
	bool guest;
	bool adopts; /* it needs us in it */
	int relay;   /* -1 */
};

/* How many struct heir there must be room for */
unsigned int heirs_count(void);
/* In @room of the caller's, since a guest may not take memory of its parent's */
void heirs_init(struct heirs *h, struct heir *room, unsigned int n);
/*
 * Makes them ready for a program that can load us, or cannot: 0, or -errno, and nothing has
 * happened. In this process, and not in a guest, process_finish() spares them from now on.
 */
int heirs_prepare(struct heirs *h, enum loadable to);
/* Right before the program is executed: the last steps */
void heirs_leave(struct heirs *h);
/* It was not: all is as before */
void heirs_return(struct heirs *h);

#endif
