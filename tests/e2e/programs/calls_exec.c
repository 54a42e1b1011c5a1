/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Linux promises of connections that a program inherits: executed in a child's place, or by
 * vfork(); and programs of all kinds. As calls.c, for the kernel's TCP and for Warpsock.
 */
#include "tests/e2e/programs/calls.h"
#include "tests/e2e/programs/calls_new.h"

#include <grp.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define BYTES 100000

static void standard(int fd)
{
	dup2(fd, 0);
	dup2(fd, 1);
	closefrom(3);
}

/* A child whose standard input and output are a connection, and which executes */
static pid_t start(int fd[2], const char *path, char *const argv[], char *const envp[])
{
	pid_t pid;

	fflush(stdout);
	pid = pair(fd) ? fork() : -1;
	if (!pid) {
		standard(fd[1]);
		execve(path, argv, envp);
		_exit(99);
	}
	close(fd[1]);
	return pid;
}

static bool executes(const char *path, char *const argv[], char *const envp[])
{
	int fd[2];
	pid_t pid = start(fd, path, argv, envp);

	return echoes(fd[0], pid);
}

static bool executed(void)
{
	return executes("/bin/cat", (char *[]){ "cat", NULL }, environ);
}

static bool executed_bare(void)
{
	char *const none[] = { NULL }, *const other[] = { "LD_PRELOAD=", "A=1", NULL };

	need(executes("/bin/cat", (char *[]){ "cat", NULL }, none));
	need(executes("/bin/cat", (char *[]){ "cat", NULL }, other));
	return executes("/bin/cat", (char *[]){ "cat", NULL }, NULL);
}

static bool executed_static(void)
{
	return executes(copier, (char *[]){ copier, NULL }, environ);
}

/* @says: the interpreter says the script's name first */
static bool executed_by_script(const char *text, bool says)
{
	char path[] = "/tmp/warpsock-exec-XXXXXX";
	ssize_t n = (ssize_t)strlen(text);
	int file = mkstemp(path), fd[2];
	bool good;
	pid_t pid;

	need(write(file, text, (size_t)n) == n && !fchmod(file, 0755) && !close(file));
	pid = start(fd, path, (char *[]){ path, NULL }, environ);
	good = (!says || gets(fd[0], path)) && echoes(fd[0], pid);
	unlink(path);
	return good;
}

static bool executed_script(void)
{
	char *argv[] = { "sh", "-c", "read a; echo got $a; exec cat", NULL }, text[4300];
	int fd[2];
	pid_t pid = start(fd, "/bin/sh", argv, environ);

	need(write(fd[0], "line\n", 5) == 5 && gets(fd[0], "got line\n") && echoes(fd[0], pid));
	need(executed_by_script("#!/bin/sh\ncat\n", false));
	snprintf(text, sizeof(text), "#!%s\n", copier);
	return executed_by_script(text, true);
}

/* Octets that were read from the kernel, and not yet by the program */
static bool executed_with_octets(void)
{
	int fd[2];
	pid_t pid;

	fflush(stdout);
	need(pair(fd) && write(fd[0], "first and second", 16) == 16);
	need(ready(fd[1], POLLIN, 5000) && read(fd[1], (char[6]){ 0 }, 6) == 6);
	pid = fork();
	if (!pid) {
		standard(fd[1]);
		if (read(0, (char[4]){ 0 }, 4) == 4)
			execlp("cat", "cat", NULL);
		_exit(99);
	}
	close(fd[1]);
	need(gets(fd[0], "second") && echoes(fd[0], pid));
	return true;
}

/*
 * What was written before, and what is written behind, arrives in order. The kernel takes so little
 * that a part of what was accepted is not on its way yet.
 */
static bool executed_while_writing(const char *path)
{
	static char data[BYTES];
	int fd[2], size = 4096;
	pid_t pid;

	memset(data, 'x', sizeof(data));
	fflush(stdout);
	need(pair(fd) && !setsockopt(fd[0], SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) &&
	     !setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)));
	pid = fork();
	if (!pid) {
		for (ssize_t at = 0, n; at < BYTES; at += n)
			if ((n = write(fd[1], data + at, (size_t)(BYTES - at))) < 0)
				_exit(98);
		standard(fd[1]);
		execl(path, path, "behind", NULL);
		_exit(99);
	}
	close(fd[1]);
	usleep(50000);
	need(recv(fd[0], data, BYTES, MSG_WAITALL) == BYTES && gets(fd[0], "behind") &&
	     echoes(fd[0], pid));
	return true;
}

static bool executed_writers(void)
{
	return executed_while_writing(self) && executed_while_writing(copier);
}

/* Nothing has passed yet when the program is executed */
static bool executed_at_once(const char *path)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), got;
	pid_t pid;

	fflush(stdout);
	need(nonblock(fd));
	need(!connect(fd, (struct sockaddr *)&laddr, sizeof(laddr)) || errno == EINPROGRESS);
	got = accept(lfd, NULL, NULL);
	pid = fork();
	if (!pid) {
		standard(got);
		execl(path, path, "welcome", NULL);
		_exit(99);
	}
	close(got);
	need(ready(fd, POLLIN, 10000) && !fcntl(fd, F_SETFL, 0) && gets(fd, "welcome"));
	return echoes(fd, pid);
}

