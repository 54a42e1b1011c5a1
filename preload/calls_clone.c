/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clone(): without CLONE_VM a fork(), of which nobody tells us else. The child begins in its
 * function, on a stack of its own, and is told who it is before that; when the function returns,
 * which ends the process, its streams end first. With CLONE_VM it is a thread, or a guest
 * (preload/fork.c), and the kernel's affair.
 */
#include <sched.h>
#include <stddef.h>

#include "preload/edge.h"
#include "preload/fork.h"
#include "preload/libc.h"

typedef int clone_fn(void *arg);
typedef int clone_call(clone_fn *fn, void *stack, int flags, void *arg, pid_t *parent, void *tls,
		       pid_t *child);

/* A variadic function to its callers: what they did not give the flags do not speak of */
int wrap_clone(clone_fn *fn, void *stack, int flags, void *arg, pid_t *parent, void *tls,
	       pid_t *child) __asm__("clone") __attribute__((visibility("default")));

int wrap___clone(clone_fn *fn, void *stack, int flags, void *arg, pid_t *parent, void *tls,
		 pid_t *child) __asm__("__clone")
	__attribute__((visibility("default"), alias("clone")));

struct start {
	clone_call *call;
	clone_fn *fn;
	void *stack;
	int flags;
	void *arg;
	pid_t *parent;
	void *tls;
	pid_t *child;
	struct edge *edge;
};

/* In the child, whose memory is a copy: @arg is its parent's on the stack */
static int begin(void *arg)
{
	struct start start = *(struct start *)arg;
	long r = 0;

	fork_child();
	edge_leave(start.edge, &r);
	/* All of it: a thread of ours would be left, and be the process */
	call__exit(start.fn(start.arg));
}

static long make(void *ctx)
{
	struct start *s = ctx;

	return libc_try(
		s->call(s->fn ? begin : NULL, s->stack, s->flags, s, s->parent, s->tls, s->child));
}

int wrap_clone(clone_fn *fn, void *stack, int flags, void *arg, pid_t *parent, void *tls,
	       pid_t *child)
{
	struct start start = { NULL, fn, stack, flags, arg, parent, tls, child, NULL };
	long pid;

	if (!libc_find("clone", &start.call))
		return (int)libc_result(-ENOSYS);
	if (flags & CLONE_VM || fork_is_guest())
		return start.call(fn, stack, flags, arg, parent, tls, child);
	start.edge = edge_enter(false);
	pid = fork_by(make, &start);
	edge_leave(start.edge, &pid);
	return (int)libc_result(pid);
}
