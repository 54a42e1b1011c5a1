/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that give an open file another number.
 *
 * A descriptor of a stream cannot be duplicated yet: EOPNOTSUPP.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/fdutil.h"
#include "preload/fdtab.h"
#include "preload/libc.h"

long call_dup(int fd)
{
	return -EOPNOTSUPP;
}

/* What stands at @to is closed as close() would, so that its peer hears of it */
static void make_way(int fd, int to)
{
	if (fd != to && fdtab_is_ours(to) && base_fd_is_open(fd))
		call_close(to);
}

long call_dup2(int fd, int to)
{
	if (fdtab_is_ours(fd))
		return fd == to ? to : -EOPNOTSUPP;
	make_way(fd, to);
	return libc_try(libc.dup2(fd, to));
}

long call_dup3(int fd, int to, int flags)
{
	if (fdtab_is_ours(fd))
		return fd == to ? -EINVAL : -EOPNOTSUPP;
	make_way(fd, to);
	return libc_try(libc.dup3(fd, to, flags));
}

long call_fcntl(int fd, int cmd, long arg)
{
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		return -EOPNOTSUPP;
	return libc_try(libc.fcntl(fd, cmd, arg));
}

long call_fcntl64(int fd, int cmd, long arg)
{
	return call_fcntl(fd, cmd, arg);
}
