/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each call that executes a program, in a child whose standard input and output are a connection
 * with octets unread. As calls.c, for the kernel's TCP and for Warpsock.
 */
#include "tests/e2e/programs/calls.h"

#include <string.h>

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
	return tap_finish();
}
