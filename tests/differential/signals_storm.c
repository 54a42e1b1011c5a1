/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Signals at random moments of calls. What a single call says is chance then, but some things
 * never happen on Linux, and only these are counted and said:
 *
 * - a signal that the call's mask blocks does not interrupt the call;
 * - a signal that only the thread's mask blocks is handled inside the call and nowhere else, and a
 *   call that was interrupted has run a handler;
 * - with SA_RESTART, calls that read say no EINTR, and data arrive whole and in order;
 * - what became ready before the signal was sent is told: no EINTR;
 * - no real-time signal is lost.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "signals.h"

#define ROUNDS 150
#define NUMBER 2 /* the real-time one */

static volatile long handled;
static long sent;
static bool stop, go; /* atomic */
static pthread_t target;

static bool get(const bool *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static void put(bool *p, bool value)
{
	__atomic_store_n(p, value, __ATOMIC_SEQ_CST);
}

static void count(int sig)
{
	handled++;
}

static void signal_send(void)
{
	if (!pthread_sigqueue(target, signals_number[NUMBER], (union sigval){ 0 }))
		sent++;
}

/* Until it is stopped, a signal after a random time; the same seed gives the same times */
static void *sends(void *arg)
{
	unsigned int seed = *(unsigned int *)arg;

	while (!get(&stop)) {
		signals_sleep(rand_r(&seed) % 400);
		signal_send();
	}
	return NULL;
}

/* The same, with data for the call some times */
static void *sends_and_writes(void *arg)
{
	unsigned int seed = *(unsigned int *)arg;
	struct scene s = { .kind = KIND_READ };

	for (int i = 0; i < ROUNDS; i++) {
		signals_sleep(rand_r(&seed) % 300);
		signal_send();
		signals_sleep(rand_r(&seed) % 300);
		signal_send();
		ends_release(&s);
	}
	return NULL;
}

/* Data, and right behind them a signal, when the other thread is about to wait */
static void *writes_then_sends(void *arg)
{
	unsigned int seed = *(unsigned int *)arg;
	struct scene s = { .kind = KIND_READ };

	for (int i = 0; i < ROUNDS; i++) {
		while (!get(&go))
			;
		put(&go, false);
		signals_sleep(rand_r(&seed) % 200);
		ends_release(&s);
		signal_send();
	}
	return NULL;
}

static void thread_begin(pthread_t *thread, void *(*run)(void *), unsigned int *seed)
{
	sigset_t all, before;

	sent = handled = 0;
	put(&stop, false);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_create(thread, NULL, run, seed);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void thread_end(pthread_t thread, const char *what, long wrong)
{
	put(&stop, true);
	pthread_join(thread, NULL);
	signals_sleep(1000);
	printf("%s: wrong %s, lost %s\n", what, wrong ? "some" : "none",
	       handled == sent ? "none" : "some");
}

static const char *const names[] = { [KIND_PPOLL] = "ppoll",
				     [KIND_PSELECT] = "pselect",
				     [KIND_EPOLL_PWAIT] = "epoll_pwait",
				     [KIND_EPOLL_PWAIT2] = "epoll_pwait2" };

static void blocked_by_call(enum kind kind, unsigned int seed)
{
	struct scene s = { .kind = kind, .ending = END_TIMEOUT, .mask = 1u << NUMBER };
	pthread_t thread;
	long wrong = 0;
	char what[64];

	snprintf(what, sizeof(what), "%s, blocked by the call", names[kind]);
	thread_begin(&thread, sends, &seed);
	for (int i = 0; i < 3; i++)
		wrong += ends_call(&s) != 0;
	thread_end(thread, what, wrong);
}

static void blocked_by_thread(enum kind kind, unsigned int seed)
{
	struct scene s = { .kind = kind, .ending = END_TIMEOUT };
	sigset_t number = signals_set(1u << NUMBER);
	long wrong = 0, before, run;
	pthread_t thread;
	char what[64];

	snprintf(what, sizeof(what), "%s, blocked by the thread", names[kind]);
	pthread_sigmask(SIG_BLOCK, &number, NULL);
	thread_begin(&thread, sends, &seed);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		before = handled;
		run = ends_call(&s);
		wrong += run < 0 ? errno != EINTR || handled == before : run != 0;
		before = handled;
		signals_sleep(50);
		wrong += handled != before;
	}
	/* Its last ones are pending, then */
	put(&stop, true);
	signals_sleep(2000);
	pthread_sigmask(SIG_UNBLOCK, &number, NULL);
	thread_end(thread, what, wrong);
}

static void restarted(enum kind kind, const char *what, unsigned int seed)
{
	struct scene s = { .kind = kind };
	pthread_t thread;
	long wrong = 0;

	thread_begin(&thread, sends_and_writes, &seed);
	for (int i = 0; i < ROUNDS; i++)
		wrong += ends_call(&s) != 1;
	thread_end(thread, what, wrong);
}

static void ready_before(enum kind kind, const char *what, unsigned int seed)
{
	struct scene s = { .kind = kind, .mask = NO_MASK }, reads = { .kind = KIND_READ };
	pthread_t thread;
	long wrong = 0;

	thread_begin(&thread, writes_then_sends, &seed);
	for (int i = 0; i < ROUNDS; i++) {
		long before = handled;

		put(&go, true);
		wrong += (kind == KINDS ? ends_poll_many() : ends_call(&s)) != 1;
		if (kind_waits(kind))
			wrong += ends_call(&reads) != 1;
		while (handled == before)
			signals_sleep(50);
	}
	thread_end(thread, what, wrong);
}

int storm(uint64_t seed)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };
	unsigned int from = (unsigned int)seed;

	target = pthread_self();
	sigaction(signals_number[NUMBER], &action, NULL);
	for (enum kind kind = KIND_PPOLL; kind < KINDS; kind++) {
		if (!kind_has_mask(kind))
			continue;
		blocked_by_call(kind, from++);
		blocked_by_thread(kind, from++);
	}
	restarted(KIND_READ, "read, restarted", from++);
	restarted(KIND_RECV, "recv, restarted", from++);
	restarted(KIND_RECVMSG, "recvmsg, restarted", from++);
	ready_before(KIND_POLL, "poll, ready before", from++);
	ready_before(KIND_SELECT, "select, ready before", from++);
	ready_before(KIND_PPOLL, "ppoll, ready before", from++);
	ready_before(KIND_EPOLL_WAIT, "epoll_wait, ready before", from++);
	ready_before(KIND_EPOLL_PWAIT2, "epoll_pwait2, ready before", from++);
	ready_before(KIND_READ, "read, ready before", from++);
	ready_before(KINDS, "poll of many, ready before", from++);
	return 0;
}
