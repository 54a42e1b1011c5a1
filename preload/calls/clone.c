/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clone(): without CLONE_VM a fork(), of which nobody tells us else. The child begins in its
 * function, on a stack of its own, and is told who it is before that; when the function returns,
 * which ends the process, its streams end first. With CLONE_VM it is a thread, or a guest
 * (preload/table/fork_gen.c), and the kernel's affair.
 *
 * By syscall() a program that wants namespaces of its own makes such a call without a stack: it
 * returns twice, as fork() does. vfork() by its number cannot be left as it is, for its child would
 * return through frames of ours which its parent still needs: it is fork().
 */
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/calls/fork.h"
#include "preload/guard/call.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"
#include "preload/table/user_iov.h"

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
	struct call *edge;
};

/* In the child, whose memory is a copy: @arg is its parent's on the stack */
static int begin(void *arg)
{
	struct start start = *(struct start *)arg;
	long r = 0;

	fork_child();
	call_leave(start.edge, &r);
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
	if (flags & CLONE_VM || fork_gen_is_guest())
		return start.call(fn, stack, flags, arg, parent, tls, child);
	start.edge = call_enter(false);
	pid = fork_by(make, &start);
	call_leave(start.edge, &pid);
	return (int)libc_result(pid);
}

/* --- by number --- */

struct by_number {
	long (*call)(long n, const long *a);
	long n;
	const long *a;
};

static long make_by_number(void *ctx)
{
	const struct by_number *by = ctx;

	return libc_try(by->call(by->n, by->a));
}

static bool is_fork(unsigned long flags, unsigned long stack)
{
	return !(flags & CLONE_VM) && !stack;
}

/* What is no structure the kernel refuses */
static bool is_fork3(const void *p, size_t len)
{
	struct clone_args args = { 0 };

	if (len < CLONE_ARGS_SIZE_VER0 || user_iov_wild(p, CLONE_ARGS_SIZE_VER0))
		return false;
	memcpy(&args, p, CLONE_ARGS_SIZE_VER0);
	return is_fork(args.flags, args.stack);
}

bool fork_by_number(long n, const long *a, long (*call)(long n, const long *a), long *r)
{
	static const long as_fork[6] = { SIGCHLD };
	struct by_number by = { call, n, a };
	struct call *e;

#ifdef SYS_vfork
	if (n == SYS_vfork)
		by = (struct by_number){ call, SYS_clone, as_fork };
#endif
	if (!(by.n == SYS_clone && is_fork((unsigned long)by.a[0], (unsigned long)by.a[1])) &&
	    !(by.n == SYS_clone3 && is_fork3((const void *)by.a[0], (size_t)by.a[1])))
		return false;
	if (fork_gen_is_guest()) {
		*r = call(by.n, by.a);
		return true;
	}
	e = call_enter(false);
	*r = fork_by(make_by_number, &by);
	call_leave(e, r);
	*r = libc_result(*r);
	return true;
}
