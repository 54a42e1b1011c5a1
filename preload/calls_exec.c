/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that execute a program in this process.
 *
 * The new program knows nothing of the streams of the old one: one that it was to inherit as
 * standard input or output, or that no other process has, lets the call fail before anything is
 * lost (EOPNOTSUPP). The others end by their protocol before, which the kernel, closing them at the
 * execution, would not do; so the program must be there and executable.
 *
 * A guest (preload/fork.c) executes beside its parent, whose streams stay as they are; copies that
 * it would leave behind by accident are made close-on-exec, in the guest alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/fdutil.h"
#include "base/log.h"
#include "preload/fork.h"
#include "preload/libc.h"
#include "preload/loadable.h"
#include "preload/process.h"
#include "preload/sock.h"

struct look {
	bool guest;
	long err;
};

static bool is_inherited(int fd)
{
	long flags = libc_try(libc.fcntl(fd, F_GETFD, 0));

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

static void look_at(int fd, struct fdent *ent, void *ctx)
{
	struct look *look = ctx;
	struct sock *s = sock_of_entry(ent);

	if (!sock_stream_of_entry(ent) || !is_inherited(fd))
		return;
	if (look->guest && !sock_is_behind(s, fd))
		return;
	if (fd <= STDERR_FILENO || !(look->guest || s->stream->ops->shared(s->stream))) {
		base_err("descriptor %d is a DDP stream, which a new program cannot inherit", fd);
		look->err = -EOPNOTSUPP;
	} else if (look->guest) {
		base_fd_set_cloexec(fd, true);
	}
}

/* @runs: nothing speaks against the program. 0, and the call is to be made; -errno */
static long begin(bool runs)
{
	struct look look = { fork_is_guest(), 0 };

	fdtab_each(look_at, &look);
	if (!look.err && !look.guest && runs)
		process_finish();
	return look.err;
}

static long failed(long err)
{
	if (!fork_is_guest())
		process_resume();
	return err;
}

static bool can_run(int dir, const char *path, int flags)
{
	return loadable_at(dir, path, flags) != LOADABLE_NOTHING;
}

#define execute(runs, theirs)                                                  \
	do {                                                                   \
		long execute_err_ = begin(runs);                               \
                                                                               \
		return execute_err_ ? execute_err_ : failed(libc_try(theirs)); \
	} while (0)

long call_execve(const char *path, char *const argv[], char *const envp[])
{
	execute(can_run(AT_FDCWD, path, 0), libc.execve(path, argv, envp));
}

long call_execv(const char *path, char *const argv[])
{
	execute(can_run(AT_FDCWD, path, 0), libc.execv(path, argv));
}

long call_execvp(const char *file, char *const argv[])
{
	execute(loadable_find(file) != LOADABLE_NOTHING, libc.execvp(file, argv));
}

long call_execvpe(const char *file, char *const argv[], char *const envp[])
{
	execute(loadable_find(file) != LOADABLE_NOTHING, libc.execvpe(file, argv, envp));
}

long call_fexecve(int fd, char *const argv[], char *const envp[])
{
	execute(can_run(fd, "", AT_EMPTY_PATH), libc.fexecve(fd, argv, envp));
}

long call_execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	execute(can_run(dir, path, flags), libc.execveat(dir, path, argv, envp, flags));
}

/* --- with the arguments one by one --- */

int wrap_vexecl(const char *path, const char *arg, va_list args);
int wrap_vexeclp(const char *file, const char *arg, va_list args);
int wrap_vexecle(const char *path, const char *arg, va_list args);

/* With the NULL at their end */
static size_t count(const char *arg, va_list args)
{
	size_t n = 1;
	va_list ap;

	va_copy(ap, args);
	for (; arg; n++)
		arg = va_arg(ap, char *);
	va_end(ap);
	return n;
}

static void collect(char **argv, const char *arg, va_list args)
{
	while ((*argv++ = (char *)arg))
		arg = va_arg(args, char *);
}

/* On the stack, for a guest must not leave anything behind in its parent's memory */
#define arguments(argv, arg, args)                                        \
	char **argv = __builtin_alloca(count(arg, args) * sizeof(*argv)); \
	collect(argv, arg, args)

int wrap_vexecl(const char *path, const char *arg, va_list args)
{
	arguments(argv, arg, args);

	return (int)libc_result(call_execv(path, argv));
}

int wrap_vexeclp(const char *file, const char *arg, va_list args)
{
	arguments(argv, arg, args);

	return (int)libc_result(call_execvp(file, argv));
}

/* The environment stands behind the NULL */
int wrap_vexecle(const char *path, const char *arg, va_list args)
{
	char **argv = __builtin_alloca(count(arg, args) * sizeof(*argv)), **p = argv;

	while ((*p++ = (char *)arg))
		arg = va_arg(args, char *);
	return (int)libc_result(call_execve(path, argv, va_arg(args, char **)));
}
