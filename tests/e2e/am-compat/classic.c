/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A program in the style of those written for AMUDP, as gnu99: a variable named false, handlers
 * without prototypes, reply handlers with more parameters than arguments.
 */
#include <amudp.h>
#include <amudp_spmd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELLO_REQ 1
#define HELLO_REP 2
#define BULK_REQ 3
#define BULK_REP 4

enum { false = 0 };
static volatile int replies;
static uint64_t networkpid;
static eb_t eb;
static ep_t ep;
static char *segment;

static void hello_reply(token, a0, a1, a2, a3) void *token;
int a0, a1, a2, a3;
{
	if (a0 != 1)
		AMX_FatalErr("argument is %d", a0);
	replies++;
}

static void hello_request(void *token, int a0)
{
	int source, r = AMUDP_GetSourceId(token, &source);

	if (r != AM_OK || source < 0 || source >= AMX_SPMDNumProcs())
		AMX_FatalErr("source %d", source);
	AM_Reply1(token, HELLO_REP, a0);
}

static void bulk_request(void *token, void *buf, int nbytes, int a0)
{
	if (nbytes != AM_MaxLong() || ((char *)buf)[nbytes - 1] != a0)
		AMX_FatalErr("damaged");
	AM_ReplyXfer1(token, AM_MaxLong(), BULK_REP, buf, nbytes, a0);
}

static void bulk_reply(void *token, void *buf, int nbytes, int a0)
{
	if (((char *)buf)[nbytes - 1] != a0)
		AMX_FatalErr("damaged");
	replies++;
}

int main(int argc, char **argv)
{
	int i, me, n, iters;
	char *data;
	amx_stats_t stats;

	AMX_VerboseErrors = 1;
	putenv("A_TEST_KEY=A_TEST_VALUE");
	if (AMX_SPMDStartup(&argc, &argv, 0, &networkpid, &eb, &ep) != AM_OK)
		exit(1);
	iters = argc > 1 ? atoi(argv[1]) : 10;
	me = AMX_SPMDMyProc();
	n = AMX_SPMDNumProcs();
	data = calloc(1, AM_MaxLong());
	segment = calloc(2, AM_MaxLong());
	if (AM_SetSeg(ep, segment, 2 * AM_MaxLong()) != AM_OK ||
	    AM_SetHandler(ep, HELLO_REQ, hello_request) != AM_OK ||
	    AM_SetHandler(ep, HELLO_REP, hello_reply) != AM_OK ||
	    AM_SetHandler(ep, BULK_REQ, bulk_request) != AM_OK ||
	    AM_SetHandler(ep, BULK_REP, bulk_reply) != AM_OK)
		exit(1);
	if (strcmp(AMX_SPMDgetenvMaster("A_TEST_KEY"), "A_TEST_VALUE"))
		exit(1);
	AMX_SPMDBarrier();
	for (i = 0; i < iters; i++)
		AM_Request1(ep, (me + i) % n, HELLO_REQ, 1);
	while (replies < iters)
		AM_Poll(eb);
	AMX_SPMDBarrier();
	replies = false;
	data[AM_MaxLong() - 1] = (char)(me + 1);
	if (me == 0) {
		AM_RequestXfer1(ep, n - 1, 0, BULK_REQ, data, AM_MaxLong(), me + 1);
		while (!replies)
			AM_Poll(eb);
	}
	AMX_SPMDBarrier();
	AMX_GetEndpointStatistics(ep, &stats);
	printf("P%d of %d done\n", me, n);
	AMX_SPMDBarrier();
	AMX_SPMDExit(0);
	return 0;
}
