/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef PRELOAD_SPAWN_PLAN_H
#define PRELOAD_SPAWN_PLAN_H

#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * What file actions do, in their order: libc tells nobody. Only those on descriptors count for
 * where streams go; all of them are needed to make a list like it.
 */
enum spawn_op {
	SPAWN_OPEN,
	SPAWN_CLOSE,
	SPAWN_DUP2,
	SPAWN_CHDIR,
	SPAWN_FCHDIR,
	SPAWN_CLOSEFROM,
	SPAWN_TCSETPGRP,
};

struct spawn_act {
	enum spawn_op op;
	int fd;
	int to; /* of dup2; of open its flags */
	mode_t mode;
	const char *path;
};

struct spawn_plan {
	const posix_spawn_file_actions_t *of;
	struct spawn_plan *next;
	unsigned int n;
	bool whole; /* else there was no room for some */
	struct spawn_act act[];
};

/* Every call that adds one is told of here when it has succeeded: 0 or a positive errno */
int spawn_plan_add(const posix_spawn_file_actions_t *of, const struct spawn_act *act);
void spawn_plan_forget(const posix_spawn_file_actions_t *of);
/* NULL: there is nothing in it. Valid as long as the program does not change it */
const struct spawn_plan *spawn_plan_get(const posix_spawn_file_actions_t *of);
/* Adds all of @plan to a list of our own: 0 or a positive errno */
int spawn_plan_copy(const struct spawn_plan *plan, posix_spawn_file_actions_t *to);

/* Around fork() */
void spawn_plan_before_fork(void);
void spawn_plan_after_fork(bool child);

#endif
