/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The life of the process: beginning, fork, end.
 *
 * At the end the kernel would close the sockets without DISCONNECT, and with a reset where
 * input is unread. So every way out that runs code finishes first: exit() and return from main
 * by our destructor, quick_exit() by its list, _exit() by its name.
 *
 * A child shares its parent's streams: their state is in memory that both map, and counts its
 * processes; the one that closes last writes DISCONNECT. What sleeps in one process is not
 * woken by what another takes in; programs that hand a connection to a child, and use it only
 * there, do not notice.
 */
#include "preload/process.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "preload/attend.h"
#include "preload/choose.h"
#include "preload/edge.h"
#include "preload/epoll.h"
#include "preload/libc.h"
#include "preload/report.h"
#include "preload/sock.h"

unsigned int process_age;

static int finished; /* atomic */

static struct stream *stream_of(struct fdent *ent)
{
	struct sock *s = ent->kind == FD_SOCK ? (struct sock *)(void *)ent : NULL;

	return s && sock_role(s) == SOCK_STREAM_ON ? s->stream : NULL;
}

static void close_one(int fd, struct fdent *ent, void *ctx)
{
	if (stream_of(ent))
		call_close(fd);
}

void process_finish(void)
{
	struct edge *e;
	unsigned int left;
	long r = 0;

	if (__atomic_exchange_n(&finished, 1, __ATOMIC_ACQ_REL))
		return;
	e = edge_enter(false);
	fdtab_each(close_one, NULL);
	left = attend_finish(base_deadline(base_now(), sock_config.linger));
	if (left)
		base_warn("%u connections ended before their peers had everything", left);
	if (sock_config.report[0])
		report_write(sock_config.report);
	edge_leave(e, &r);
}

/* Each stream once, however many numbers it has */
static struct stream *once(struct fdent *ent, unsigned int round)
{
	struct stream *stream = stream_of(ent);
	struct sock *s = (struct sock *)(void *)ent;

	if (!stream || s->round == round)
		return NULL;
	s->round = round;
	return stream;
}

static void share_one(int fd, struct fdent *ent, void *ctx)
{
	struct stream *stream = once(ent, *(unsigned int *)ctx);

	if (stream)
		stream->ops->share(stream);
}

static void unshare_one(int fd, struct fdent *ent, void *ctx)
{
	struct stream *stream = once(ent, *(unsigned int *)ctx);

	if (stream)
		stream->ops->unshare(stream);
}

long call_fork(void)
{
	static unsigned int round;
	long pid;

	epoll_before_fork();
	attend_before_fork();
	round++;
	fdtab_each(share_one, &round);
	pid = libc_try(libc.fork());
	round++;
	if (pid < 0)
		fdtab_each(unshare_one, &round);
	if (pid == 0) {
		process_age++;
		report_reset();
	}
	attend_after_fork(pid == 0);
	epoll_after_fork(pid == 0);
	return pid;
}

_Noreturn void call__exit(int status)
{
	process_finish();
	libc._exit(status);
	__builtin_unreachable();
}

_Noreturn void call__Exit(int status)
{
	call__exit(status);
}

__attribute__((constructor)) static void begin(void)
{
	libc_init();
	edge_init();
	config_load(&sock_config);
	choose_init();
	at_quick_exit(process_finish);
}

__attribute__((destructor)) static void end(void)
{
	process_finish();
}
