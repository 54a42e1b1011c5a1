/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A rank that changes its place under load: am_migrate N L MOVES ADDRESS... Every rank sends
 * numbered messages, transfers of 100,000 and 300,000 octets and gets of 200,000 to the others in
 * turn, and checks what arrives, while rank 1 goes to the addresses in turn, so many times: always
 * with a transfer and a get of its own under way. A number that runs twice or never, or octets that
 * are not the sender's, fail the job.
 *
 * A segment has what others may get, and a place for each transfer or get that a rank may have
 * under way: of its own for what it gets. What must stand there is known from rank and number.
 */
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/warp/amudp_spmd.h"

#define MOST (16 << 20) /* messages of a rank */
#define SHORT 100000
#define LONG 300000 /* which is not copied when it is sent */
#define GET 200000
#define MOVE_EVERY 30 /* ms, at least */

enum { COUNT = 1, PUT, COUNTED, FETCHED, DONE };
enum { PLACES = 8, RANKS = 16, SMALL = 8 /* messages for each transfer or get */ };
enum { SENT, GETS, RAN, ANSWERED, TWICE, DAMAGED, RETURNED, MOVES, SUMS };

static unsigned char *ran[RANKS], *answered, *segment, *sources;
static long sums[SUMS];
static int transfers, gets; /* under way */
static int busy[PLACES], me, ranks, done;

static unsigned char octet(int rank, int number, int i)
{
	return (unsigned char)((unsigned)i * 2654435761u >> 24 ^ (unsigned)(rank * 83 + number));
}

static void fill(unsigned char *p, int n, int rank, int number)
{
	int i;

	for (i = 0; i < n; i++)
		p[i] = octet(rank, number, i);
}

/* Wiped when seen, so that the next message has to bring its own. */
static void check(unsigned char *p, int n, int rank, int number)
{
	int i = 0;

	while (i < n && p[i] == octet(rank, number, i))
		i++;
	sums[DAMAGED] += i < n;
	memset(p, 0, (size_t)n);
}

static void mark(unsigned char *bits, int i)
{
	sums[TWICE] += bits[i / 8] >> (i % 8) & 1;
	bits[i / 8] |= (unsigned char)(1u << (i % 8));
}

static uintptr_t place_of(int rank, int place)
{
	return GET + (uintptr_t)(rank * PLACES + place) * LONG;
}

static void run(void *token, unsigned char *p, int n, int i, int place)
{
	int source;

	AMUDP_GetSourceId(token, &source);
	if (place >= 0)
		sums[DAMAGED] += p != segment + place_of(source, place);
	check(p, n, source, i);
	mark(ran[source], i);
	sums[RAN]++;
	AM_Reply2(token, COUNTED, i, place);
}

static void on_count(void *token, void *buf, int n, int i)
{
	run(token, buf, n, i, -1);
}

static void on_put(void *token, void *buf, int n, int i, int place)
{
	run(token, buf, n, i, place);
}

static void on_counted(void *token, int i, int place)
{
	mark(answered, i);
	sums[ANSWERED]++;
	if (place < 0)
		return;
	busy[place] = 0;
	transfers--;
}

static void on_fetched(void *token, void *buf, int n, int i, int place)
{
	int source;

	AMUDP_GetSourceId(token, &source);
	sums[DAMAGED] += buf != segment + place_of(me, place);
	check(buf, n, source, 0);
	mark(answered, i);
	sums[ANSWERED]++;
	busy[place] = 0;
	gets--;
}

static void on_returned(int status, op_t opcode, void *token)
{
	sums[RETURNED]++;
}

static void on_done(void *token)
{
	done = 1;
}

static int place_free(void)
{
	int i;

	for (i = 0; i < PLACES && busy[i]; i++)
		;
	return i;
}

/* A transfer or a get, if there is a place for it. */
static void send_long(ep_t ep, int to)
{
	static int kind;
	int i = (int)sums[SENT], place = place_free(), n = kind % 3 == 1 ? SHORT : LONG, ret;
	unsigned char *source = sources + (size_t)place * LONG;
	bool get = kind % 3 == 0;

	if (place == PLACES)
		return;
	if (get) {
		ret = AM_GetXferAsync2(ep, to, 0, FETCHED, place_of(me, place), GET, i, place);
	} else {
		fill(source, n, me, i);
		ret = AM_RequestXferAsync2(ep, to, place_of(me, place), PUT, source, n, i, place);
	}
	if (ret == AM_ERR_IN_USE)
		return;
	if (ret != AM_OK)
		AMUDP_FatalErr("transfer %d cannot be sent", i);
	kind++;
	busy[place] = 1;
	gets += get;
	transfers += !get;
	sums[GETS] += get;
	sums[SENT]++;
}

