/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Active Messages do where bare.c does the same with bare UDP; run as "amside 2 L ...".
 *
 *	pingpong SIZE ITERATIONS spin|block    microseconds a round trip
 *	rate SIZE SECONDS [DEPTH [BATCH]]      messages a second, requests and replies counted
 *	bulk SECONDS [OCTETS]                  octets a second, one way
 *
 * and with any even number of ranks, none of which is bound to a processor:
 *
 *	pairs SIZE ITERATIONS                  microseconds a round trip, all pairs at once, by
 *	                                       AM_WaitSema on both sides
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "include/warp/amudp_spmd.h"

enum { PING = 1, PONG, STORE };
#define SEGMENT (16 << 20)

static long pings, pongs;
static eb_t eb;
static ep_t ep;
static char data[SEGMENT];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void on_ping(void *token, void *buf, int n)
{
	pings++;
	AM_ReplyI0(token, PONG, buf, n);
}

static void on_store(void *token, void *buf, int n)
{
	AM_ReplyI0(token, PONG, buf, 0);
}

static void on_pong(void *token, void *buf, int n)
{
	pongs++;
}

static void pingpong(int size, int iters, int block)
{
	double t = 0;
	int i;

	for (i = -iters / 10; i < iters; i++) {
		if (i == 0)
			t = now();
		pongs = 0;
		AM_RequestI0(ep, 1, PING, data, size);
		while (!pongs) {
			if (block)
				AM_WaitSema(eb);
			else
				AM_Poll(eb);
		}
	}
	printf("%.3f\n", (now() - t) / iters * 1e6);
}

/* Even ranks ask, odd ones answer; rank 0 tells the mean of all. */
static void pairs(int size, int iters)
{
	int me = AMUDP_SPMDMyProc(), ranks = AMUDP_SPMDNumProcs(), i;
	double t = now(), sum = 0, *all = calloc((size_t)ranks, sizeof(*all));

	for (i = 0; i < iters; i++) {
		pongs = 0;
		if (me % 2 == 0)
			AM_RequestI0(ep, me + 1, PING, data, size);
		while (me % 2 ? pings <= i : !pongs)
			AM_WaitSema(eb);
	}
	t = now() - t;
	AMUDP_SPMDAllGather(&t, all, sizeof(t));
	for (i = 0; i < ranks; i += 2)
		sum += all[i];
	if (me == 0)
		printf("%.3f\n", sum / (ranks / 2) / iters * 1e6);
	free(all);
}

static void rate(int size, double seconds, int depth, int batch)
{
	double t = now(), end = t + seconds;
	long sent = 0;

	AMUDP_SetBatch(ep, batch);
	while ((sent & 63) || now() < end) {
		AM_RequestI0(ep, 1, PING, data, size);
		sent++;
		while (sent - pongs >= depth)
			AM_Poll(eb);
	}
	AMUDP_SetBatch(ep, 0);
	AMUDP_Flush(ep);
	while (pongs < sent)
		AM_Poll(eb);
	printf("%.0f\n", 2 * (double)sent / (now() - t));
}

static void bulk(double seconds, int octets, int depth)
{
	double t = now(), end = t + seconds;
	long sent = 0;

	while (now() < end) {
		if (AM_RequestXferAsync0(ep, 1, (sent & 1) ? SEGMENT / 2 : 0, STORE, data,
					 octets) == AM_OK)
			sent++;
		while (sent - pongs >= depth)
			AM_Poll(eb);
	}
	while (pongs < sent)
		AM_Poll(eb);
	printf("%.0f\n", (double)sent * octets / (now() - t));
}

static int number(int argc, char **argv, int i, int otherwise)
{
	return argc > i ? atoi(argv[i]) : otherwise;
}

int main(int argc, char **argv)
{
	char *segment = malloc(SEGMENT);
	const char *what;
	uint64_t pid;

	if (AMX_SPMDStartup(&argc, &argv, 256, &pid, &eb, &ep) != AM_OK)
		return 1;
	what = argc > 2 ? argv[1] : "";
	memset(segment, 1, SEGMENT);
	memset(data, 2, SEGMENT);
	AM_SetSeg(ep, segment, SEGMENT);
	AM_SetHandler(ep, PING, on_ping);
	AM_SetHandler(ep, PONG, on_pong);
	AM_SetHandler(ep, STORE, on_store);
	AM_SetEventMask(eb, AM_NOTEMPTY);
	if (strcmp(what, "pairs"))
		pin(AMUDP_SPMDMyProc());
	if (argc > 4 && !strcmp(argv[4], "block"))
		AMUDP_PoliteSync = 1;
	AMUDP_SPMDBarrier();
	if (!strcmp(what, "pairs")) {
		pairs(atoi(argv[2]), number(argc, argv, 3, 1000));
		AMUDP_SPMDBarrier();
		AMUDP_SPMDExit(0);
	}
	if (AMUDP_SPMDMyProc() == 0) {
		if (!strcmp(what, "pingpong"))
			pingpong(atoi(argv[2]), number(argc, argv, 3, 10000), AMUDP_PoliteSync);
		else if (!strcmp(what, "rate"))
			rate(atoi(argv[2]), argc > 3 ? atof(argv[3]) : 0.5,
			     number(argc, argv, 4, 128), number(argc, argv, 5, 32));
		else if (!strcmp(what, "bulk"))
			bulk(atof(argv[2]), number(argc, argv, 3, SEGMENT / 2),
			     number(argc, argv, 4, 2));
		AMUDP_SPMDExit(0);
	}
	/* the other side serves until the job ends */
	for (;;) {
		if (AMUDP_PoliteSync)
			AM_WaitSema(eb);
		else
			AM_Poll(eb);
	}
}
