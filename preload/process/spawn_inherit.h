/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_SPAWN_INHERIT_H
#define PRELOAD_SPAWN_INHERIT_H

#include <stdbool.h>

#include "preload/process/loadable.h"
#include "preload/process/spawn_plan.h"
#include "preload/sock/sock.h"

/* A number in the child of posix_spawn() by which it has a stream */
struct spawn_number {
	int fd;
	struct sock *sock; /* with a reference */
	bool cloexec;
	int before; /* what it was before the file actions; -1: not there */
	bool shared;
	int local, far; /* for a program that cannot load us; -1 */
};

/* What the program is given */
struct spawn_inherit {
	struct spawn_number *number;
	unsigned int n;
	unsigned int begun; /* the first of them are as in this process */
	bool adopts, relayed;
	int relay; /* -1 */
	posix_spawn_file_actions_t actions;
};

/* Numbers of streams there are; those that @plan makes need room too */
unsigned int spawn_inherit_count(void);
void spawn_inherit_init(struct spawn_inherit *g, struct spawn_number *room, unsigned int n,
			const struct spawn_plan *plan);
/* 0 or a positive errno, and nothing has happened */
int spawn_inherit_prepare(struct spawn_inherit *g, const struct spawn_plan *plan, enum loadable to);
/* @pid: of the program; 0: it was not started */
void spawn_inherit_end(struct spawn_inherit *g, pid_t pid);

#endif
