/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Exactly once, counted: am_count N L MESSAGES [block] [size OCTETS]. Every rank sends so many
 * numbered requests to the other ranks in turn, or ("4s") as many as it can in so many seconds;
 * each receiver marks which numbers of which sender have run, each sender which were answered, and
 * a number that comes twice or never fails the job. How many copies and fragments were sent again
 * is told for the caller to judge, who knows whether anything was lost. Faults that the environment
 * asks for and nobody saw fail the job, too. With "block", who waits for answers sleeps, and that
 * at least once in fifty messages. With "size", requests and replies are long messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "include/warp/amudp_spmd.h"

#define MOST (64 << 20) /* messages of a rank that sends for a time */

enum { COUNT = 1, COUNTED };
enum {
	SENT,
	RAN,
	ANSWERED,
	TWICE,
	RETURNED,
	NEEDLESS,
	QUESTIONS,
	FRAGMENTS,
	FRAGMENTS_AGAIN,
	DROPPED,
	DUPLICATED,
	REORDERED,
	SLEPT,
	SUMS
};

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
static int block, messages, seconds, size;
static char *data;

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
	if (size)
		AM_ReplyXfer1(token, 0, COUNTED, data, size, i);
	else
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

/* Returns how many. */
static int send_all(eb_t eb, ep_t ep)
{
	int me = AMUDP_SPMDMyProc(), n = AMUDP_SPMDNumProcs(), i, to;
	time_t end = time(NULL) + seconds;

	AMUDP_SetBatch(ep, 16);
	for (i = 0; i < messages && (!seconds || time(NULL) < end); i++) {
		to = (me + 1 + i % (n - 1)) % n;
		if ((size ? AM_RequestXfer1(ep, to, 0, COUNT, data, size, i)
			  : AM_RequestI1(ep, to, COUNT, data, i % 200, i)) != AM_OK)
			AMUDP_FatalErr("message %d cannot be sent", i);
		if (i % 64 == 0)
			AM_Poll(eb);
	}
	AMUDP_SetBatch(ep, 0);
	AMUDP_Flush(ep);
	while (replies + returned < i) {
		if (block)
			AM_WaitSema(eb);
		else
			AM_Poll(eb);
	}
	return i;
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
	sums[QUESTIONS] = (long)stats.QuestionsSent;
	sums[FRAGMENTS] = (long)stats.FragmentsSent;
	sums[FRAGMENTS_AGAIN] = (long)stats.FragmentsRetransmitted;
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

static void arguments(int argc, char **argv)
{
	const char *count = argc > 1 ? argv[1] : "100000";
	int i;

	messages = atoi(count);
	if (strchr(count, 's')) {
		seconds = messages;
		messages = MOST;
	}
	for (i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "block"))
			block = 1;
		else if (!strcmp(argv[i], "size") && i + 1 < argc)
			size = atoi(argv[++i]);
		else
			AMUDP_FatalErr("what is %s?", argv[i]);
	}
}

static void begin(ep_t ep, int n)
{
	int i;

	ran = calloc((size_t)n, sizeof(*ran));
	for (i = 0; i < n; i++)
		ran[i] = calloc(1, (size_t)messages / 8 + 1);
	answered = calloc(1, (size_t)messages / 8 + 1);
	data = calloc(1, 256 + (size_t)size);
	if (size)
		AM_SetSeg(ep, malloc((size_t)size), (size_t)size);
	AM_SetHandler(ep, 0, on_returned);
	AM_SetHandler(ep, COUNT, on_count);
	AM_SetHandler(ep, COUNTED, on_counted);
}

static void tell(const long *total)
{
	printf("%ld messages: %ld ran, %ld answered, %ld twice, %ld returned\n", total[SENT],
	       total[RAN], total[ANSWERED], total[TWICE], total[RETURNED]);
	printf("%ld of %ld sent again needlessly\n", total[NEEDLESS], total[SENT]);
	printf("%ld of %ld fragments sent again\n", total[FRAGMENTS_AGAIN], total[FRAGMENTS]);
	printf("%ld questions, %ld times asleep\n", total[QUESTIONS], total[SLEPT]);
}

int main(int argc, char **argv)
{
	long sums[SUMS] = { 0 }, all[SUMS * 1024], total[SUMS] = { 0 }, slept;
	int i, j, n, wrong;
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	n = AMUDP_SPMDNumProcs();
	if (n < 2 || n > 1024)
		AMUDP_FatalErr("2 to 1024 ranks");
	arguments(argc, argv);
	begin(ep, n);
	AM_SetEventMask(eb, AM_NOTEMPTY);
	AMUDP_SPMDBarrier();
	slept = sleeps();
	sums[SENT] = send_all(eb, ep);
	sums[SLEPT] = sleeps() - slept;
	AMUDP_SPMDBarrier();
	for (i = 0; i < n; i++)
		sums[RAN] += bits_set(ran[i], messages);
	sums[ANSWERED] = bits_set(answered, messages);
	sums[TWICE] = twice;
	sums[RETURNED] = returned;
	sums_count(ep, sums);
	AMUDP_SPMDAllGather(sums, all, sizeof(sums));
	for (i = 0; i < n; i++) {
		for (j = 0; j < SUMS; j++)
			total[j] += all[SUMS * i + j];
	}
	if (AMUDP_SPMDMyProc() == 0)
		tell(total);
	wrong = missing(total) || (block && total[SLEPT] * 50 < total[SENT]);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(wrong || total[RAN] != total[SENT] || total[ANSWERED] != total[SENT] ||
		       total[TWICE] || total[RETURNED]);
}
