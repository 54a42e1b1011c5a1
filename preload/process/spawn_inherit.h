/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_SPAWN_INHERIT_H
#define PRELOAD_SPAWN_INHERIT_H

#include <stdbool.h>

#include "preload/process/loadable.h"
#include "preload/process/next_program.h"
#include "preload/process/spawn_plan.h"
#include "preload/sock/sock.h"

/* What the program is given */
struct spawn_inherit {
	struct next_program next;
	unsigned int begun; /* the first of its numbers are as in this process */
	posix_spawn_file_actions_t actions;
};

/* Numbers of streams there are */
unsigned int spawn_inherit_count(void);
/* Of so many the room, with those that @plan makes */
static inline unsigned int spawn_inherit_room(unsigned int n, const struct spawn_plan *plan)
{
	return n + (plan ? plan->n : 0);
}

/* @room: of so many; @n: spawn_inherit_count() */
void spawn_inherit_init(struct spawn_inherit *g, struct next_fd *room, unsigned int n,
			const struct spawn_plan *plan);
/* 0 or a positive errno, and nothing has happened */
int spawn_inherit_prepare(struct spawn_inherit *g, const struct spawn_plan *plan, enum loadable to);
/* @pid: of the program; 0: it was not started */
void spawn_inherit_end(struct spawn_inherit *g, pid_t pid);

#endif
