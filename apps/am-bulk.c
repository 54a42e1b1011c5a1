/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * am-bulk: bandwidth of transfers from rank 0 to the last rank, by size, checked at the end.
 *
 *	am-bulk N L [SECONDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "am_arguments.h"
#include "include/warp/amudp_spmd.h"

enum { STORE = 1, STORED, CHECK, CHECKED };
#define LONGEST (16 << 20)

static const char usage[] = "usage: am-bulk PROCESSES [LETTER] [SECONDS]\n\n"
			    "Bandwidth from rank 0 to the last rank, by size, each for SECONDS "
			    "(0.3).\n";

static unsigned char *segment;
static long stored;
static int answer = -1;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void on_store(void *token, void *buf, int n)
{
	AM_Reply0(token, STORED);
}

static void on_stored(void *token)
{
	stored++;
}

static unsigned char octet(int i)
{
	return (unsigned char)(i * 131 + (i >> 9));
}

static void on_check(void *token, int n)
{
	int i, bad = 0;

	for (i = 0; i < n; i++)
		bad += segment[i] != octet(i);
	AM_Reply1(token, CHECKED, bad);
}

static void on_checked(void *token, int bad)
{
	answer = bad;
}

static void measure(eb_t eb, ep_t ep, int peer, unsigned char *data, int size, double seconds)
{
	double t = now(), end = t + seconds;
	long sent = 0;

	stored = 0;
	while (now() < end) {
		if (AM_RequestXferAsync0(ep, peer, 0, STORE, data, size) == AM_OK)
			sent++;
		while (sent - stored > 8)
			AM_Poll(eb);
	}
	while (stored < sent)
		AM_Poll(eb);
	t = now() - t;
	printf("size %d: %.3f GB/s\n", size, (double)sent * size / t / 1e9);
}

int main(int argc, char **argv)
{
	struct am_arguments arguments = { .usage = usage };
	unsigned char *data = malloc(LONGEST);
	double seconds;
	uint64_t pid;
	int i, last;
	eb_t eb;
	ep_t ep;

	am_arguments_help(usage, argc, argv);
	if (AMX_SPMDStartup(&argc, &argv, 16, &pid, &eb, &ep) != AM_OK)
		return 1;
	arguments.argc = argc;
	arguments.argv = argv;
	seconds = am_argument_seconds(&arguments, 1, 0.3);
	am_arguments_end(&arguments, 1);
	segment = malloc(LONGEST);
	last = AMUDP_SPMDNumProcs() - 1;
	AM_SetSeg(ep, segment, LONGEST);
	AM_SetHandler(ep, STORE, on_store);
	AM_SetHandler(ep, STORED, on_stored);
	AM_SetHandler(ep, CHECK, on_check);
	AM_SetHandler(ep, CHECKED, on_checked);
	for (i = 0; i < LONGEST; i++)
		data[i] = octet(i);
	AMUDP_SPMDBarrier();
	if (AMUDP_SPMDMyProc() == 0) {
		for (i = 1024; i <= LONGEST; i *= 8)
			measure(eb, ep, last, data, i, seconds);
		measure(eb, ep, last, data, LONGEST, seconds);
		AM_Request1(ep, last, CHECK, LONGEST);
		while (answer < 0)
			AM_Poll(eb);
		printf("%s\n", answer ? "DATA DAMAGED" : "data checked");
	}
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(answer > 0);
}
