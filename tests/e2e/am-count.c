/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exactly once, counted: am_count N L MESSAGES. Every rank sends so many numbered requests to the
 * other ranks in turn; each receiver marks which numbers of which sender have run, each sender
 * which were answered, and a number that comes twice or never fails the job. How many copies
 * were sent that were not needed is told for the caller to judge.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/warp/amudp_spmd.h"

enum { COUNT = 1, COUNTED };
enum { RAN, ANSWERED, TWICE, RETURNED, NEEDLESS, SUMS };

static unsigned char **ran; /* by sender: a bit for each number */
static unsigned char *answered;
static long twice, replies, returned;

static void mark(unsigned char *bits, int i)
{
	twice += bits[i / 8] >> (i % 8) & 1;
	bits[i / 8] |= (unsigned char)(1u << (i % 8));
}

static void on_count(void *token, void *buf, int n, int i)
{
	int source;

	AMUDP_GetSourceId(token, &source);
	mark(ran[source], i);
	AM_ReplyI1(token, COUNTED, buf, n, i);
}

static void on_counted(void *token, void *buf, int n, int i)
{
	mark(answered, i);
	replies++;
}

static void on_returned(int status, op_t opcode, void *token)
{
	returned++;
}

static long bits_set(const unsigned char *bits, long n)
{
	long i, sum = 0;

	for (i = 0; i < (n + 7) / 8; i++)
		sum += __builtin_popcount(bits[i]);
	return sum;
}

static void send_all(eb_t eb, ep_t ep, int messages)
{
	int me = AMUDP_SPMDMyProc(), n = AMUDP_SPMDNumProcs(), i;
	static char data[256];

	AMUDP_SetBatch(ep, 16);
	for (i = 0; i < messages; i++) {
		AM_RequestI1(ep, (me + 1 + i % (n - 1)) % n, COUNT, data, i % 200, i);
		if (i % 64 == 0)
			AM_Poll(eb);
	}
	AMUDP_SetBatch(ep, 0);
	AMUDP_Flush(ep);
	while (replies + returned < messages)
		AM_Poll(eb);
}

/* Copies of requests whose first had been received all the same */
static long needless(ep_t ep)
{
	amudp_xstats_t stats;

	if (AMUDP_GetEndpointExtendedStatistics(ep, &stats) != AM_OK)
		AMUDP_FatalErr("no statistics");
	return (long)stats.NeedlessRetransmissions;
}

int main(int argc, char **argv)
{
	long sums[SUMS], all[SUMS * 1024], total[SUMS] = { 0 };
	int i, j, n, messages;
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	messages = argc > 1 ? atoi(argv[1]) : 100000;
	n = AMUDP_SPMDNumProcs();
	if (n < 2 || n > 1024)
		AMUDP_FatalErr("2 to 1024 ranks");
	ran = calloc((size_t)n, sizeof(*ran));
	for (i = 0; i < n; i++)
		ran[i] = calloc(1, (size_t)messages / 8 + 1);
	answered = calloc(1, (size_t)messages / 8 + 1);
	AM_SetHandler(ep, 0, on_returned);
	AM_SetHandler(ep, COUNT, on_count);
	AM_SetHandler(ep, COUNTED, on_counted);
	AMUDP_SPMDBarrier();
	send_all(eb, ep, messages);
	AMUDP_SPMDBarrier();
	memset(sums, 0, sizeof(sums));
	for (i = 0; i < n; i++)
		sums[RAN] += bits_set(ran[i], messages);
	sums[ANSWERED] = bits_set(answered, messages);
	sums[TWICE] = twice;
	sums[RETURNED] = returned;
	sums[NEEDLESS] = needless(ep);
	AMUDP_SPMDAllGather(sums, all, sizeof(sums));
	for (i = 0; i < n; i++) {
		for (j = 0; j < SUMS; j++)
			total[j] += all[SUMS * i + j];
	}
	if (AMUDP_SPMDMyProc() == 0) {
		printf("%ld messages: %ld ran, %ld answered, %ld twice, %ld returned\n",
		       (long)messages * n, total[RAN], total[ANSWERED], total[TWICE],
		       total[RETURNED]);
		printf("%ld of %ld sent again needlessly\n", total[NEEDLESS], (long)messages * n);
	}
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(total[RAN] != (long)messages * n || total[ANSWERED] != total[RAN] ||
		       total[TWICE] || total[RETURNED]);
}