static void send_small(ep_t ep, int to)
{
	unsigned char data[200];
	int i = (int)sums[SENT]++, n = i % (int)sizeof(data);

	fill(data, n, me, i);
	if (AM_RequestI1(ep, to, COUNT, data, n, i) != AM_OK)
		AMUDP_FatalErr("message %d cannot be sent", i);
}

static uint64_t milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* To the next address, with long messages under way, and when it can; all are told of the last. */
static void move(ep_t ep, int moves, char **addresses, int count)
{
	static uint64_t due;
	int i;

	if (sums[MOVES] > moves || !transfers || !gets || milliseconds() < due)
		return;
	due = milliseconds() + MOVE_EVERY;
	if (sums[MOVES] == moves) {
		for (i = 0; i < ranks; i++)
			AM_Request0(ep, i, DONE);
	} else if (AMUDP_MigrateEndpoint(ep, inet_addr(addresses[sums[MOVES] % count])) != AM_OK) {
		return; /* not all know of the last one */
	}
	sums[MOVES]++;
}

static void begin(ep_t ep)
{
	size_t length = place_of(ranks, 0);
	int i;

	for (i = 0; i < ranks; i++)
		ran[i] = calloc(1, MOST / 8);
	answered = calloc(1, MOST / 8);
	sources = malloc((size_t)PLACES * LONG);
	segment = calloc(1, length);
	fill(segment, GET, me, 0);
	AM_SetSeg(ep, segment, length);
	AM_SetHandler(ep, 0, on_returned);
	AM_SetHandler(ep, COUNT, on_count);
	AM_SetHandler(ep, PUT, on_put);
	AM_SetHandler(ep, COUNTED, on_counted);
	AM_SetHandler(ep, FETCHED, on_fetched);
	AM_SetHandler(ep, DONE, on_done);
}

static void load(eb_t eb, ep_t ep, int moves, char **addresses, int count)
{
	int i, to;

	while (!done && sums[SENT] + SMALL < MOST) {
		to = (me + 1 + (int)(sums[SENT] / SMALL) % (ranks - 1)) % ranks;
		for (i = 0; i < SMALL; i++)
			send_small(ep, to);
		send_long(ep, to);
		if (me == 1)
			move(ep, moves, addresses, count);
		AM_Poll(eb);
	}
	while (sums[ANSWERED] + sums[RETURNED] < sums[SENT])
		AM_WaitSema(eb);
}

int main(int argc, char **argv)
{
	long all[SUMS * RANKS], total[SUMS] = { 0 };
	int i, j, moves, good;
	uint64_t pid;
	eb_t eb;
	ep_t ep;

	if (AMX_SPMDStartup(&argc, &argv, 0, &pid, &eb, &ep) != AM_OK)
		return 1;
	me = AMUDP_SPMDMyProc();
	ranks = AMUDP_SPMDNumProcs();
	if (ranks < 2 || ranks > RANKS || argc < 3)
		AMUDP_FatalErr("2 to %d ranks, a number of moves, and addresses", RANKS);
	moves = atoi(argv[1]);
	begin(ep);
	AM_SetEventMask(eb, AM_NOTEMPTY);
	AMUDP_SPMDBarrier();
	load(eb, ep, moves, argv + 2, argc - 2);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDAllGather(sums, all, sizeof(sums));
	for (i = 0; i < ranks; i++) {
		for (j = 0; j < SUMS; j++)
			total[j] += all[SUMS * i + j];
	}
	good = total[MOVES] == moves + 1 && !total[TWICE] && !total[DAMAGED] && !total[RETURNED] &&
	       total[ANSWERED] == total[SENT] && total[RAN] == total[SENT] - total[GETS];
	if (me == 0)
		printf("%d moves, %ld messages, %ld gets: %ld ran, %ld answered, %ld twice, "
		       "%ld damaged, %ld returned\n",
		       moves, total[SENT], total[GETS], total[RAN], total[ANSWERED], total[TWICE],
		       total[DAMAGED], total[RETURNED]);
	AMUDP_SPMDBarrier();
	AMUDP_SPMDExit(!good);
}
