/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A helper process that finishes what lingers (preload/sock/worker.c) when this one's program is
 * replaced by another, which is not to wait for it.
 *
 *	warpsock-linger FD ...
 *
 * It goes on as a program of its own, so that it keeps nothing of its maker's memory: the streams
 * get their names again before it is made, and are found there and closed once more. Where that
 * cannot be it is a copy of its maker.
 */
#include "preload/process/linger_handoff.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdutil.h"
#include "base/map.h"
#include "base/point.h"
#include "preload/guard/sandbox.h"
#include "preload/process/helper_process.h"
#include "preload/process/helper_program.h"
#include "preload/sock/linger.h"
#include "preload/sock/work_item.h"
#include "preload/sock/worker.h"

/* A number of 10 digits */
#define WORD 16

static unsigned int numbers(void)
{
	unsigned int n = 0;

	for (int fd = 0; (fd = worker_next(NULL, fd)) >= 0; fd++)
		n++;
	return n;
}

static void words_make(char **argv, char *word)
{
	*argv++ = (char *)LINGER_HANDOFF_NAME;
	for (int fd = 0; (fd = worker_next(NULL, fd)) >= 0; fd++, word += WORD) {
		base_fd_set_cloexec(fd, false);
		snprintf(word, WORD, "%d", fd);
		*argv++ = word;
	}
	*argv = NULL;
}

/* Comes back where there can be no such program */
static void program(void)
{
	unsigned int n = numbers();
	size_t words = (n + 2) * sizeof(char *), env = words + n * (size_t)WORD;
	char *room;

	if (!base_map_create(env + helper_program_room(), (void **)&room)) {
		words_make((char **)(void *)room, room + words);
		helper_program_execute(room + env, (char **)(void *)room);
		base_map_destroy(room, env + helper_program_room());
	}
	worker_unname_in_helper();
}

static void handed_off(void *ctx)
{
	helper_process_init(LINGER_HANDOFF_NAME);
	worker_begin_in_helper();
	BASE_POINT(preload_worker_handed_off);
	helper_process_close_others(worker_next, NULL);
	if (work_list.named)
		program();
	worker_finish(base_deadline(base_now(), sock_config.linger));
	syscall(SYS_exit_group, 0);
}

static int inherited_fd_create(void)
{
	return helper_process_create(handed_off, NULL);
}

bool linger_handoff_make(void)
{
	if (__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED))
		return false;
	return worker_give(inherited_fd_create);
}

/* --- as a program of its own --- */

/* It counts as that of the process which has closed it */
static void take(int fd)
{
	struct sock *s = sock_get_stream(fd);

	if (!s)
		return;
	s->reported = true;
	s->ent.ops->end(&s->ent);
	sock_put(s);
}

int linger_handoff_continue(char *const *fds)
{
	prctl(PR_SET_NAME, LINGER_HANDOFF_NAME);
	linger_never(true);
	while (*fds)
		take(atoi(*fds++));
	worker_finish(base_deadline(base_now(), sock_config.linger));
	syscall(SYS_exit_group, 0);
	return 1;
}
