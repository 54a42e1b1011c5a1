/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * File actions of posix_spawn(), written down as they are made.
 */
#include "preload/process/spawn_plan.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/map.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"

/* Of which only what is written to is memory */
#define ROOM (64 * 1024u)
#define ACTS 512u
#define TEXT (ROOM - sizeof(struct spawn_plan) - ACTS * sizeof(struct spawn_act))

static struct {
	pthread_mutex_t lock;
	struct spawn_plan *first;
} plans = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct spawn_plan **find(const posix_spawn_file_actions_t *of)
{
	struct spawn_plan **p = &plans.first;

	while (*p && (*p)->of != of)
		p = &(*p)->next;
	return p;
}

static struct spawn_plan *make(const posix_spawn_file_actions_t *of)
{
	struct spawn_plan *plan;

	if (base_map_create(ROOM, (void **)&plan))
		return NULL;
	plan->of = of;
	plan->whole = true;
	plan->next = plans.first;
	plans.first = plan;
	return plan;
}

/* Paths stand at the end, the last one first */
static char *text_end(struct spawn_plan *plan)
{
	for (unsigned int i = plan->n; i--;)
		if (plan->act[i].path)
			return (char *)plan->act[i].path;
	return (char *)plan + ROOM;
}

static bool text_put(struct spawn_plan *plan, struct spawn_act *act)
{
	char *end = text_end(plan);
	size_t len = act->path ? strlen(act->path) + 1 : 0;

	if (len > (size_t)(end - ((char *)plan + ROOM - TEXT)))
		return false;
	if (act->path)
		act->path = memcpy(end - len, act->path, len);
	return true;
}

int spawn_plan_add(const posix_spawn_file_actions_t *of, const struct spawn_act *act)
{
	struct spawn_act copy = *act;
	struct spawn_plan *plan;

	pthread_mutex_lock(&plans.lock);
	plan = *find(of) ? *find(of) : make(of);
	if (plan) {
		plan->whole = plan->whole && plan->n < ACTS && text_put(plan, &copy);
		if (plan->whole)
			plan->act[plan->n++] = copy;
	}
	pthread_mutex_unlock(&plans.lock);
	return plan ? 0 : ENOMEM;
}

void spawn_plan_forget(const posix_spawn_file_actions_t *of)
{
	struct spawn_plan **p, *plan;

	pthread_mutex_lock(&plans.lock);
	p = find(of);
	plan = *p;
	if (plan)
		*p = plan->next;
	pthread_mutex_unlock(&plans.lock);
	base_map_destroy(plan, ROOM);
}

const struct spawn_plan *spawn_plan_get(const posix_spawn_file_actions_t *of)
{
	struct spawn_plan *plan;

	pthread_mutex_lock(&plans.lock);
	plan = of ? *find(of) : NULL;
	pthread_mutex_unlock(&plans.lock);
	return plan;
}

static int act_copy(const struct spawn_act *act, posix_spawn_file_actions_t *to)
{
	switch (act->op) {
	case SPAWN_OPEN:
		return libc.posix_spawn_file_actions_addopen(to, act->fd, act->path, act->to,
							     act->mode);
	case SPAWN_CLOSE:
		return libc.posix_spawn_file_actions_addclose(to, act->fd);
	case SPAWN_DUP2:
		return libc.posix_spawn_file_actions_adddup2(to, act->fd, act->to);
	case SPAWN_CHDIR:
		return libc.posix_spawn_file_actions_addchdir_np(to, act->path);
	case SPAWN_FCHDIR:
		return libc.posix_spawn_file_actions_addfchdir_np(to, act->fd);
	case SPAWN_CLOSEFROM:
		return libc.posix_spawn_file_actions_addclosefrom_np(to, act->fd);
	case SPAWN_TCSETPGRP:
		return libc.posix_spawn_file_actions_addtcsetpgrp_np(to, act->fd);
	}
	return EINVAL;
}

int spawn_plan_copy(const struct spawn_plan *plan, posix_spawn_file_actions_t *to)
{
	int err = plan && !plan->whole ? ENOMEM : 0;

	for (unsigned int i = 0; plan && !err && i < plan->n; i++)
		err = act_copy(&plan->act[i], to);
	return err;
}

void spawn_plan_before_fork(void)
{
	pthread_mutex_lock(&plans.lock);
}

void spawn_plan_after_fork(bool child)
{
	fork_gen_lock_drop(&plans.lock, child);
}
