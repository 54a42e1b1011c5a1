/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs about connections of several processes share: children with one end of a
 * connection.
 */
#ifndef TESTS_E2E_PROGRAMS_CALLS_SHARE_H
#define TESTS_E2E_PROGRAMS_CALLS_SHARE_H

#include "tests/e2e/programs/calls.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>

/* No wait takes so long, on the slowest machine there is */
#define LIMIT_MS 60000
#define CREW 48
#define STREAM (2 * 1024 * 1024)
#define RECORDS 5000

struct record {
	uint32_t writer, index;
};

/* What a child has */
struct share {
	int fd, number;
	ssize_t (*wait)(const struct share *s, char *c);
};

/* What the processes see of each other beside the connection */
struct crew {
	bool stop;
	bool alike; /* there is no other namespace for them */
	uint32_t resets;
	uint32_t loose; /* octets that came with too few others to know their place */
	uint8_t seen[STREAM];
};

static struct crew *crew;
static pid_t crew_pid[CREW];
static int crew_count;
static ssize_t (*crew_wait)(const struct share *s, char *c);
static int crew_set = -1; /* what a process waits for */

static inline void nap_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	while (nanosleep(&ts, &ts))
		;
}

static inline void nap_ms(long ms)
{
	nap_us(ms * 1000);
}

static inline void crew_clear(void)
{
	memset(crew, 0, sizeof(*crew));
}

/* A pair of which the end here does not wait for ever */
static inline bool crew_pair(int fd[2])
{
	struct timeval limit = { LIMIT_MS / 1000, 0 };

	if (!crew)
		crew = mmap(NULL, sizeof(*crew), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	need(crew != MAP_FAILED && pair(fd));
	need(!setsockopt(fd[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	need(!setsockopt(fd[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
	return true;
}

/* A child with fd[1] alone */
static inline bool crew_start(const int fd[2], bool (*run)(const struct share *s))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct share s = { fd[1], crew_count, crew_wait };
		bool good;

		crew_set = -1;
		signal(SIGALRM, SIG_DFL);
		alarm(2 * LIMIT_MS / 1000);
		close(fd[0]);
		good = run(&s);
		fflush(stdout);
		_exit(!good);
	}
	need(pid > 0 && crew_count < CREW);
	crew_pid[crew_count++] = pid;
	return true;
}

static inline bool crew_kill(int i)
{
	int status;

	need(!kill(crew_pid[i], SIGKILL) && waitpid(crew_pid[i], &status, 0) == crew_pid[i]);
	need(WIFSIGNALED(status) || !WEXITSTATUS(status));
	crew_pid[i] = 0;
	return true;
}

static inline bool crew_ended(void)
{
	int status, bad = 0;

	for (int i = 0; i < crew_count; i++) {
		if (!crew_pid[i])
			continue;
		status = -1;
		waitpid(crew_pid[i], &status, 0);
		if (status) {
			printf("# child %d ended with %#x\n", i, status);
			bad++;
		}
	}
	crew_count = 0;
	return !bad;
}

#endif
