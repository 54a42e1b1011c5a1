/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Streams that a program gets which posix_spawn() starts.
 *
 * libc makes the process, and moves its descriptors about by the file actions, out of our sight.
 * So we go through the actions before, on paper, to know which streams will be there and not be
 * close-on-exec. Each of them has one process more then, by whose number it is named when that is
 * known. For a program that cannot load us the numbers of the streams stand for local sockets
 * from the first: the actions are made anew, behind some that put them there.
 */
#include "preload/process/spawn_inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "base/process.h"
#include "preload/process/environment.h"
#include "preload/process/relay.h"
#include "preload/sock/decline.h"
#include "preload/sock/exec_record.h"
#include "preload/sock/others.h"
#include "preload/sock/sock.h"
#include "preload/table/libc.h"

/* --- on paper --- */

static void count_one(int fd, struct fdent *ent, void *ctx)
{
	*(unsigned int *)ctx += sock_stream_of_entry(ent) != NULL;
}

unsigned int spawn_inherit_count(void)
{
	unsigned int n = 0;

	fdtab_each(count_one, &n);
	return n;
}

static void number_add(struct spawn_inherit *g, int fd, struct sock *s, bool cloexec)
{
	struct next_fd *f = next_program_add(&g->next, fd, s);

	if (f)
		f->cloexec = cloexec;
}

static struct next_fd *number_at(struct spawn_inherit *g, int fd)
{
	for (unsigned int i = 0; i < g->next.n; i++)
		if (g->next.fd[i].fd == fd)
			return &g->next.fd[i];
	return NULL;
}

/* Its place in the list stays: it may be needed for what stood there at first */
static void number_drop(struct next_fd *number)
{
	if (number)
		number->fd = -1;
}

/* Those that other threads make meanwhile are not seen */
static void begin_one(int fd, struct fdent *ent, void *ctx)
{
	struct spawn_inherit *g = ctx;
	long flags = sock_stream_of_entry(ent) ? libc_try(libc.fcntl(fd, F_GETFD, 0)) : -EBADF;

	if (flags >= 0 && g->next.n < g->begun)
		number_add(g, fd, sock_of_entry(ent), flags & FD_CLOEXEC);
}

static void act_dup2(struct spawn_inherit *g, int from, int to)
{
	struct next_fd *source = number_at(g, from);

	if (from == to) {
		if (source)
			source->cloexec = false;
		return;
	}
	number_drop(number_at(g, to));
	if (source)
		number_add(g, to, source->sock, false);
}

static void act_go(struct spawn_inherit *g, const struct spawn_act *act)
{
	switch (act->op) {
	case SPAWN_OPEN:
	case SPAWN_CLOSE:
		number_drop(number_at(g, act->fd));
		break;
	case SPAWN_DUP2:
		act_dup2(g, act->fd, act->to);
		break;
	case SPAWN_CLOSEFROM:
		for (unsigned int i = 0; i < g->next.n; i++)
			if (g->next.fd[i].fd >= act->fd)
				number_drop(&g->next.fd[i]);
		break;
	default:
		break;
	}
}

void spawn_inherit_init(struct spawn_inherit *g, struct next_fd *room, unsigned int n,
			const struct spawn_plan *plan)
{
	next_program_init(&g->next, room, spawn_inherit_room(n, plan), true);
	g->begun = n;
	fdtab_each(begin_one, g);
	g->begun = g->next.n;
	for (unsigned int i = 0; plan && i < plan->n; i++)
		act_go(g, &plan->act[i]);
}

/* --- ready --- */

static int give(struct spawn_inherit *g, struct next_fd *f)
{
	int err;

	if (!sock_decline(f->sock))
		sock_progress(f->sock);
	if (sock_role(f->sock) != SOCK_STREAM_ON) {
		number_drop(f);
		return 0;
	}
	f->from = stream_fd(f->sock->stream);
	err = next_fd_give(&g->next, f);
	return err == -EXDEV ? next_fd_refuse(f) : err;
}

static int local_of(struct spawn_inherit *g, const struct sock *s)
{
	for (unsigned int i = 0; i < g->next.n; i++)
		if (g->next.fd[i].sock == s && g->next.fd[i].local >= 0)
			return g->next.fd[i].local;
	return -1;
}

/*
 * What the program's own actions do is done to local sockets then. Numbers that would have gone by
 * being close-on-exec are closed.
 */
static int actions_make(struct spawn_inherit *g, const struct spawn_plan *plan)
{
	const struct next_fd *end = g->next.fd + g->begun;
	int err = 0, local;

	for (const struct next_fd *f = g->next.fd; !err && f < end; f++) {
		local = local_of(g, f->sock);
		if (local >= 0)
			err = libc.posix_spawn_file_actions_adddup2(&g->actions, local, f->before);
	}
	if (!err)
		err = spawn_plan_copy(plan, &g->actions);
	for (const struct next_fd *f = g->next.fd; !err && f < end; f++)
		if (f->fd >= 0 && f->cloexec && local_of(g, f->sock) >= 0)
			err = libc.posix_spawn_file_actions_addclose(&g->actions, f->fd);
	return err;
}

int spawn_inherit_prepare(struct spawn_inherit *g, const struct spawn_plan *plan, enum loadable to)
{
	int err = 0;

	next_program_judge(&g->next, to);
	libc.posix_spawn_file_actions_init(&g->actions);
	for (unsigned int i = 0; !err && i < g->next.n; i++)
		if (next_fd_is_given(&g->next.fd[i]) && !next_fd_twin(&g->next, &g->next.fd[i]))
			err = -give(g, &g->next.fd[i]);
	if (!err)
		err = -next_program_relay(&g->next, 0);
	if (!err && g->next.relayed)
		err = actions_make(g, plan);
	if (err)
		spawn_inherit_end(g, 0);
	return err;
}

void spawn_inherit_end(struct spawn_inherit *g, pid_t pid)
{
	bool known = pid && !base_process_is_elsewhere((uint32_t)pid);

	for (unsigned int i = 0; known && i < g->next.n; i++)
		if (g->next.fd[i].shared)
			stream_named(g->next.fd[i].sock->stream, (uint32_t)pid);
	next_program_end(&g->next, pid);
	libc.posix_spawn_file_actions_destroy(&g->actions);
}
