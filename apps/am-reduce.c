/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * am-reduce: sums up a tree of ranks to rank 0 and spreads the result again, many times.
 *
 *	am-reduce N L [ROUNDS|SECONDSs]
 *
 * Rank 0 says with its part of the sum which round is the last.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "am_arguments.h"
#include "include/warp/amudp_spmd.h"

enum { UP = 1, DOWN };
#define LAST 0x80000000u /* beyond all sums */

static const char usage[] = "usage: am-reduce PROCESSES [LETTER] [ROUNDS|SECONDSs]\n\n"
			    "Sums up a tree of ranks and spreads the sum again, ROUNDS (1000) "
			    "times, or for so many\n"
			    "seconds, as 5s.\n";

static struct {
	int children;
	uint32_t sum;
} level[2]; /* of this round and the next: a child may be one round ahead */
static int down_round = -1;
static uint32_t down_sum;

static void on_up(void *token, int round, int value)
{
	level[round & 1].children++;
	level[round & 1].sum += (uint32_t)value;
}

static void on_down(void *token, int round, int value)
{
	down_sum = (uint32_t)value;
	down_round = round;
}

static uint32_t reduce(eb_t eb, ep_t ep, int round, uint32_t mine)
{
	int me = AMUDP_SPMDMyProc(), n = AMUDP_SPMDNumProcs();
	int left = 2 * me + 1, right = 2 * me + 2;
	int children = (left < n) + (right < n);

	while (level[round & 1].children < children)
		AM_Poll(eb);
	mine += level[round & 1].sum;
	level[round & 1].children = 0;
	level[round & 1].sum = 0;
	if (me > 0) {
		AM_Request2(ep, (me - 1) / 2, UP, round, mine);
		while (down_round < round)
			AM_Poll(eb);
		mine = down_sum;
	}
	if (left < n)
		AM_Request2(ep, left, DOWN, round, mine);
	if (right < n)
		AM_Request2(ep, right, DOWN, round, mine);
	return mine;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* How many rounds were wrong; *rounds and *seconds: what there was of each. */
static int reduce_all(eb_t eb, ep_t ep, long limit, double until, int *rounds, double *seconds)
{
	uint32_t me = (uint32_t)AMUDP_SPMDMyProc(), n = (uint32_t)AMUDP_SPMDNumProcs(), sum = 0;
	double start = now();
	int r, bad = 0;

	for (r = 0; !(sum & LAST); r++) {
		bool last = until > 0 ? now() >= start + until : r + 1 >= limit;
		uint32_t want = n * (n - 1) / 2 + n * (uint32_t)r;

		sum = reduce(eb, ep, r, me + (uint32_t)r + (me == 0 && last ? LAST : 0));
		bad += (sum & ~LAST) != want;
	}
	*rounds = r;
	*seconds = now() - start;
	return bad;
}

int main(int argc, char **argv)
{
	struct am_arguments arguments = { .usage = usage };
	int rounds, bad;
	double seconds;
	long limit;
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	am_arguments_help(usage, argc, argv);
	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	arguments.argc = argc;
	arguments.argv = argv;
	am_argument_limit(&arguments, 1, 1000, &limit, &seconds);
	am_arguments_end(&arguments, 1);
	AM_SetHandler(ep, UP, on_up);
	AM_SetHandler(ep, DOWN, on_down);
	AMUDP_SPMDBarrier();
	bad = reduce_all(eb, ep, limit, seconds, &rounds, &seconds);
	if (AMUDP_SPMDMyProc() == 0)
		printf("%d ranks, %d rounds: %d wrong sums, %.2f us a round\n",
		       AMUDP_SPMDNumProcs(), rounds, bad, seconds * 1e6 / rounds);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(bad != 0);
}
