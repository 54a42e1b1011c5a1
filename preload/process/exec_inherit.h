/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_EXEC_INHERIT_H
#define PRELOAD_EXEC_INHERIT_H

#include <stdbool.h>
#include <stddef.h>

#include "preload/process/loadable.h"
#include "preload/process/next_program.h"
#include "preload/sock/sock.h"

/* What the next program of this process, or of a guest (a child of vfork()), is given */
struct exec_inherit {
	struct next_program next;
	bool guest;
};

/* How many struct next_fd there must be room for */
unsigned int exec_inherit_count(void);
/* In @room of the caller's, since a guest may not take memory of its parent's */
void exec_inherit_init(struct exec_inherit *h, struct next_fd *room, unsigned int n);
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
