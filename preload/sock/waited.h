/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_WAITED_H
#define PRELOAD_WAITED_H

#include <stdbool.h>

#include "preload/guard/spin.h"
#include "preload/table/fdtab.h"

/*
 * A TCP socket of the kernel's, of which only the waits are ours: they spin as those of a socket on
 * DDP do (WARPSOCK_TCP_SPIN, `warpsock run --mode spin`). All else is the kernel's affair.
 */
struct waited {
	struct fdent ent;
	struct spin_place place;
	bool listens; /* atomic */
};

/* Into the table, where the option says so; without memory it is as every other socket */
void waited_add(int fd);
/* With a reference, or NULL */
struct waited *waited_get(int fd);
void waited_put(struct waited *w);
/* It listens from now on */
void waited_listens(int fd);

#endif