static bool executed_accepted(void)
{
	return executed_at_once(self) && executed_at_once(copier);
}

/* What the program has set is so in the next one, which is look() */
static bool executed_with_options(void)
{
	int fd[2], one = 1, four = 4;
	pid_t pid;

	fflush(stdout);
	need(pair(fd));
	pid = fork();
	if (!pid) {
		setsockopt(fd[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(fd[1], SOL_SOCKET, SO_RCVLOWAT, &four, sizeof(four));
		shutdown(fd[1], SHUT_WR);
		nonblock(fd[1]);
		dup2(fd[1], 0);
		closefrom(3);
		execl(self, "look", NULL);
		_exit(99);
	}
	close(fd[1]);
	need(at_end(fd[0]) && write(fd[0], "four", 4) == 4 && in_child(pid));
	close(fd[0]);
	return true;
}

static int int_option(int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	return getsockopt(0, level, name, &value, &len) ? -1 : value;
}

static int look(void)
{
	struct sockaddr_in peer = { 0 };
	socklen_t len = sizeof(peer);

	signal(SIGPIPE, SIG_IGN);
	if (int_option(IPPROTO_TCP, TCP_NODELAY) != 1 || int_option(SOL_SOCKET, SO_RCVLOWAT) != 4)
		return 1;
	if (getpeername(0, (struct sockaddr *)&peer, &len) || peer.sin_family != AF_INET)
		return 2;
	if (!(fcntl(0, F_GETFL) & O_NONBLOCK))
		return 3;
	if (write(0, "x", 1) >= 0 || errno != EPIPE)
		return 4;
	return ready(0, POLLIN, 10000) && read(0, (char[8]){ 0 }, 8) == 4 ? 0 : 5;
}

/* A child that cannot be replaced has all that it had */
static bool not_executed(const char *path, char *const argv[], int error)
{
	int fd[2];
	pid_t pid;

	fflush(stdout);
	need(pair(fd));
	pid = fork();
	if (!pid) {
		dup2(fd[1], 0);
		if (execv(path, argv) != -1 || errno != error)
			_exit(1);
		if (read(0, (char[4]){ 0 }, 4) != 4 || write(fd[1], "back", 4) != 4)
			_exit(2);
		_exit(0);
	}
	close(fd[1]);
	need(write(fd[0], "here", 4) == 4 && gets(fd[0], "back") && at_end(fd[0]));
	close(fd[0]);
	return in_child(pid);
}

static bool failed(void)
{
	char *longest = malloc(1 << 18), *const argv[] = { "copy", longest, NULL };

	memset(longest, 'x', (1 << 18) - 1);
	longest[(1 << 18) - 1] = '\0';
	need(not_executed("/no/such/program", (char *[]){ "x", NULL }, ENOENT));
	need(not_executed("/etc/passwd", (char *[]){ "x", NULL }, EACCES));
	need(not_executed("/bin/cat", argv, E2BIG) && not_executed(copier, argv, E2BIG));
	free(longest);
	return true;
}

static void *echo_for_ever(void *arg)
{
	char buf[64];
	ssize_t n;

	while ((n = read(0, buf, sizeof(buf))) > 0 && write(1, buf, (size_t)n) == n)
		;
	/* The end may come before the program that is to replace this one */
	while (!n)
		pause();
	_exit(98);
}

/* An octet that a thread had when it was lost with its program is lost too, and nothing else */
static bool executed_beside(useconds_t after)
{
	struct timeval limit = { 0, 200000 }, none = { 0, 0 };
	pthread_t thread;
	double begin;
	char buf[64];
	int fd[2];
	pid_t pid;

	fflush(stdout);
	need(pair(fd));
	pid = fork();
	if (!pid) {
		standard(fd[1]);
		for (int i = 0; i < 2; i++)
			pthread_create(&thread, NULL, echo_for_ever, NULL);
		usleep(after);
		execlp("cat", "cat", NULL);
		_exit(99);
	}
	close(fd[1]);
	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	for (begin = now(); now() < begin + 0.1;) {
		need(write(fd[0], "x", 1) == 1);
		need(read(fd[0], buf, sizeof(buf)) >= 0 || errno == EAGAIN);
	}
	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)));
	need(!shutdown(fd[0], SHUT_WR));
	while (read(fd[0], buf, sizeof(buf)) > 0)
		;
	need(at_end(fd[0]));
	close(fd[0]);
	return in_child(pid);
}

static bool executed_beside_threads(void)
{
	for (useconds_t i = 0; i < 20; i++)
		need(executed_beside(20000 + 500 * i));
	return true;
}

/* --- other users --- */

