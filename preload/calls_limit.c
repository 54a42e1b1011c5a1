/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls by which a process gives up what it could do: fewer descriptors, fewer system calls.
 *
 * What streams would need later, a descriptor to linger by, a bell, the attendant, is made before.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "preload/attend.h"
#include "preload/libc.h"
#include "preload/limit.h"
#include "preload/sock.h"
#include "preload/wait.h"

static void prepare_one(int fd, struct fdent *ent, void *ctx)
{
	struct sock *s = sock_get_stream(fd);

	if (s) {
		*(bool *)ctx = true;
		if (sock_own(s))
			base_warn("descriptor %d may not end well: there is no other for it", fd);
	}
	sock_put(s);
}

/* Are there streams? */
static bool prepare(void)
{
	bool any = false;

	fdtab_each(prepare_one, &any);
	if (any) {
		attend_prepare();
		wait_prepare();
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

/* Filters are the program's; one that forbids what a stream needs cannot be told from others */
long limit_seccomp(bool strict)
{
	if (!prepare())
		return 0;
	if (strict) {
		base_err("seccomp: a DDP stream needs more calls than read() and write()");
		return -EOPNOTSUPP;
	}
	base_info("seccomp: DDP streams need sendmsg, recvmsg, ppoll, futex, fcntl, getsockopt");
	return 0;
}

long call_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	long err = 0;

	if (option == PR_SET_SECCOMP)
		err = limit_seccomp(a == SECCOMP_MODE_STRICT);
	return err ? err : libc_try(libc.prctl(option, a, b, c, d));
}
