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
	fdtab_hold(&s->ent);
	g->number[g->n++] = (struct spawn_number){
		.fd = fd, .before = fd, .sock = s, .cloexec = cloexec, .local = -1, .far = -1
	};
}

static struct spawn_number *number_at(struct spawn_inherit *g, int fd)
{
	for (unsigned int i = 0; i < g->n; i++)
		if (g->number[i].fd == fd)
			return &g->number[i];
	return NULL;
}

/* Its place in the list stays: it may be needed for what stood there at first */
static void number_drop(struct spawn_number *number)
{
	if (number)
		number->fd = -1;
}

/* Those that other threads make meanwhile are not seen */
struct begin {
	struct spawn_inherit *inheritance;
	unsigned int room;
};

static void begin_one(int fd, struct fdent *ent, void *ctx)
{
	struct begin *b = ctx;
	long flags;

	if (!sock_stream_of_entry(ent) || b->inheritance->n == b->room)
		return;
	flags = libc_try(libc.fcntl(fd, F_GETFD, 0));
	if (flags >= 0)
		number_add(b->inheritance, fd, sock_of_entry(ent), flags & FD_CLOEXEC);
}

static void act_dup2(struct spawn_inherit *g, int from, int to)
{
	struct spawn_number *source = number_at(g, from);

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
		for (unsigned int i = 0; i < g->n; i++)
			if (g->number[i].fd >= act->fd)
				number_drop(&g->number[i]);
		break;
	default:
		break;
	}
}

void spawn_inherit_init(struct spawn_inherit *g, struct spawn_number *room, unsigned int n,
			const struct spawn_plan *plan)
{
	struct begin begin = { g, n };

	*g = (struct spawn_inherit){ .number = room, .relay = -1 };
	fdtab_each(begin_one, &begin);
	g->begun = g->n;
	for (unsigned int i = 0; plan && i < plan->n; i++)
		act_go(g, &plan->act[i]);
}

static bool is_given(const struct spawn_number *number)
{
	return number->fd >= 0 && !number->cloexec;
}

/* The first of those by which the same stream is given */
static struct spawn_number *twin(struct spawn_inherit *g, const struct spawn_number *number)
{
	for (struct spawn_number *t = g->number; t < number; t++)
		if (is_given(t) && t->sock == number->sock)
			return t;
	return NULL;
}

/* --- ready --- */

/* By adoption, or by a relay */
static int give(struct spawn_inherit *g, struct spawn_number *number, bool loads)
{
	struct stream *stream = number->sock->stream;
	int err;

	if (!sock_decline(number->sock))
		sock_progress(number->sock);
	if (sock_role(number->sock) != SOCK_STREAM_ON) {
		number_drop(number);
		return 0;
	}
	err = stream_hand_over(stream);
	if (err == -EXDEV) {
		base_err("descriptor %d is a DDP stream with memory of this process's, which a new "
			 "program cannot inherit",
			 number->fd);
		return EOPNOTSUPP;
	}
	if (err || !loads) {
		g->relayed = true;
		relay_explain(number->fd, err, loads);
		return -relay_pair(stream_fd(stream), &number->local, &number->far);
	}
	exec_record_write(number->sock);
	stream_share(stream, STREAM_SHARE_SPAWN);
	others_come(number->sock);
	number->shared = g->adopts = true;
	return 0;
}

static int relay_begin(struct spawn_inherit *g)
{
	struct relay_ask *asks = __builtin_alloca((g->n + 1) * sizeof(*asks));
	unsigned int n = 0;

	for (unsigned int i = 0; i < g->n; i++) {
		struct sock *s = g->number[i].sock;

		if (g->number[i].far >= 0)
			asks[n++] = (struct relay_ask){ s, stream_fd(s->stream), g->number[i].far };
	}
	return n ? -relay_create(asks, n, 0, &g->relay) : 0;
}

static int local_of(struct spawn_inherit *g, const struct sock *s)
{
	for (unsigned int i = 0; i < g->n; i++)
		if (g->number[i].sock == s && g->number[i].local >= 0)
			return g->number[i].local;
	return -1;
}

/*
 * What the program's own actions do is done to local sockets then. Numbers that would have gone by
 * being close-on-exec are closed.
 */
static int actions_make(struct spawn_inherit *g, const struct spawn_plan *plan)
{
	const struct spawn_number *end = g->number + g->begun;
	int err = 0, local;

	for (const struct spawn_number *f = g->number; !err && f < end; f++) {
		local = local_of(g, f->sock);
		if (local >= 0)
			err = libc.posix_spawn_file_actions_adddup2(&g->actions, local, f->before);
	}
	if (!err)
		err = spawn_plan_copy(plan, &g->actions);
	for (const struct spawn_number *f = g->number; !err && f < end; f++)
		if (f->fd >= 0 && f->cloexec && local_of(g, f->sock) >= 0)
			err = libc.posix_spawn_file_actions_addclose(&g->actions, f->fd);
	return err;
}

int spawn_inherit_prepare(struct spawn_inherit *g, const struct spawn_plan *plan, enum loadable to)
{
	bool loads = to == LOADABLE_YES && environment_library_readable();
	int err = 0;

	libc.posix_spawn_file_actions_init(&g->actions);
	for (unsigned int i = 0; !err && i < g->n; i++)
		if (is_given(&g->number[i]) && !twin(g, &g->number[i]))
			err = give(g, &g->number[i], loads);
	if (!err)
		err = relay_begin(g);
	if (!err && g->relayed)
		err = actions_make(g, plan);
	if (err)
		spawn_inherit_end(g, 0);
	return err;
}

/* --- over --- */

static void given(const struct spawn_number *number, pid_t pid)
{
	struct stream *stream = number->sock->stream;

	if (!number->shared)
		return;
	if (pid && !base_process_is_elsewhere((uint32_t)pid))
		stream_named(stream, (uint32_t)pid);
	else if (!pid)
		stream_unshare(stream, STREAM_SHARE_SPAWN);
}

void spawn_inherit_end(struct spawn_inherit *g, pid_t pid)
{
	for (unsigned int i = 0; i < g->n; i++) {
		given(&g->number[i], pid);
		base_fd_close(g->number[i].local);
		base_fd_close(g->number[i].far);
		sock_put(g->number[i].sock);
	}
	if (g->relay >= 0 && pid)
		base_fd_close(g->relay);
	else if (g->relay >= 0)
		relay_cancel(g->relay);
	libc.posix_spawn_file_actions_destroy(&g->actions);
}
