/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers that are hidden from a new program.
 *
 * Where libc makes the process, nobody can close a number in it but by FD_CLOEXEC in this one.
 * Meanwhile another thread may ask for the flag, or change it: it is answered as if nothing were
 * hidden, and what it says counts when the number is shown again. So whoever looks at the flag or
 * sets it does so under the lock while something is hidden. Before, nobody pays for that:
 *
 *	who hides	rounds++	looks at the flag	sets it
 *	who sets	rounds?		sets it			the same rounds?
 *
 * Either the flag is seen by who hides, and is left alone, or the rounds have grown, and who sets
 * does it again under the lock.
 */
#include "preload/table/tmp_cloexec.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/fdutil.h"
#include "base/point.h"
#include "preload/table/fdtab.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"

static struct {
	pthread_mutex_t lock;
	unsigned int n;	     /* atomic; written under the lock */
	unsigned int rounds; /* likewise */
	unsigned char fd[FDTAB_MAX / CHAR_BIT];
} hidden = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- the lock --- */

static bool is(int fd)
{
	return (unsigned int)fd < FDTAB_MAX && hidden.fd[fd / CHAR_BIT] & 1 << fd % CHAR_BIT;
}

static void drop(int fd)
{
	if (!is(fd))
		return;
	hidden.fd[fd / CHAR_BIT] &= (unsigned char)~(1 << fd % CHAR_BIT);
	__atomic_sub_fetch(&hidden.n, 1, __ATOMIC_SEQ_CST);
}

static bool hide(int fd)
{
	long flags;

	__atomic_add_fetch(&hidden.rounds, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&hidden.n, 1, __ATOMIC_SEQ_CST);
	hidden.fd[fd / CHAR_BIT] |= (unsigned char)(1 << fd % CHAR_BIT);
	flags = syscall(SYS_fcntl, fd, F_GETFD);
	if (flags >= 0 && !(flags & FD_CLOEXEC)) {
		base_fd_set_cloexec(fd, true);
		BASE_POINT(preload_tmp_cloexec_set);
		return true;
	}
	drop(fd);
	return false;
}

static long flags_of_tmp_cloexec(int fd, int cmd, long arg)
{
	if (cmd == F_GETFD)
		return 0;
	/* What was set too early may have shown it */
	base_fd_set_cloexec(fd, true);
	if (arg & FD_CLOEXEC)
		drop(fd);
	return 0;
}

/* --- for all --- */

bool tmp_cloexec_set(int fd)
{
	bool now;

	pthread_mutex_lock(&hidden.lock);
	now = !is(fd) && hide(fd);
	pthread_mutex_unlock(&hidden.lock);
	return now;
}

void tmp_cloexec_restore(int fd, bool same)
{
	pthread_mutex_lock(&hidden.lock);
	if (same && is(fd)) {
		base_fd_set_cloexec(fd, false);
		BASE_POINT(preload_tmp_cloexec_restored);
	}
	drop(fd);
	pthread_mutex_unlock(&hidden.lock);
}

void tmp_cloexec_forget(int fd)
{
	if (!__atomic_load_n(&hidden.n, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&hidden.lock);
	drop(fd);
	pthread_mutex_unlock(&hidden.lock);
}

long tmp_cloexec_flags(int fd, int cmd, long arg)
{
	unsigned int rounds = __atomic_load_n(&hidden.rounds, __ATOMIC_SEQ_CST);
	bool any = __atomic_load_n(&hidden.n, __ATOMIC_SEQ_CST) && !fork_gen_is_guest();
	long r = any ? 0 : libc_try(libc.fcntl(fd, cmd, arg));

	if (!any && rounds == __atomic_load_n(&hidden.rounds, __ATOMIC_SEQ_CST))
		return r;
	pthread_mutex_lock(&hidden.lock);
	r = is(fd) ? flags_of_tmp_cloexec(fd, cmd, arg) : libc_try(libc.fcntl(fd, cmd, arg));
	pthread_mutex_unlock(&hidden.lock);
	return r;
}

long tmp_cloexec_dup3(int fd, int to, int flags)
{
	long r;

	if (fork_gen_is_guest())
		return libc_try(libc.dup3(fd, to, flags));
	pthread_mutex_lock(&hidden.lock);
	r = libc_try(libc.dup3(fd, to, flags));
	if (r >= 0)
		drop(to);
	pthread_mutex_unlock(&hidden.lock);
	return r;
}

long tmp_cloexec_close_range(unsigned int first, unsigned int last, int flags)
{
	long r;

	pthread_mutex_lock(&hidden.lock);
	r = libc_try(libc.close_range(first, last, flags));
	for (unsigned int fd = first; !r && hidden.n && fd <= base_min(last, FDTAB_MAX - 1u); fd++)
		drop((int)fd);
	pthread_mutex_unlock(&hidden.lock);
	return r;
}

void tmp_cloexec_before_fork(void)
{
	pthread_mutex_lock(&hidden.lock);
}

void tmp_cloexec_after_fork(bool child)
{
	fork_gen_lock_drop(&hidden.lock, child);
}
