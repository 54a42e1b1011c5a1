/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * All ranks send to rank 0 as much as it lets them while it looks at nothing for a moment, again
 * and again, and it asks as much of them: am_flood N L ROUNDS OCTETS. Then it tells how much the
 * kernel has dropped there for want of room.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "include/warp/amudp_spmd.h"

enum { TAKE = 1, TAKEN, SENT = 1200, AWAY_US = 20000, SEGMENT = 1 << 16 };

static long answers;
static char data[SEGMENT];

static void on_take(void *token, void *buf, int n)
{
	AM_ReplyI0(token, TAKEN, data, n & 63);
}

static void on_taken(void *token, void *buf, int n)
{
	answers++;
}

/* Every request is a packet of its own, or several. */
static void send_round(ep_t ep, eb_t eb, int octets)
{
	int me = AMUDP_SPMDMyProc(), n = AMUDP_SPMDNumProcs(), i;
	long sent = 0;

	answers = 0;
	AMUDP_SPMDBarrier();
	for (i = 0; i < SENT; i++) {
		amudp_node_t to = me ? 0 : (amudp_node_t)(1 + i % (n - 1));

		if (AM_RequestXferAsync0(ep, to, 0, TAKE, data, octets) == AM_OK)
			sent++;
	}
	if (me == 0)
		usleep(AWAY_US);
	while (answers < sent)
		AM_Poll(eb);
}

int main(int argc, char **argv)
{
	static char segment[SEGMENT];
	int i, rounds, octets;
	amudp_xstats_t stats;
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	if (AMX_SPMDStartup(&argc, &argv, 1024, &pid, &eb, &ep) != AM_OK)
		return 1;
	rounds = argc > 1 ? atoi(argv[1]) : 10;
	octets = argc > 2 ? atoi(argv[2]) : 8;
	AM_SetSeg(ep, segment, sizeof(segment));
	AM_SetHandler(ep, TAKE, on_take);
	AM_SetHandler(ep, TAKEN, on_taken);
	for (i = 0; i < rounds; i++)
		send_round(ep, eb, octets);
	AMUDP_SPMDBarrier();
	AMUDP_GetEndpointExtendedStatistics(ep, &stats);
	if (AMUDP_SPMDMyProc() == 0)
		printf("rank 0 by %s: %ld dropped\n", AMUDP_GetNic(ep),
		       (long)stats.ArrivalsDropped);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(0);
}
