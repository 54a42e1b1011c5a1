/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two threads play a scene: one makes the call, the other sends what comes while that sleeps.
 *
 *	signals SEED COUNT    scenes of COUNT seeds, a line for each
 *	signals storm SEED    signals at random moments
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "signals.h"

#define TRIES 8
#define HANGS_S 30

static struct scene scene;
static struct said {
	int sig;
	unsigned int mask;
	long deed;
	int err;
} said[64];
static volatile unsigned int told, busy; /* how many handlers have begun, and are under way */
static unsigned int told_then;		 /* when the call returned */
static long result;
static int result_errno;
static bool begun, returned, over, tardy; /* atomic */
static pthread_t target;
static int target_tid;

static bool get(const bool *p)
{
	return __atomic_load_n(p, __ATOMIC_SEQ_CST);
}

static void put(bool *p, bool value)
{
	__atomic_store_n(p, value, __ATOMIC_SEQ_CST);
}

static void handler(int sig, siginfo_t *info, void *context)
{
	int saved = errno, which = 0;
	struct said *s = &said[told++ % 64];
	sigset_t mask;

	busy++;
	while (signals_number[which] != sig)
		which++;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	/* Whether others of SA_NODEFER are blocked when several come at once: docs/limits.md */
	for (int i = 0; i < SIGNALS; i++)
		if (i != which && scene.action[i].flags & SA_NODEFER)
			sigdelset(&mask, signals_number[i]);
	*s = (struct said){ which, signals_bits(&mask), 0, 0 };
	errno = 0;
	s->deed = ends_deed(scene.action[which].deed);
	s->err = s->deed < 0 ? errno : 0;
	busy--;
	errno = saved;
}

/* --- who sends --- */

static void late(int unused)
{
	const char text[] = "it hangs\n";

	_exit(write(1, text, sizeof(text) - 1) < 0 ? 2 : 1);
}

/* The call sleeps, or the thread waits for the end of the scene */
static void settle(void)
{
	for (int asleep = 0; asleep < 4;) {
		asleep = signals_state(target_tid) == 'S' && !busy ? asleep + 1 : 0;
		signals_sleep(1000);
	}
}

static void step_send(unsigned int which)
{
	bool before = get(&returned);

	if (scene.process)
		kill(getpid(), signals_number[which]);
	else
		pthread_kill(target, signals_number[which]);
	/* Its time was over: not what was meant */
	if (scene.ending == END_TIMEOUT && (before || get(&returned)) &&
	    (result >= 0 || result_errno != EINTR))
		put(&tardy, true);
}

static void *send_all(void *unused)
{
	bool both = scene.ending == END_BOTH;

	while (!get(&begun))
		sched_yield();
	for (unsigned int i = 0; i < scene.steps; i++) {
		settle();
		if (both && i == scene.steps - 1 && !get(&returned))
			ends_release(&scene);
		step_send(scene.step[i]);
	}
	settle();
	if (!both && scene.ending != END_READY && scene.ending != END_TIMEOUT)
		while (!get(&returned) && ends_release(&scene))
			signals_sleep(2000);
	while (!get(&returned))
		signals_sleep(500);
	settle();
	put(&over, true);
	return NULL;
}

/* --- who calls --- */

static void actions_install(void)
{
	for (int i = 0; i < SIGNALS; i++) {
		struct sigaction action = { .sa_sigaction = handler,
					    .sa_flags = scene.action[i].flags | SA_SIGINFO,
					    .sa_mask = signals_set(scene.action[i].mask) };

		sigaction(signals_number[i], &action, NULL);
	}
}

static void begin(pthread_t *sender)
{
	sigset_t all, own = signals_set(scene.own);

	sigfillset(&all);
	told = told_then = busy = 0;
	begun = returned = over = tardy = false;
	ends_begin(&scene);
	actions_install();
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_create(sender, NULL, send_all, NULL);
	pthread_sigmask(SIG_SETMASK, &own, NULL);
	for (int i = 0; i < SIGNALS; i++)
		if (scene.early & 1u << i)
			raise(signals_number[i]);
}

/*
 * Of what comes together with the call's end, the order is the scheduler's, and whether a second
 * signal of one number finds the first still pending
 */
static void said_sort(void)
{
	for (unsigned int i = 0; i < told; i++)
		for (unsigned int k = i + 1; k < told; k++)
			if (said[k].sig < said[i].sig) {
				struct said other = said[i];

				said[i] = said[k];
				said[k] = other;
			}
	for (unsigned int i = 0; i < told; i++)
		said[i].mask = 0;
}

static void say(unsigned int pending, unsigned int mask, unsigned int told_waiting)
{
	bool both = scene.ending == END_BOTH;

	scene_say(&scene);
	if (both)
		said_sort();
	printf(": %s mask %u pending %u", result < 0 ? strerrorname_np(result_errno) : "done", mask,
	       pending);
	for (unsigned int i = 0; i < told && i < 64; i++) {
		const struct said *s = &said[i];

		if (both && i && s->sig == s[-1].sig && signals_number[s->sig] < SIGRTMIN)
			continue;
		if (i == told_then && !both)
			printf(" back");
		if (i == told_waiting && !both)
			printf(" left");
		printf(" %d:%u", s->sig, s->mask);
		if (s->err)
			printf(" (%s)", strerrorname_np(s->err));
		else if (s->deed)
			printf(" (%ld)", s->deed);
	}
	printf("\n");
}

static bool play(void)
{
	sigset_t none = signals_set(0), set;
	unsigned int pending, mask, waiting;
	pthread_t sender;

	begin(&sender);
	put(&begun, true);
	errno = 0;
	result = ends_call(&scene);
	result_errno = errno;
	told_then = told;
	put(&returned, true);
	while (!get(&over))
		signals_sleep(300);
	sigpending(&set);
	pending = signals_bits(&set);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	mask = signals_bits(&set);
	waiting = told;
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	pthread_join(sender, NULL);
	ends_finish(&scene, result);
	if (!tardy)
		say(pending, mask, waiting);
	return !tardy;
}

int main(int argc, char **argv)
{
	uint64_t seed, n;

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGALRM, late);
	signal(SIGPIPE, SIG_IGN);
	alarm(HANGS_S);
	ends_make();
	target = pthread_self();
	target_tid = gettid();
	if (!strcmp(argv[1], "storm"))
		return storm(strtoull(argv[2], NULL, 0));
	seed = strtoull(argv[1], NULL, 0);
	n = strtoull(argv[2], NULL, 0);
	for (uint64_t end = seed + n; seed < end; seed++) {
		bool good = false;

		alarm(HANGS_S);
		scene_make(&scene, seed);
		printf("%llu ", (unsigned long long)seed);
		for (int i = 0; !good && i < TRIES; i++)
			good = play();
		if (!good)
			printf("the machine is too slow\n");
	}
	return 0;
}
