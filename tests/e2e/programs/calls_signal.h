/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs about signals share: handlers, and somebody who sends when a thread sleeps.
 */
#ifndef TESTS_E2E_PROGRAMS_CALLS_SIGNAL_H
#define TESTS_E2E_PROGRAMS_CALLS_SIGNAL_H

#include "tests/e2e/programs/calls.h"

#include <pthread.h>
#include <setjmp.h>
#include <string.h>

static volatile sig_atomic_t seen; /* by a handler */
static sigjmp_buf jump;

static inline void nap(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&ts, &ts))
		;
}

static inline void install(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO };

	sigaction(sig, &action, NULL);
}

/* --- somebody sends signals to a thread that sleeps, and later an octet --- */

struct sender {
	pthread_t to, thread;
	int tid;
	int sig, times, also; /* also: another signal, at the same time */
	int fd;		      /* gets an octet; -1: none */
	int connect;	      /* or somebody connects */
	int accept;	      /* or a listener has room again */
};

/* It has nothing else to sleep for than the call */
static inline void until_asleep(int tid)
{
	for (int times = 0, tries = 0; times < 4 && tries < 2000; tries++) {
		times = state_of(tid) == 'S' ? times + 1 : 0;
		nap(5);
	}
}

static inline void *sender_run(void *arg)
{
	struct sender *s = arg;

	until_asleep(s->tid);
	for (int i = 0; i < s->times; i++)
		pthread_sigqueue(s->to, s->sig, (union sigval){ .sival_int = i });
	if (s->also)
		pthread_kill(s->to, s->also);
	nap(40);
	if (s->fd >= 0 && write(s->fd, "x", 1) != 1)
		abort();
	if (s->accept)
		close(accept(s->accept, NULL, NULL));
	if (s->connect) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		connect(fd, (struct sockaddr *)&laddr, sizeof(laddr));
		nap(40);
		close(fd);
	}
	return NULL;
}

static struct sender sender;

static inline void send_later(int sig, int times, int also, int fd)
{
	sigset_t all, before;

	sender = (struct sender){ pthread_self(), 0, gettid(), sig, times, also, fd, 0, 0 };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(&sender.thread, NULL, sender_run, &sender);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static inline void sent(void)
{
	pthread_join(sender.thread, NULL);
}

#endif
