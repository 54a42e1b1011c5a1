/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each call that executes a program, in a child whose standard input and output are a connection
 * with octets unread, and those that make a terminal of them. As calls.c, for the kernel's TCP and
 * for Warpsock.
 */
#include "tests/e2e/programs/calls.h"

#include <pty.h>
#include <string.h>
#include <sys/resource.h>
#include <utmp.h>

extern char **environ;

static char *argv_cat[] = { "cat", NULL };

static void by_execl(void)
{
	execl("/bin/cat", "cat", NULL);
}

static void by_execlp(void)
{
	execlp("cat", "cat", NULL);
}

static void by_execle(void)
{
	execle("/bin/cat", "cat", NULL, environ);
}

static void by_execv(void)
{
	execv("/bin/cat", argv_cat);
}

/* A program that may open one file at a time */
static void by_execv_confined(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = STDERR_FILENO + 2;
	if (!setrlimit(RLIMIT_NOFILE, &limit))
		execv("/bin/cat", argv_cat);
}

static void by_execvp(void)
{
	execvp("cat", argv_cat);
}

static void by_execvpe(void)
{
	execvpe("cat", argv_cat, environ);
}

static void by_execve(void)
{
	execve("/bin/cat", argv_cat, environ);
}

static void by_fexecve(void)
{
	fexecve(open("/bin/cat", O_RDONLY | O_CLOEXEC), argv_cat, environ);
}

static void by_execveat(void)
{
	execveat(open("/bin", O_PATH | O_DIRECTORY | O_CLOEXEC), "cat", argv_cat, environ, 0);
}

static void by_execveat_fd(void)
{
	execveat(open("/bin/cat", O_PATH | O_CLOEXEC), "", argv_cat, environ, AT_EMPTY_PATH);
}

static bool carries_over(void (*execute)(void))
{
	char back[13];
	int fd[2];
	pid_t pid;

	need(pair(fd) && write(fd[0], "before ", 7) == 7 && ready(fd[1], POLLIN, 20000));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fd[1], 0);
		dup2(fd[1], 1);
		closefrom(3);
		execute();
		_exit(1);
	}
	close(fd[1]);
	need(write(fd[0], "behind", 6) == 6 && !shutdown(fd[0], SHUT_WR));
	need(recv(fd[0], back, 13, MSG_WAITALL) == 13 && !memcmp(back, "before behind", 13));
	need(at_end(fd[0]));
	close(fd[0]);
	return in_child(pid);
}

/* --- terminals --- */

static bool terminal(void)
{
	int fd[2], master;
	char buf[16] = "";
	pid_t pid, inner;

	need(pair(fd));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fd[1], 0);
		dup2(fd[1], 1);
		inner = forkpty(&master, NULL, NULL, NULL);
		if (!inner)
			_exit(!isatty(0) || write(1, "tty", 3) != 3 || close(fd[1]));
		if (inner < 0 || read(master, buf, 3) != 3 || write(1, buf, 3) != 3)
			_exit(1);
		_exit(!in_child(inner) || close(master) || fcntl(fd[1], F_GETFD) < 0);
	}
	need(recv(fd[0], buf, 3, MSG_WAITALL) == 3 && !memcmp(buf, "tty", 3) && in_child(pid));
	need(talk(fd[0], fd[1]));
	done(fd);
	return true;
}

/* What was at the standard numbers has one number less, and ends when that was its last one */
static bool logged_in(void)
{
	int fd[2], other[2], master, slave;
	char word[5];
	pid_t pid;

	need(pair(fd) && pair(other));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		dup2(fd[1], 0);
		dup2(other[1], 1);
		close(fd[0]);
		close(fd[1]);
		close(other[0]);
		if (openpty(&master, &slave, NULL, NULL, NULL) || login_tty(slave))
			_exit(1);
		_exit(!isatty(0) || !isatty(1) || getsid(0) != getpid() ||
		      write(other[1], "other", 5) != 5);
	}
	close(fd[1]);
	close(other[1]);
	need(at_end(fd[0]) &&
	     (recv(other[0], word, 5, MSG_WAITALL) == 5 && !memcmp(word, "other", 5)) &&
	     at_end(other[0]) && in_child(pid));
	close(fd[0]);
	close(other[0]);
	return true;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*execute)(void);
	} forms[] = {
		{ "execl", by_execl },
		{ "execlp", by_execlp },
		{ "execle", by_execle },
		{ "execv", by_execv },
		{ "execv with one number left", by_execv_confined },
		{ "execvp", by_execvp },
		{ "execvpe", by_execvpe },
		{ "execve", by_execve },
		{ "fexecve", by_fexecve },
		{ "execveat in a folder", by_execveat },
		{ "execveat of a descriptor", by_execveat_fd },
	};

	setup();
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		tap_case(carries_over(forms[i].execute), forms[i].name);
	tap_case(terminal(), "forkpty");
	tap_case(logged_in(), "login_tty");
	return tap_finish();
}
