/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * am-getput: every rank puts a block into each rank's segment, gets it back and compares.
 *
 *	am-getput N L [OCTETS [ROUNDS|SECONDSs]]
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/warp/amudp_spmd.h"

enum { PUT = 1, DONE, GOT };

static int done, got;

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

/* The segment: a block from each rank, then one block to get into. */
static int round_trip(eb_t eb, ep_t ep, unsigned char *segment, unsigned char *block, int octets,
		      int peer, int value)
{
	int me = AMUDP_SPMDMyProc(), n = AMUDP_SPMDNumProcs();
	uintptr_t mine = (uintptr_t)me * (uintptr_t)octets;
	uintptr_t back = (uintptr_t)n * (uintptr_t)octets;

	memset(block, value, (size_t)octets);
	memset(segment + back, ~value, (size_t)octets);
	done = got = 0;
	AM_RequestXfer0(ep, peer, mine, PUT, block, octets);
	while (!done)
		AM_Poll(eb);
	AM_GetXfer0(ep, peer, mine, GOT, back, octets);
	while (!got)
		AM_Poll(eb);
	return memcmp(segment + back, block, (size_t)octets) != 0;
}

static bool is_over(const char *limit, int round, time_t start)
{
	return strchr(limit, 's') ? time(NULL) - start >= atoi(limit) : round >= atoi(limit);
}

int main(int argc, char **argv)
{
	const char *limit;
	time_t start = time(NULL);
	int octets, i, r, n, bad = 0, total = 0;
	unsigned char *segment, *block;
	int *all;
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	octets = argc > 1 ? atoi(argv[1]) : 100000;
	limit = argc > 2 ? argv[2] : "10";
	n = AMUDP_SPMDNumProcs();
	segment = malloc((size_t)(n + 1) * (size_t)octets);
	block = malloc((size_t)octets);
	all = calloc((size_t)n, sizeof(int));
	AM_SetSeg(ep, segment, (uintptr_t)(n + 1) * (uintptr_t)octets);
	AM_SetHandler(ep, PUT, on_put);
	AM_SetHandler(ep, DONE, on_done);
	AM_SetHandler(ep, GOT, on_got);
	AMUDP_SPMDBarrier();
	for (r = 0; !is_over(limit, r, start); r++) {
		for (i = 0; i < n; i++)
			bad += round_trip(eb, ep, segment, block, octets, i, r * 7 + i);
	}
	AMUDP_SPMDAllGather(&bad, all, sizeof(bad));
	for (i = 0; i < n; i++)
		total += all[i];
	if (AMUDP_SPMDMyProc() == 0)
		printf("%d ranks, %d rounds of %d octets: %d damaged\n", n, r, octets, total);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(total != 0);
}
