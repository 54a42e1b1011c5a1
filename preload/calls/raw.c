/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * syscall(): numbers of calls that we take go the way of their names, all others to the kernel.
 *
 * Our own parts say syscall() too, and mean the kernel. The linker gives their references another
 * name (--wrap in meson.build), which is the function below that makes the call, so that ours is
 * the program's alone. No file but this one may define the name.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "preload/calls/fork.h"
#include "preload/calls/limit.h"
#include "preload/guard/sandbox.h"
#include "preload/table/libc.h"
#include "preload/table/user_iov.h"

long __wrap_syscall(long n, long a, long b, long c, long d, long e, long f);
long wrap_syscall(long n, long a, long b, long c, long d, long e, long f) __asm__("syscall")
	__attribute__((visibility("default")));

#if defined(__x86_64__)
static long kernel(long n, const long *a)
{
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
static long kernel(long n, const long *a)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a[0];
	register long x1 __asm__("x1") = a[1];
	register long x2 __asm__("x2") = a[2];
	register long x3 __asm__("x3") = a[3];
	register long x4 __asm__("x4") = a[4];
	register long x5 __asm__("x5") = a[5];

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
#error "no way to make a system call is known for this machine"
#endif

static long made(long n, const long *a)
{
	long r = kernel(n, a);

	if ((unsigned long)r <= -4096UL)
		return r;
	errno = (int)-r;
	return -1;
}

/* A call of our own. Behind a filter that forbids it, it would end the process */
long __wrap_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	const long args[] = { a, b, c, d, e, f };

	if (__builtin_expect(__atomic_load_n(&sandbox_on, __ATOMIC_RELAXED), 0) &&
	    !sandbox_lets(n, args)) {
		errno = EPERM;
		return -1;
	}
	return made(n, args);
}

/* The kernel has mask and size behind one pointer, and writes what is left of the time */
static long raw_pselect(const long *a)
{
	const struct {
		const sigset_t *set;
		size_t size;
	} *mask = (const void *)a[5];

	return pselect((int)a[0], (fd_set *)a[1], (fd_set *)a[2], (fd_set *)a[3],
		       (struct timespec *)a[4], mask ? mask->set : NULL);
}

static long raw_seccomp(const long *a)
{
	return libc_try(made(SYS_seccomp, a));
}

static long raw_uring(const long *a)
{
	return libc_try(made(SYS_io_uring_setup, a));
}

/* --- the time of pselect6 and ppoll, of which the kernel writes what is left, and libc does not */

static struct timespec *time_of(long n, const long *a)
{
	if (n == SYS_pselect6)
		return (struct timespec *)a[4];
	return n == SYS_ppoll ? (struct timespec *)a[2] : NULL;
}

static void time_left(struct timespec *ts, uint64_t deadline)
{
	uint64_t left = base_deadline_left(deadline, base_now());

	ts->tv_sec = (time_t)(left / BASE_NS_PER_S);
	ts->tv_nsec = (long)(left % BASE_NS_PER_S);
}

static long routed(long n, const long *a)
{
	long r;

	if (n == SYS_pselect6)
		return raw_pselect(a);
	if (n == SYS_seccomp && a[0] <= SECCOMP_SET_MODE_FILTER)
		return libc_result(limit_seccomp(raw_seccomp, a));
	if (n == SYS_io_uring_setup)
		return libc_result(limit_uring(raw_uring, a));
	return libc_route(n, a, &r) || fork_by_number(n, a, made, &r) ? r : made(n, a);
}

/* A variadic function to its callers: what they did not give is never looked at */
long wrap_syscall(long n, long a, long b, long c, long d, long e, long f)
{
	const long args[] = { a, b, c, d, e, f };
	struct timespec *ts = time_of(n, args);
	uint64_t deadline;
	long r;

	if (ts && user_iov_wild(ts, sizeof(*ts)))
		return made(n, args); /* EFAULT, where libc would look at it */
	if (!ts || base_timespec_bad(ts) || !(ts->tv_sec | ts->tv_nsec))
		return routed(n, args);
	deadline = base_deadline_timespec(ts);
	r = routed(n, args);
	time_left(ts, deadline);
	return r;
}
