/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Members of an epoll set that are removed and added again.
 */
#include <sys/wait.h>

#include "tests/e2e/programs/same_sets.h"

/* As libraries do that remove a socket and add it again for each message */
static void again(int fd[2])
{
	int ep = epoll_create1(0);

	for (int i = 0; i < 3; i++) {
		ADD(ep, fd[0], EPOLLIN, 'r');
		sets_put(fd[1], "x");
		WAIT(ep, 8, COMES);
		sets_take(fd[0], 1);
		DEL(ep, fd[0]);
		DEL(ep, fd[0]);
		MOD(ep, fd[0], EPOLLIN, 'm');
		ADD(ep, fd[0], EPOLLOUT, 'w');
		ADD(ep, fd[0], EPOLLOUT, 'w');
		WAIT(ep, 8, 0);
		DEL(ep, fd[0]);
		WAIT(ep, 8, 0);
	}
	sets_put(fd[1], "xyz");
	same_wait(fd[0], POLLIN);
	WAIT(ep, 8, NOT);
	ADD(ep, fd[0], EPOLLIN | EPOLLET, 'e');
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
	DEL(ep, fd[0]);
	ADD(ep, fd[0], EPOLLIN | EPOLLET, 'E');
	WAIT(ep, 8, COMES);
	DEL(ep, fd[0]);
	ADD(ep, fd[0], EPOLLIN | EPOLLEXCLUSIVE, 'x');
	WAIT(ep, 8, COMES);
	DEL(ep, fd[0]);
	R(shutdown(fd[1], SHUT_WR));
	same_wait(fd[0], POLLRDHUP);
	WAIT(ep, 8, NOT);
	ADD(ep, fd[0], EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, 'h');
	WAIT(ep, 8, COMES);
	WAIT(ep, 8, NOT);
}

/* One that was removed is known neither by another number nor in a child */
static void again_elsewhere(int fd[2])
{
	int ep = epoll_create1(0), copy;
	pid_t pid;

	ADD(ep, fd[0], EPOLLIN, 'a');
	DEL(ep, fd[0]);
	copy = dup(fd[0]);
	DEL(ep, copy);
	ADD(ep, copy, EPOLLIN, 'c');
	ADD(ep, fd[0], EPOLLIN, 'a');
	sets_put(fd[1], "x");
	WAIT(ep, 8, COMES);
	DEL(ep, copy);
	DEL(ep, fd[0]);
	WAIT(ep, 8, 0);
	pid = fork();
	if (!pid) {
		ADD(ep, fd[0], EPOLLIN, 'k');
		WAIT(ep, 8, COMES);
		sets_take(fd[0], 1);
		DEL(ep, fd[0]);
		fflush(NULL);
		_exit(0);
	}
	R(waitpid(pid, NULL, 0) == pid);
	ADD(ep, fd[0], EPOLLIN, 'p');
	sets_put(fd[1], "y");
	WAIT(ep, 8, COMES);
	DEL(ep, fd[0]);
	close(fd[0]);
	sets_put(fd[1], "z");
	WAIT(ep, 8, NOT);
}

int main(int argc, char **argv)
{
	static const struct same_case cases[] = {
		{ "for each message, level, edge, exclusive, behind an end", again, NULL },
		{ "by another number, in a child", again_elsewhere, NULL },
	};

	return same_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
