/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that fork() and change standard input, output and error: libc's own would do both out of
 * our sight.
 */
#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "preload/guard/call.h"
#include "preload/table/libc.h"

static void standard_become(int fd)
{
	for (int i = 0; i <= STDERR_FILENO; i++)
		call_dup2(fd, i);
	if (fd > STDERR_FILENO)
		call_close(fd);
}

static long null_device(void)
{
	int fd = open(_PATH_DEVNULL, O_RDWR);

	if (fd < 0)
		return -errno;
	standard_become(fd);
	return 0;
}

/* As libc's, but that the parent, which has nothing more to do with its streams, says so */
long call_daemon(int nochdir, int noclose)
{
	long pid = call_fork();

	if (pid < 0)
		return pid;
	if (pid)
		call__exit(0);
	if (setsid() < 0)
		return -errno;
	if (!nochdir && chdir("/"))
		base_debug("daemon: / cannot be entered");
	return noclose ? 0 : null_device();
}

/* libc's own would change numbers 0, 1 and 2 out of our sight */
long call_login_tty(int fd)
{
	setsid();
	if (libc.ioctl(fd, TIOCSCTTY, 0) < 0)
		return -errno;
	standard_become(fd);
	return 0;
}

long call_forkpty(int *master, char *name, const struct termios *termios,
		  const struct winsize *size)
{
	int fd, slave;
	long pid;

	if (openpty(&fd, &slave, name, termios, size))
		return -errno;
	pid = call_fork();
	if (!pid) {
		call_close(fd);
		if (call_login_tty(slave))
			call__exit(1);
		return 0;
	}
	call_close(slave);
	if (pid < 0)
		call_close(fd);
	else
		*master = fd;
	return pid;
}
