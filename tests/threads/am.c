/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * AM_PAR: threads that send, poll and wait on one endpoint at once; every request and every
 * reply runs once, also when packets get lost. Then long data both ways and gets, beside threads
 * that wait blocked. Over UDP, or over AF_XDP (am_xdp.sh).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "include/warp/amudp.h"
#include "tests/am_place.h"
#include "tests/tap.h"

enum { THREADS = 4, EACH = 1500, TOTAL = THREADS * EACH, REQUEST = 1, REPLY };
enum { PUT = REPLY + 1, PUT_DONE, GOT, ASK, TOLD };
enum { ROUNDS = 60, WAITERS = 2, ALSO_COPIED = 200000, NOT_COPIED = 300000, ROOM = 2 * NOT_COPIED };

static eb_t eb[2];
static ep_t ep[2];
static int wrong_nic;
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

static atomic_int puts_done, gets_done, told[WAITERS + 1], damaged, ended, enough;

/* Long enough to be in many packets; every other one too long to be copied when it is sent. */
static int length_of(int round)
{
	return round % 2 ? NOT_COPIED : ALSO_COPIED;
}

static void pattern_make(uint8_t *p, int n, int round)
{
	int i;

	for (i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 7 + i / 509 + round);
}

static void pattern_check(const uint8_t *p, int n, int round)
{
	static const int step = 61;
	int i, bad = 0;

	for (i = 0; i < n; i += step)
		bad |= p[i] != (uint8_t)(i * 7 + i / 509 + round);
	damaged += bad;
}

static void on_put(void *token, void *buf, int n, int round)
{
	pattern_check(buf, n, round);
	damaged += n != length_of(round);
	AM_ReplyXfer1(token, 0, PUT_DONE, buf, n, round);
}

static void on_put_done(void *token, void *buf, int n, int round)
{
	pattern_check(buf, n, round);
	memset(buf, 0, (size_t)n);
	damaged += puts_done != round || n != length_of(round);
	puts_done++;
}

static void on_got(void *token, void *buf, int n, int round)
{
	pattern_check(buf, n, 0);
	memset(buf, 0, (size_t)n);
	damaged += gets_done != round || n != length_of(round);
	gets_done++;
}

static void on_ask(void *token, int who)
{
	AM_Reply1(token, TOLD, who);
}

static void on_told(void *token, int who)
{
	told[who]++;
}

/* The data are the caller's again when the call returns. */
static void *put_all(void *arg)
{
	static uint8_t data[NOT_COPIED];
	int i;

	for (i = 0; i < ROUNDS; i++) {
		pattern_make(data, length_of(i), i);
		AM_RequestXfer1(ep[0], 0, 0, PUT, data, length_of(i), i);
		memset(data, 0xEE, sizeof(data));
		while (puts_done == i)
			AM_Poll(eb[0]);
	}
	ended++;
	return NULL;
}

/* What the other end has in its segment, beside what is put there. */
static void *get_all(void *arg)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		AM_GetXfer1(ep[0], 0, NOT_COPIED, GOT, NOT_COPIED, length_of(i), i);
		while (gets_done == i)
			AM_WaitSema(eb[0]);
	}
	ended++;
	return NULL;
}

static void *ask_and_wait(void *arg)
{
	int who = (int)(intptr_t)arg, i;

	for (i = 0; i < 10 * ROUNDS; i++) {
		AM_Request1(ep[0], 0, ASK, who);
		while (told[who] == i)
			AM_WaitSema(eb[0]);
	}
	ended++;
	return NULL;
}

static void *serve_blocked(void *arg)
{
	while (!enough)
		AM_WaitSema(eb[1]);
	ended++;
	return NULL;
}

/*
 * Another thread may have taken what a thread is about to wait for: something always comes again.
 * True if all end in time.
 */
static bool tick_until(int all)
{
	uint64_t deadline = base_deadline(base_now(), 100 * BASE_NS_PER_S);

	while (ended < all && !base_deadline_passed(deadline, base_now())) {
		AM_Request1(ep[0], 0, ASK, WAITERS);
		AM_Poll(eb[0]);
	}
	return ended == all;
}

static void open_both(void)
{
	en_t name[2];
	int i;

	AM_Init();
	for (i = 0; i < 2; i++) {
		AMUDP_SetUDPInterface(am_place(i));
		AM_AllocateBundle(AM_PAR, &eb[i]);
		AM_AllocateEndpoint(eb[i], &ep[i], &name[i]);
		wrong_nic |= strcmp(AMUDP_GetNic(ep[i]), am_place_nic());
		AM_SetTag(ep[i], 7);
		AM_SetSeg(ep[i], calloc(1, ROOM), ROOM);
		AM_SetEventMask(eb[i], AM_NOTEMPTY);
		AM_SetHandler(ep[i], REQUEST, on_request);
		AM_SetHandler(ep[i], REPLY, on_reply);
		AM_SetHandler(ep[i], PUT, on_put);
		AM_SetHandler(ep[i], PUT_DONE, on_put_done);
		AM_SetHandler(ep[i], GOT, on_got);
		AM_SetHandler(ep[i], ASK, on_ask);
		AM_SetHandler(ep[i], TOLD, on_told);
	}
	for (i = 0; i < 2; i++) {
		am_place(i);
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

static void close_both(void)
{
	void *segment;
	uintptr_t len;
	int i;

	for (i = 0; i < 2; i++) {
		AM_GetSeg(ep[i], &segment, &len);
		free(segment);
	}
	AM_Terminate();
}

static void run(const char *loss, const char *name)
{
	pthread_t askers[THREADS], servers[2];
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
	close_both();
}

/* Long data, gets, and threads that wait blocked at both ends. */
static void run_long(const char *loss, const char *name)
{
	pthread_t t[WAITERS + 4];
	uint8_t *there;
	uintptr_t n;
	intptr_t i;
	bool good;

	setenv("AMUDP_FAULT_RATE", loss, 1);
	puts_done = gets_done = damaged = ended = enough = stop = 0;
	for (i = 0; i <= WAITERS; i++)
		told[i] = 0;
	open_both();
	AM_GetSeg(ep[1], (void **)&there, &n);
	pattern_make(there + NOT_COPIED, NOT_COPIED, 0);
	pthread_create(&t[0], NULL, put_all, NULL);
	pthread_create(&t[1], NULL, get_all, NULL);
	for (i = 0; i < WAITERS; i++)
		pthread_create(&t[2 + i], NULL, ask_and_wait, (void *)i);
	for (i = 0; i < 2; i++)
		pthread_create(&t[2 + WAITERS + i], NULL, i ? serve : serve_blocked, NULL);
	good = tick_until(2 + WAITERS);
	enough = 1;
	good = tick_until(2 + WAITERS + 1) && good;
	stop = 1;
	if (!tap_case(good && !damaged && puts_done == ROUNDS && gets_done == ROUNDS, name))
		exit(tap_finish()); /* threads may be stuck */
	for (i = 0; i < WAITERS + 4; i++)
		pthread_join(t[i], NULL);
	close_both();
}

int main(void)
{
	run("0", "four threads send, two serve");
	tap_case(most_inside > 1, "handlers of one endpoint run at once");
	run("0.05", "the same with losses");
	run_long("0", "long data, gets, and threads that wait blocked");
	run_long("0.02", "the same with losses");
	tap_case(!wrong_nic, am_place_nic());
	return tap_finish();
}
