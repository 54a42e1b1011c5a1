/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that start a program in a process of its own, which libc makes with a vfork() that
 * we do not see.
 *
 * The program could do nothing but harm with a stream of ours: while it starts, they are
 * close-on-exec, and a file action that gives it one fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "preload/edge.h"
#include "preload/libc.h"
#include "preload/sock.h"

static struct {
	pthread_mutex_t lock;
	unsigned int starts; /* under way */
	unsigned char fd[FDTAB_MAX / 8];
} hidden = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void hide_one(int fd, struct fdent *ent, void *ctx)
{
	long flags = sock_stream_of_entry(ent) ? libc_try(libc.fcntl(fd, F_GETFD, 0)) : -EBADF;

	if (flags < 0 || flags & FD_CLOEXEC)
		return;
	base_info("descriptor %d is a DDP stream and hidden from a new program", fd);
	hidden.fd[fd / 8] |= (unsigned char)(1 << fd % 8);
	base_fd_set_cloexec(fd, true);
}

static void show_one(int fd, struct fdent *ent, void *ctx)
{
	if (hidden.fd[fd / 8] & 1 << fd % 8 && sock_stream_of_entry(ent))
		base_fd_set_cloexec(fd, false);
	hidden.fd[fd / 8] &= (unsigned char)~(1 << fd % 8);
}

static void hide(void)
{
	struct edge *e = edge_enter(false);
	long r = 0;

	pthread_mutex_lock(&hidden.lock);
	hidden.starts++;
	fdtab_each(hide_one, NULL);
	pthread_mutex_unlock(&hidden.lock);
	edge_leave(e, &r);
}

static void show(void)
{
	struct edge *e = edge_enter(false);
	long r = 0;

	pthread_mutex_lock(&hidden.lock);
	if (!--hidden.starts)
		fdtab_each(show_one, NULL);
	pthread_mutex_unlock(&hidden.lock);
	edge_leave(e, &r);
}

/* These return a positive errno */
long call_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	long r;

	hide();
	r = libc.posix_spawn(pid, path, actions, attr, argv, envp);
	show();
	return r;
}

long call_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	long r;

	hide();
	r = libc.posix_spawnp(pid, file, actions, attr, argv, envp);
	show();
	return r;
}

long call_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int to)
{
	struct sock *s = sock_get_stream(fd);

	sock_put(s);
	if (!s)
		return libc.posix_spawn_file_actions_adddup2(actions, fd, to);
	base_err("descriptor %d is a DDP stream, which a new program cannot inherit", fd);
	return EOPNOTSUPP;
}

long call_popen(const char *command, const char *type)
{
	FILE *file;

	hide();
	file = libc.popen(command, type);
	show();
	return (long)file;
}

/* Others of its threads may start programs while the command runs */
long call_system(const char *command)
{
	long r;

	hide();
	r = libc_try(libc.system(command));
	show();
	return r;
}

static long null_device(void)
{
	int fd = open(_PATH_DEVNULL, O_RDWR);

	if (fd < 0)
		return -errno;
	for (int i = 0; i <= STDERR_FILENO; i++)
		call_dup2(fd, i);
	if (fd > STDERR_FILENO)
		call_close(fd);
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
