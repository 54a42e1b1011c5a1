/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls by which a process moves to other namespaces. Some the kernel grants only to a process
 * of one thread, so ours end before, and begin again when they are needed.
 *
 * Who has joined a thread may be faster than the kernel, which counts it a moment longer: what is
 * refused for another thread's sake is tried again.
 */
#include <errno.h>
#include <sched.h>

#include "base/clock.h"
#include "base/sockutil.h"
#include "preload/rules/answerer.h"
#include "preload/sock/worker.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#define UNSHARE_ALONE (CLONE_NEWUSER | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)
#define SETNS_ALONE (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWTIME)
#define TRIES 20
#define AGAIN (500 * BASE_NS_PER_US)

struct move {
	int fd; /* -1: unshare() */
	int flags;
};

static long move(const struct move *m)
{
	return libc_try(m->fd < 0 ? libc.unshare(m->flags) : libc.setns(m->fd, m->flags));
}

static long move_alone(const struct move *m)
{
	long r;

	worker_stop();
	answerer_stop();
	r = move(m);
	for (int i = 0; r == -EINVAL && i < TRIES; i++) {
		base_poll(NULL, 0, base_deadline(base_now(), AGAIN));
		r = move(m);
	}
	answerer_resume();
	worker_resume();
	return r;
}

long call_unshare(int flags)
{
	const struct move m = { -1, flags };

	return flags & UNSHARE_ALONE && !fork_gen_is_guest() ? move_alone(&m) : move(&m);
}

/* Of no @type: the descriptor says which */
long call_setns(int fd, int type)
{
	const struct move m = { fd, type };

	if (fd < 0 || (type && !(type & SETNS_ALONE)) || fork_gen_is_guest())
		return libc_try(libc.setns(fd, type));
	return move_alone(&m);
}
