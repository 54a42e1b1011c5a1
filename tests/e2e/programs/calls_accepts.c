/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A server that accepts before it reads: 1, 10 or 1,000 connections, and then one after the other;
 * and one that accepts and first does something else. No client waits for that in connect(), as the
 * kernel has the connection. As calls.c, for the kernel's TCP and for Warpsock.
 */
#include "tests/e2e/programs/calls.h"

#include <sys/resource.h>

enum { MANY = 1000, BUSY_MS = 1500, LIMIT_S = 20 };

/* connect() on this host; a machine may be busy */
#define AT_ONCE 1.0

static int accepted[MANY], connected[MANY];

static bool take_all(int n)
{
	for (int i = 0; i < n; i++) {
		accepted[i] = accept(lfd, NULL, NULL);
		need(accepted[i] >= 0);
	}
	return true;
}

/* What one client said is given back to it */
static bool answer(int fd)
{
	char text[8];

	need(recv(fd, text, 4, MSG_WAITALL) == 4);
	need(send(fd, text, 4, 0) == 4);
	need(at_end(fd));
	close(fd);
	return true;
}

static bool answer_all(int n)
{
	for (int i = 0; i < n; i++)
		need(answer(accepted[i]));
	return true;
}

static bool connect_one(int *fd)
{
	double begin = now();

	*fd = socket(AF_INET, SOCK_STREAM, 0);
	need(!connect(*fd, (struct sockaddr *)&laddr, sizeof(laddr)));
	if (now() - begin > AT_ONCE)
		printf("# connect() took %.1f s\n", now() - begin);
	return now() - begin <= AT_ONCE;
}

/* All are there before the first one says anything */
static bool clients(int n)
{
	char text[8];

	for (int i = 0; i < n; i++)
		need(connect_one(&connected[i]));
	for (int i = 0; i < n; i++)
		need(send(connected[i], "word", 4, 0) == 4);
	for (int i = 0; i < n; i++) {
		need(recv(connected[i], text, 4, MSG_WAITALL) == 4 && !memcmp(text, "word", 4));
		close(connected[i]);
	}
	return true;
}

/* Neither side waits for ever: what the server sleeps in fails with EINTR */
static pid_t clients_begin(int n)
{
	pid_t pid = fork();

	if (!pid) {
		close(lfd);
		signal(SIGALRM, SIG_DFL);
		alarm(LIMIT_S);
		_exit(!clients(n));
	}
	alarm(LIMIT_S + 1);
	return pid;
}

static bool accepts(int n)
{
	pid_t pid = clients_begin(n);

	return take_all(n) && answer_all(n) && in_child(pid);
}

static bool accepts_one(void)
{
	return accepts(1);
}

static bool accepts_ten(void)
{
	return accepts(10);
}

static bool accepts_many(void)
{
	struct rlimit limit;

	need(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	need(!setrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur >= 4 * MANY);
	need(!listen(lfd, MANY));
	return accepts(MANY);
}

static bool waits_for_child(void)
{
	pid_t busy, pid = clients_begin(10);

	need(take_all(10));
	busy = fork();
	if (!busy) {
		usleep(BUSY_MS * 1000);
		_exit(0);
	}
	return in_child(busy) && answer_all(10) && in_child(pid);
}

/* A child has the connections by the time it reads, its parent has closed them */
static bool reads_in_child(void)
{
	pid_t reader, pid = clients_begin(10);

	need(take_all(10));
	reader = fork();
	if (!reader) {
		usleep(BUSY_MS * 1000);
		_exit(!answer_all(10));
	}
	for (int i = 0; i < 10; i++)
		close(accepted[i]);
	return in_child(reader) && in_child(pid);
}

int main(void)
{
	static const struct call_case cases[] = {
		{ "one is accepted, then read", accepts_one },
		{ "ten are accepted, then read", accepts_ten },
		{ "a thousand are accepted, then read", accepts_many },
		{ "ten are accepted, and a child is waited for", waits_for_child },
		{ "ten are accepted, and read in a child", reads_in_child },
	};

	return cases_run(cases, sizeof(cases) / sizeof(cases[0]));
}
