/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The calls that start a program in a process of its own, which libc makes with a vfork() that
 * we do not see.
 *
 * Streams that the program gets go on there, as in one that is executed
 * (preload/process/spawn_inherit.c). What system() and popen() start is the shell, which finds what
 * it needs in the environment. A stream that could not go on in it would only be spoilt there:
 * while it starts, those are close-on-exec (preload/table/tmp_cloexec.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "preload/calls/fork.h"
#include "preload/guard/call.h"
#include "preload/process/environment.h"
#include "preload/process/loadable.h"
#include "preload/process/spawn_inherit.h"
#include "preload/sock/decline.h"
#include "preload/sock/sock.h"
#include "preload/table/fork_gen.h"
#include "preload/table/libc.h"
#include "preload/table/tmp_cloexec.h"

/* --- posix_spawn(): positive errnos --- */

struct spawn {
	bool search;
	const char *path;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attr;
	char *const *argv;
};

static int theirs(const struct spawn *sp, pid_t *pid, const posix_spawn_file_actions_t *actions,
		  char *const *envp)
{
	if (sp->search)
		return libc.posix_spawnp(pid, sp->path, actions, sp->attr, sp->argv, envp);
	return libc.posix_spawn(pid, sp->path, actions, sp->attr, sp->argv, envp);
}

static bool moves_about(const struct spawn_plan *plan)
{
	bool moves = false;

	for (unsigned int i = 0; plan && i < plan->n; i++)
		moves |= plan->act[i].op == SPAWN_CHDIR || plan->act[i].op == SPAWN_FCHDIR;
	return moves;
}

/*
 * A file that will be another by then is not looked at. POSIX_SPAWN_RESETIDS changes nothing where
 * the user is the real one, and for others the answer is no
 */
static enum loadable judge(const struct spawn *sp, const struct spawn_plan *plan)
{
	if (sp->path && sp->path[0] != '/' && moves_about(plan))
		return LOADABLE_NO;
	return sp->search ? loadable_find(sp->path) : loadable_at(AT_FDCWD, sp->path, 0);
}

static int without_us(const struct spawn *sp, pid_t *pid, const posix_spawn_file_actions_t *actions,
		      char *const *envp)
{
	size_t room = environment_bare_room(envp);

	if (room)
		envp = environment_bare(__builtin_alloca(room), envp);
	return theirs(sp, pid, actions, envp);
}

static int spawn_with(struct spawn_inherit *g, const struct spawn *sp, pid_t *pid,
		      char *const *envp)
{
	size_t room = g->next.adopts ? environment_room(envp) : 0;

	if (room)
		envp = environment_make(__builtin_alloca(room), envp);
	return theirs(sp, pid, g->next.relayed ? &g->actions : sp->actions, envp);
}

static int prepare(struct spawn_inherit *g, struct next_fd *room, unsigned int n,
		   const struct spawn_plan *plan, enum loadable to)
{
	struct call *e = call_enter(false);
	long r = 0;
	int err;

	spawn_inherit_init(g, room, n, plan);
	err = spawn_inherit_prepare(g, plan, to);
	call_leave(e, &r);
	return err;
}

static int spawn(const struct spawn *sp, pid_t *out, char *const *envp)
{
	const struct spawn_plan *plan = spawn_plan_get(sp->actions);
	unsigned int n = fork_gen_is_guest() ? 0 : spawn_inherit_count();
	enum loadable to = judge(sp, plan);
	struct spawn_inherit g;
	struct call *e;
	pid_t pid = 0;
	long r = 0;
	int err;

	if (to == LOADABLE_BREAKS && !n)
		return without_us(sp, out, sp->actions, envp);
	if (to == LOADABLE_NOTHING || !n)
		return theirs(sp, out, sp->actions, envp);
	err = prepare(&g, __builtin_alloca(spawn_inherit_room(n, plan) * sizeof(struct next_fd)), n,
		      plan, to);
	if (err)
		return err;
	if (to == LOADABLE_BREAKS)
		err = without_us(sp, &pid, g.next.relayed ? &g.actions : sp->actions, envp);
	else
		err = spawn_with(&g, sp, &pid, envp);
	e = call_enter(false);
	spawn_inherit_end(&g, err ? 0 : pid);
	call_leave(e, &r);
	if (!err && out)
		*out = pid;
	return err;
}

long call_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		      const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	return spawn(&(struct spawn){ false, path, actions, attr, argv }, pid, envp);
}

long call_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	return spawn(&(struct spawn){ true, file, actions, attr, argv }, pid, envp);
}

static long added(long err, posix_spawn_file_actions_t *actions, struct spawn_act act)
{
	return err ? err : spawn_plan_add(actions, &act);
}

long call_posix_spawn_file_actions_init(posix_spawn_file_actions_t *actions)
{
	spawn_plan_forget(actions);
	return libc.posix_spawn_file_actions_init(actions);
}

long call_posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *actions)
{
	spawn_plan_forget(actions);
	return libc.posix_spawn_file_actions_destroy(actions);
}

long call_posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *actions, int fd,
					   const char *path, int flags, mode_t mode)
{
	return added(libc.posix_spawn_file_actions_addopen(actions, fd, path, flags, mode), actions,
		     (struct spawn_act){ SPAWN_OPEN, fd, flags, mode, path });
}

long call_posix_spawn_file_actions_addclose(posix_spawn_file_actions_t *actions, int fd)
{
	return added(libc.posix_spawn_file_actions_addclose(actions, fd), actions,
		     (struct spawn_act){ SPAWN_CLOSE, fd, 0, 0, NULL });
}

