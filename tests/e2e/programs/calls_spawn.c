/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of connections that a program inherits which libc starts, by posix_spawn(),
 * system() and popen(); and of clone(). As calls.c, for the kernel's TCP and for Warpsock.
 */
#include "tests/e2e/programs/calls.h"
#include "tests/e2e/programs/calls_new.h"

#include <sched.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct spawning {
	int fd[2];
	pid_t pid;
	posix_spawn_file_actions_t actions;
};

static bool spawn_begin(struct spawning *s)
{
	need(pair(s->fd) && !posix_spawn_file_actions_init(&s->actions));
	need(!fcntl(s->fd[0], F_SETFD, FD_CLOEXEC));
	return true;
}

static bool spawn_add_standard(struct spawning *s)
{
	need(!posix_spawn_file_actions_adddup2(&s->actions, s->fd[1], 0));
	need(!posix_spawn_file_actions_adddup2(&s->actions, 0, 1));
	return true;
}

static bool spawn_end(struct spawning *s)
{
	posix_spawn_file_actions_destroy(&s->actions);
	close(s->fd[1]);
	return echoes(s->fd[0], s->pid);
}

/* The number that is handed on is close-on-exec itself */
static bool spawned_close_on_exec(const char *path)
{
	char *const argv[] = { "cat", NULL }, *const none[] = { NULL };
	struct spawning s;

	need(spawn_begin(&s) && !fcntl(s.fd[1], F_SETFD, FD_CLOEXEC) && spawn_add_standard(&s));
	need(!posix_spawn(&s.pid, path, &s.actions, NULL, argv, none));
	return spawn_end(&s);
}

/* Actions of all kinds, before and behind */
static bool spawned_with_actions(const char *path)
{
	char *const argv[] = { "cat", NULL };
	struct spawning s;

	need(spawn_begin(&s) && !posix_spawn_file_actions_addclose(&s.actions, s.fd[0]));
	need(!posix_spawn_file_actions_addopen(&s.actions, 0, "/dev/null", O_RDWR, 0));
	need(!posix_spawn_file_actions_adddup2(&s.actions, s.fd[1], 77));
	need(!posix_spawn_file_actions_addclose(&s.actions, s.fd[1]));
	need(!posix_spawn_file_actions_addchdir_np(&s.actions, "/"));
	need(!posix_spawn_file_actions_adddup2(&s.actions, 77, 0));
	need(!posix_spawn_file_actions_adddup2(&s.actions, 77, 1));
	need(!posix_spawn_file_actions_addclosefrom_np(&s.actions, 3));
	need(!posix_spawnp(&s.pid, path, &s.actions, NULL, argv, environ));
	return spawn_end(&s);
}

