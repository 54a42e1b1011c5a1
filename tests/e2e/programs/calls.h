/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs that check Linux's promises of stream sockets share: a listener, pairs of ends,
 * and how a case says why it is no good.
 */
#ifndef TESTS_E2E_PROGRAMS_CALLS_H
#define TESTS_E2E_PROGRAMS_CALLS_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tap.h"

/* Why the case at hand is no good */
#define need(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("# %s:%d: %s (errno %d)\n", __func__, __LINE__, #condition, errno); \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static int lfd; /* listens */
static struct sockaddr_in laddr;
static volatile sig_atomic_t signals;

static inline void on_signal(int number)
{
	signals++;
}

static inline void setup(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	socklen_t len = sizeof(laddr);

	laddr = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	lfd = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(lfd, (struct sockaddr *)&laddr, len) || listen(lfd, 16) ||
	    getsockname(lfd, (struct sockaddr *)&laddr, &len))
		exit(1);
	sigaction(SIGPIPE, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
}

/* Both ends of a connection: fd[0] connected, fd[1] was accepted */
static inline bool pair(int fd[2])
{
	char c;

	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	need(!connect(fd[0], (struct sockaddr *)&laddr, sizeof(laddr)));
	fd[1] = accept(lfd, NULL, NULL);
	need(fd[1] >= 0);
	/* One octet each way, so that the connection is up for both */
	need(write(fd[0], "a", 1) == 1 && read(fd[1], &c, 1) == 1 && c == 'a');
	need(write(fd[1], "b", 1) == 1 && read(fd[0], &c, 1) == 1 && c == 'b');
	return true;
}

/* Little of what fd[0] sends is taken in by the kernel at fd[1] */
static inline bool pair_narrow(int fd[2])
{
	int small = 4096, before = 0;
	socklen_t len = sizeof(before);

	need(!getsockopt(lfd, SOL_SOCKET, SO_RCVBUF, &before, &len));
	need(!setsockopt(lfd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) && pair(fd));
	before /= 2; /* which is what the kernel makes of it */
	return !setsockopt(lfd, SOL_SOCKET, SO_RCVBUF, &before, sizeof(before));
}

static inline void done(int fd[2])
{
	close(fd[0]);
	close(fd[1]);
}

static inline short ready(int fd, short events, int ms)
{
	struct pollfd p = { .fd = fd, .events = events };

	return poll(&p, 1, ms) > 0 ? p.revents : 0;
}

static inline bool nonblock(int fd)
{
	return !fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Writes until nothing more fits; how much did */
static inline long stuff(int fd)
{
	static char buf[65536];
	long sum = 0, n;

	while ((n = send(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		sum += n;
	return errno == EAGAIN ? sum : -1;
}

static inline bool drain(int fd, long sum)
{
	static char buf[65536];

	while (sum > 0) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		need(n > 0);
		sum -= n;
	}
	return true;
}

/* Octets pass both ways, and nothing has been lost */
static inline bool talk(int a, int b)
{
	char buf[8] = "";

	need(write(a, "ping", 4) == 4);
	need(recv(b, buf, 4, MSG_WAITALL) == 4 && !memcmp(buf, "ping", 4));
	need(write(b, "pong", 4) == 4);
	need(recv(a, buf, 4, MSG_WAITALL) == 4 && !memcmp(buf, "pong", 4));
	return true;
}

static inline bool at_end(int fd)
{
	char c;

	need(read(fd, &c, 1) == 0);
	return true;
}

/* What was to be seen to there is well */
static inline bool in_child(pid_t pid)
{
	int status;

	need(pid > 0 && waitpid(pid, &status, 0) == pid);
	need(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return true;
}

/* Of a process or a thread, as ps tells it */
static inline char state_of(pid_t pid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		abort();
	fclose(file);
	return state;
}

struct call_case {
	const char *name;
	bool (*run)(void);
};

static inline int cases_run(const struct call_case *cases, size_t n)
{
	setup();
	for (size_t i = 0; i < n; i++)
		tap_case(cases[i].run(), cases[i].name);
	return tap_finish();
}

#endif
