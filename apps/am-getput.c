/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * am-getput: every rank puts a block into each rank's segment, gets it back and compares. Timed
 * are the transfers alone, and those to itself only when there is nobody else.
 *
 *	am-getput N L [OCTETS [ROUNDS|SECONDSs]]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "am_arguments.h"
#include "include/warp/amudp_spmd.h"

enum { PUT = 1, DONE, GOT };
#define OCTETS_MOST (1 << 30)

static const char usage[] = "usage: am-getput PROCESSES [LETTER] [OCTETS [ROUNDS|SECONDSs]]\n\n"
			    "Each rank puts a block of OCTETS (100000) into each rank's memory, "
			    "gets it back and\n"
			    "compares: so many ROUNDS (10), or for so many seconds, as 5s.\n";

struct result {
	int bad;
	double seconds;
	double octets;
};

static int done, got;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void on_put(void *token, void *buf, int n)
{
	AM_Reply0(token, DONE);
}

static void on_done(void *token)
{
	done++;
}

static void on_got(void *token, void *buf, int n)
{
	got++;
}

static void fill(unsigned char *block, int octets, int value)
{
	int i;

	for (i = 0; i < octets; i++)
		block[i] = (unsigned char)(value + (i >> 8) * 31 + i);
}

/* The segment: a block from each rank, then one block to get into. */
static void round_trip(eb_t eb, ep_t ep, unsigned char *segment, unsigned char *block, int octets,
		       int peer, int value, struct result *result)
{
	int me = AMUDP_SPMDMyProc(), n = AMUDP_SPMDNumProcs();
	uintptr_t mine = (uintptr_t)me * (uintptr_t)octets;
	uintptr_t back = (uintptr_t)n * (uintptr_t)octets;
	double start;

	fill(block, octets, value);
	memset(segment + back, ~value, (size_t)octets);
	done = got = 0;
	start = now();
	AM_RequestXfer0(ep, peer, mine, PUT, block, octets);
	while (!done)
		AM_Poll(eb);
	AM_GetXfer0(ep, peer, mine, GOT, back, octets);
	while (!got)
		AM_Poll(eb);
	if (peer != me || n == 1) {
		result->seconds += now() - start;
		result->octets += 2.0 * octets;
	}
	result->bad += memcmp(segment + back, block, (size_t)octets) != 0;
}

/* All ranks move octets at once: the time is that of the one that took longest. */
static int report(const struct result *all, int n, int rounds, int octets)
{
	struct result sum = { 0 };
	int i;

	for (i = 0; i < n; i++) {
		sum.bad += all[i].bad;
		sum.octets += all[i].octets;
		if (all[i].seconds > sum.seconds)
			sum.seconds = all[i].seconds;
	}
	if (AMUDP_SPMDMyProc() == 0)
		printf("%d ranks, %d rounds of %d octets: %d damaged, %.6f s, %.0f octets/s\n", n,
		       rounds, octets, sum.bad, sum.seconds,
		       sum.seconds > 0 ? sum.octets / sum.seconds : 0.0);
	return sum.bad;
}

int main(int argc, char **argv)
{
	struct am_arguments arguments = { .usage = usage };
	double seconds, start = now();
	long limit;
	struct result mine = { 0 }, *all;
	unsigned char *segment, *block;
	int octets, i, r, n, bad;
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	am_arguments_help(usage, argc, argv);
	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	arguments.argc = argc;
	arguments.argv = argv;
	octets = (int)am_argument_whole(&arguments, 1, 100000, 1, OCTETS_MOST);
	am_argument_limit(&arguments, 2, 10, &limit, &seconds);
	am_arguments_end(&arguments, 2);
	n = AMUDP_SPMDNumProcs();
	segment = malloc((size_t)(n + 1) * (size_t)octets);
	block = malloc((size_t)octets);
	all = calloc((size_t)n, sizeof(*all));
	memset(segment, 0, (size_t)(n + 1) * (size_t)octets); /* so that its pages are there */
	AM_SetSeg(ep, segment, (uintptr_t)(n + 1) * (uintptr_t)octets);
	AM_SetHandler(ep, PUT, on_put);
	AM_SetHandler(ep, DONE, on_done);
	AM_SetHandler(ep, GOT, on_got);
	AMUDP_SPMDBarrier();
	for (r = 0; seconds > 0 ? now() < start + seconds : r < limit; r++) {
		for (i = 0; i < n; i++)
			round_trip(eb, ep, segment, block, octets, i, r * 7 + i, &mine);
	}
	AMUDP_SPMDAllGather(&mine, all, sizeof(mine));
	bad = report(all, n, r, octets);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(bad != 0);
}
