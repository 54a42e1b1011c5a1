/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exactly once, counted: am_count N L MESSAGES. Every rank sends so many numbered requests to the
 * other ranks in turn; each receiver marks which numbers of which sender have run, each sender
 * which were answered, and a number that comes twice or never fails the job. How many copies
 * were sent that were not needed is told for the caller to judge. Faults that the environment
 * asks for and nobody saw fail the job, too. With the word "block" behind the number, who waits for
 * answers sleeps, and that at least once in fifty messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "include/warp/amudp_spmd.h"

enum { COUNT = 1, COUNTED };
enum { RAN, ANSWERED, TWICE, RETURNED, NEEDLESS, DROPPED, DUPLICATED, REORDERED, SLEPT, SUMS };

static const struct {
	const char *variable;
	int sum;
} faults[] = {
	{ "AMUDP_FAULT_RATE", DROPPED },
	{ "AMUDP_FAULT_DUPLICATE", DUPLICATED },
	{ "AMUDP_FAULT_REORDER", REORDERED },
};

static unsigned char **ran; /* by sender: a bit for each number */
static unsigned char *answered;
static long twice, replies, returned;
static int block;

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
	while (replies + returned < messages) {
		if (block)
			AM_WaitSema(eb);
		else
			AM_Poll(eb);
	}
}

/* How often this process has gone to sleep. */
static long sleeps(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_nvcsw;
}

/* Copies of requests whose first had been received all the same; and what faults were done. */
static void sums_count(ep_t ep, long *sums)
{
	amudp_xstats_t stats;

	if (AMUDP_GetEndpointExtendedStatistics(ep, &stats) != AM_OK)
		AMUDP_FatalErr("no statistics");
	sums[NEEDLESS] = (long)stats.NeedlessRetransmissions;
	sums[DROPPED] = (long)stats.FaultsDropped;
	sums[DUPLICATED] = (long)stats.FaultsDuplicated;
	sums[REORDERED] = (long)stats.FaultsReordered;
}

/* Faults of a kind that were asked for, and never done: then nothing has been shown. */
static int missing(const long *total)
{
	const char *rate;
	size_t i;
	int n = 0;

	for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		rate = getenv(faults[i].variable);
		if (!rate || (atof(rate) > 0) == (total[faults[i].sum] > 0))
			continue;
		if (AMUDP_SPMDMyProc() == 0)
			printf("%s=%s: %ld of them\n", faults[i].variable, rate,
			       total[faults[i].sum]);
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	long sums[SUMS], all[SUMS * 1024], total[SUMS] = { 0 }, slept;
	int i, j, n, messages, wrong;
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
	block = argc > 2 && !strcmp(argv[2], "block");
	AM_SetEventMask(eb, AM_NOTEMPTY);
	AMUDP_SPMDBarrier();
	slept = sleeps();
	send_all(eb, ep, messages);
	slept = sleeps() - slept;
	AMUDP_SPMDBarrier();
	memset(sums, 0, sizeof(sums));
	for (i = 0; i < n; i++)
		sums[RAN] += bits_set(ran[i], messages);
	sums[ANSWERED] = bits_set(answered, messages);
	sums[TWICE] = twice;
	sums[RETURNED] = returned;
	sums[SLEPT] = slept;
	sums_count(ep, sums);
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
		printf("%ld times asleep\n", total[SLEPT]);
	}
	wrong = missing(total) || (block && total[SLEPT] * 50 < (long)messages * n);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(wrong || total[RAN] != (long)messages * n || total[ANSWERED] != total[RAN] ||
		       total[TWICE] || total[RETURNED]);
}
