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
 *   again   the head of a short collective call, and a long one on another connection for them
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
static uint64_t secret;

static struct sockaddr_in console;

/* While the environment tells it. */
static void console_find(void)
{
	const char *args = getenv("AMUDP_SLAVE_ARGS"), *word = getenv("AMUDP_SLAVE_SECRET");

	if (!args || !word)
		return;
	secret = strtoull(word, NULL, 16);
	console.sin_family = AF_INET;
	console.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	console.sin_port = htons((uint16_t)atoi(strchr(args, ':') + 1));
}

/* The library opens them in this order, before all other connections to the console's port. */
static void connections_find(void)
{
	int fd, n = 0;

	for (fd = STDERR_FILENO + 1; fd < DESCRIPTORS && n < 2; fd++) {
		struct sockaddr_in peer = { 0 };
		socklen_t len = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
		    peer.sin_port == console.sin_port)
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

/* In the place of the one for collectives */
static void connect_again(void)
{
	uint32_t hello[6] = { htonl(0x414D4A31),       htonl(1), htonl((uint32_t)(secret >> 32)),
			      htonl((uint32_t)secret), htonl(1), htonl((uint32_t)getpid()) };

	close(connections[1]);
	connections[1] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(connections[1], (struct sockaddr *)&console, sizeof(console)) < 0)
		abort();
	put(1, hello, sizeof(hello));
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
	if (!strcmp(way, "again")) {
		head_put(1, 'G', 4);
		usleep(200000); /* until the console has seen it */
		connect_again();
		head_put(1, 'G', ANSWER);
		send(connections[1], data, ANSWER, MSG_NOSIGNAL);
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

	console_find();
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
