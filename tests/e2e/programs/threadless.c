/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program of one thread, for places where no other is to be had (tests/e2e/threadless.py): what
 * is left to do behind a call is done by the calls that wait, on whatever they wait.
 */
#include "tests/e2e/programs/calls.h"

#include <sys/epoll.h>

enum { MUCH = 3 << 20, PATIENCE_S = 30 };

/* Reads all of a connection slowly, and says by another that it has come */
static void reader(void)
{
	int first = socket(AF_INET, SOCK_STREAM, 0), second = socket(AF_INET, SOCK_STREAM, 0);
	static char buf[65536];
	size_t sum = 0;
	ssize_t n;

	close(lfd);
	if (connect(first, (struct sockaddr *)&laddr, sizeof(laddr)) || write(first, "a", 1) != 1)
		_exit(1);
	while ((n = read(first, buf, sizeof(buf))) > 0) {
		sum += (size_t)n;
		usleep(2000);
	}
	if (n || sum != MUCH || connect(second, (struct sockaddr *)&laddr, sizeof(laddr)))
		_exit(2);
	exit(write(second, "b", 1) != 1);
}

static bool writes(int fd)
{
	static char buf[65536];
	size_t left = MUCH;
	ssize_t n;

	while (left && (n = write(fd, buf, left < sizeof(buf) ? left : sizeof(buf))) > 0)
		left -= (size_t)n;
	return !left;
}

static bool by_accept(void)
{
	return true;
}

static bool by_poll(void)
{
	return ready(lfd, POLLIN, PATIENCE_S * 1000) == POLLIN;
}

static bool by_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(EPOLL_CLOEXEC);

	need(!epoll_ctl(set, EPOLL_CTL_ADD, lfd, &event));
	need(epoll_wait(set, &event, 1, PATIENCE_S * 1000) == 1);
	return !close(set);
}

/* What is closed arrives while the program waits for something else */
static bool closed_goes(bool (*waits)(void))
{
	int fd, status;
	pid_t pid;
	char c;

	fflush(stdout);
	pid = fork();
	if (!pid)
		reader();
	fd = accept(lfd, NULL, NULL);
	need(fd >= 0 && read(fd, &c, 1) == 1 && writes(fd) && !close(fd));
	need(waits());
	fd = accept(lfd, NULL, NULL);
	need(fd >= 0 && read(fd, &c, 1) == 1 && !close(fd));
	need(waitpid(pid, &status, 0) == pid && !status);
	return true;
}

/* One thread has both ends, of which one sleeps for what the other is to do */
static bool both_ends(void)
{
	int fd[2], other[2];

	need(pair(fd) && pair(other));
	need(write(other[0], "x", 1) == 1 && ready(other[1], POLLIN, 5000) == POLLIN);
	done(other);
	done(fd);
	return true;
}

int main(void)
{
	setup();
	signal(SIGALRM, SIG_DFL);
	alarm(3 * PATIENCE_S);
	tap_case(both_ends(), "both ends of a connection");
	tap_case(closed_goes(by_accept), "what was closed goes while accept() waits");
	tap_case(closed_goes(by_poll), "what was closed goes while poll() waits");
	tap_case(closed_goes(by_epoll), "what was closed goes while epoll_wait() waits");
	return tap_finish();
}
