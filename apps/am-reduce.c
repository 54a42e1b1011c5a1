/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * am-reduce: sums up a tree of ranks to rank 0 and spreads the result again, many times.
 *
 *	am-reduce N L [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "include/warp/amudp_spmd.h"

enum { UP = 1, DOWN };

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

int main(int argc, char **argv)
{
	int rounds, r, n, bad = 0;
	struct timespec a, b;
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	rounds = argc > 1 ? atoi(argv[1]) : 1000;
	n = AMUDP_SPMDNumProcs();
	AM_SetHandler(ep, UP, on_up);
	AM_SetHandler(ep, DOWN, on_down);
	AMUDP_SPMDBarrier();
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (r = 0; r < rounds; r++) {
		uint32_t want = (uint32_t)(n * (n - 1) / 2 + n * r);

		bad += reduce(eb, ep, r, (uint32_t)(AMUDP_SPMDMyProc() + r)) != want;
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	if (AMUDP_SPMDMyProc() == 0)
		printf("%d ranks, %d rounds: %d wrong sums, %.2f us a round\n", n, rounds, bad,
		       ((double)(b.tv_sec - a.tv_sec) * 1e6 +
			(double)(b.tv_nsec - a.tv_nsec) / 1e3) /
			       rounds);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(bad != 0);
}
