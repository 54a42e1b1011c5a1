/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that give an open file another number.
 *
 * Once a file of ours has two numbers, it is worked on by an internal descriptor, and any number
 * may go at any time, also while another thread is inside a call. The last one that goes ends
 * the file.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/fdutil.h"
#include "base/point.h"
#include "preload/sock/sock.h"
#include "preload/sock/worker.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"
#include "preload/table/tmp_cloexec.h"
#include "preload/wait/confine.h"

static long number_take(struct fdent *ent)
{
	return ent->kind == FD_INTERNAL || !fdtab_number_get(ent) ? -EBADF : 0;
}

/* A number more for what stands at @fd: NULL, where *@err is 0, a file that is not ours */
static struct fdent *number_begin(int fd, long *err)
{
	struct fdent *ent = fdtab_ref(fd);
	bool guest = ent && fork_gen_is_guest();

	/* A guest's numbers are in no table: preload/process/exec_inherit.c finds them */
	*err = ent && !guest ? number_take(ent) : 0;
	fdtab_put(ent);
	return *err || guest ? NULL : ent;
}

/*
 * @got is the kernel's answer. The internal descriptor comes second, so that a dup() that fails
 * does not take the last number that the program could have had.
 */
static long number_end(struct fdent *ent, long got)
{
	int err = 0;

	BASE_POINT(preload_dup_made);
	if (got >= 0)
		tmp_cloexec_forget((int)got);
	if (got < 0)
		err = (int)got;
	else if (ent->ops->own(ent) || fdtab_set((int)got, ent))
		err = -EMFILE;
	if (!err)
		return got;
	fdtab_number_put(ent);
	if (got >= 0)
		libc.close((int)got);
	return err;
}

static long dup_above(int fd, int cmd, long least)
{
	long err;
	struct fdent *ent = number_begin(fd, &err);

	long got = err ? err : libc_try(libc.fcntl(fd, cmd, least));

	return ent ? number_end(ent, got) : got;
}

/* Where there may be no descriptors at all F_DUPFD says that 0 is none */
long call_dup(int fd)
{
	long r = dup_above(fd, F_DUPFD, 0);

	return r == -EINVAL ? -EMFILE : r;
}

/*
 * What stands at @to loses its number to dup2(), at which the kernel closes it without a word: it
 * must not be worked on by it, or be ended before
 */
static int make_way(int fd, int to)
{
	struct fdent *old = fork_gen_is_guest() ? NULL : fdtab_ref(to);
	int err = 0;

	if (!old)
		return 0;
	if (old->kind == FD_INTERNAL)
		err = -EBUSY;
	else if (old->ops->own(old) && base_fd_is_open(fd))
		call_close(to);
	else if (old->kind == FD_WAITED && base_fd_is_open(fd))
		/* Who waits for it must see that it has gone before the next file is there */
		fdtab_put(fdtab_take(to, old, NULL));
	fdtab_put(old);
	return err;
}

static long dup_onto(int fd, int to, int flags)
{
	long err, got;
	struct fdent *ent = number_begin(fd, &err);

	if (ent)
		err = ent->ops->own(ent);
	if (!err)
		err = make_way(fd, to);
	got = err ? err : tmp_cloexec_dup3(fd, to, flags);
	if (got < 0) {
		if (ent)
			fdtab_number_put(ent);
		return got;
	}
	if (fork_gen_is_guest() || !fdtab_replace(to, ent))
		return got;
	fdtab_number_put(ent);
	libc.close(to);
	return -EMFILE;
}

long call_dup2(int fd, int to)
{
	if (fd == to || (!fdtab_is_ours(fd) && !fdtab_is_ours(to)))
		return libc_try(libc.dup2(fd, to));
	return dup_onto(fd, to, 0);
}

long call_dup3(int fd, int to, int flags)
{
	if (fd == to || flags & ~O_CLOEXEC || (!fdtab_is_ours(fd) && !fdtab_is_ours(to)))
		return libc_try(libc.dup3(fd, to, flags));
	return dup_onto(fd, to, flags);
}

static long file_flags(int fd, int cmd, long arg)
{
	struct sock *s = sock_get_stream(fd);
	long r = CALL_THEIRS;

	if (s)
		r = cmd == F_GETFL ? confine_flags_get(s) : confine_flags_set(s, (int)arg);
	if (s && cmd == F_SETFL && r == CALL_THEIRS) {
		r = libc_try(libc.fcntl(fd, cmd, arg));
		sock_waits_changed(s);
	}
	sock_put(s);
	return r;
}

static long owner_set(int fd, int cmd, long arg)
{
	struct sock *s = sock_get(fd);
	long r;

	/* What came earlier is not for the new owner */
	if (s && sock_role(s) == SOCK_STREAM_ON)
		sock_progress(s);
	r = libc_try(libc.fcntl(fd, cmd, arg));
	if (s && r >= 0)
		worker_urgent_owner(s);
	sock_put(s);
	return r;
}

long call_fcntl(int fd, int cmd, long arg)
{
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		return dup_above(fd, cmd, arg);
	if (cmd == F_GETFD || cmd == F_SETFD)
		return tmp_cloexec_flags(fd, cmd, arg);
	if (cmd == F_GETFL || cmd == F_SETFL)
		return file_flags(fd, cmd, arg);
	if (cmd == F_SETOWN || cmd == F_SETOWN_EX)
		return owner_set(fd, cmd, arg);
	return libc_try(libc.fcntl(fd, cmd, arg));
}

long call_fcntl64(int fd, int cmd, long arg)
{
	return call_fcntl(fd, cmd, arg);
}
