/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that execute a program in this process, or in a guest (preload/table/fork_gen.c).
 *
 * Streams that are not close-on-exec go on in the new program (preload/process/exec_inherit.c). The
 * others end by their protocol before, which the kernel, closing them at the execution, would not
 * do; so the program must be there and executable. Those of a guest's parent stay as they are.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/point.h"
#include "preload/device/device.h"
#include "preload/guard/call.h"
#include "preload/process/environment.h"
#include "preload/process/exec_inherit.h"
#include "preload/process/loadable.h"
#include "preload/process/process.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"

enum how { AT_PATH, BY_SEARCH, AT_FD, AT_DIR };

struct program {
	enum how how;
	int dir;
	const char *path;
	int flags;
	char *const *argv;
};

static enum loadable judge(const struct program *p)
{
	if (p->how == BY_SEARCH)
		return loadable_find(p->path);
	return loadable_at(p->dir, p->path, p->flags);
}

static long theirs(const struct program *p, char *const *envp)
{
	switch (p->how) {
	case BY_SEARCH:
		return libc_try(libc.execvpe(p->path, p->argv, envp));
	case AT_FD:
		return libc_try(libc.fexecve(p->dir, p->argv, envp));
	case AT_DIR:
		return libc_try(libc.execveat(p->dir, p->path, p->argv, envp, p->flags));
	default:
		return libc_try(libc.execve(p->path, p->argv, envp));
	}
}

static long with_environment(const struct program *p, char *const *envp)
{
	size_t room = environment_room(envp);

	if (room)
		envp = environment_make(__builtin_alloca(room), envp);
	return theirs(p, envp);
}

static long without_us(const struct program *p, char *const *envp)
{
	size_t room = environment_bare_room(envp);

	if (room)
		envp = environment_bare(__builtin_alloca(room), envp);
	return theirs(p, envp);
}

static long prepare(struct exec_inherit *h, struct next_fd *room, unsigned int n, enum loadable to)
{
	struct call *e = call_enter(false);
	long err, r = 0;

	exec_inherit_init(h, room, n);
	err = exec_inherit_prepare(h, to);
	call_leave(e, &r);
	return err;
}

static void come_back(struct exec_inherit *h)
{
	struct call *e = call_enter(false);
	long r = 0;

	exec_inherit_return(h);
	call_leave(e, &r);
	if (!h->guest)
		process_resume();
}

static long execute(const struct program *p, char *const *envp)
{
	enum loadable to = judge(p);
	unsigned int n = to == LOADABLE_NOTHING ? 0 : exec_inherit_count();
	struct exec_inherit h;
	long err;

	if (!fork_gen_is_guest())
		device_before_exec();
	if (to == LOADABLE_NOTHING)
		return theirs(p, envp);
	err = prepare(&h, __builtin_alloca((n + 1) * sizeof(struct next_fd)), n, to);
	if (err)
		return err;
	if (!h.guest)
		process_replace();
	exec_inherit_leave(&h);
	BASE_POINT(preload_exec_left);
	if (to == LOADABLE_BREAKS)
		err = without_us(p, envp);
	else
		err = h.next.adopts ? with_environment(p, envp) : theirs(p, envp);
	come_back(&h);
	return err;
}

long call_execve(const char *path, char *const argv[], char *const envp[])
{
	return execute(&(struct program){ AT_PATH, AT_FDCWD, path, 0, argv }, envp);
}

long call_execv(const char *path, char *const argv[])
{
	return call_execve(path, argv, environ);
}

long call_execvpe(const char *file, char *const argv[], char *const envp[])
{
	return execute(&(struct program){ BY_SEARCH, AT_FDCWD, file, 0, argv }, envp);
}

long call_execvp(const char *file, char *const argv[])
{
	return call_execvpe(file, argv, environ);
}

long call_fexecve(int fd, char *const argv[], char *const envp[])
{
	return execute(&(struct program){ AT_FD, fd, "", AT_EMPTY_PATH, argv }, envp);
}

long call_execveat(int dir, const char *path, char *const argv[], char *const envp[], int flags)
{
	return execute(&(struct program){ AT_DIR, dir, path, flags, argv }, envp);
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
