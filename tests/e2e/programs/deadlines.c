/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls that wait for a time end at that time, also where a library shows the program another clock
 * than the kernel's (tests/e2e/clocks.py).
 */
#include "tests/e2e/programs/calls.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { WAIT_MS = 200, LATE_S = 20 };

/* The kernel's, whatever stands before libc's */
static double clock_now(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool in_time(double begun)
{
	double took = clock_now() - begun;

	if (took * 1000 < WAIT_MS * 0.9 || took > LATE_S)
		printf("# took %.3f s\n", took);
	return took * 1000 >= WAIT_MS * 0.9 && took <= LATE_S;
}

static bool reads(int fd[2])
{
	struct timeval limit = { .tv_usec = WAIT_MS * 1000 };
	double begun = clock_now();
	char c;

	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	need(read(fd[0], &c, 1) < 0 && errno == EAGAIN);
	return in_time(begun);
}

static bool waits(int fd[2])
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0);
	double begun = clock_now();

	need(!epoll_ctl(set, EPOLL_CTL_ADD, fd[0], &event));
	need(!epoll_wait(set, &event, 1, WAIT_MS));
	return in_time(begun) && !close(set);
}

static bool selects(int fd[2])
{
	struct timeval limit = { .tv_usec = WAIT_MS * 1000 };
	double begun = clock_now();
	fd_set in;

	FD_ZERO(&in);
	FD_SET(fd[0], &in);
	need(!select(fd[0] + 1, &in, NULL, NULL, &limit));
	return in_time(begun);
}

int main(void)
{
	int fd[2] = { -1, -1 };

	setup();
	alarm(3 * LATE_S);
	signal(SIGALRM, SIG_DFL);
	if (!tap_case(pair(fd), "a connection begins"))
		return tap_finish();
	tap_case(reads(fd), "recv with SO_RCVTIMEO");
	tap_case(waits(fd), "epoll_wait");
	tap_case(selects(fd), "select");
	done(fd);
	return tap_finish();
}