/* In a group of its own, and with a signal blocked that would end it */
static bool spawned_with_attributes(const char *path)
{
	char *const argv[] = { "cat", NULL };
	posix_spawnattr_t attr;
	struct spawning s;
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	need(!posix_spawnattr_init(&attr) && !posix_spawnattr_setsigmask(&attr, &mask));
	need(!posix_spawnattr_setpgroup(&attr, 0) &&
	     !posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
	need(spawn_begin(&s) && spawn_add_standard(&s));
	need(!posix_spawn(&s.pid, path, &s.actions, &attr, argv, environ));
	posix_spawnattr_destroy(&attr);
	need(getpgid(s.pid) == s.pid && !kill(s.pid, SIGTERM));
	return spawn_end(&s);
}

/* A path that begins where an action has gone to */
static bool spawned_elsewhere(const char *path)
{
	char *const argv[] = { "cat", NULL };
	char dir[sizeof(copier)], there[sizeof(copier)], name[sizeof(copier)];
	struct spawning s;
	int fd;

	strcpy(dir, path);
	strcpy(there, path);
	snprintf(name, sizeof(name), "./%s", basename(there));
	fd = open(dirname(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	need(fd >= 0 && spawn_begin(&s) && spawn_add_standard(&s));
	need(!posix_spawn_file_actions_addfchdir_np(&s.actions, fd));
	need(!posix_spawn(&s.pid, name, &s.actions, NULL, argv, environ));
	close(fd);
	return spawn_end(&s);
}

static bool spawned(void)
{
	need(spawned_close_on_exec("/bin/cat") && spawned_close_on_exec(copier));
	need(spawned_with_actions("cat") && spawned_with_actions(copier));
	need(spawned_with_attributes("/bin/cat") && spawned_with_attributes(copier));
	return spawned_elsewhere("/bin/cat") && spawned_elsewhere(copier);
}

/* The new program is its real user's, who is not the one that made the connection */
static bool spawn_with(const char *path, short flags)
{
	char *const argv[] = { "cat", NULL };
	posix_spawnattr_t attr;
	struct spawning s;

	need(!posix_spawnattr_init(&attr) && !posix_spawnattr_setflags(&attr, flags));
	need(spawn_begin(&s) && spawn_add_standard(&s));
	need(!posix_spawn(&s.pid, path, &s.actions, &attr, argv, environ));
	posix_spawnattr_destroy(&attr);
	return spawn_end(&s);
}

static bool spawns_as_real_user(const char *path)
{
	need(!setresuid(65534, 0, 0) && spawn_with("/bin/cat", POSIX_SPAWN_RESETIDS));
	return spawn_with(path, POSIX_SPAWN_RESETIDS) && spawn_with(path, 0);
}

static bool spawned_as_real_user(void)
{
	char path[] = "/tmp/warpsock-spawn-XXXXXX", command[64];
	bool good;
	pid_t pid;

	if (getuid())
		return tap_skip("only root becomes another user");
	close(mkstemp(path));
	snprintf(command, sizeof(command), "cp /bin/cat %s", path);
	need(!system(command) && !chown(path, 65534, 65534) && !chmod(path, 04755));
	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(!spawns_as_real_user(path));
	good = in_child(pid);
	unlink(path);
	return good;
}

static bool not_spawned(const char *path, int error)
{
	char *longest = malloc(1 << 18), *const argv[] = { "cat", longest, NULL };
	struct spawning s;

	memset(longest, 'x', (1 << 18) - 1);
	longest[(1 << 18) - 1] = '\0';
	need(spawn_begin(&s) && spawn_add_standard(&s));
	need(posix_spawn(&s.pid, path, &s.actions, NULL, argv, environ) == error);
	need(write(s.fd[0], "on", 2) == 2 && gets(s.fd[1], "on"));
	posix_spawn_file_actions_destroy(&s.actions);
	need(!close(s.fd[1]) && at_end(s.fd[0]));
	close(s.fd[0]);
	free(longest);
	return true;
}

/* The last action fails, for there is no terminal */
static bool not_in_front(const char *path)
{
	char *const argv[] = { "cat", NULL };
	struct spawning s;

	need(spawn_begin(&s) && spawn_add_standard(&s));
	need(!posix_spawn_file_actions_addtcsetpgrp_np(&s.actions, 0));
	need(posix_spawn(&s.pid, path, &s.actions, NULL, argv, environ) == ENOTTY);
	posix_spawn_file_actions_destroy(&s.actions);
	need(talk(s.fd[0], s.fd[1]) && !close(s.fd[1]) && at_end(s.fd[0]));
	close(s.fd[0]);
	return true;
}

static bool spawned_in_vain(void)
{
	need(not_in_front("/bin/cat") && not_in_front(copier));
	need(not_spawned("/no/such/program", ENOENT));
	return not_spawned("/bin/cat", E2BIG) && not_spawned(copier, E2BIG);
}

/* @bare: the environment of the program has been emptied */
static bool by_shell(bool bare)
{
	char command[64], **before = environ, *none[] = { NULL };
	int fd[2];
	FILE *p;

	need(pair(fd) && !fcntl(fd[0], F_SETFD, FD_CLOEXEC));
	if (bare)
		environ = none;
	snprintf(command, sizeof(command), "echo command >&%d", fd[1]);
	need(!system(command) && gets(fd[0], "command\n"));
	snprintf(command, sizeof(command), "/bin/cat <&%d", fd[1]);
	need((p = popen(command, "r")) != NULL);
	need(write(fd[0], "popen", 5) == 5 && !shutdown(fd[0], SHUT_WR));
	need(fgetc(p) == 'p' && fgetc(p) == 'o' && !pclose(p));
	environ = before;
	need(write(fd[1], "mine", 4) == 4 && gets(fd[0], "mine") && !close(fd[1]));
	need(at_end(fd[0]));
	close(fd[0]);
	return true;
}

static bool shells(void)
{
	return by_shell(false) && by_shell(true);
}

/* --- clone() as fork() --- */

static int cloned_fd;

/* It ends by returning */
static int clone_main(void *arg)
{
	return arg != &cloned_fd || write(cloned_fd, "clone", 5) != 5;
}

static bool cloned(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int fd[2], status;
	pid_t pid;

	need(pair(fd));
	cloned_fd = fd[0];
	fflush(stdout);
	pid = clone(clone_main, stack + sizeof(stack), SIGCHLD, &cloned_fd);
	need(in_child(pid) && recv(fd[1], (char[5]){ 0 }, 5, MSG_WAITALL) == 5);
	need(talk(fd[0], fd[1]));
	/* A guest, for which nothing is done */
	pid = clone(clone_main, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	need(pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 1);
	need(clone(NULL, stack, SIGCHLD, NULL) < 0 && errno == EINVAL);
	/* The child is the last one who has it */
	pid = clone(clone_main, stack + sizeof(stack), SIGCHLD, &cloned_fd);
	need(!close(fd[0]) && recv(fd[1], (char[5]){ 0 }, 5, MSG_WAITALL) == 5 && at_end(fd[1]));
	close(fd[1]);
	return in_child(pid);
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "posix_spawn", spawned },
		{ "posix_spawn as the real user", spawned_as_real_user },
		{ "posix_spawn that fails", spawned_in_vain },
		{ "system, popen", shells },
		{ "clone", cloned },
	};

	return programs_find() ? cases_run(cases, sizeof(cases) / sizeof(cases[0])) : 1;
}
