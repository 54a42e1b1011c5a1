/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that close descriptors: one, or all of a range.
 *
 * What is ours ends by its protocol, and descriptors of our own stay open, whether a program
 * closes a range or tries every number there is. A process that shares another's memory but
 * not its descriptors (preload/table/fork_gen.c) closes copies, of which the tables know nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/point.h"
#include "preload/rules/answerer.h"
#include "preload/sock/worker.h"
#include "preload/table/fdtab.h"
#include "preload/table/fork_gen.h"
#include "preload/table/internal.h"
#include "preload/table/libc.h"
#include "preload/table/tmp_cloexec.h"

long call_close(int fd)
{
	struct fdent *ent;
	bool last;
	long r;

	if (internal_is(fd))
		return -EBADF;
	if (fork_gen_is_guest())
		return libc_try(libc.close(fd));
	ent = fdtab_take(fd, NULL, &last);
	if (ent && last)
		ent->ops->end(ent);
	BASE_POINT(preload_close_ended);
	r = libc_try(libc.close(fd));
	fdtab_put(ent);
	return r;
}

struct range {
	unsigned int first, last;
	int flags;
	long err;
};

static void close_ours(int fd, struct fdent *ent, void *ctx)
{
	const struct range *r = ctx;

	if ((unsigned int)fd >= r->first && (unsigned int)fd <= r->last && !internal_is(fd))
		call_close(fd);
}

/* What lies before a descriptor of our own; the range goes on behind it */
static void close_before(int fd, struct fdent *ent, void *ctx)
{
	struct range *r = ctx;

	if (!internal_is(fd) || (unsigned int)fd < r->first || (unsigned int)fd > r->last)
		return;
	if ((unsigned int)fd > r->first && !r->err)
		r->err = libc_try(libc.close_range(r->first, (unsigned int)fd - 1, r->flags));
	r->first = (unsigned int)fd + 1;
}

static long close_each(struct range r)
{
	fdtab_each(close_ours, &r);
	fdtab_each(close_before, &r);
	if (!r.err && r.first <= r.last)
		r.err = libc_try(libc.close_range(r.first, r.last, r.flags));
	return r.err;
}

static void note_any(int fd, struct fdent *ent, void *ctx)
{
	*(bool *)ctx = true;
}

/* Threads of the program's */
static unsigned long threads(void)
{
	struct stat st;

	if (fstatat(AT_FDCWD, "/proc/self/task", &st, 0))
		return ULONG_MAX;
	return st.st_nlink - 2 - worker_threads() - answerer_threads();
}

/*
 * A thread with descriptors of its own would leave our table, and our worker thread, behind; to a
 * program of one thread it makes no difference.
 */
static long unshared(struct range r)
{
	bool any = false;

	fdtab_each(note_any, &any);
	if (!any)
		return libc_try(libc.close_range(r.first, r.last, r.flags));
	if (threads() > 1) {
		base_err("close_range: one thread's descriptors cannot be parted from the others'");
		return -EOPNOTSUPP;
	}
	r.flags &= ~CLOSE_RANGE_UNSHARE;
	if (r.flags & CLOSE_RANGE_CLOEXEC)
		return libc_try(libc.close_range(r.first, r.last, r.flags));
	return close_each(r);
}

/* Our own are close-on-exec as they are */
long call_close_range(unsigned int first, unsigned int last, int flags)
{
	struct range r = { first, last, flags, 0 };

	if (flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC) || first > last ||
	    fork_gen_is_guest())
		return libc_try(libc.close_range(first, last, flags));
	if (flags & CLOSE_RANGE_UNSHARE)
		return unshared(r);
	if (flags & CLOSE_RANGE_CLOEXEC)
		return tmp_cloexec_close_range(first, last, flags);
	return close_each(r);
}

long call_closefrom(int low)
{
	unsigned int first = low < 0 ? 0 : (unsigned int)low;
	struct rlimit limit;

	if (!call_close_range(first, UINT_MAX, 0) || getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	for (; first < limit.rlim_cur; first++)
		call_close((int)first);
	return 0;
}