long call_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int to)
{
	return added(libc.posix_spawn_file_actions_adddup2(actions, fd, to), actions,
		     (struct spawn_act){ SPAWN_DUP2, fd, to, 0, NULL });
}

long call_posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions,
					       const char *path)
{
	return added(libc.posix_spawn_file_actions_addchdir_np(actions, path), actions,
		     (struct spawn_act){ SPAWN_CHDIR, -1, 0, 0, path });
}

long call_posix_spawn_file_actions_addfchdir_np(posix_spawn_file_actions_t *actions, int fd)
{
	return added(libc.posix_spawn_file_actions_addfchdir_np(actions, fd), actions,
		     (struct spawn_act){ SPAWN_FCHDIR, fd, 0, 0, NULL });
}

long call_posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from)
{
	return added(libc.posix_spawn_file_actions_addclosefrom_np(actions, from), actions,
		     (struct spawn_act){ SPAWN_CLOSEFROM, from, 0, 0, NULL });
}

long call_posix_spawn_file_actions_addtcsetpgrp_np(posix_spawn_file_actions_t *actions, int fd)
{
	return added(libc.posix_spawn_file_actions_addtcsetpgrp_np(actions, fd), actions,
		     (struct spawn_act){ SPAWN_TCSETPGRP, fd, 0, 0, NULL });
}

/* --- the shell --- */

static struct {
	pthread_mutex_t lock;
	unsigned int starts; /* under way */
} shells = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool is_inherited(int fd, struct fdent *ent)
{
	long flags = sock_stream_of_entry(ent) ? libc_try(libc.fcntl(fd, F_GETFD, 0)) : -EBADF;

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* One more process will have it, or it is none of the shell's */
static void lend_or_set_cloexec(int fd, struct fdent *ent, void *ctx)
{
	struct next_program *p = ctx;
	struct next_fd *f, *other;
	int err;

	if (!is_inherited(fd, ent) || sock_decline(sock_of_entry(ent)))
		return;
	/* One that came since they were counted may have found no room */
	f = next_program_add(p, fd, sock_of_entry(ent));
	other = f ? next_fd_twin(p, f) : NULL;
	if (other)
		err = other->shared ? 0 : -EOPNOTSUPP;
	else
		err = f && p->loads ? next_fd_adopt(p, f) : -EOPNOTSUPP;
	if (err)
		sock_of_entry(ent)->tmp_cloexec = true;
	if (err && tmp_cloexec_set(fd))
		base_info("descriptor %d is a DDP stream and hidden from a new program", fd);
	if (!f)
		return;
	/* The command may run for long, and the program close it meanwhile */
	sock_put(f->sock);
	f->sock = NULL;
}

static void show_one(int fd, struct fdent *ent, void *ctx)
{
	tmp_cloexec_restore(fd, sock_stream_of_entry(ent) && sock_of_entry(ent)->tmp_cloexec);
}

static bool shell_loads(void)
{
	return loadable_at(AT_FDCWD, _PATH_BSHELL, 0) == LOADABLE_YES &&
	       environment_library_readable() && environment_restore();
}

/* Does this process have streams, which a shell of its own would inherit? */
static bool shell_inherits(void)
{
	return __atomic_load_n(&fdtab_streams, __ATOMIC_RELAXED) && !fork_gen_is_guest();
}

static void number_count(int fd, struct fdent *ent, void *ctx)
{
	*(unsigned int *)ctx += is_inherited(fd, ent);
}

static size_t room_size(unsigned int n)
{
	return n * sizeof(struct next_fd);
}

/* False: there is nothing to be seen to */
static bool shell_begin(struct next_program *p)
{
	unsigned int n = 0;
	struct call *e;
	void *room = NULL;
	long r = 0;

	if (!shell_inherits())
		return false;
	e = call_enter(false);
	pthread_mutex_lock(&shells.lock);
	fdtab_each(number_count, &n);
	if (n && base_map_create(room_size(n), &room))
		n = 0;
	next_program_init(p, room, n, true);
	shells.starts++;
	p->loads = shell_loads();
	fdtab_each(lend_or_set_cloexec, p);
	pthread_mutex_unlock(&shells.lock);
	call_leave(e, &r);
	return true;
}

static void shell_end(struct next_program *p, bool started)
{
	struct call *e;
	long r = 0;

	e = call_enter(false);
	pthread_mutex_lock(&shells.lock);
	next_program_end(p, started);
	base_map_destroy(p->fd, room_size(p->room));
	if (!--shells.starts)
		fdtab_each(show_one, NULL);
	pthread_mutex_unlock(&shells.lock);
	call_leave(e, &r);
}

long call_popen(const char *command, const char *type)
{
	struct next_program p;
	bool begun = shell_begin(&p);
	FILE *file = libc.popen(command, type);
	long r = file ? (long)file : -errno;

	if (begun)
		shell_end(&p, file);
	return r;
}

/* Others of its threads may start programs while the command runs */
long call_system(const char *command)
{
	struct next_program p;
	bool begun = command && shell_begin(&p);
	long r = libc_try(libc.system(command));

	if (begun)
		shell_end(&p, r >= 0);
	return r;
}

void spawn_before_fork(void)
{
	pthread_mutex_lock(&shells.lock);
	spawn_plan_before_fork();
}

/* Whoever was starting a shell does not in a child */
void spawn_after_fork(bool child)
{
	spawn_plan_after_fork(child);
	fork_gen_lock_drop(&shells.lock, child);
	if (!child)
		return;
	shells.starts = 0;
	fdtab_each(show_one, NULL);
}
