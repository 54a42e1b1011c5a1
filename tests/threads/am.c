/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * AM_PAR: threads that send, poll and wait on one endpoint at once; every request and every
 * reply runs once, also when packets get lost.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "include/warp/amudp.h"
#include "tests/tap.h"

enum { THREADS = 4, EACH = 1500, TOTAL = THREADS * EACH, REQUEST = 1, REPLY };

static eb_t eb[2];
static ep_t ep[2];
static atomic_uchar ran[TOTAL], answered[TOTAL];
static atomic_int replies, inside, most_inside, met, stop;

/* The first handler stays until another one runs beside it, for a machine may be busy */
static void meet(void)
{
	uint64_t deadline = base_deadline(base_now(), 10 * BASE_NS_PER_S);

	if (met++)
		return;
	while (most_inside < 2 && !base_deadline_passed(deadline, base_now()))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

static void on_request(void *token, void *buf, int n, int i)
{
	int now = ++inside, most = most_inside;

	while (now > most && !atomic_compare_exchange_weak(&most_inside, &most, now))
		continue;
	meet();
	atomic_fetch_add(&ran[i], 1);
	if (i % 64 == 0)
		nanosleep(&(struct timespec){ .tv_nsec = 300000 }, NULL);
	if (i % 3)
		AM_ReplyI1(token, REPLY, buf, n, i);
	else
		AM_ReplyXfer1(token, 0, REPLY, buf, n, i);
	inside--;
}

static void on_reply(void *token, void *buf, int n, int i)
{
	atomic_fetch_add(&answered[i], 1);
	replies++;
}

static void *serve(void *arg)
{
	while (!stop)
		AM_Poll(eb[1]);
	return NULL;
}

static void *ask(void *arg)
{
	int first = (int)(intptr_t)arg * EACH, i;
	char data[700];

	memset(data, 1, sizeof(data));
	for (i = 0; i < EACH; i++) {
		AM_RequestI1(ep[0], 0, REQUEST, data, i % 700, first + i);
		if (i % 50 == 0)
			AM_Poll(eb[0]);
	}
	while (replies < TOTAL && !stop)
		AM_Poll(eb[0]);
	return NULL;
}

static void open_both(void)
{
	en_t name[2];
	int i;

	AMUDP_SetUDPInterface(htonl(INADDR_LOOPBACK));
	AM_Init();
	for (i = 0; i < 2; i++) {
		AM_AllocateBundle(AM_PAR, &eb[i]);
		AM_AllocateEndpoint(eb[i], &ep[i], &name[i]);
		AM_SetTag(ep[i], 7);
		AM_SetSeg(ep[i], calloc(1, 4096), 4096);
		AM_SetHandler(ep[i], REQUEST, on_request);
		AM_SetHandler(ep[i], REPLY, on_reply);
	}
	for (i = 0; i < 2; i++) {
		AM_Map(ep[i], 0, name[!i], 7);
		AM_SetExpectedResources(ep[i], 1, 32);
	}
}

static bool each_once(atomic_uchar *v)
{
	int i;

	for (i = 0; i < TOTAL; i++) {
		if (v[i] != 1)
			return false;
	}
	return true;
}

static void run(const char *loss, const char *name)
{
	pthread_t askers[THREADS], servers[2];
	void *segment;
	uintptr_t len;
	intptr_t i;

	setenv("AMUDP_FAULT_RATE", loss, 1);
	setenv("AMUDP_REQUESTTIMEOUT_INITIAL", "5000", 1);
	memset(ran, 0, sizeof(ran));
	memset(answered, 0, sizeof(answered));
	replies = stop = 0;
	open_both();
	for (i = 0; i < 2; i++)
		pthread_create(&servers[i], NULL, serve, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_create(&askers[i], NULL, ask, (void *)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(askers[i], NULL);
	stop = 1;
	for (i = 0; i < 2; i++)
		pthread_join(servers[i], NULL);
	tap_case(each_once(ran) && each_once(answered), name);
	for (i = 0; i < 2; i++) {
		AM_GetSeg(ep[i], &segment, &len);
		free(segment);
	}
	AM_Terminate();
}

int main(void)
{
	run("0", "four threads send, two serve");
	tap_case(most_inside > 1, "handlers of one endpoint run at once");
	run("0.05", "the same with losses");
	return tap_finish();
}
