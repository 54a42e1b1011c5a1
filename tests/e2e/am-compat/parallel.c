/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A job of ranks with threads: each moves its endpoint to a bundle for several threads and frees
 * the one it was started with. Run as "parallel N L [free]"; with "free" ranks leave without an
 * endpoint.
 */
#include <amudp.h>
#include <amudp_spmd.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ASK = 1, ANSWER, THREADS = 3, EACH = 300, ROUNDS = 10 };

static int me, ranks, asked, answered;
static eb_t eb;
static ep_t ep;

static void on_ask(void *token, void *buf, int n)
{
	__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
	AM_ReplyI0(token, ANSWER, buf, n);
}

static void on_answer(void *token, void *buf, int n)
{
	__atomic_add_fetch(&answered, 1, __ATOMIC_RELAXED);
}

/* Later ranks begin when the threads of earlier ones have ended, and nobody but a barrier polls. */
static void *sender(void *arg)
{
	static char data[700];
	int i;

	usleep((useconds_t)me * 200000);
	for (i = 0; i < EACH; i++)
		AM_RequestI0(ep, (me + 1 + i) % ranks, ASK, data, i);
	while (__atomic_load_n(&answered, __ATOMIC_RELAXED) < THREADS * EACH)
		AM_Poll(eb);
	return arg;
}

static int collectives(void)
{
	int all[64], wrong = 0, round, i;

	for (round = 0; round < ROUNDS; round++) {
		int own = me * 1000 + round;

		wrong += AMUDP_SPMDBarrier() != AM_OK;
		wrong += AMUDP_SPMDAllGather(&own, all, sizeof(own)) != AM_OK;
		for (i = 0; i < ranks; i++)
			wrong += all[i] != i * 1000 + round;
	}
	return wrong;
}

static void leave_bare(void)
{
	AM_FreeEndpoint(ep);
	AM_FreeBundle(eb);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(0);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int all[64], wrong, sum = 0, i;
	uint64_t pid;
	eb_t first;

	if (AMUDP_SPMDStartup(&argc, &argv, 0, 16, NULL, &pid, &first, &ep) != AM_OK)
		return 1;
	me = AMUDP_SPMDMyProc();
	ranks = AMUDP_SPMDNumProcs();
	AM_SetHandler(ep, ASK, on_ask);
	AM_SetHandler(ep, ANSWER, on_answer);
	if (AM_AllocateBundle(AM_PAR, &eb) != AM_OK || AM_MoveEndpoint(ep, first, eb) != AM_OK ||
	    AM_FreeBundle(first) != AM_OK)
		return 1;
	AMUDP_SPMDBarrier();
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, sender, NULL);
	wrong = collectives();
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDAllGather(&asked, all, sizeof(asked));
	for (i = 0; i < ranks; i++)
		sum += all[i];
	wrong += sum != ranks * THREADS * EACH || answered != THREADS * EACH;
	printf("rank %d: %d wrong\n", me, wrong);
	if (argc > 1 && !strcmp(argv[1], "free"))
		leave_bare();
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(wrong ? 1 : 0);
}
