/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * am-ping: round-trip latency and rate between rank 0 and the last rank, by depth.
 *
 *	am-ping N L [ITERATIONS [SIZE [block]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "am_arguments.h"
#include "include/warp/amudp_spmd.h"

enum { PING = 1, PONG };
#define ITERATIONS_MOST 100000000

static const char usage[] = "usage: am-ping PROCESSES [LETTER] [ITERATIONS [SIZE [block]]]\n\n"
			    "Round trips of SIZE (64) octets between rank 0 and the last rank, "
			    "ITERATIONS (10000) of\n"
			    "each kind, then rates by the number under way; with block, ranks "
			    "sleep while they wait.\n";

static int pongs;

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void on_ping(void *token, void *buf, int n)
{
	AM_ReplyI0(token, PONG, buf, n);
}

static void on_pong(void *token, void *buf, int n)
{
	pongs++;
}

static void wait_for(eb_t eb, int want, int block)
{
	while (pongs < want) {
		if (block)
			AM_WaitSema(eb);
		else
			AM_Poll(eb);
	}
}

static void latency(eb_t eb, ep_t ep, int peer, char *data, int size, int iters, int block)
{
	double t, sum = 0, best = 1e9;
	int i;

	for (i = 0; i < iters; i++) {
		pongs = 0;
		t = now_us();
		AM_RequestI0(ep, peer, PING, data, size);
		wait_for(eb, 1, block);
		t = now_us() - t;
		sum += t;
		best = t < best ? t : best;
	}
	printf("latency size %d: mean %.2f us, best %.2f us\n", size, sum / iters, best);
}

static void rate(eb_t eb, ep_t ep, int peer, char *data, int size, int iters, int depth, int block)
{
	double t = now_us();
	int i;

	pongs = 0;
	AMUDP_SetBatch(ep, depth < 32 ? depth : 32);
	for (i = 0; i < iters; i++) {
		AM_RequestI0(ep, peer, PING, data, size);
		if (i - pongs >= depth - 1)
			wait_for(eb, i - depth + 2, block);
	}
	AMUDP_Flush(ep);
	wait_for(eb, iters, block);
	AMUDP_SetBatch(ep, 0);
	t = now_us() - t;
	printf("rate size %d depth %d: %.0f round trips a second\n", size, depth, iters / t * 1e6);
}

int main(int argc, char **argv)
{
	int iters, size, block, depth, me, last;
	amudp_stats_t stats;
	struct am_arguments arguments = { .usage = usage };
	static char data[65000];
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	am_arguments_help(usage, argc, argv);
	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	arguments.argc = argc;
	arguments.argv = argv;
	iters = (int)am_argument_whole(&arguments, 1, 10000, 1, ITERATIONS_MOST);
	size = (int)am_argument_whole(&arguments, 2, 64, 0, sizeof(data));
	block = argc > 3;
	if (block && strcmp(argv[3], "block"))
		am_argument_wrong(&arguments, 3);
	am_arguments_end(&arguments, 3);
	me = AMUDP_SPMDMyProc();
	last = AMUDP_SPMDNumProcs() - 1;
	AM_SetHandler(ep, PING, on_ping);
	AM_SetHandler(ep, PONG, on_pong);
	AM_SetEventMask(eb, AM_NOTEMPTY);
	AMUDP_SPMDBarrier();
	if (me == 0) {
		latency(eb, ep, last, data, size, iters, block);
		for (depth = 1; depth <= 128; depth *= 4)
			rate(eb, ep, last, data, size, iters, depth, block);
		AMUDP_GetEndpointStatistics(ep, &stats);
		if (getenv("AM_PING_STATS"))
			AMUDP_DumpStatistics(stdout, &stats, 0);
	}
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(0);
}
