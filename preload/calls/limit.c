/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls by which a process gives up what it could do: fewer descriptors, fewer system calls.
 *
 * What streams would need later, a descriptor to linger by, wakeup fds, a way to write without
 * SIGPIPE, is made before. Behind a filter there is no worker thread that was there before it: a
 * thread that the filter does not hold is a way out of the sandbox.
 *
 * An io_uring is the opposite, a way to the kernel that passes by us, and as bad for streams.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "base/quiet.h"
#include "preload/calls/limit.h"
#include "preload/device/device.h"
#include "preload/guard/sandbox.h"
#include "preload/guard/uring.h"
#include "preload/rules/answerer.h"
#include "preload/rules/choose.h"
#include "preload/sock/number.h"
#include "preload/sock/sock.h"
#include "preload/sock/wakeup.h"
#include "preload/sock/worker.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"
#include "preload/wait/confine.h"
#include "preload/wait/wait.h"

static void prepare_one(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = ent->kind == FD_SOCK ? sock_get(fd) : NULL;

	if (s && sock_role(s) == SOCK_STREAM_ON) {
		*(bool *)ctx = true;
		if (sock_own(s))
			base_warn("no descriptor to finish the connection of descriptor %d with",
				  fd);
	}
	sock_put(s);
}

static void prepare_quiet(void)
{
	static bool done; /* atomic */
	int taker, broken;

	if (__atomic_exchange_n(&done, true, __ATOMIC_ACQ_REL) ||
	    base_quiet_create(&taker, &broken))
		return;
	base_quiet_init(internal_move(taker), internal_move(broken));
}

/* Are there streams? */
static bool prepare(void)
{
	bool any = false;

	fdtab_each(prepare_one, &any);
	if (any) {
		worker_prepare();
		wait_prepare();
		wakeup_name();
		prepare_quiet();
	}
	return any;
}

static void descriptors(int resource, const struct rlimit *limit)
{
	struct rlimit now;

	if (resource == RLIMIT_NOFILE && limit && !getrlimit(RLIMIT_NOFILE, &now) &&
	    limit->rlim_cur < now.rlim_cur)
		prepare();
}

long call_setrlimit(int resource, const struct rlimit *limit)
{
	descriptors(resource, limit);
	return libc_try(libc.setrlimit(resource, limit));
}

long call_prlimit(pid_t pid, int resource, const struct rlimit *limit, struct rlimit *old)
{
	if (!pid || pid == getpid())
		descriptors(resource, limit);
	return libc_try(libc.prlimit(pid, resource, limit, old));
}

/* --- seccomp --- */

static void confine_one(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = ent->kind == FD_SOCK ? sock_get(fd) : NULL;

	if (s && sock_role(s) == SOCK_STREAM_ON)
		confine(s);
	sock_put(s);
}

static long refuse(const char *what)
{
	base_err("seccomp: %s leaves less than a DDP stream needs", what);
	return -EOPNOTSUPP;
}

static long filtered(struct sandbox_filter *f, long (*call)(const long *a), const long *a)
{
	long r;

	worker_stop();
	answerer_stop();
	device_before_sandbox();
	sandbox_commit(f);
	r = call(a);
	if (r < 0)
		sandbox_revert(f);
	answerer_resume();
	return r;
}

/* @whole: by the same calls as without the filter */
static long filter_set(const void *program, long (*call)(const long *a), const long *a)
{
	struct sandbox_filter *f;
	bool serves, whole;
	long err = sandbox_prepare(program, &f, &serves, &whole);

	if (err == -EFAULT)
		return call(a); /* the kernel knows what is wrong */
	if (err)
		return err;
	if (prepare() && !serves) {
		sandbox_drop(f);
		return refuse("the filter");
	}
	if (!whole) {
		fdtab_each(confine_one, NULL);
		worker_confine();
	}
	err = filtered(f, call, a);
	if (err >= 0 && !whole)
		base_process_confine();
	return err;
}

static long strict_set(long (*call)(const long *a), const long *a)
{
	return prepare() ? refuse("the strict mode") : call(a);
}

/* a[0] to a[2]: operation, flags, program */
long limit_seccomp(long (*call)(const long *a), const long *a)
{
	if (a[0] == SECCOMP_SET_MODE_STRICT)
		return strict_set(call, a);
	return filter_set((const void *)a[2], call, a);
}

static long by_prctl(const long *a)
{
	return libc_try(libc.prctl((int)a[0], (unsigned long)a[1], (unsigned long)a[2],
				   (unsigned long)a[3], (unsigned long)a[4]));
}

long call_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	const long args[] = { option, (long)a, (long)b, (long)c, (long)d };

	if (option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT)
		return strict_set(by_prctl, args);
	if (option == PR_SET_SECCOMP && a == SECCOMP_MODE_FILTER)
		return filter_set((const void *)b, by_prctl, args);
	return by_prctl(args);
}

/* --- io_uring --- */

static void note_stream(int fd, struct fdent *ent, void *ctx)
{
	*(bool *)ctx |= sock_stream_of_entry(ent) != NULL;
}

/* Once, for a runtime that is refused asks again */
static void refusal_say(void)
{
	static bool said; /* atomic */

	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		base_info("io_uring: refused, for a rule takes sockets of this program; "
			  "WARPSOCK_URING=allow gives it");
}

long limit_uring(long (*call)(const long *a), const long *a)
{
	bool streams = false;
	long r;

	if (!sock_config.uring && choose_takes()) {
		refusal_say();
		return -EPERM;
	}
	fdtab_each(note_stream, &streams);
	if (streams) {
		base_err("io_uring: not while there are connections on DDP");
		return -EPERM;
	}
	r = call(a);
	if (r >= 0)
		uring_note();
	return r;
}