/* As inetd does */
static bool executed_by_nobody(const char *path)
{
	int fd[2];
	pid_t pid;

	fflush(stdout);
	need(pair(fd));
	pid = fork();
	if (!pid) {
		if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
			_exit(98);
		standard(fd[1]);
		execl(path, "cat", NULL);
		_exit(99);
	}
	close(fd[1]);
	return echoes(fd[0], pid);
}

static bool others(void)
{
	if (getuid())
		return tap_skip("only root becomes another user");
	return executed_by_nobody("/bin/cat");
}

/* A program that becomes another user by being executed */
static bool set_user(void)
{
	char path[] = "/tmp/warpsock-exec-XXXXXX", command[64];
	bool good;

	if (getuid())
		return tap_skip("only root gives a file away");
	close(mkstemp(path));
	snprintf(command, sizeof(command), "cp /bin/cat %s", path);
	need(!system(command) && !chown(path, 65534, 65534) && !chmod(path, 06755));
	good = executes(path, (char *[]){ path, NULL }, environ);
	unlink(path);
	return good;
}

/* --- without fork() --- */

static bool vforked_with(const char *path)
{
	char *const none[] = { NULL }, *const argv[] = { "cat", NULL };
	int fd[2];
	pid_t pid;

	need(pair(fd));
	for (int i = 0; i < 2; i++) {
		pid = vfork();
		if (!pid) {
			dup2(fd[1], 0);
			dup2(fd[1], 1);
			close_range(3, ~0u, 0);
			execve(i ? path : "/no/such/program", argv, i ? none : environ);
			_exit(i ? 99 : 0);
		}
		need(i || in_child(pid));
	}
	close(fd[1]);
	return echoes(fd[0], pid);
}

static bool vforked(void)
{
	return vforked_with("/bin/cat") && vforked_with(copier);
}

/* The connection is the parent's as well */
static bool vforked_and_shared(void)
{
	int fd[2];
	pid_t pid;

	need(pair(fd));
	pid = vfork();
	if (!pid) {
		dup2(fd[1], 1);
		execl("/bin/echo", "echo", "from the child", NULL);
		_exit(99);
	}
	need(in_child(pid) && gets(fd[0], "from the child\n"));
	need(write(fd[1], "still", 5) == 5 && gets(fd[0], "still") && !close(fd[1]));
	need(at_end(fd[0]));
	close(fd[0]);
	return true;
}

/* A program that has no child, whatever its predecessor has left behind */
static int childless(void)
{
	if (waitpid(-1, NULL, __WALL | WNOHANG) >= 0 || errno != ECHILD)
		return 1;
	return write(1, "alone", 5) != 5;
}

/* What was written arrives, though its writer is another program by now, or none any more */
static bool lingers_behind(bool closed)
{
	int fd[2], said[2];
	char word[5];
	long sum = 0;
	pid_t pid;

	need(pair_narrow(fd) && !pipe(said));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fd[1]);
		close(said[0]);
		dup2(said[1], 1);
		close(said[1]);
		sum = stuff(fd[0]);
		if (write(1, &sum, sizeof(sum)) < 0 ||
		    (closed ? close(fd[0]) : fcntl(fd[0], F_SETFD, FD_CLOEXEC)))
			_exit(2);
		execl(self, "childless", NULL);
		_exit(2);
	}
	close(fd[0]);
	close(said[1]);
	need(read(said[0], &sum, sizeof(sum)) == sizeof(sum) && sum > 0);
	/* Before anybody has read */
	need(ready(said[0], POLLIN, 20000) && read(said[0], word, 5) == 5 &&
	     !memcmp(word, "alone", 5));
	need(ready(said[0], POLLIN, 20000) && at_end(said[0]) && in_child(pid));
	need(drain(fd[1], sum) && at_end(fd[1]));
	close(said[0]);
	close(fd[1]);
	return true;
}

static bool executed_before_delivery(void)
{
	return lingers_behind(true) && lingers_behind(false);
}

int main(int argc, char **argv)
{
	static const struct call_case cases[] = {
		{ "exec", executed },
		{ "exec with another environment", executed_bare },
		{ "exec of a script", executed_script },
		{ "exec of a program without a linker", executed_static },
		{ "exec with octets unread", executed_with_octets },
		{ "exec behind much that was written", executed_writers },
		{ "exec right behind accept()", executed_accepted },
		{ "exec, options and ends", executed_with_options },
		{ "exec beside busy threads", executed_beside_threads },
		{ "exec before all is delivered", executed_before_delivery },
		{ "exec that fails", failed },
		{ "exec as another user", others },
		{ "exec of a setuid program", set_user },
		{ "vfork and exec", vforked },
		{ "vfork, exec, and the parent goes on", vforked_and_shared },
	};

	if (!strcmp(argv[0], "look"))
		return look();
	if (!strcmp(argv[0], "childless"))
		return childless();
	if (!programs_find())
		return 1;
	if (argc > 1)
		return write(1, argv[1], strlen(argv[1])) < 0 ? 1 : execlp("cat", "cat", NULL);
	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
