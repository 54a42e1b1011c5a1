/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rank that does not keep to the protocol of its console: rude N L WAY [CODE]. Rank 1 is the rude
 * one, by the library's own connections; rank 0 then ends the job with CODE, or waits.
 *
 *   head    5 octets of a frame on the control connection
 *   data    the head of a collective call, and 10 of its 1000 octets
 *   answer  a collective call whose answer it does not take
 *   two     two collective calls at once, before rank 0 comes to the first one
 *   huge    the head of a collective call of 1 GiB for each rank
 *   spoken  data on the control connection, where a rank has none to send
 */
#include <amudp_spmd.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DESCRIPTORS 64
#define ANSWER (24 << 20)

static int connections[2]; /* control, collectives */

/* The library opens them in this order, before all other connections to the console's port. */
static void connections_find(void)
{
	const char *args = getenv("AMUDP_SLAVE_ARGS");
	int port = atoi(strchr(args, ':') + 1), fd, n = 0;

	for (fd = STDERR_FILENO + 1; fd < DESCRIPTORS && n < 2; fd++) {
		struct sockaddr_in peer = { 0 };
		socklen_t len = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
		    ntohs(peer.sin_port) == port)
			connections[n++] = fd;
	}
	if (n < 2)
		abort();
}

static void put(int channel, const void *p, size_t n)
{
	if (send(connections[channel], p, n, 0) != (ssize_t)n)
		abort();
}

static void head_put(int channel, char kind, uint32_t length)
{
	uint32_t head[3] = { htonl((uint32_t)kind), 0, htonl(length) };

	put(channel, head, sizeof(head));
}

/* Which is the first barrier that rank 1 does not come to. */
static void be_rude(const char *way)
{
	static char data[ANSWER];
	int i;

	connections_find();
	if (!strcmp(way, "head"))
		put(0, data, 5);
	if (!strcmp(way, "spoken"))
		head_put(0, 'E', 4);
	if (!strcmp(way, "huge"))
		head_put(1, 'G', 1u << 30);
	if (!strcmp(way, "data")) {
		head_put(1, 'G', 1000);
		put(1, data, 10);
	}
	if (!strcmp(way, "answer")) {
		head_put(1, 'G', ANSWER);
		put(1, data, ANSWER);
	}
	for (i = 1; i <= 2 && !strcmp(way, "two"); i++) {
		head_put(1, 'G', sizeof(i));
		put(1, &i, sizeof(i));
	}
}

static int meet(const char *way)
{
	static char data[ANSWER], all[2 * ANSWER];
	int own = 7, both[2];

	if (!strcmp(way, "answer"))
		return AMUDP_SPMDAllGather(data, all, ANSWER);
	if (!strcmp(way, "huge") || !strcmp(way, "spoken"))
		return AMUDP_SPMDBarrier();
	usleep(300000); /* until the console has seen what came */
	if (strcmp(way, "two"))
		return AM_OK;
	AMUDP_SPMDAllGather(&own, both, sizeof(own));
	return both[0] == 7 && both[1] == 1 ? AM_OK : AM_ERR_RESOURCE;
}

int main(int argc, char **argv)
{
	uint64_t pid;
	eb_t eb;
	ep_t ep;
	int i;

	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK || argc < 2)
		return 1;
	if (AMUDP_SPMDMyProc() == 1) {
		be_rude(argv[1]);
		pause();
	}
	if (meet(argv[1]) == AM_OK)
		puts("rank 0 goes on");
	fflush(stdout);
	if (argc > 2)
		AMUDP_SPMDExit(atoi(argv[2]));
	for (i = 0; i < 30000; i++) {
		AM_Poll(eb);
		usleep(1000);
	}
	return 1;
}
